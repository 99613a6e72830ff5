"""One comparison as it unfolds: the events of each slot, and what they amount to.

Plain data for whoever shows a comparison: the page's columns and charts, and the API.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from .breakdown import why_slower
from .breakeven import BreakEven, Prospect, break_even, prospect
from .config import Comparison, Mode, SlotSpec, differences
from .divergence import Parting, parting
from .events import ENDINGS, Done, Drafts, Event, Failed, Loading, Queued, Ready, Repetition, Round, SlotEvent, Tokens
from .ladder import Ladder, ladder
from .metrics import Phase, RunMetrics, live_tok_per_s, measure, phase_of, text_of
from .protocol import Outcome, Series
from .verdicts import REASONS, Speedup, speedup, speedups


class Column:
    """One slot's events so far."""

    def __init__(self, slot: SlotSpec):
        self.slot = slot
        self.events: list[Event] = []
        self.repetition: Repetition | None = None
        self.series: Series | None = None  # all runs of a benchmark, once it has ended
        self._typical = RunMetrics()  # and what they amount to
        self._measured = (0, RunMetrics())  # how many events these numbers are from

    def take(self, event: Event) -> None:
        """One more event. A benchmark's next run begins anew."""
        if isinstance(event, Repetition):
            self.repetition, self.events, self._measured = event, [], (0, RunMetrics())
        else:
            self.events.append(event)

    @property
    def phase(self) -> Phase:
        return phase_of(self.events)

    @property
    def _last(self) -> Done | Failed | None:
        """How the run ended; an assessment may follow it."""
        return next((e for e in reversed(self.events) if isinstance(e, (Done, Failed))), None)

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return self._last is not None

    @property
    def text(self) -> str:
        return text_of(self.events)

    @property
    def pieces(self) -> list[tuple[str, int | None]]:
        """The answer in runs of text, each with the number of the round whose accepted draft it is.

        None is the target's own. Joined, the runs are `text`.
        """
        runs: list[tuple[str, int | None]] = []
        rounds = -1
        for event in self.events:
            if isinstance(event, Round):
                rounds += 1
            elif isinstance(event, (Tokens, Done)):
                cut = event.drafted_chars if isinstance(event, Tokens) else 0
                for text, source in ((event.text[:cut], rounds), (event.text[cut:], None)):
                    if text and source is None and runs and runs[-1][1] is None:
                        runs[-1] = (runs[-1][0] + text, None)
                    elif text:
                        runs.append((text, source))
        return runs

    def conclude(self, series: Series) -> None:
        """A benchmark has ended: from now on the numbers are the medians of its runs, where there are any."""
        self.repetition = None
        if series.runs:
            self.series, self._typical = series, series.typical

    @property
    def ids(self) -> tuple[int, ...]:
        """The answer's ids."""
        return tuple(i for event in self.events if isinstance(event, Tokens) for i in event.ids)

    @property
    def rounds(self) -> list[Round]:
        return [event for event in self.events if isinstance(event, Round)]

    @property
    def drafts(self) -> Drafts | None:
        """What the rounds drafted and lost, once the answer is complete."""
        return next((event for event in self.events if isinstance(event, Drafts)), None)

    @property
    def run(self) -> RunMetrics:
        """The numbers so far, measured once for each batch of events however often they are shown; medians of a benchmark."""
        if self.series is not None:
            return self._typical
        if self._measured[0] != len(self.events):
            self._measured = (len(self.events), measure(self.events))
        return self._measured[1]

    @property
    def script(self) -> str:
        """This slot as Python source, once its weights are in place; empty before."""
        return next((event.script for event in self.events if isinstance(event, Ready)), "")

    @property
    def live_tok_per_s(self) -> float | None:
        return None if self.ended else live_tok_per_s(self.events)

    @property
    def failure(self) -> Failed | None:
        return self._last if isinstance(self._last, Failed) else None

    @property
    def loading(self) -> Loading | None:
        last = self.events[-1] if self.events else None
        return last if isinstance(last, Loading) else None

    @property
    def ahead(self) -> int:
        """Comparisons ahead in the queue, by the last word on it."""
        positions = [e.position for e in self.events if isinstance(e, Queued)]
        return positions[-1] if positions else 0


