"""A finished benchmark as a file: everything that was asked, every raw number, and the machine it was measured on."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import platform
import types
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import psutil

from .checks import ConfigError, shown
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
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(dataclasses.asdict(card), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, path)


def load(path: Path) -> RunCard:
    """A card from a file, every part of it checked. Raises ConfigError naming what is wrong."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(str(path), f"is no run card: {error}.") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else data
        raise ConfigError(f"{path.name}: schema", f"got {shown(found)}; this version reads {SCHEMA}.")
    return _read(path.name, RunCard, data)


def _read(where: str, kind: Any, value: Any) -> Any:
    """A value of a type, from plain JSON."""
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(where, kind, value)
    if get_origin(kind) in (Union, types.UnionType):
        if value is None and type(None) in get_args(kind):
            return None
        (inner,) = (k for k in get_args(kind) if k is not type(None))
        return _read(where, inner, value)
    if get_origin(kind) is Literal:
        if value in get_args(kind):
            return value
        raise ConfigError(where, f"got {shown(value)}; allowed: {', '.join(map(str, get_args(kind)))}.")
    if get_origin(kind) is tuple:
        return _read_tuple(where, get_args(kind), value)
    number = kind is float and isinstance(value, int) and not isinstance(value, bool)
    if number or (isinstance(value, kind) and not (kind is int and isinstance(value, bool))):
        return value
    raise ConfigError(where, f"got {shown(value)}; expected {kind.__name__}.")


def _read_dataclass(where: str, kind: Any, value: Any) -> Any:
    hints = get_type_hints(kind)
    if not isinstance(value, dict):
        raise ConfigError(where, f"got {shown(value)}; expected an object.")
    for name in value:
        if name not in hints:
            raise ConfigError(f"{where}.{name}", "is not known to this version.")
    missing = [f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING and f.name not in value]
    if missing:
        raise ConfigError(f"{where}.{missing[0]}", "is missing.")
    return kind(**{name: _read(f"{where}.{name}", hints[name], part) for name, part in value.items()})


def _read_tuple(where: str, kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ConfigError(where, f"got {shown(value)}; expected a list.")
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise ConfigError(where, f"has {len(value)} parts; expected {len(kinds)}.")
    return tuple(_read(f"{where}[{i}]", kind, part) for i, (kind, part) in enumerate(zip(kinds, value)))


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
