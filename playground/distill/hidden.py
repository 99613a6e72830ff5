"""What the target thought of every id of the text: hidden states and its most likely next ids, kept on disk."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from ..engines.draft_head import DraftHead
from ..engines.refusal import Refusal
from .writing import Row

BATCH = 32
_DONE = "complete"


@dataclass(frozen=True)
class Lesson:
    """One row for training. `states` (length, taps * hidden size) at each id; `top` (length, n) are indices into the scored
    ids of the target's likeliest next ids, `shares` (length, n) their probabilities, which sum to one."""

    ids: torch.Tensor
    prompt_length: int
    states: torch.Tensor
    top: torch.Tensor
    shares: torch.Tensor


class Lessons:
    """All rows, read from memory-mapped files on demand."""

    def __init__(self, rows: Sequence[Row], folder: Path, width: int, top: int):
        self.rows = rows
        self._starts = [0, *accumulate(len(row.ids) for row in rows)]
        total = self._starts[-1]
        self._states = _mapped(folder / "states.bin", (total, width), torch.bfloat16)
        self._top = _mapped(folder / "top.bin", (total, top), torch.int32)
        self._shares = _mapped(folder / "shares.bin", (total, top), torch.float32)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Lesson:
        row, span = self.rows[index], self._span(index)
        return Lesson(
            torch.tensor(row.ids), len(row.prompt_ids), self._states[span], self._top[span].long(), self._shares[span]
        )

    def keep(self, index: int, states: torch.Tensor, top: torch.Tensor, shares: torch.Tensor) -> None:
        span = self._span(index)
        self._states[span], self._top[span], self._shares[span] = states, top, shares

    def _span(self, index: int) -> slice:
        return slice(self._starts[index], self._starts[index + 1])


def scored_ids(rows: Sequence[Row], most: int) -> torch.Tensor:
    """The ids that occur most often in the answers, at most so many, ascending."""
    counted = Counter(token for row in rows for token in row.new_ids)
    return torch.tensor(sorted(token for token, _ in counted.most_common(most)))


@torch.no_grad()
def lessons(
    module: Any, head: DraftHead, rows: Sequence[Row], folder: Path, top: int, tick: Callable[[int], None]
) -> Lessons:
    """Run the target over all rows, unless that was done before; `tick` hears how many rows are done. Raises Refusal."""
    folder.mkdir(parents=True, exist_ok=True)
    taps = head.config.taps
    width = len(taps) * head.config.hidden_size
    done = folder / _DONE
    if not done.is_file():
        _check_space(folder, sum(len(row.ids) for row in rows) * (2 * width + 8 * top))
    kept = Lessons(rows, folder, width, top)
    if done.is_file():
        return kept
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].ids))
    device = head.rows.device
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        ids = [torch.tensor(rows[i].ids, device=device) for i in batch]
        padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)  # on the right: causal, so nothing is seen of it
        output = module.get_decoder()(input_ids=padded, use_cache=False, output_hidden_states=list(taps))
        states = torch.cat([output.hidden_states[tap] for tap in taps], dim=-1)
        for row, i in enumerate(batch):
            length = len(rows[i].ids)
            scores, indices = head.scores(output.last_hidden_state[row, :length]).float().topk(top, -1)
            kept.keep(i, states[row, :length], indices.to(torch.int32), scores.softmax(-1))
        tick(start + len(batch))
    done.touch()
    return kept


def _mapped(path: Path, shape: tuple[int, int], dtype: torch.dtype) -> torch.Tensor:
    return torch.from_file(str(path), shared=True, size=shape[0] * shape[1], dtype=dtype).view(shape)


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Refusal(
            f"{folder}: hidden states need {needed / 1e6:.0f} MB of disk; {free / 1e6:.0f} MB are free.",
            "Free some space, ask for fewer text tokens, or choose another folder.",
        )
