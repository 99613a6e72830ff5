"""One call of generate for a slot: how it is configured, and who hears the ids of each step."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

from ..config import DecodeSpec, Prompt, Settings, SlotSpec
from ..engine import Stop
from ..events import Event, FinishReason, Tokens
from . import caches, compiling, ranks, speculate
from .draft_head import DraftHead
from .text import Codec, StopStrings, TextStream
from .weights import Card, Weights

Emit = Callable[[Event], None]


@dataclass(frozen=True)
class ReadySlot:
    """A slot ready to run: its modules and what they need.

    `tokenizers` are the target's and the drafter's, where those differ.
    """

    spec: SlotSpec
    weights: Weights
    module: Any
    drafter: Any | None
    card: Card
    tokenizers: tuple[Any, Any] | None = None
    head: DraftHead | None = None


def run_bytes(slot: SlotSpec, ids: torch.Tensor, prompt: Prompt, card: Card) -> int:
    """What a run is predicted to need beside weights: the KV cache at its longest, and working memory."""
    return kv_bytes(slot, ids, prompt, card) + working_bytes(slot, card, ids.shape[1], prompt.settings.batch)


def kv_bytes(slot: SlotSpec, ids: torch.Tensor, prompt: Prompt, card: Card) -> int:
    """What the formula says of the KV cache at its longest; 0 where it says nothing."""
    room, batch = cache_room(slot, ids, prompt), prompt.settings.batch
    return caches.predicted_bytes(slot.decode, card.config, room, card.dtype, batch) or 0


def working_bytes(slot: SlotSpec, card: Card, prompt_tokens: int, batch: int = 1) -> int:
    """Activations of the prompt's forward at their widest, roughly: the residual stream with a layer's projections or
    its MLP, scores of one position in float32, and with eager or math attention one layer's scores of all positions.
    """
    text = card.config.get_text_config()
    hidden = getattr(text, "hidden_size", 0)
    wide = 6 * hidden + 3 * (getattr(text, "intermediate_size", None) or 4 * hidden)
    needed = prompt_tokens * wide * card.dtype.itemsize + 2 * 4 * text.vocab_size
    if slot.decode.attention in ("eager", "sdpa-math"):
        needed += getattr(text, "num_attention_heads", 1) * prompt_tokens**2 * (4 + card.dtype.itemsize)
    return batch * needed


def cache_room(slot: SlotSpec, ids: torch.Tensor, prompt: Prompt) -> int:
    return caches.room(slot.decode, ids.shape[1] + prompt.settings.new_tokens, prompt.settings.draft_len)


def predicted_kv(slot: ReadySlot, cache: Any, room: int, batch: int) -> int | None:
    """What the formula says of the cache as it is now; a static one has all its room from the start."""
    decode = slot.spec.decode
    length = room if "static" in decode.cache else cache.get_seq_length() if cache is not None else 0
    return caches.predicted_bytes(decode, slot.card.config, int(length), slot.card.dtype, batch)


def eos_ids(card: Card, prompt: Prompt) -> tuple[int, ...]:
    return () if prompt.settings.ignore_eos else card.eos_ids


def call_generate(
    slot: ReadySlot, ids: torch.Tensor, prompt: Prompt, new_tokens: int, tap: Tap, known: Any = None
) -> tuple[Any, tuple[int, ...]]:
    """Run generate; returns its KV cache, None without one, and all ids. `known` is a cache that holds the first ones."""
    card, room = slot.card, cache_room(slot.spec, ids, prompt)
    options = generate_options(slot.spec.decode, prompt.settings, new_tokens, card.eos_ids, card.config, room)
    if slot.spec.decode.compile != "none":
        options["compile_config"] = compiling.config_for(slot.spec.decode.compile, card.device)
    config = GenerationConfig(return_dict_in_generate=True, **options)
    ids = ids.repeat(prompt.settings.batch, 1)
    with ExitStack() as stack:
        extra: dict[str, Any] = {} if known is None else {"cache": known}
        drafter = slot.module if slot.spec.decode.speculation == "early-exit" else slot.drafter
        if drafter is not None:
            drafter.generation_config = speculate.drafter_config(prompt.settings)
        if slot.drafter is not None:
            extra["assistant_model"] = slot.drafter
        if slot.tokenizers is not None:
            extra["tokenizer"], extra["assistant_tokenizer"] = slot.tokenizers
        if slot.spec.decode.speculation != "none":
            make = speculate.drafts_of(slot.head, prompt.settings) if slot.head is not None else None
            stack.enter_context(tap.rounds.watching(slot.module, make))
        output = slot.module.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            generation_config=config,
            streamer=tap,
            stopping_criteria=StoppingCriteriaList([tap.stopper]),
            **extra,
        )
    return output.cache, tuple(output.sequences[0].tolist())


def generate_options(
    decode: DecodeSpec, settings: Settings, new_tokens: int, eos_ids: tuple[int, ...], config: Any, positions: int
) -> dict[str, Any]:
    """Everything that generate's config decides for a slot, so that a checkpoint's own defaults change nothing.

    `eos_ids` are the model's, `config` its config, `positions` what `caches.room` says.
    """
    sampling = settings.temperature > 0
    drawn = {"temperature": settings.temperature, "top_p": settings.top_p, "top_k": 0} if sampling else {}
    return {
        "max_new_tokens": new_tokens,
        "do_sample": sampling,
        **drawn,
        "eos_token_id": None if settings.ignore_eos else list(eos_ids) or None,
        "pad_token_id": eos_ids[0] if eos_ids else 0,
        **caches.options_for(decode, config, positions),
        **speculate.options_for(decode, settings),
    }


class Forwards:
    """Inside the block, times the forwards of a module on a CPU. A GPU works on after a forward has returned.

    `passed_over` says when to leave forwards out: those of a drafter that is the module itself.
    """

    def __init__(self, slot: ReadySlot, passed_over: Callable[[], bool]):
        self._module = slot.module
        self._passed_over = passed_over
        self._times_ns: list[int] = []
        # A wrapped forward would be compiled anew, and only there would its time be told.
        self._on = not slot.card.device.is_cuda and slot.spec.decode.compile == "none"

    def __enter__(self) -> Forwards:
        if self._on:
            self._own = vars(self._module).get("forward")
            forward = self._module.forward

            @functools.wraps(forward)
            def timed(*args: Any, **kwargs: Any) -> Any:
                began = time.perf_counter_ns()
                output = forward(*args, **kwargs)
                if not self._passed_over():
                    self._times_ns.append(time.perf_counter_ns() - began)
                return output

            self._module.forward = timed
        return self

    def __exit__(self, *error: Any) -> None:
        if self._on and self._own is not None:
            self._module.forward = self._own
        elif self._on:
            del self._module.forward

    @property
    def seconds(self) -> tuple[float | None, float | None]:
        """The first forward and all later ones."""
        if not self._times_ns:
            return None, None
        first, *later = self._times_ns
        return first / 1e9, sum(later) / 1e9


class _Stopper(StoppingCriteria):
    """Ends generation at the first step after a stop, or at a stop string."""

    def __init__(self, stop: Stop, strings: StopStrings):
        self._stop = stop
        self._strings = strings

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        ended = ranks.agreed(self._stop.is_set()) or self._strings.found
        return torch.full((input_ids.shape[0],), ended, dtype=torch.bool, device=input_ids.device)


class Tap(BaseStreamer):
    """Hears the ids of every step from the model's own loop, stamps them and passes them on."""

    def __init__(
        self, codec: Codec, eos_ids: tuple[int, ...], new_tokens: int, stop: Stop, emit: Emit, stops: tuple[str, ...] = (),
        batch: int = 1,
    ):
        self.text = TextStream(codec)
        self.rounds = speculate.RoundCounter(eos_ids)
        self._strings = StopStrings(codec, stops)
        self.stopper = _Stopper(stop, self._strings)
        self._codec = codec
        self._eos_ids = eos_ids
        self._stop = stop
        self._emit = emit
        self._prompt_seen = False
        self._last_id: int | None = None
        self._missing = new_tokens
        self._batch = batch
        self.spent_ns = 0  # from hearing of ids to having passed them on, all steps together

    def put(self, value: torch.Tensor) -> None:
        """Ids of one step, already on the CPU; the first call brings the prompt and is skipped."""
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        if self._strings.found or self._last_id in self._eos_ids:
            return  # a step that was under way when the stop string was seen, or others of a batch that still go on
        arrived = time.perf_counter_ns()
        # One id each of a batch, whose first is shown; else all ids of a round.
        ids = self._strings.keep(tuple(value.reshape(-1).tolist())[: 1 if self._batch > 1 else None])
        self._last_id = ids[-1]
        self._missing -= len(ids)
        settled = self.rounds.settle(ids, arrived, cut=self._strings.found)
        drafted = ""
        if settled is not None:
            self._emit(settled)
            drafted = self.text.feed(ids[: settled.accepted]) if settled.accepted else ""
            text = drafted + self.text.feed(ids[settled.accepted :])
        else:
            text = self.text.feed(ids)
        self._emit(Tokens(arrived, ids, text, self._codec.visible(ids), len(drafted)))
        self.spent_ns += time.perf_counter_ns() - arrived

    def end(self) -> None:
        """Nothing to flush: the run's Done carries what is left of the text."""

    def reason(self) -> FinishReason:
        """Why generation ended, asked after it did."""
        if self._last_id in self._eos_ids:
            return "eos"
        if self._strings.found:
            return "stop_string"
        return "stopped" if self._stop.is_set() and self._missing > 0 else "length"
