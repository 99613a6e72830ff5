"""torch.compile for the step after the prompt: how it is asked for, how long it took, and how it is stopped.

Transformers compiles that step by itself where the cache is static. The result is kept on disk by torch (see
`keep_on_disk`), so that the next process only traces again: seconds instead of a minute.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import torch
from torch._dynamo.callback import CallbackArgs, callback_handler
from transformers import CompileConfig

from ..engine import Stop
from .memory import Device
from .refusal import Refusal, Stopped

LIMIT_S = 900
# Static caches of compiled slots have a multiple of this many positions: torch compiles anew for another shape.
ROOM = 256
_COMPILERS = ("c++", "g++", "clang++")
_AT_WORK = ("cc1plus", "g++", "c++", "clang++", "as", "ld", "collect2", "ptxas")


def keep_on_disk(cache_folder: str) -> None:
    """Let torch keep what it compiles in the cache folder instead of the system's temporary one."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(Path(cache_folder).absolute() / "compiled"))


def has_compiler() -> bool:
    """Whether there is a C++ compiler on the path."""
    return any(map(shutil.which, _COMPILERS))


def unavailable(device: Device) -> Refusal | None:
    """Why torch.compile does not run for a device, and what to do; None where it does."""
    if not has_compiler():
        return Refusal("compile: torch.compile needs a C++ compiler, and there is none here.", "On Debian: apt-get install g++.")
    return None


def config_for(mode: str, device: Device) -> CompileConfig:
    """What generate's config needs to compile in this mode, on a CPU too."""
    config = CompileConfig(mode=mode)
    if not device.is_cuda:
        config._compile_all_devices = True
    return config


def check_compiled(module: Any) -> None:
    """Raise Refusal where Transformers has left compiling out without a word."""
    if not hasattr(module, "_compiled_call"):
        raise Refusal(
            "compile: Transformers does not compile this model with these weights.",
            'Set compile = "none", or choose another quantization.',
        )


class CompileClock:
    """Inside the block, adds up the time that torch spends compiling."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began: list[float] = []

    def __enter__(self) -> CompileClock:
        callback_handler.register_start_callback(self._start)
        callback_handler.register_end_callback(self._end)
        return self

    def __exit__(self, *error: Any) -> None:
        callback_handler.remove_start_callback(self._start)
        callback_handler.remove_end_callback(self._end)

    def _start(self, _: CallbackArgs) -> None:
        self._began.append(time.perf_counter())

    def _end(self, _: CallbackArgs) -> None:
        if self._began:
            self.seconds += time.perf_counter() - self._began.pop()


class _Interrupted(BaseException):
    """Raised in a thread that compiles; no Exception, since torch swallows those on the way."""


@contextmanager
def interruptible(stop: Stop, tick: Callable[[float], None], limit_s: float = LIMIT_S) -> Iterator[None]:
    """Inside the block this thread can be stopped while torch compiles, within seconds.

    `tick` hears the seconds so far, once a second. Raises Stopped, or Refusal after `limit_s`.
    """
    thread, began, ended = threading.get_ident(), time.monotonic(), threading.Event()
    late = threading.Event()

    def watch() -> None:
        while not ended.wait(1.0):
            elapsed = time.monotonic() - began
            if elapsed > limit_s:
                late.set()
            if stop.is_set() or late.is_set():
                _raise_in(thread, _Interrupted)
                _end_compilers()
            else:
                tick(elapsed)

    watcher = threading.Thread(target=watch, daemon=True, name="compile-watch")
    watcher.start()
    try:
        try:
            yield
        finally:
            ended.set()
            watcher.join()
            _raise_in(thread, None)  # one that was asked for and has not come yet
    except (_Interrupted, Exception) as error:
        if not (stop.is_set() or late.is_set()):
            raise
        torch._dynamo.reset()  # half a graph is of no use
        if stop.is_set():
            raise Stopped from None
        raise Refusal(
            f"compile: not done after {limit_s:.0f} s.", 'Set compile = "none" for this slot, or try a smaller model.'
        ) from error


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind) if kind else None)


def _end_compilers() -> None:
    """End the compilers that torch has started: it waits for them where no exception can reach it."""
    for child in psutil.Process().children(recursive=True):
        try:
            if child.name() in _AT_WORK:
                child.kill()
        except psutil.NoSuchProcess:
            pass
