"""Several runs' numbers -> what may be said about them together.

A speed-up is a claim, so it is made only where it holds: fair, finished, undisturbed runs of equal work on the same
model. Otherwise there is a reason instead of a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .config import Mode, SlotSpec, differences
from .metrics import RunMetrics

FINISHED = ("length", "eos", "stop_string")
BUSY_SHARE = 0.25  # of the cores; with more than that taken by other processes a run is not undisturbed

SlotPair = tuple[SlotSpec, SlotSpec]


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
    "other_model": "another model: {0} here, {1} in the reference",
    "other_dtype": "dtype {0} here, {1} in the reference, and more than that differs: change one choice at a time",
    "unequal_work": "unequal work: {0} new tokens here, {1} in the reference; "
    "turn on 'ignore end of sequence' to force equal lengths",
    "unequal_prompt": "unequal work: {0} prompt tokens here, {1} in the reference",
    "other_prompt": "the prompt's ids differ from the reference's: another template, or another turn of a conversation",
    "cold": "a run was not warmed up",
    "recompiled": "torch compiled during a run, inside its time: run it once more",
    "no_difference": "no measurable difference: {0}×, and the reference differs from itself by up to {1}",
    "busy": "the machine was busy: other processes took {0} of {1} cores during a run",
}


def speedups(
    runs: Mapping[str, RunMetrics], reference: str, mode: Mode, slots: Mapping[str, SlotSpec] | None = None
) -> dict[str, Speedup]:
    """For each slot but the reference: its speed-up, or the reason why there is none."""
    base, known = runs.get(reference, RunMetrics()), slots or {}
    pairs = {slot: (known[slot], known[reference]) if slot in known and reference in known else None for slot in runs}
    return {slot: speedup(run, base, mode, pairs[slot]) for slot, run in runs.items() if slot != reference}


def speedup(run: RunMetrics, base: RunMetrics, mode: Mode, slots: SlotPair | None = None) -> Speedup:
    """One run's speed-up over another, or the reason why there is none. `slots` are the two runs' own."""
    if withheld := unfairness(run, base, mode, slots):
        return withheld
    if run.decode_tok_per_s is None or base.decode_tok_per_s is None:
        return Speedup(None, "no_rate")
    return Speedup(run.decode_tok_per_s / base.decode_tok_per_s)


def unfairness(run: RunMetrics, base: RunMetrics, mode: Mode, slots: SlotPair | None = None) -> Speedup | None:
    """The first reason why two runs cannot be compared; None for a fair pair."""
    both = (run, base)
    if mode == "race":
        return Speedup(None, "contended")
    if any(r.finish not in FINISHED for r in both):
        return Speedup(None, "unfinished")
    if slots and (found := _other_weights(run, base, *slots)):
        return found
    if run.prompt_tokens != base.prompt_tokens:
        return Speedup(None, "unequal_prompt", (str(run.prompt_tokens), str(base.prompt_tokens)))
    if run.prompt_key and base.prompt_key and run.prompt_key != base.prompt_key:
        return Speedup(None, "other_prompt")
    if run.new_tokens != base.new_tokens:
        return Speedup(None, "unequal_work", (str(run.new_tokens), str(base.new_tokens)))
    if any(r.warmup_s is None for r in both):
        return Speedup(None, "cold")
    if any(r.recompiled_s for r in both):
        return Speedup(None, "recompiled")
    for r in both:
        if r.other_cores is not None and r.cores and r.other_cores > BUSY_SHARE * r.cores:
            return Speedup(None, "busy", (f"{r.other_cores:.1f}", str(r.cores)))
    return None


def _other_weights(run: RunMetrics, base: RunMetrics, slot: SlotSpec, reference: SlotSpec) -> Speedup | None:
    ours, theirs = slot.model, reference.model
    if (ours.model, ours.revision) != (theirs.model, theirs.revision):
        return Speedup(None, "other_model", (ours.model, theirs.model))
    dtypes = (run.dtype or ours.dtype, base.dtype or theirs.dtype)
    if dtypes[0] != dtypes[1] and any(name != "dtype" for name, _, _ in differences(reference, slot)):
        return Speedup(None, "other_dtype", dtypes)
    return None
