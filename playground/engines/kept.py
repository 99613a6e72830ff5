"""Folders that are made once and kept: complete or absent, never half-written.

A folder appears by one rename and a lock makes a second process wait for the first; what an
interrupted attempt left behind is removed by the next.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from .progress import Report
from .refusal import Refusal


def make_once(target: Path, record: str, needed_bytes: int, make: Callable[[Path], None], report: Report) -> None:
    """Have `target` made by `make(partial folder)` unless it is complete.

    `make` writes the file called `record` last, which is what marks a folder as complete.
    Raises Refusal when the disk has less than `needed_bytes` free, and whatever `make` raises.
    """
    if is_complete(target, record):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(target.parent / f"{target.name}.lock")
    while True:
        try:
            with lock.acquire(timeout=1.0):
                if not is_complete(target, record):
                    _replace(target, needed_bytes, make)
                return
        except Timeout:
            report(f"another process is preparing {target.name}", None)


def is_complete(target: Path, record: str) -> bool:
    return (target / record).is_file()


def _replace(target: Path, needed_bytes: int, make: Callable[[Path], None]) -> None:
    """Make the folder beside its place and rename it there. Called with the lock held."""
    for leftover in target.parent.glob(f"{target.name}.partial*"):
        shutil.rmtree(leftover, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    _check_space(target, needed_bytes)
    partial = target.parent / f"{target.name}.partial-{os.getpid()}"
    try:
        partial.mkdir()
        make(partial)
        _flush(partial)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_space(target: Path, needed_bytes: int) -> None:
    free = shutil.disk_usage(target.parent).free
    if free < needed_bytes:
        raise Refusal(
            f"{target.name} needs {needed_bytes / 1e6:.0f} MB of disk while it is prepared; "
            f"{target.parent} has {free / 1e6:.0f} MB.",
            "Free some space, or choose another folder with --cache.",
        )


def _flush(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
