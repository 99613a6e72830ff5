"""The worker process as seen from outside: start it, talk to it, survive its death.

Imports no torch. Each run is a conversation over one pipe: the web process sends
(request, number, payload), the worker answers batches of (number, payload). When the worker dies, the
runs that were on it fail with the reason and the next run starts a new one.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import groupby
from multiprocessing.connection import Connection, Listener
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..capabilities import Technique
from ..checkup import Checkup
from ..config import ModelSpec, Prompt, SlotSpec
from ..engine import Resident, Stop
from ..events import ENDINGS, Event, Failed, Loading, NoQuality
from ..forecast import Forecast
from .options import EngineOptions
from .refusal import Refusal

START_PATIENCE_S = 120
_ROOT = Path(__file__).resolve().parent.parent.parent


class WorkerEngine:
    """Runs slots in a worker process. Satisfies scheduler.Engine; thread-safe."""

    def __init__(self, options: EngineOptions, ranks: int = 1):
        """With `ranks` the worker is a group of so many processes, of which the first one talks to us."""
        self._options = options
        self._ranks = ranks
        self._worker: _Worker | None = None
        self._lock = threading.Lock()
        self._closed = False

    def start(self) -> None:
        """Start the worker in the background, so that its imports are done by the first run."""
        threading.Thread(target=self._ready_worker, daemon=True, name="start-worker").start()

    def run(self, slot: SlotSpec, prompt: Prompt, stop: Stop) -> Iterator[Event]:
        """The run's events. A worker that cannot start or dies ends it in Failed."""
        yield Loading("starting the worker")
        yield from self._converse("run", (slot, prompt), stop, Failed)

    def assess(
        self, slot: SlotSpec, reference: SlotSpec, prompt: Prompt, answer: tuple[int, ...], stop: Stop, own: tuple[int, ...] = ()
    ) -> Iterator[Event]:
        """The assessment's events. A worker that cannot start or dies ends it in NoQuality."""
        for event in self._converse("assess", (slot, reference, prompt, answer, own), stop, NoQuality):
            yield NoQuality(event.message, event.hint) if isinstance(event, Failed) else event

    def _converse(self, request: str, payload: Any, stop: Stop, failed: Callable[[str, str], Event]) -> Iterator[Event]:
        """Send a request and yield its answers to the one that ends it; a stop is passed on."""
        try:
            worker = self._ready_worker()
            call = worker.call(request, payload)
        except (OSError, Refusal) as error:
            yield failed(f"The worker process could not be started: {error}", "See the log, then run it again.")
            return
        forget = stop.listen(lambda: worker.send("stop", call.number))
        try:
            while True:
                for event in call.answers.get():
                    yield event
                    if isinstance(event, ENDINGS):
                        return
        finally:
            forget()
            worker.hang_up(call)

    def unload(self, model: ModelSpec | None) -> None:
        """Free weights in the worker; nothing to do without one. Raises Refusal for those in use."""
        worker = self._worker
        if worker is not None and worker.alive:
            _ask(worker, "unload", model)

    def capabilities(self) -> tuple[Technique, ...]:
        """What the worker's machine can run. Raises Refusal when the worker cannot start or dies."""
        return _ask(self._ready_worker(), "capabilities", None)

    def group_sizes(self, model: ModelSpec) -> tuple[int, ...] | None:
        """GPTQ group sizes for a model that is here already. Raises Refusal as `capabilities` does."""
        return _ask(self._ready_worker(), "group_sizes", model)

    def examine(self, model: ModelSpec) -> Checkup | None:
        """A model's cache on the worker's device. Raises Refusal as `capabilities` does."""
        return _ask(self._ready_worker(), "examine", model)

    def forecast(self, slots: tuple[SlotSpec, ...], prompt: Prompt) -> tuple[Forecast, ...]:
        """What slots will need on the worker's device. Raises Refusal as `capabilities` does."""
        return _ask(self._ready_worker(), "forecast", (slots, prompt))

    def resident(self) -> tuple[Resident, ...]:
        """What the worker said last; it tells after every change."""
        worker = self._worker
        return worker.resident if worker is not None and worker.alive else ()

    def machine(self) -> str:
        """What the worker said of its device; empty until it has started."""
        worker = self._worker
        return worker.machine if worker is not None else ""

    @property
    def pid(self) -> int | None:
        """The worker's process id; None when none runs."""
        worker = self._worker
        return worker.process.pid if worker is not None and worker.alive else None

    def close(self) -> None:
        """End the worker and whatever it runs."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.kill()

    def _ready_worker(self) -> _Worker:
        with self._lock:
            if self._closed:
                raise Refusal("the app is closing")
            if self._worker is None or not self._worker.alive:
                self._worker = _Worker(self._options, self._ranks)
            return self._worker


def _ask(worker: _Worker, request: str, payload: Any) -> Any:
    """One request with one answer. Raises Refusal when the worker refuses or dies."""
    call = worker.call(request, payload)
    (answer,) = call.answers.get()
    worker.hang_up(call)
    if isinstance(answer, Failed):
        raise Refusal(answer.message, answer.hint)
    return answer


class _Call:
    """One request and the queue of its answers, which come in batches."""

    def __init__(self, number: int):
        self.number = number
        self.answers: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()


class _Worker:
    """One life of the worker process."""

    def __init__(self, options: EngineOptions, ranks: int):
        self.alive = True
        self.machine = ""
        self.resident: tuple[Resident, ...] = ()
        self._calls: dict[int, _Call] = {}
        self._numbers = 0
        self._lock = threading.Lock()
        self.process, self._pipe = _spawn(options, ranks)
        threading.Thread(target=self._listen, daemon=True, name="worker-listener").start()

    def call(self, request: str, payload: Any) -> _Call:
        """Send a request; its answers arrive in the returned call's queue."""
        with self._lock:
            self._numbers += 1
            call = _Call(self._numbers)
            if not self.alive:
                call.answers.put([self._obituary()])
                return call
            self._calls[call.number] = call
        self.send(request, call.number, payload)
        return call

    def send(self, request: str, number: int, payload: Any = None) -> None:
        """Send without expecting an answer. A dead worker is noticed by the listener."""
        try:
            with self._lock:
                self._pipe.send((request, number, payload))
        except OSError:
            pass

    def hang_up(self, call: _Call) -> None:
        with self._lock:
            self._calls.pop(call.number, None)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def _listen(self) -> None:
        try:
            while True:
                for number, batch in groupby(self._pipe.recv(), key=itemgetter(0)):
                    self._deliver(number, [answer for _, answer in batch])
        except (EOFError, OSError):
            self._bury()

    def _deliver(self, number: int | str, answers: list[Any]) -> None:
        if number == "machine":
            self.machine = answers[-1]
        elif number == "resident":
            self.resident = answers[-1]
        else:
            with self._lock:
                call = self._calls.get(number)
            if call is not None:
                call.answers.put(answers)

    def _bury(self) -> None:
        self.process.wait()
        with self._lock:
            self.alive = False
            orphans = list(self._calls.values())
        for call in orphans:
            call.answers.put([self._obituary()])
        self._pipe.close()

    def _obituary(self) -> Failed:
        return Failed(
            f"The worker process ended while this slot was on it ({_cause(self.process.returncode)}).",
            "It is started again for the next run. If memory ran out, ask for fewer tokens or a quantized slot.",
        )


