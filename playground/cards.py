"""Dataclasses as JSON files, read back with every part checked against its type."""

from __future__ import annotations

import dataclasses
import json
import os
import types
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from .checks import ConfigError, shown

Card = TypeVar("Card")


def write_card(card: Any, path: Path) -> None:
    """Write a dataclass; the file appears by one rename."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(dataclasses.asdict(card), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, path)


def read_card(path: Path, kind: type[Card], schema: int) -> Card:
    """A card from a file, every part of it checked. Raises ConfigError naming what is wrong."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(str(path), f"is no file of ours: {error}.") from None
    if not isinstance(data, dict) or data.get("schema") != schema:
        found = data.get("schema") if isinstance(data, dict) else data
        raise ConfigError(f"{path.name}: schema", f"got {shown(found)}; this version reads {schema}.")
    return from_plain(path.name, kind, data)


def from_plain(where: str, kind: Any, value: Any) -> Any:
    """A value of a type, from plain JSON such as `dataclasses.asdict` gives, every part of it checked. Raises ConfigError below `where`."""
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(where, kind, value)
    if get_origin(kind) in (Union, types.UnionType):
        if value is None and type(None) in get_args(kind):
            return None
        (inner,) = (k for k in get_args(kind) if k is not type(None))
        return from_plain(where, inner, value)
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
    return kind(**{name: from_plain(f"{where}.{name}", hints[name], part) for name, part in value.items()})


def _read_tuple(where: str, kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ConfigError(where, f"got {shown(value)}; expected a list.")
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise ConfigError(where, f"has {len(value)} parts; expected {len(kinds)}.")
    return tuple(from_plain(f"{where}[{i}]", kind, part) for i, (kind, part) in enumerate(zip(kinds, value)))
