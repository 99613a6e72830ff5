"""The worker process as seen from inside: connect, import torch, answer requests until told to end.

Run as `python -m playground.engines.worker_main ADDRESS` with the key on standard input. Under torchrun rank 0 is the
worker; the other ranks repeat what it runs, since a tensor-parallel model computes on all of them at once.
"""

from __future__ import annotations

import ast
import ctypes
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Client, Connection
from typing import Any

from ..engine import Stop
from ..events import ENDINGS, Event, Failed, Ready
from .options import EngineOptions
from .quiet import quieten, set_up_logging
from .refusal import Refusal

BATCH_S = 0.2
_PR_SET_PDEATHSIG = 1  # prctl(2)


class _Outbox:
    """Sends answers in batches. Every message wakes the web process, on a CPU at the model's cost."""

    def __init__(self, pipe: Connection):
        self._pipe = pipe
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._waiting: list[tuple[int | str, Any]] = []
        self._some = threading.Event()
        threading.Thread(target=self._deliver, daemon=True, name="outbox").start()

    def put(self, number: int | str, payload: Any, at_once: bool = False) -> None:
        """Queue an answer; `at_once` sends it and all before it now."""
        with self._lock:
            self._waiting.append((number, payload))
        if at_once:
            self._send()
        else:
            self._some.set()

    def _deliver(self) -> None:
        while True:
            self._some.wait()
            self._some.clear()
            time.sleep(BATCH_S)
            self._send()

    def _send(self) -> None:
        with self._sending:  # keeps batches in order, and a run that puts does not wait for the pipe
            with self._lock:
                batch, self._waiting = self._waiting, []
            try:
                if batch:
                    self._pipe.send(batch)
            except OSError:
                pass  # nobody listens any more; the listener ends the process


class _Desk:
    """Takes requests from the pipe and lets an engine carry them out.

    Runs go to the main thread. OpenMP keeps a team of threads for every thread that computes,
    and two teams on the same cores slow each other even when one is idle (measured: by a third).
    Only what would have to wait for the main thread, the other runs of a race, gets a thread of
    its own, whose team ends with it.
    """

    def __init__(self, pipe: Connection, options: EngineOptions):
        self._engine, self._ranks = _engine(options)  # torch is imported here, after the parent knows that we live
        self._pipe = pipe
        self._outbox = _Outbox(pipe)
        self._stops: dict[int, Stop] = {}
        self._main_is_free = threading.Semaphore()
        self._carriers = {"run": self._engine.execute, "assess": self._engine.execute_assessment}
        self._for_main: queue.SimpleQueue[tuple[str, int, tuple]] = queue.SimpleQueue()
        self._outbox.put("machine", self._engine.machine())

    def serve(self) -> None:
        """Run models in this thread; a second one listens until the pipe closes and then ends the process."""
        threading.Thread(target=self._listen, daemon=True, name="listener").start()
        while True:
            request, number, payload = self._for_main.get()
            self._ranks.shared((request, payload))
            if request in self._carriers:
                self._run(request, number, payload, self._main_is_free.release)
            else:
                self._answer(request, number, payload)

    def _listen(self) -> None:
        try:
            while True:
                self._take(*self._pipe.recv())
        except (EOFError, OSError):
            os._exit(0)  # the web process has gone; threads may be inside a model

    def _take(self, request: str, number: int, payload: Any) -> None:
        if request in self._carriers:
            self._stops[number] = Stop()
            if self._main_is_free.acquire(blocking=False) or not self._ranks.alone():
                self._for_main.put((request, number, payload))
            else:
                work = (request, number, payload)
                threading.Thread(target=self._run, args=work, daemon=True, name=f"run-{number}").start()
        elif request == "stop":
            stop = self._stops.get(number)
            if stop is not None:
                stop.set()
        elif request in ("unload", "forecast") and not self._ranks.alone():
            self._for_main.put((request, number, payload))  # in step with the other ranks
        else:
            threading.Thread(target=self._answer, args=(request, number, payload), daemon=True).start()

    def _run(self, request: str, number: int, payload: tuple, finish: Callable[[], Any] = lambda: None) -> None:
        """Carry out a request. `finish` is called before the last event is sent: the next request answers to that."""
        last: list[Event] = []

        def emit(event: Event) -> None:
            if isinstance(event, ENDINGS):
                last.append(event)
                return
            if isinstance(event, Ready):
                self._outbox.put("resident", self._engine.resident())
            self._outbox.put(number, event)

        self._carriers[request](*payload, self._stops[number], emit)
        del self._stops[number]
        finish()
        self._outbox.put("resident", self._engine.resident())
        self._outbox.put(number, last[0], at_once=True)

    def _answer(self, request: str, number: int, payload: Any) -> None:
        """Answer a question that is not a run."""
        try:
            match request:
                case "unload":
                    answer = self._engine.unload(payload)
                case "capabilities":
                    answer = self._engine.capabilities()
                case "group_sizes":
                    answer = self._engine.group_sizes(payload)
                case "forecast":
                    answer = self._engine.forecast(*payload)
                case "examine":
                    answer = self._engine.examine(payload)
                case _:
                    answer = Failed(f"The worker knows no request {request!r}.")
        except Refusal as refusal:
            answer = Failed(refusal.message, refusal.hint)
        except Exception as error:  # whoever asked is waiting for an answer
            answer = Failed(f"{type(error).__name__}: {error}")
        self._outbox.put("resident", self._engine.resident())
        self._outbox.put(number, answer, at_once=True)


def _engine(options: EngineOptions | None) -> tuple[Any, Any]:
    """This process's engine, and the ranks that it has met. Rank 0 brings the options."""
    from .quantize import hide_broken_torchao

    hide_broken_torchao()  # before Transformers' model code, which could not be imported beside it
    from . import ranks
    from .local import LocalEngine

    ranks.meet()
    return LocalEngine(ranks.shared(options)), ranks


def _follow() -> None:
    """A rank beside the first: do what that one does, until torchrun or a lost connection ends this process."""
    engine, ranks = _engine(None)
    while True:
        try:
            request, payload = ranks.shared()
        except RuntimeError:  # rank 0 has gone
            os._exit(0)
        match request:
            case "run":
                engine.execute(*payload, Stop(), lambda event: None)
            case "assess":
                engine.execute_assessment(*payload, Stop(), lambda event: None)
            case "unload":
                with suppress(Refusal):
                    engine.unload(payload)
            case "forecast":
                engine.forecast(*payload)


def main() -> None:
    """Connect to the web process and serve it until it goes away."""
    set_up_logging()
    quieten()
    if "RANK" in os.environ and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # end with torchrun, which may be killed itself
    if int(os.environ.get("RANK", "0")) > 0:
        return _follow()
    key = bytes.fromhex(sys.stdin.readline())
    pipe = Client(ast.literal_eval(sys.argv[1]), authkey=key)
    _Desk(pipe, pipe.recv()).serve()


if __name__ == "__main__":
    main()
