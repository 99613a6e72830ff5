"""A finished benchmark as a file: everything that was asked, every raw number, and the machine it was measured on."""

from __future__ import annotations

import datetime
import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from .cards import read_card, write_card
from .protocol import Outcome

SCHEMA = 1
LIBRARIES = ("torch", "transformers", "bitsandbytes", "gptqmodel", "optimum", "optimum-quanto", "torchao", "accelerate")
# A core and more of other work per two cores makes numbers wander.
_BUSY_LOAD_PER_CORE = 0.5


@dataclass(frozen=True)
class Machine:
    """What a run was measured on. `load` is the one-minute load average before it, None where there is none."""

    device: str
    system: str
    processor: str
    cores: int
    memory_bytes: int
    clock_mhz: float | None
    load: float | None
    python: str
    libraries: tuple[tuple[str, str], ...]

    @property
    def busy(self) -> bool:
        """Whether other work was going on when the run began."""
        return self.load is not None and self.load > _BUSY_LOAD_PER_CORE * self.cores


@dataclass(frozen=True)
class RunCard:
    """`made` is the local date and time, ISO 8601, at the start."""

    schema: int
    made: str
    machine: Machine
    outcome: Outcome


def this_machine(device: str) -> Machine:
    """The machine as it is now; `device` is what the engine says of its own."""
    clock = psutil.cpu_freq() if hasattr(psutil, "cpu_freq") else None
    return Machine(
        device=device,
        system=f"{platform.system()} {platform.release()}",
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        clock_mhz=clock.current if clock else None,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        python=platform.python_version(),
        libraries=tuple((name, found) for name in LIBRARIES if (found := _version(name))),
    )


def card_of(outcome: Outcome, machine: Machine, made: str) -> RunCard:
    """A card of this version; `made` is when it began."""
    return RunCard(SCHEMA, made, machine, outcome)


def now() -> str:
    """The local date and time, for a card."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def save(card: RunCard, path: Path) -> None:
    """Write a card; the file appears by one rename."""
    write_card(card, path)


def load(path: Path) -> RunCard:
    """A card from a file, every part of it checked. Raises ConfigError naming what is wrong."""
    return read_card(path, RunCard, SCHEMA)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
