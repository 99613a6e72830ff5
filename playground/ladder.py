"""Slots in an order in which each changes one choice: what each choice contributed, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .config import Comparison, SlotSpec, differences
from .metrics import RunMetrics
from .verdicts import unfairness

# The figure that guides to local language models promise; the whole ladder is held against it.
PROMISE = 2.0
# What goes together as one choice: a drafter is nothing without its kind of speculation.
_TOGETHER = {"drafter": "speculation", "exit_layer": "speculation", "draft_head": "speculation"}


@dataclass(frozen=True)
class Rung:
    """One step up: the slot, the choice that it changes (None for the first), and decode tok/s before and after."""

    slot: SlotSpec
    choice: str | None
    before: str
    after: str
    from_rate: float
    rate: float

    @property
    def factor(self) -> float:
        return self.rate / self.from_rate


@dataclass(frozen=True)
class Ladder:
    """The rungs from the reference on, and the slots with a rate that no rung leads to."""

    rungs: tuple[Rung, ...]
    left_out: tuple[SlotSpec, ...]

    @property
    def total(self) -> float:
        return self.rungs[-1].rate / self.rungs[0].rate


def one_choice(before: SlotSpec, slot: SlotSpec) -> tuple[str, str, str] | None:
    """The only choice in which two slots differ, and its values; None where they differ in none or several."""
    found = differences(before, slot)
    names = {_TOGETHER.get(name, name) for name, _, _ in found}
    if len(names) != 1:
        return None
    (name,) = names
    _, was, now = next((d for d in found if d[0] == name), found[0])
    return name, was, now


def ladder(comparison: Comparison, runs: Mapping[str, RunMetrics]) -> Ladder | None:
    """The longest ladder from the reference; of equals the one that ends fastest. None where there is no rung.

    Only fair pairs make a rung.
    """
    slots = {slot.id: slot for slot in comparison.slots}
    rates = {slot: run.decode_tok_per_s for slot, run in runs.items() if slot in slots and run.decode_tok_per_s}
    if comparison.reference not in rates:
        return None

    def climb(path: tuple[str, ...]) -> tuple[str, ...]:
        before = slots[path[-1]]
        nexts = [
            climb((*path, slot))
            for slot in rates
            if slot not in path and one_choice(before, slots[slot])
            and unfairness(runs[slot], runs[path[-1]], "fair", (slots[slot], before)) is None
        ]
        return max([path, *nexts], key=lambda p: (len(p), rates[p[-1]]))

    path = climb((comparison.reference,))
    if len(path) < 2:
        return None
    first = slots[path[0]]
    rungs = [Rung(first, None, "", "", rates[path[0]], rates[path[0]])]
    rungs += [Rung(slots[b], *one_choice(slots[a], slots[b]), rates[a], rates[b]) for a, b in zip(path, path[1:])]
    return Ladder(tuple(rungs), tuple(slots[slot] for slot in rates if slot not in path))
