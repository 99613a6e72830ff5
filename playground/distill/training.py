"""Trains a draft head on what its target wrote and thought, with checkpoints to go on from."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from ..engines.draft_head import DraftHead
from .hidden import Lessons
from .loss import draft_loss
from .recipe import Recipe
from .unrolling import unroll

CHECKPOINT_S = 60.0

_WARMUP_STEPS = 50
_STEP_WEIGHT = 0.9  # a later id is drafted only where the earlier ones were accepted
_SORTED_TOGETHER = 20  # batches among which rows are sorted by length, to pad little


@dataclass(frozen=True)
class Progress:
    """Where training stands: running means of the loss (nats) and of the share of first ids that agree."""

    step: int
    steps: int
    loss: float
    agreement: float
    seconds: float


def train(
    head: DraftHead, lessons: Lessons, recipe: Recipe, checkpoint: Path, tick: Callable[[Progress], None]
) -> Progress:
    """Train `head` in place, in float32 with bf16 products; goes on from `checkpoint` where there is one."""
    order = list(_batches(lessons, recipe))
    optimizers = _optimizers(head, recipe)
    state = _Resumable(head, optimizers, checkpoint)
    step, loss, agreement, spent = state.load()
    began = saved = time.monotonic()
    head.train()
    while step < len(order):
        _set_rate(optimizers, step, len(order))
        found, agreed = _step(head, lessons, order[step], recipe)
        for optimizer in optimizers:
            optimizer.step()
        step += 1
        share = max(0.02, 1 / step)
        loss, agreement = loss + share * (found - loss), agreement + share * (agreed - agreement)
        now = time.monotonic()
        if now - saved > CHECKPOINT_S or step == len(order):
            state.save(step, loss, agreement, spent + now - began)
            saved = now
        tick(Progress(step, len(order), loss, agreement, spent + now - began))
    head.eval()
    return Progress(step, len(order), loss, agreement, spent + time.monotonic() - began)


def _step(head: DraftHead, lessons: Lessons, batch: list[int], recipe: Recipe) -> tuple[float, float]:
    """Forward and backward of one batch; returns its loss and first-id agreement."""
    taken = [lessons[i] for i in batch]
    device = head.rows.device
    ids, states, top, shares = (
        pad_sequence([getattr(lesson, name) for lesson in taken], batch_first=True).to(device)
        for name in ("ids", "states", "top", "shares")
    )
    lengths = torch.tensor([len(lesson.ids) for lesson in taken], device=device)[:, None]
    prompts = torch.tensor([lesson.prompt_length for lesson in taken], device=device)[:, None]
    # The output at t answers for the hidden state at t + 1, which scores the id at t + 2.
    at = torch.arange(ids.shape[1] - 1, device=device)[None]
    asked = (at + 2 >= prompts) & (at + 2 < lengths)
    top, shares = top[:, 1:][asked], shares[:, 1:][asked]
    with torch.autocast(device.type, torch.bfloat16):
        outputs, _ = unroll(head, states.float(), ids, recipe.unroll)
        total, agreed = torch.zeros((), device=device), 0.0
        for s, output in enumerate(outputs):
            losses, hits = draft_loss(output[asked], head.rows, top, shares)
            reached = (at >= s).expand_as(asked)[asked]
            total = total + _STEP_WEIGHT**s * losses[reached].mean()
            agreed = agreed or hits.float().mean().item()
    head.zero_grad()
    total.backward()
    nn.utils.clip_grad_norm_(head.parameters(), 1.0)
    return total.item(), agreed


def _batches(lessons: Lessons, recipe: Recipe) -> Iterator[list[int]]:
    """Rows of every step, the same for the same recipe; rows of like length go together."""
    wanted = math.ceil(recipe.passes * len(lessons) / recipe.batch)
    rng, made = random.Random(recipe.seed), 0
    while made < wanted:
        rows = list(range(len(lessons)))
        rng.shuffle(rows)
        size = recipe.batch * _SORTED_TOGETHER
        blocks = [sorted(rows[i : i + size], key=lambda r: len(lessons.rows[r].ids)) for i in range(0, len(rows), size)]
        batches = [block[i : i + recipe.batch] for block in blocks for i in range(0, len(block), recipe.batch)]
        rng.shuffle(batches)
        yield from batches[: wanted - made]
        made += len(batches)


def _optimizers(head: DraftHead, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for matrices, which learns from fewer steps (Jordan et al., 2024), AdamW for the norms."""
    matrices = [p for p in head.parameters() if p.ndim == 2]
    rest = [p for p in head.parameters() if p.ndim != 2]
    muon = torch.optim.Muon(
        matrices, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, adjust_lr_fn="match_rms_adamw"
    )
    return [muon, torch.optim.AdamW(rest, lr=recipe.learning_rate, weight_decay=0.0)]


def _set_rate(optimizers: list[torch.optim.Optimizer], step: int, steps: int) -> None:
    """A short warm-up, then a cosine to nothing."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
            rise = min(1.0, (step + 1) / _WARMUP_STEPS)
            group["lr"] = group["initial_lr"] * rise * (0.5 + 0.5 * math.cos(math.pi * step / steps))


class _Resumable:
    """Head and optimizers as a file, which appears by one rename."""

    def __init__(self, head: DraftHead, optimizers: list[torch.optim.Optimizer], path: Path):
        self._head, self._optimizers, self._path = head, optimizers, path

    def load(self) -> tuple[int, float, float, float]:
        """Step, loss, agreement and seconds of the checkpoint; zeros without one."""
        if not self._path.is_file():
            return 0, 0.0, 0.0, 0.0
        state = torch.load(self._path, weights_only=True)
        self._head.load_state_dict(state["head"])
        for optimizer, saved in zip(self._optimizers, state["optimizers"]):
            optimizer.load_state_dict(saved)
        return state["step"], state["loss"], state["agreement"], state["seconds"]

    def save(self, step: int, loss: float, agreement: float, seconds: float) -> None:
        partial = self._path.with_suffix(".partial")
        torch.save(
            {
                "head": self._head.state_dict(),
                "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
                "step": step, "loss": loss, "agreement": agreement, "seconds": seconds,
            },
            partial,
        )
        os.replace(partial, self._path)
