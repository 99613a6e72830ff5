"""Between text and ids: the prompt going in, the answer coming out piece by piece."""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from ..config import History, Prompt
from .refusal import Refusal

_REPLACEMENT = "\ufffd"
_BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")


class Codec:
    """A tokenizer that several threads may use: its methods take turns."""

    def __init__(self, tokenizer: Any):
        self._tokenizer = tokenizer
        self._lock = threading.Lock()
        added = getattr(tokenizer, "added_tokens_decoder", {})
        self.special_ids = frozenset(tokenizer.all_special_ids) | {i for i, t in added.items() if t.special}
        # A run of byte pieces is decoded as a whole: one bad byte changes what its neighbours become.
        self.byte_ids = frozenset(i for p, i in tokenizer.get_vocab().items() if _BYTE_PIECE.fullmatch(p))

    def encode(self, prompt: Prompt, history: History = ()) -> Any:
        """The prompt's ids, shape (1, prompt tokens), as the tokenizer or its template gives them.

        `history` comes before it, each turn a user's text and the answer; without the template they are put in a row. Raises Refusal when the model has no chat template or its template refuses the roles.
        """
        settings = prompt.settings
        with self._lock:
            if not settings.chat_template:
                if settings.system_prompt:
                    raise Refusal(
                        "system_prompt: a system prompt needs the chat template, which is off.",
                        "Turn the chat template on, or clear the system prompt.",
                    )
                text = "".join(part for turn in history for part in turn) + prompt.text
                return self._tokenizer(text, return_tensors="pt")["input_ids"]
            return self._templated(prompt, history)

    def plain_ids(self, text: str) -> list[int]:
        """The ids of a text without a template."""
        with self._lock:
            return self._tokenizer(text, verbose=False)["input_ids"]

    def _templated(self, prompt: Prompt, history: History) -> Any:
        if not self._tokenizer.chat_template:
            raise Refusal(
                "chat_template: this model has none.", "Turn the chat template off to send the plain text."
            )
        system = prompt.settings.system_prompt
        turns = [{"role": "system", "content": system}] if system else []
        for asked, answered in history:
            turns += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
        turns.append({"role": "user", "content": prompt.text})
        try:
            return self._tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, return_dict=True, return_tensors="pt"
            )["input_ids"]
        except Exception as error:  # jinja2.TemplateError and whatever a template raises
            raise Refusal(
                f"chat_template: this model's template refuses the conversation: {error}",
                "Clear the system prompt, or turn the chat template off.",
            ) from error

    def copy_of_tokenizer(self) -> Any:
        """A tokenizer for one caller's own use."""
        with self._lock:
            return copy.deepcopy(self._tokenizer)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, special tokens left out, spaces as they are."""
        with self._lock:
            return self._tokenizer.decode(
                list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
            )

    def vocabulary(self) -> dict[str, int]:
        with self._lock:
            return self._tokenizer.get_vocab()

    def ends_in_byte(self, ids: Sequence[int]) -> bool:
        """Whether the last id that shows is a byte piece, so that a run of bytes may go on."""
        last = next((i for i in reversed(ids) if i not in self.special_ids), None)
        return last in self.byte_ids

    def visible(self, ids: Iterable[int]) -> int:
        """How many of the ids are not special tokens."""
        return sum(i not in self.special_ids for i in ids)


class TextStream:
    """Turns ids that arrive in groups into text that is final.

    Decodes a short window instead of everything: the pieces before it give a word-piece its
    leading space. Holds back while the window ends in half a character or in a run of byte
    pieces. All that `feed` and
    `finish` return, joined, equals decoding all ids at once.
    """

    def __init__(self, codec: Codec):
        self._codec = codec
        self._ids: list[int] = []
        self._window = 0
        self._given = 0
        self._text: list[str] = []

    def feed(self, ids: Iterable[int]) -> str:
        """The text that these ids make final; empty while a character is incomplete."""
        self._ids.extend(ids)
        if self._codec.ends_in_byte(self._ids):
            return ""
        before = self._codec.decode(self._ids[self._window : self._given])
        now = self._codec.decode(self._ids[self._window :])
        if now.endswith(_REPLACEMENT) or len(now) <= len(before):
            return ""
        self._window, self._given = self._given, len(self._ids)
        self._text.append(now[len(before) :])
        return self._text[-1]

    def finish(self) -> str:
        """What the full decode has beyond the text already given."""
        whole = self._codec.decode(self._ids)
        given = "".join(self._text)
        return whole[len(given) :] if whole.startswith(given) else ""


class StopStrings:
    """Finds the id that completes one of several texts, however ids are grouped."""

    def __init__(self, codec: Codec, stops: Sequence[str]):
        self._stops = stops
        self._stream = TextStream(codec)
        self._tail = ""
        self._longest = max(map(len, stops), default=0)
        self.found = False

    def keep(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """The ids up to and with the one that completes a stop string; all of them when none does."""
        if not self._stops:
            return ids
        for i, token in enumerate(ids):
            piece = self._stream.feed([token])
            text = self._tail + piece
            if piece and any(stop in text for stop in self._stops):
                self.found = True
                return ids[: i + 1]
            self._tail = text[len(text) - self._longest + 1 :] if self._longest <= len(text) else text
        return ids
