"""What runs slots, as everybody else sees it: the Engine protocol, what is loaded, and how a run is asked to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from .capabilities import Technique
from .checkup import Checkup
from .config import ModelSpec, Prompt, SlotSpec
from .events import Event
from .forecast import Forecast


class EngineError(Exception):
    """An engine cannot do what it was asked; `str()` is fit for the user."""


class Stop:
    """A request to end a run, seen by whoever polls it and passed on to whoever subscribed."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []

    def set(self) -> None:
        """Ask the run to end. Later calls change nothing."""
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def is_set(self) -> bool:
        return self._event.is_set()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` once when set, at once if it is already. Returns a way to forget it."""
        with self._lock:
            if not self._event.is_set():
                self._listeners.append(listener)
                return lambda: self._forget(listener)
        listener()
        return lambda: None

    def _forget(self, listener: Callable[[], None]) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)


@dataclass(frozen=True)
class Resident:
    """Loaded weights: bytes with shared storage once, and how many modules are built on them.

    `added_bytes` is what they added to the weights that were loaded before them; `folder` is
    where a checkpoint lies that was quantized here, empty for others.
    """

    model: ModelSpec
    bytes: int
    added_bytes: int
    modules: int
    folder: str = ""


class Engine(Protocol):
    """Runs slots. Implemented by the worker process, the in-process engine and the scripted one."""

    def run(self, slot: SlotSpec, prompt: Prompt, stop: Stop) -> Iterator[Event]:
        """The events of one run, ending in exactly one Done or Failed. Thread-safe."""

    def assess(
        self, slot: SlotSpec, reference: SlotSpec, prompt: Prompt, answer: tuple[int, ...], stop: Stop, own: tuple[int, ...] = ()
    ) -> Iterator[Event]:
        """Quality of a slot against the reference, over the ids of the reference's answer; `own` are the slot's own ids.

        Ends in exactly one Quality or NoQuality. Thread-safe.
        """

    def unload(self, model: ModelSpec | None) -> None:
        """Free these weights and every module built on them; None frees all. EngineError while one runs."""

    def resident(self) -> tuple[Resident, ...]:
        """What is loaded now, least recently used first."""

    def machine(self) -> str:
        """One line about the device, for people; empty while unknown. Must not block."""

    def capabilities(self) -> tuple[Technique, ...]:
        """What this machine can run. May take seconds and disturbs a run: ask through Scheduler.when_idle."""

    def group_sizes(self, model: ModelSpec) -> tuple[int, ...] | None:
        """GPTQ group sizes that divide every layer width of a model that is on this machine; None for others.

        Disturbs a run: ask through Scheduler.when_idle.
        """

    def examine(self, model: ModelSpec) -> Checkup | None:
        """A model's cache: its size on this device and what would spoil it; None for a model that is not here.

        Disturbs a run: ask through Scheduler.when_idle.
        """

    def forecast(self, slots: tuple[SlotSpec, ...], prompt: Prompt) -> tuple[Forecast, ...]:
        """What each slot will need in its turn; slots whose models are not on this machine are left out.

        Disturbs a run: ask through Scheduler.when_idle.
        """

    def close(self) -> None:
        """End runs and free everything."""
