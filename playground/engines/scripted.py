"""An engine that speaks from a script: for tests, and for showing the page without a model.

Implements scheduler.Engine without torch. A script is a function of the slot and the prompt
that yields events; `Hold` makes it wait for a gate, so that tests wait for states, not time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from ..capabilities import Technique
from ..checkup import Checkup, Finding, KvShape
from ..config import ModelSpec, Prompt, SlotSpec
from ..engine import Resident, Stop
from ..events import Assessing, Done, Event, Memory, NoQuality, Quality, Ready, Started, Tokens, WarmedUp
from ..forecast import Forecast
from ..quantization import WHOLE_COLUMN


@dataclass(frozen=True)
class Hold:
    """Wait here until the gate opens or the run is stopped."""

    gate: threading.Event = field(default_factory=threading.Event)


Script = Callable[[SlotSpec, Prompt], Iterable[Event | Hold]]
Assessment = Callable[[SlotSpec, SlotSpec, tuple[int, ...]], Iterable[Event | Hold]]


def assessed_as_equal(slot: SlotSpec, reference: SlotSpec, answer: tuple[int, ...]) -> Iterable[Event]:
    """Every slot is as good as the reference."""
    return [Assessing(0.5), Quality(0.0, 1.0, len(answer), 10.0, (("english", 10.0),))]


class ScriptedEngine:
    """Plays a script, and another one for assessments. `ran` lists the slots in the order in which they began."""

    def __init__(self, script: Script, assessment: Assessment = assessed_as_equal):
        self._script = script
        self._assessment = assessment
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
            yield from _played(self._script(slot, prompt), stop, Done("stopped"))
        finally:
            with self._lock:
                self.running -= 1

    def assess(
        self, slot: SlotSpec, reference: SlotSpec, prompt: Prompt, answer: tuple[int, ...], stop: Stop, own: tuple[int, ...] = ()
    ) -> Iterator[Event]:
        """The assessment's events; a stop turns the next step into NoQuality."""
        return _played(self._assessment(slot, reference, answer), stop, NoQuality("stopped"))

    def unload(self, model: ModelSpec | None) -> None:
        """Nothing is loaded."""

    def resident(self) -> tuple[Resident, ...]:
        return ()

    def machine(self) -> str:
        return "scripted engine, no model"

    def capabilities(self) -> tuple[Technique, ...]:
        return (
            Technique("quantization", "bnb-nf4"),
            Technique("quantization", "torchao-fp8", "It needs a GPU.", "Use torchao-int8."),
        )

    def group_sizes(self, model: ModelSpec) -> tuple[int, ...] | None:
        return (32, 64, WHOLE_COLUMN)

    def examine(self, model: ModelSpec) -> Checkup | None:
        shape = KvShape((None, None, 1024), 192, 2)
        findings = (Finding("use_cache", False, ("off (config.json)",)), Finding("kernel", True, ("flash", "bfloat16")))
        return Checkup("scripted", "cpu", shape, 8192, 2_000_000, findings)

    def forecast(self, slots: tuple[SlotSpec, ...], prompt: Prompt) -> tuple[Forecast, ...]:
        """The first slot evicts another, the second does not fit."""
        fits = dict(device="cpu", dtype="bfloat16", weights_bytes=10**8, drafter_bytes=0, kv_bytes=10**6, working_bytes=10**6)
        found = [Forecast(slot.id, free_bytes=10**9, **fits) for slot in slots]
        found[0] = replace(found[0], evicts=("another model",), warnings=("float16 is slow here",))
        if len(found) > 1:
            found[1] = replace(found[1], free_bytes=10**6, problem="memory: too little.", remedy="Ask for fewer tokens.")
        return tuple(found)

    def close(self) -> None:
        """Nothing to free."""


def _played(steps: Iterable[Event | Hold], stop: Stop, stopped: Event) -> Iterator[Event]:
    for step in steps:
        if isinstance(step, Hold):
            _wait(step.gate, stop)
        if stop.is_set():
            yield stopped
            return
        if not isinstance(step, Hold):
            yield step


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
    return [ready, WarmedUp(0.1), Started(t0, prompt_tokens), *tokens, memory, Done("length")]
