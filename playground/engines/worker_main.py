"""The worker process as seen from inside: connect, import torch, answer requests until told to end.

Run as `python -m playground.engines.worker_main ADDRESS` with the key on standard input.
"""

from __future__ import annotations

import ast
import logging
import os
import sys
import threading
from multiprocessing.connection import Client, Connection
from typing import Any

from ..events import Done, Failed, Ready
from ..scheduler import Stop
from .options import EngineOptions
from .quiet import quieten, set_up_logging
from .refusal import Refusal

log = logging.getLogger(__name__)


class _Desk:
    """Takes requests from the pipe and lets an engine carry them out, each run in its thread."""

    def __init__(self, pipe: Connection, options: EngineOptions):
        from .local import LocalEngine  # torch is imported here, after the parent knows that we live

        self._pipe = pipe
        self._sending = threading.Lock()
        self._stops: dict[int, Stop] = {}
        self._engine = LocalEngine(options)
        self._answer("machine", self._engine.machine())

    def serve(self) -> None:
        """Until the pipe closes, which is how the web process says goodbye."""
        while True:
            request, number, payload = self._pipe.recv()
            if request == "run":
                self._stops[number] = Stop()
                threading.Thread(target=self._run, args=(number, payload), daemon=True, name=f"run-{number}").start()
            elif request == "stop":
                stop = self._stops.get(number)
                if stop is not None:
                    stop.set()
            elif request == "unload":
                threading.Thread(target=self._unload, args=(number, payload), daemon=True).start()

    def _run(self, number: int, payload: tuple) -> None:
        slot, prompt = payload

        def emit(event: Any) -> None:
            if isinstance(event, (Ready, Done, Failed)):
                self._answer("resident", self._engine.resident())
            self._answer(number, event)

        self._engine.execute(slot, prompt, self._stops[number], emit)
        del self._stops[number]

    def _unload(self, number: int, model: Any) -> None:
        answer: Any = None
        try:
            self._engine.unload(model)
        except Refusal as refusal:
            answer = Failed(refusal.message, refusal.hint)
        self._answer("resident", self._engine.resident())
        self._answer(number, answer)

    def _answer(self, number: int | str, payload: Any) -> None:
        with self._sending:
            self._pipe.send((number, payload))


def main() -> None:
    """Connect to the web process and serve it until it goes away."""
    set_up_logging()
    quieten()
    key = bytes.fromhex(sys.stdin.readline())
    pipe = Client(ast.literal_eval(sys.argv[1]), authkey=key)
    try:
        _Desk(pipe, pipe.recv()).serve()
    except (EOFError, OSError):
        pass
    os._exit(0)  # threads may be inside a model; the weights go with the process


if __name__ == "__main__":
    main()