def _cause(returncode: int | None) -> str:
    if returncode is None or returncode >= 0:
        return f"exit code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return name + (", often a sign that memory ran out" if name == "SIGKILL" else "")


def _spawn(options: EngineOptions, ranks: int) -> tuple[subprocess.Popen, Connection]:
    """Start the process and wait until it has connected; torch is imported after that.

    Several ranks are started by torchrun, and share the cores.
    """
    secret = os.urandom(32)
    with Listener(authkey=secret) as listener:
        process = subprocess.Popen(
            [sys.executable, *_torchrun(ranks), "-m", "playground.engines.worker_main", _address(listener)],
            stdin=subprocess.PIPE,
            cwd=_ROOT,
            env=_environment(ranks),
        )
        process.stdin.write(secret.hex().encode() + b"\n")
        process.stdin.close()
        pipe = _accept(listener, process)
    pipe.send(options)
    return process, pipe


def _torchrun(ranks: int) -> list[str]:
    return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []


def _environment(ranks: int) -> dict[str, str]:
    if ranks == 1:
        return dict(os.environ)
    threads = max(1, (os.cpu_count() or 1) // ranks)  # torchrun would leave one to each
    return {"OMP_NUM_THREADS": str(threads), "TORCHELASTIC_ERROR_FILE": os.devnull, **os.environ}


def _address(listener: Listener) -> str:
    return repr(listener.address)


def _accept(listener: Listener, process: subprocess.Popen) -> Connection:
    accepted: queue.SimpleQueue[Connection | Exception] = queue.SimpleQueue()

    def wait() -> None:
        try:
            accepted.put(listener.accept())
        except Exception as error:  # closed under us, or a stranger without the key
            accepted.put(error)

    threading.Thread(target=wait, daemon=True).start()
    for _ in range(START_PATIENCE_S * 2):
        try:
            answer = accepted.get(timeout=0.5)
        except queue.Empty:
            if process.poll() is not None:
                raise Refusal(f"it ended at once ({_cause(process.returncode)})") from None
            continue
        if isinstance(answer, Exception):
            process.kill()
            raise Refusal(f"it could not connect ({answer})")
        return answer
    process.kill()
    raise Refusal(f"it did not connect within {START_PATIENCE_S} s")
