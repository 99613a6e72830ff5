"""Several runs' numbers -> what may be said about them together.

A speed-up is a claim, so it is made only where it holds: fair runs, both finished, equal
work. Otherwise there is a reason instead of a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .config import Mode
from .metrics import RunMetrics


@dataclass(frozen=True)
class Speedup:
    """Ratio of decode tok/s to the reference slot's. `value` is None when `reason` says why.

    `reason` is one of the keys of REASONS; `details` fills it in.
    """

    value: float | None
    reason: str = ""
    details: tuple[str, ...] = ()


REASONS = {
    "contended": "race mode: the columns share one device, so no ratio is derived",
    "unfinished": "a run did not finish",
    "no_rate": "too few tokens for a decode rate",
    "unequal_work": "unequal work: {0} new tokens here, {1} in the reference; "
    "turn on 'ignore end of sequence' to force equal lengths",
    "unequal_prompt": "unequal work: {0} prompt tokens here, {1} in the reference",
}


def speedups(runs: Mapping[str, RunMetrics], reference: str, mode: Mode) -> dict[str, Speedup]:
    """For each slot but the reference: its speed-up, or the reason why there is none."""
    base = runs.get(reference, RunMetrics())
    return {slot: speedup(run, base, mode) for slot, run in runs.items() if slot != reference}


def speedup(run: RunMetrics, base: RunMetrics, mode: Mode) -> Speedup:
    """One run's speed-up over another, or the reason why there is none."""
    if mode == "race":
        return Speedup(None, "contended")
    finished = ("length", "eos", "stop_string")
    if run.finish not in finished or base.finish not in finished:
        return Speedup(None, "unfinished")
    if run.prompt_tokens != base.prompt_tokens:
        return Speedup(None, "unequal_prompt", (str(run.prompt_tokens), str(base.prompt_tokens)))
    if run.new_tokens != base.new_tokens:
        return Speedup(None, "unequal_work", (str(run.new_tokens), str(base.new_tokens)))
    if run.decode_tok_per_s is None or base.decode_tok_per_s is None:
        return Speedup(None, "no_rate")
    return Speedup(run.decode_tok_per_s / base.decode_tok_per_s)


@dataclass(frozen=True)
class BreakEven:
    """What a round of speculation costs and yields, its first one left out, which holds the prefill.

    `cost` is its time in plain steps: with fewer ids a round than that it loses. `yielded` is how
    many ids it gave; yielded / cost is the speed-up.
    """

    round_s: float
    step_s: float
    yielded: float

    @property
    def cost(self) -> float:
        return self.round_s / self.step_s


def break_even(run: RunMetrics, plain: RunMetrics) -> BreakEven | None:
    """Of a speculative run and the plain one; None where either has no gap between steps."""
    if not (run.rounds and run.itl_s and run.decode_tok_per_s and plain.tpot_s):
        return None
    round_s = sum(run.itl_s) / len(run.itl_s)
    return BreakEven(round_s, plain.tpot_s, run.decode_tok_per_s * round_s)
