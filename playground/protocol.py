"""The benchmark protocol: slots by turns, several times, the reference twice, and what may be said of the outcome.

Drives any Engine. Every slot is warmed up before each run (engines do that), lengths are forced equal, decoding is
greedy. Plain data comes out; all raw numbers are kept.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from .config import Comparison, Prompt, SlotSpec
from .engine import Engine, Stop
from .events import Event, Failed
from .metrics import RunMetrics, measure
from .verdicts import Speedup, unfairness

TWIN = "reference again"
MEDIANS = ("decode_tok_per_s", "all_tok_per_s", "ttft_s", "tpot_s", "e2e_tok_per_s", "prefill_tok_per_s", "bandwidth_utilization", "peak_bytes")

Order = Literal["interleaved", "blocked"]


@dataclass(frozen=True)
class Series:
    """One slot's finished runs, in order, and why it has none if it failed."""

    slot: SlotSpec
    runs: tuple[RunMetrics, ...] = ()
    failure: str = ""

    @property
    def typical(self) -> RunMetrics:
        """The run whose decode rate is the median (of an even number the lower), every rate and time its own median."""
        if not self.runs:
            return RunMetrics(finish="failed" if self.failure else None)
        ordered = sorted(self.runs, key=lambda run: run.decode_tok_per_s or 0.0)
        medians = {name: self.median(name) for name in MEDIANS} | {"compile_s": max(self.values("compile_s"), default=None)}
        return dataclasses.replace(ordered[(len(ordered) - 1) // 2], **medians)

    def spread(self) -> dict[str, float]:
        """The median absolute deviation of each of MEDIANS that was measured."""
        found = {name: self.mad(name) for name in MEDIANS}
        return {name: value for name, value in found.items() if value is not None}

    def values(self, metric: str) -> tuple[float, ...]:
        """A metric of every run in which it could be measured."""
        return tuple(v for run in self.runs if (v := getattr(run, metric)) is not None)

    def median(self, metric: str) -> float | None:
        values = self.values(metric)
        return statistics.median(values) if values else None

    def mad(self, metric: str) -> float | None:
        """Median absolute deviation from the median."""
        values, middle = self.values(metric), self.median(metric)
        return statistics.median(abs(v - middle) for v in values) if values else None

    def variation(self, metric: str) -> float | None:
        """Coefficient of variation: standard deviation over mean; None below two runs."""
        values = self.values(metric)
        return statistics.stdev(values) / statistics.mean(values) if len(values) > 1 else None

    def gaps(self) -> dict[str, float]:
        """p50, p90 and p99 of all gaps between steps, in seconds; empty without any."""
        gaps = sorted(gap for run in self.runs for gap in run.itl_s or ())
        if len(gaps) < 2:
            return {}
        cuts = statistics.quantiles(gaps, n=100, method="inclusive")
        return {"p50": cuts[49], "p90": cuts[89], "p99": cuts[98]}


@dataclass(frozen=True)
class Outcome:
    """A finished or stopped benchmark. `twin` is the reference once more, which shows the noise."""

    comparison: Comparison
    prompt: Prompt
    repeats: int
    order: Order
    series: tuple[Series, ...]
    twin: Series
    stopped: bool = False

    @property
    def reference(self) -> Series:
        return next(s for s in self.series if s.slot.id == self.comparison.reference)

    def noise_floor(self, metric: str) -> float | None:
        """The largest relative difference between the reference and itself, run by run; None without a pair."""
        pairs = list(zip(self.reference.values(metric), self.twin.values(metric)))
        return max(abs(a / b - 1) for a, b in pairs) if pairs else None

    def ratio(self, series: Series, metric: str) -> float | None:
        """A slot's median over the reference's."""
        ours, theirs = series.median(metric), self.reference.median(metric)
        return ours / theirs if ours is not None and theirs else None

    def differs(self, series: Series, metric: str) -> bool | None:
        """Whether a slot differs from the reference by more than the noise; None where that cannot be said."""
        ratio, floor = self.ratio(series, metric), self.noise_floor(metric)
        return None if ratio is None or floor is None else abs(ratio - 1) > floor

    def verdict(self, series: Series) -> Speedup:
        """A slot's median decode rate over the reference's, or why none is given: unfair pairs, or no more than noise."""
        slots = (series.slot, self.reference.slot)
        if not series.runs or not self.reference.runs:
            return Speedup(None, "unfinished")
        for run, base in zip(series.runs, self.reference.runs):
            if (withheld := unfairness(run, base, "fair", slots)) is not None:
                return withheld
        ratio = self.ratio(series, "decode_tok_per_s")
        if ratio is None:
            return Speedup(None, "no_rate")
        if self.differs(series, "decode_tok_per_s") is False:
            return Speedup(None, "no_difference", (f"{ratio:.2f}", f"{self.noise_floor('decode_tok_per_s'):.1%}"))
        return Speedup(ratio)


@dataclass(frozen=True)
class Step:
    """Progress: run `done` of `total` is about to begin; `left_s` is a guess, None before the first has ended."""

    done: int
    total: int
    slot: SlotSpec
    left_s: float | None
    number: int


def forced(prompt: Prompt) -> Prompt:
    """The prompt with what a benchmark asks of every slot: greedy, and the same length for all."""
    settings = dataclasses.replace(prompt.settings, temperature=0.0, ignore_eos=True, stop_strings="")
    return dataclasses.replace(prompt, settings=settings)


def benchmark(
    engine: Engine, comparison: Comparison, prompt: Prompt, repeats: int, stop: Stop, report: Callable[[Step], None],
    play: Callable[[SlotSpec, Prompt], Iterable[Event]] | None = None,
) -> Outcome:
    """Run every slot `repeats` times and the reference as often again. A slot that fails is not asked again.

    `play` runs a slot and may pass its events on; the engine's own run without it.

    By turns (A B C A B C), unless the weights of all do not stay loaded together: then each slot's runs follow one
    another, since loading between any two would be timed in their place. A stop keeps the runs that are complete.
    """
    play = play or (lambda slot, prompt: engine.run(slot, prompt, stop))
    prompt = forced(prompt)
    reference = next(slot for slot in comparison.slots if slot.id == comparison.reference)
    entries = [*comparison.slots, dataclasses.replace(reference, id=TWIN, name=TWIN)]
    runs: dict[str, list[RunMetrics]] = {entry.id: [] for entry in entries}
    failures: dict[str, str] = {}
    began, total = time.monotonic(), repeats * len(entries)

    def take(entry: SlotSpec) -> None:
        if stop.is_set() or entry.id in failures:
            return
        done = sum(map(len, runs.values()))
        left_s = (time.monotonic() - began) / done * (total - done) if done else None
        report(Step(done, total, entry, left_s, len(runs[entry.id]) + 1))
        events = list(play(entry, prompt))
        if isinstance(events[-1], Failed):
            failures[entry.id] = f"{events[-1].message} {events[-1].hint}".strip()
        elif (found := measure(events)).finish != "stopped":
            runs[entry.id].append(found)

    for entry in entries:
        take(entry)
    loaded = {item.model for item in engine.resident()}
    order: Order = "interleaved" if {e.model for e in entries if e.id not in failures} <= loaded else "blocked"
    if order == "interleaved":
        for _ in range(repeats - 1):
            for entry in entries:
                take(entry)
    else:
        for entry in entries:
            for _ in range(repeats - 1):
                take(entry)
    series = [Series(entry, tuple(runs[entry.id]), failures.get(entry.id, "")) for entry in entries]
    return Outcome(comparison, prompt, repeats, order, tuple(series[:-1]), series[-1], stop.is_set())

