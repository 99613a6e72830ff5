"""The benchmark protocol over several values of one setting: how numbers change with length, draft length or batch."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from .checks import ConfigError, checked_choice, shown
from .config import Comparison, Prompt, bounds_of
from .engine import Engine, Stop
from .protocol import Outcome, Series, Step, benchmark

Swept = Literal["prompt_tokens", "new_tokens", "draft_len", "batch"]
METRICS = ("all_tok_per_s", "ttft_s", "kv_bytes", "acceptance_rate")
MOST_VALUES = 12
_MOST_PROMPT_TOKENS = 100_000
# About so many ids a word of English in a byte-pair vocabulary; the ids that a prompt really has are what is shown.
_IDS_A_WORD = 1.25
_WORDS = (
    "the river carries its water from the hills to the sea and on the way turns mills, feeds fields and floods the "
    "meadows when the snow melts in spring"
).split()


@dataclass(frozen=True)
class Point:
    """The outcome at one value of what is varied."""

    value: int
    outcome: Outcome

    def series(self, slot_id: str) -> Series:
        return next(series for series in self.outcome.series if series.slot.id == slot_id)


@dataclass(frozen=True)
class Sweep:
    """The points in order; fewer than were asked for when it was stopped."""

    variable: Swept
    points: tuple[Point, ...]


def checked_values(variable: Any, values: Any) -> tuple[Swept, tuple[int, ...]]:
    """What is varied and its values, from text such as "16, 64, 256" or a list. Raises ConfigError."""
    checked_choice("sweep", variable, Swept)
    low, high = (1, _MOST_PROMPT_TOKENS) if variable == "prompt_tokens" else (int(b) for b in dataclasses.astuple(bounds_of(variable)))
    parts = values.replace(",", " ").split() if isinstance(values, str) else list(values)
    found = []
    for part in parts:
        if not str(part).isdecimal() or not low <= int(part) <= high:
            raise ConfigError(variable, f"got {shown(part)}; give whole numbers from {low} to {high:,}, such as 16, 64, 256.")
        found.append(int(part))
    if not 1 <= len(found) <= MOST_VALUES or len(set(found)) != len(found):
        raise ConfigError(variable, f"got {len(found)} values; give 1 to {MOST_VALUES} different ones.")
    return variable, tuple(sorted(found))


def varied(prompt: Prompt, variable: Swept, value: int) -> Prompt:
    """The prompt with one setting changed; for a prompt length, with a text of about so many ids."""
    if variable == "prompt_tokens":
        words = itertools.islice(itertools.cycle(_WORDS), max(1, round(value / _IDS_A_WORD)))
        return dataclasses.replace(prompt, text=" ".join(words))
    return dataclasses.replace(prompt, settings=dataclasses.replace(prompt.settings, **{variable: value}))


def sweep(
    engine: Engine, comparison: Comparison, prompt: Prompt, variable: Swept, values: Sequence[int], repeats: int,
    stop: Stop, report: Callable[[int, Step], None],
) -> Sweep:
    """A benchmark at each value, smallest first. A stop keeps the values that are complete."""
    points: list[Point] = []
    for value in values:
        outcome = benchmark(engine, comparison, varied(prompt, variable, value), repeats, stop, lambda step, at=value: report(at, step))
        if outcome.stopped:
            break
        points.append(Point(value, outcome))
    return Sweep(variable, tuple(points))


def position(point: Point, series: Series, variable: Swept) -> float:
    """Where a point lies on the axis: prompts as long as they really were."""
    measured = series.median("prompt_tokens") if variable == "prompt_tokens" else None
    return point.value if measured is None else measured


VARIABLES: tuple[Swept, ...] = get_args(Swept)
