"""The two sides that the benchmarks compare: the app as a process, and plain Transformers."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from playground.config import Prompt, SlotSpec
from playground.engine import Stop
from playground.metrics import RunMetrics, measure

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "Why is the sky blue? Explain it to a ten-year-old."
SLOTS = ("baseline", "kv-cache", "sdpa", "bnb-nf4", "draft-head")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(command: list[str], port: int) -> Iterator[tuple[str, float, float]]:
    """Start a server; yields its URL, when it was started, and seconds until its first page was served."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"}
    )
    url = f"http://127.0.0.1:{port}/"
    try:
        while not _served(url):
            if process.poll() is not None:
                raise SystemExit(f"{command} ended with {process.returncode}")
            time.sleep(0.01)
        yield url, started, time.perf_counter() - started
    finally:
        process.terminate()
        process.wait()


def app(*flags: str) -> tuple[list[str], int]:
    """The command that starts the app on a free port."""
    port = free_port()
    return [sys.executable, "app.py", "--port", str(port), *flags], port


def _served(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def by_turns(repeats: int, *sides: Callable[[], Any]) -> list[list[Any]]:
    """What each side gives, run `repeats` times: two in turned order each time, more in an order that chance decides,
    so that none always follows the same one. The order is the same in every run of a script.
    """
    found: list[list[Any]] = [[] for _ in sides]
    chance = random.Random(0)
    for turn in range(repeats):
        pairs = list(zip(sides, found))
        if len(pairs) > 2:
            chance.shuffle(pairs)
        elif turn % 2 == 0:
            pairs.reverse()
        for side, results in pairs:
            results.append(side())
    return found


def finished(engine: Any, slot: SlotSpec, prompt: Prompt) -> RunMetrics:
    """The numbers of one run, which must have reached its length; in this thread, as the worker does."""
    events: list[Any] = []
    engine.execute(slot, prompt, Stop(), events.append)
    found = measure(events)
    assert found.finish == "length", found
    return found


def ratio(ours: list[float], theirs: list[float]) -> str:
    """Median over median, with the spread of the pairwise ratios."""
    pairs = sorted(a / b for a, b in zip(ours, theirs))
    return f"{median(ours) / median(theirs):.3f}  (pairs {pairs[0]:.3f} to {pairs[-1]:.3f})"