class Board:
    """All columns of one comparison."""

    def __init__(self, comparison: Comparison, mode: Mode = "fair", limit: int | None = None):
        """`limit` is how many ids each slot may generate; None is unknown."""
        self.limit = limit
        self.comparison = comparison
        self.mode = mode
        self.outcome: Outcome | None = None
        self.columns = {slot.id: Column(slot) for slot in comparison.slots}

    def absorb(self, events: Iterable[SlotEvent]) -> set[str]:
        """Take events in; returns the ids of the slots they changed."""
        changed = set()
        for item in events:
            self.columns[item.slot_id].take(item.event)
            changed.add(item.slot_id)
        return changed

    def conclude(self, outcome: Outcome | None) -> None:
        """Take a benchmark's outcome: from now on columns and charts show medians. None changes nothing."""
        self.outcome = outcome
        for series in outcome.series if outcome else ():
            self.columns[series.slot.id].conclude(series)

    @property
    def repetition(self) -> Repetition | None:
        """How far a running benchmark is; None when none runs."""
        known = [column.repetition for column in self.columns.values() if column.repetition]
        return max(known, key=lambda r: r.done) if known and self.outcome is None else None

    @property
    def waiting(self) -> bool:
        """Whether nothing of this comparison has begun."""
        return all(column.phase == "queued" for column in self.columns.values())

    @property
    def answered(self) -> bool:
        """Whether every slot's answer has ended, of a benchmark the last one."""
        if self.mode == "benchmark" and self.outcome is None:
            return False
        return all(column.ended for column in self.columns.values())

    def settled(self) -> dict[str, int]:
        """How many of each slot's results are final: its run's, then its quality's. Charts show these."""
        return {
            slot: sum(isinstance(event, ENDINGS) for event in column.events) for slot, column in self.columns.items()
        }

    def speedups(self) -> dict[str, Speedup]:
        """What may be said of each slot against the reference."""
        if self.mode == "benchmark":
            series = self.outcome.series if self.outcome else ()
            known = {s.slot.id: self.outcome.verdict(s) for s in series}
            return {s: known.get(s, Speedup(None, "unfinished")) for s in self.columns if s != self.comparison.reference}
        runs = {slot: column.run for slot, column in self.columns.items()}
        return speedups(runs, self.comparison.reference, self.mode, {slot.id: slot for slot in self.comparison.slots})

    def plain_slot(self, slot: SlotSpec) -> SlotSpec | None:
        """The slot that is this one without speculation; None where there is none, or this one has none."""
        if slot.decode.speculation == "none":
            return None
        plain = slot.decode.without_speculation()
        return next((s for s in self.comparison.slots if (s.model, s.decode) == (slot.model, plain)), None)

    def gain(self, slot: SlotSpec) -> Speedup | None:
        """What speculation itself gained or lost, against the plain slot if that is not the reference."""
        plain = self.plain_slot(slot)
        if plain is None or plain.id == self.comparison.reference:
            return None
        return speedup(self.columns[slot.id].run, self.columns[plain.id].run, self.mode, (slot, plain))

    def break_even(self, slot: SlotSpec) -> BreakEven | None:
        """What this slot's rounds cost and yield against the plain slot; None without one, or in a race."""
        plain = self.plain_slot(slot)
        if plain is None or self.mode == "race":
            return None
        return break_even(self.columns[slot.id].run, self.columns[plain.id].run)

    def prospect(self, slot: SlotSpec) -> Prospect | None:
        """When this slot's speculation would pay; None without a plain slot beside it, or in a race."""
        plain = self.plain_slot(slot)
        if plain is None or self.mode == "race":
            return None
        return prospect(self.columns[slot.id].run, self.columns[plain.id].run)

    def why_slower(self, slot: SlotSpec) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Reasons, from its own figures, why this slot lost to the reference; empty where no fair ratio says so."""
        verdict = self.speedups().get(slot.id)
        if verdict is None or verdict.value is None or verdict.value >= 1:
            return ()
        base = self.columns[self.comparison.reference]
        return why_slower(slot, base.slot, self.columns[slot.id].run, base.run)

    def ladder(self) -> Ladder | None:
        """What each choice contributed; None in a race, or where no two fair slots differ in one choice."""
        if self.mode == "race":
            return None
        return ladder(self.comparison, {slot: column.run for slot, column in self.columns.items()})

    def parting(self, slot: SlotSpec) -> Parting | None:
        """Where this slot's answer parts from the reference's; None while either runs, or where they are equal.

        Measured log-probabilities come with the quality assessment.
        """
        ours, theirs = self.columns[slot.id], self.columns[self.comparison.reference]
        return (ours.run.parting or parting(theirs.ids, ours.ids)) if self.comparable(slot) else None

    def comparable(self, slot: SlotSpec) -> bool:
        """Whether this slot's answer and the reference's, another one, are both complete."""
        both = (self.columns[slot.id], self.columns[self.comparison.reference])
        return both[0] is not both[1] and all(column.ended and not column.failure for column in both)

    def sharers(self, slot: SlotSpec) -> int:
        """How many slots of this comparison use the slot's weights, itself included."""
        return sum(other.model == slot.model for other in self.comparison.slots)

    def counts_weights(self, slot: SlotSpec) -> bool:
        """Whether the slot is the first on its weights, where a total counts them."""
        return next(s for s in self.comparison.slots if s.model == slot.model) is slot

    def differences(self, slot: SlotSpec) -> tuple[SlotSpec | None, tuple[tuple[str, str, str], ...]]:
        """The most similar slot before this one (of equals the reference, else the latest), and what sets this one apart."""
        before = self.comparison.slots[: self.comparison.slots.index(slot)]
        if not before:
            return None, ()
        reference = self.comparison.reference
        closest = min(reversed(before), key=lambda other: (len(differences(other, slot)), other.id != reference))
        return closest, differences(closest, slot)

    def as_json(self) -> dict[str, Any]:
        """Plain data for API clients: per slot its phase, text, numbers and speed-up."""
        verdicts = self.speedups()
        return {
            "preset": self.comparison.id,
            "mode": self.mode,
            "reference": self.comparison.reference,
            "benchmark": _benchmark_json(self.outcome),
            "slots": {slot: _column_json(column, verdicts.get(slot)) for slot, column in self.columns.items()},
        }


