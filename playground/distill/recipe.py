"""What a drafter is made of and how it is trained, as plain data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result. Kept beside the work, so that a resume goes on with the same.

    `text_tokens` is how many ids the target writes; `answer_tokens` bounds one answer. `passes` is how often
    the text is gone through, `unroll` over how many fed-back steps the loss reaches, `scored_ids` how many of
    the ids that occur are scored. 0 for `intermediate_size` takes the target's own.
    """

    target: str
    dtype: str = "auto"
    seed: int = 0
    text_tokens: int = 500_000
    answer_tokens: int = 160
    layers: int = 1
    intermediate_size: int = 0
    scored_ids: int = 8192
    unroll: int = 3
    passes: float = 4.5
    batch: int = 8
    learning_rate: float = 8e-3
    weight_decay: float = 0.01
    teacher_top: int = 12
    chat_template: bool = True


def differing(ours: Recipe, theirs: Recipe) -> tuple[str, ...]:
    """Names of the fields in which two recipes differ."""
    return tuple(f.name for f in dataclasses.fields(Recipe) if getattr(ours, f.name) != getattr(theirs, f.name))
