"""One worker process a GPU: slots on different ones run at once, each under an interpreter of its own.

A tensor-parallel slot has a group of processes, one a rank.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from ..capabilities import Technique
from ..checkup import Checkup
from ..config import FIRST_WORKER, ModelSpec, Prompt, SlotSpec, ranks_of, worker_of
from ..engine import Engine, Resident, Stop
from ..events import Event
from ..forecast import Forecast
from .options import EngineOptions
from .worker import WorkerEngine


def worker_fleet(options: EngineOptions) -> FleetEngine:
    """An engine whose workers are processes of this machine."""
    return FleetEngine(lambda ranks: WorkerEngine(options, ranks))


class FleetEngine:
    """Sends each slot to its device's engine, made when it is first needed. Satisfies scheduler.Engine."""

    def __init__(self, make: Callable[[int], Engine]):
        """`make` gives a new engine of so many processes; the first one is made at once."""
        self._make = make
        self._lock = threading.Lock()
        self._engines: dict[str, Engine] = {FIRST_WORKER: make(1)}

    def start(self) -> None:
        """Start the first worker in the background."""
        self._engines[FIRST_WORKER].start()

    def run(self, slot: SlotSpec, prompt: Prompt, stop: Stop) -> Iterator[Event]:
        """The run's events, from the slot's own device."""
        return self._of(slot.model).run(slot, prompt, stop)

    def assess(
        self, slot: SlotSpec, reference: SlotSpec, prompt: Prompt, answer: tuple[int, ...], stop: Stop, own: tuple[int, ...] = ()
    ) -> Iterator[Event]:
        """Quality of a slot, on its own device, where the reference's weights are then loaded too."""
        return self._of(slot.model).assess(slot, reference, prompt, answer, stop, own)

    def unload(self, model: ModelSpec | None) -> None:
        """Free one spec's weights on its device, or all everywhere."""
        for engine in [self._of(model)] if model else self._all():
            engine.unload(model)

    def resident(self) -> tuple[Resident, ...]:
        return tuple(item for engine in self._all() for item in engine.resident())

    def machine(self) -> str:
        """The first worker's; the others are named where their slots say their device."""
        return self._engines[FIRST_WORKER].machine()

    def capabilities(self) -> tuple[Technique, ...]:
        return self._engines[FIRST_WORKER].capabilities()

    def group_sizes(self, model: ModelSpec) -> tuple[int, ...] | None:
        return self._of(model).group_sizes(model)

    def examine(self, model: ModelSpec) -> Checkup | None:
        return self._of(model).examine(model)

    def forecast(self, slots: tuple[SlotSpec, ...], prompt: Prompt) -> tuple[Forecast, ...]:
        """Each worker is asked for its own slots; a device that several workers use is counted by each alone."""
        workers: dict[str, list[SlotSpec]] = {}
        for slot in slots:
            workers.setdefault(worker_of(slot.model.device), []).append(slot)
        found = [f for own in workers.values() for f in self._of(own[0].model).forecast(tuple(own), prompt)]
        order = [slot.id for slot in slots]
        return tuple(sorted(found, key=lambda f: order.index(f.slot_id)))

    def close(self) -> None:
        for engine in self._all():
            engine.close()

    def _of(self, model: ModelSpec) -> Engine:
        name = worker_of(model.device)
        with self._lock:
            if name not in self._engines:
                self._engines[name] = self._make(ranks_of(model.device))
            return self._engines[name]

    def _all(self) -> list[Engine]:
        with self._lock:
            return list(self._engines.values())