def _benchmark_json(outcome: Outcome | None) -> dict[str, Any] | None:
    """Order, noise and each slot's raw values of a finished benchmark; None otherwise."""
    if outcome is None:
        return None
    return {
        "repeats": outcome.repeats, "order": outcome.order, "stopped": outcome.stopped,
        "noise_floor": {name: outcome.noise_floor(name) for name in ("decode_tok_per_s", "ttft_s")},
        "runs": {
            series.slot.id: {name: series.values(name) for name in ("decode_tok_per_s", "ttft_s")} for series in outcome.series
        },
    }


def _column_json(column: Column, speedup: Speedup | None) -> dict[str, Any]:
    failure, run = column.failure, column.run
    if not column.ended:
        run = dataclasses.replace(run, itl_s=None, accepted_by_round=None, timeline=())  # they grow; sent once, at the end
    return {
        "name": column.slot.name,
        "phase": column.phase,
        "queue_position": column.ahead if column.phase == "queued" else None,
        "text": column.text,
        "error": failure.message if failure else None,
        "hint": failure.hint if failure else None,
        "script": column.script if column.ended else None,
        "metrics": dataclasses.asdict(run),
        "speedup": speedup.value if speedup else None,
        "speedup_reason": REASONS[speedup.reason].format(*speedup.details) if speedup and speedup.reason else None,
    }
