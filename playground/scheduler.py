"""Who runs when, who may stop whom, and how one slot's failure stays its own.

Comparisons queue in order of arrival; one at a time has the engine. Inside a comparison,
fair mode lets the slots of one device take turns and the slots of different devices run at
once; race mode starts them all together. Events of a comparison go to its own `Job` and to
nobody else's.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from .config import Comparison, Mode, Prompt, SlotSpec, spans, worker_of
from .engine import Engine, Stop
from .events import ENDINGS, Done, Event, Failed, NoQuality, Queued, Repetition, SlotEvent, Tokens
from .metrics import measure, summary
from .protocol import TWIN, Outcome, Step, benchmark

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class Job:
    """One submitted comparison: its events, and the handle that stops it."""

    def __init__(self, comparison: Comparison, prompt: Prompt, mode: Mode, session: str, quality: bool = False, repeats: int = 1):
        self.comparison = comparison
        self.prompt = prompt
        self.mode = mode
        self.quality = quality
        self.repeats = repeats
        self.outcome: Outcome | None = None  # a benchmark's, once it has ended or was stopped
        self.session = session
        self._stop = Stop()
        self._events: queue.SimpleQueue[SlotEvent | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._ended = False

    def stop(self) -> None:
        """End every run of this comparison; waiting slots end as stopped without running."""
        self._stop.set()

    @property
    def ended(self) -> bool:
        """Whether every event has been handed out."""
        return self._ended

    def next_events(self, timeout_s: float) -> list[SlotEvent]:
        """Events since the last call, waiting up to `timeout_s` for the first. Empty: none yet, or ended."""
        batch: list[SlotEvent] = []
        try:
            item = self._events.get(block=timeout_s > 0, timeout=timeout_s or None)
            while item is not None:
                batch.append(item)
                item = self._events.get_nowait()
        except queue.Empty:
            return batch
        self._ended = True
        return batch

    def gather(self, period_s: float) -> list[SlotEvent]:
        """Events of one period, or fewer if the job ends within it: for a display that redraws.

        Sleeps through the period instead of waking for every event: on a CPU each wake-up is
        taken from the model.
        """
        self._closed.wait(period_s)
        return self.next_events(0)

    def events(self) -> Iterator[SlotEvent]:
        """All events to the end. Closing the iterator early stops the job."""
        try:
            while not self.ended:
                yield from self.next_events(timeout_s=1.0)
        finally:
            self.stop()

    def _emit(self, slot: SlotSpec, event: Event) -> None:
        self._events.put(SlotEvent(slot.id, event))

    def _close(self) -> None:
        self._events.put(None)
        self._closed.set()


class _Visit:
    """A question to the engine that has its turn like a comparison, so that it disturbs none."""

    session = ""


class Scheduler:
    """Runs comparisons on an engine, one at a time, in order of arrival."""

    def __init__(self, engine: Engine):
        self.engine = engine
        self._line: list[Job | _Visit] = []
        self._turn = threading.Condition()

    def submit(
        self, comparison: Comparison, prompt: Prompt, mode: Mode, session: str, quality: bool = False, repeats: int = 1
    ) -> Job:
        """Put a comparison in line and return at once. With `quality` that is measured after all answers.

        `repeats` is how often a benchmark runs each slot.
        """
        job = Job(comparison, prompt, mode, session, quality, repeats)
        with self._turn:
            self._line.append(job)
            self._announce(job, self._line.index(job))
        job._stop.listen(self._wake)
        threading.Thread(target=self._serve, args=(job,), daemon=True, name="comparison").start()
        return job

    def when_idle(self, question: Callable[[Engine], Answer]) -> Answer | None:
        """What the engine answers, asked at once if nobody has it; None while a comparison runs or waits."""
        visit = _Visit()
        with self._turn:
            if self._line:
                return None
            self._line.append(visit)
        try:
            return question(self.engine)
        finally:
            self._leave(visit)

    def stop_session(self, session: str) -> None:
        """Stop whatever this session has running or waiting, and nobody else's."""
        with self._turn:
            mine = [job for job in self._line if job.session == session]
        for job in mine:
            job.stop()

    def _wake(self) -> None:
        with self._turn:
            self._turn.notify_all()

    def _announce(self, job: Job, position: int) -> None:
        for slot in job.comparison.slots:
            job._emit(slot, Queued(position))

    def _serve(self, job: Job) -> None:
        try:
            if self._wait_for_turn(job):
                self._run(job)
            else:
                for slot in job.comparison.slots:
                    job._emit(slot, Done("stopped"))
        finally:
            self._leave(job)
            job._close()

    def _leave(self, member: Job | _Visit) -> None:
        with self._turn:
            self._line.remove(member)
            for position, waiting in enumerate(self._line):
                if position:
                    self._announce(waiting, position)
            self._turn.notify_all()

    def _wait_for_turn(self, job: Job) -> bool:
        """True when the job is first in line; False when it was stopped before."""
        with self._turn:
            self._turn.wait_for(lambda: self._line[0] is job or job._stop.is_set())
            if job._stop.is_set():
                return False
            self._announce(job, 0)
            return True

    def _run(self, job: Job) -> None:
        runs: dict[str, list[Event]] = {}
        if job.mode == "benchmark":
            self._benchmark(job, runs)
        else:
            self._compare(job, runs)
        if job.quality:
            self._assess(job, runs)

    def _compare(self, job: Job, runs: dict[str, list[Event]]) -> None:
        lanes = [
            threading.Thread(target=self._run_lane, args=(job, lane, runs), daemon=True, name="lane")
            for lane in _lanes(job)
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()

    def _run_lane(self, job: Job, slots: Iterable[SlotSpec], runs: dict[str, list[Event]]) -> None:
        for slot in slots:
            runs[slot.id] = list(self._play(job, slot, slot, job.prompt))

    def _play(self, job: Job, entry: SlotSpec, slot: SlotSpec, prompt: Prompt) -> Iterator[Event]:
        """Run an entry and pass its events on to its slot's column."""
        events = []
        run = partial(self.engine.run, entry, prompt, job._stop)
        for event in _guarded(run, f"slot {entry.id}", job._stop, Done("stopped"), Failed):
            job._emit(slot, event)
            events.append(event)
            yield event
        log.info("%s/%s (%s): %s", job.comparison.id, entry.id, job.mode, summary(measure(events)))

    def _benchmark(self, job: Job, runs: dict[str, list[Event]]) -> None:
        """The protocol, with every run in its slot's column; the reference's twin shows in the reference's."""
        columns = {slot.id: slot for slot in job.comparison.slots}
        columns[TWIN] = columns[job.comparison.reference]

        def play(entry: SlotSpec, prompt: Prompt) -> Iterator[Event]:
            events = runs[columns[entry.id].id] = []
            for event in self._play(job, entry, columns[entry.id], prompt):
                events.append(event)
                yield event

        def report(step: Step) -> None:
            again = step.slot.id == TWIN
            job._emit(
                columns[step.slot.id], Repetition(step.number, job.repeats, step.done, step.total, step.left_s, again)
            )

        job.outcome = benchmark(self.engine, job.comparison, job.prompt, job.repeats, job._stop, report, play)
        for slot in job.comparison.slots:
            if slot.id not in runs:
                runs[slot.id] = [Done("stopped")]
                job._emit(slot, Done("stopped"))

    def _assess(self, job: Job, runs: dict[str, list[Event]]) -> None:
        """Quality of every slot that answered, one after another: nothing here is timed."""
        reference = next(slot for slot in job.comparison.slots if slot.id == job.comparison.reference)
        answers = {slot: tuple(i for e in events if isinstance(e, Tokens) for i in e.ids) for slot, events in runs.items()}
        answer = answers[reference.id]
        for slot in job.comparison.slots:
            if isinstance(runs[slot.id][-1], Failed):
                continue
            if not answer:
                job._emit(slot, NoQuality("The reference slot has no answer to compare with."))
                continue
            assess = partial(self.engine.assess, slot, reference, job.prompt, answer, job._stop, answers[slot.id])
            stopped = NoQuality("Stopped before quality was measured.")
            for event in _guarded(assess, f"quality of slot {slot.id}", job._stop, stopped, NoQuality):
                job._emit(slot, event)


def _lanes(job: Job) -> list[list[SlotSpec]]:
    """Slots that take turns, together: by device in fair mode, each alone in race mode.

    A slot over several devices would meet those of each: then all take turns.
    """
    slots = list(job.comparison.slots)
    if job.mode == "race":
        return [[slot] for slot in slots]
    if any(spans(slot.model.device) for slot in slots):
        return [slots]
    lanes: dict[str, list[SlotSpec]] = {}
    for slot in slots:
        lanes.setdefault(worker_of(slot.model.device), []).append(slot)
    return list(lanes.values())


def _guarded(
    events: Callable[[], Iterator[Event]], what: str, stop: Stop, stopped: Event, failed: Callable[[str, str], Event]
) -> Iterator[Event]:
    """An engine's events with the promise kept: exactly one of ENDINGS, and it comes last."""
    if stop.is_set():
        yield stopped
        return
    try:
        for event in events():
            yield event
            if isinstance(event, ENDINGS):
                return
    except Exception as error:
        log.exception("%s failed", what)
        yield failed(f"{type(error).__name__}: {error}", "This is a fault of the playground; the log has the details.")
        return
    yield failed("The engine ended without a result.", "This is a fault of the playground; run it again.")
