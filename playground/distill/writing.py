"""The target writes the text that its drafter learns from: prompts in, rows of ids out, a batch at a time."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..config import Prompt, Settings
from ..engines.refusal import Refusal
from ..engines.weights import Card
from .prompts import Ask

BATCH = 64
TEMPERATURE = 0.7


@dataclass(frozen=True)
class Row:
    """One answer. `temperature` 0 is greedy."""

    kind: str
    prompt: str
    temperature: float
    prompt_ids: tuple[int, ...]
    new_ids: tuple[int, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        return self.prompt_ids + self.new_ids


def read_rows(path: Path) -> list[Row]:
    """The rows of a text file; a last line that was cut short is left out."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    fields = [json.loads(line) for line in lines if line.endswith("\n")]
    return [Row(**{**f, "prompt_ids": tuple(f["prompt_ids"]), "new_ids": tuple(f["new_ids"])}) for f in fields]


def write_training_text(
    module: Any, card: Card, asks: Sequence[Ask], path: Path, tokens: int, answer_tokens: int, seed: int,
    chat_template: bool, tick: Callable[[int], None],
) -> list[Row]:
    """Write until the rows hold `tokens` new ids, going on after those in the file; `tick` hears how many there are.

    Batches are greedy and sampled by turns; a prompt asked again, in a later pass, is always sampled.
    """
    rows = read_rows(path)
    _append(path, rows, "w")  # drops a line cut short
    written = sum(len(row.new_ids) for row in rows)
    tick(written)
    while written < tokens:
        batch = [asks[(len(rows) + i) % len(asks)] for i in range(BATCH)]
        again, number = len(rows) >= len(asks), len(rows) // BATCH
        torch.manual_seed(seed + number)
        found = answers(module, card, batch, answer_tokens, TEMPERATURE if again or number % 2 else 0.0, chat_template)
        _append(path, found, "a")
        rows += found
        written += sum(len(row.new_ids) for row in found)
        tick(written)
    return rows


def answers(
    module: Any, card: Card, asks: Sequence[Ask], new_tokens: int, temperature: float, chat_template: bool
) -> list[Row]:
    """What the target answers to several prompts at once, up to and with the end of sequence. Raises Refusal."""
    settings = Settings(chat_template=chat_template)
    prompts = [card.codec.encode(Prompt(ask.text, settings))[0] for ask in asks]
    longest = max(map(len, prompts))
    if card.context and longest + new_tokens > card.context:
        raise Refusal(
            f"--answer-tokens: {new_tokens:,} beside {longest:,} prompt tokens do not fit this target's context "
            f"of {card.context:,}.", f"Give at most {max(1, card.context - longest):,}."
        )
    pad = card.eos_ids[0] if card.eos_ids else 0
    ids, mask = _left_padded(prompts, pad)
    sampling = {"do_sample": True, "temperature": temperature, "top_k": 0} if temperature else {"do_sample": False}
    device = card.device.torch
    output = module.generate(
        ids.to(device), attention_mask=mask.to(device), max_new_tokens=new_tokens, pad_token_id=pad,
        eos_token_id=list(card.eos_ids) or None, **sampling,
    )
    new = output[:, ids.shape[1] :].tolist()
    return [
        Row(ask.kind, ask.text, temperature, tuple(prompt.tolist()), tuple(_up_to_eos(answer, card.eos_ids)))
        for ask, prompt, answer in zip(asks, prompts, new)
    ]


def _left_padded(prompts: Sequence[torch.Tensor], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(len(p) for p in prompts)
    ids = torch.full((len(prompts), width), pad)
    mask = torch.zeros_like(ids)
    for i, prompt in enumerate(prompts):
        ids[i, width - len(prompt) :] = prompt
        mask[i, width - len(prompt) :] = 1
    return ids, mask


def _up_to_eos(ids: list[int], eos_ids: tuple[int, ...]) -> Iterator[int]:
    for token in ids:
        yield token
        if token in eos_ids:
            return


def _append(path: Path, rows: Sequence[Row], mode: str) -> None:
    with path.open(mode, encoding="utf-8") as file:
        file.writelines(json.dumps(dataclasses.asdict(row), ensure_ascii=False) + "\n" for row in rows)
