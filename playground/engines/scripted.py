"""An engine that speaks from a script: for tests, and for showing the page without a model.

Implements scheduler.Engine without torch. A script is a function of the slot and the prompt
that yields events; `Hold` makes it wait for a gate, so that tests wait for states, not time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ..config import ModelSpec, Prompt, SlotSpec
from ..events import Done, Event, Memory, Ready, Started, Tokens
from ..scheduler import Resident, Stop


@dataclass(frozen=True)
class Hold:
    """Wait here until the gate opens or the run is stopped."""

    gate: threading.Event = field(default_factory=threading.Event)


Script = Callable[[SlotSpec, Prompt], Iterable[Event | Hold]]


class ScriptedEngine:
    """Plays a script. `ran` lists the slots in the order in which they began."""

    def __init__(self, script: Script):
        self._script = script
        self._lock = threading.Lock()
        self.ran: list[str] = []
        self.running = 0
        self.most_running = 0

    def run(self, slot: SlotSpec, prompt: Prompt, stop: Stop) -> Iterator[Event]:
        """The script's events; a stop turns the next step into Done("stopped")."""
        with self._lock:
            self.ran.append(slot.id)
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        try:
            for step in self._script(slot, prompt):
                if isinstance(step, Hold):
                    _wait(step.gate, stop)
                if stop.is_set():
                    yield Done("stopped")
                    return
                if not isinstance(step, Hold):
                    yield step
        finally:
            with self._lock:
                self.running -= 1

    def unload(self, model: ModelSpec | None) -> None:
        """Nothing is loaded."""

    def resident(self) -> tuple[Resident, ...]:
        return ()

    def machine(self) -> str:
        return "scripted engine, no model"

    def close(self) -> None:
        """Nothing to free."""


def _wait(gate: threading.Event, stop: Stop) -> None:
    either = threading.Event()
    forget = stop.listen(either.set)
    watcher = threading.Thread(target=lambda: (gate.wait(), either.set()), daemon=True)
    watcher.start()
    either.wait()
    forget()


def spoken(text: str, ttft_s: float = 0.1, gap_s: float = 0.05, prompt_tokens: int = 8) -> list[Event]:
    """A whole run that says `text`, a character an id, by a clock of its own."""
    t0 = 1_000_000_000
    tokens = [
        Tokens(t0 + round((ttft_s + i * gap_s) * 1e9), (ord(char),), char, 1) for i, char in enumerate(text)
    ]
    ready = Ready(0.5, 1_000_000, None, "float32", "cpu", "scripted")
    memory = Memory("scripted", 2_000_000, 2_500_000, None, 100_000)
    return [ready, Started(t0, prompt_tokens), *tokens, memory, Done("length")]
