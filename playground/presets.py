"""Reads `presets/*.toml` into Comparisons: one file a comparison, its name is the id.

A preset has a `[base]` that all slots share and `[[slots]]` that say only what differs.
A key that is not known names the file, the key and the allowed keys.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

from .checks import ConfigError, checked_bool, checked_choice
from .config import Comparison, DecodeSpec, ModelSpec, SlotSpec, checked_settings
from .quantization import Quantization

PRESETS_FOLDER = Path(__file__).resolve().parent.parent / "presets"
DEFAULT_PRESET = "five-ways"

_MODEL_KEYS = tuple(f.name for f in dataclasses.fields(ModelSpec))
_DECODE_KEYS = tuple(f.name for f in dataclasses.fields(DecodeSpec))
_QUANTIZATION_KEYS = tuple(f.name for f in dataclasses.fields(Quantization))
_BASE_KEYS = _MODEL_KEYS + _DECODE_KEYS
_SLOT_KEYS = ("id", "name", *_BASE_KEYS)
_TEXT_KEYS = ("title", "title_ko", "description", "description_ko")
_TOP_KEYS = (*_TEXT_KEYS, "reference", "quality", "base", "settings", "slots")


def load_presets(folder: Path = PRESETS_FOLDER) -> dict[str, Comparison]:
    """Every preset of a folder by id, the default one first. Raises ConfigError naming the file."""
    loaded = {path.stem: load_preset(path) for path in sorted(folder.glob("*.toml"))}
    if not loaded:
        raise ConfigError(str(folder), "holds no preset; add a .toml file.")
    return dict(sorted(loaded.items(), key=lambda item: item[0] != DEFAULT_PRESET))


def load_preset(path: Path) -> Comparison:
    """One preset file as a Comparison. Raises ConfigError with the file's name in front."""
    try:
        return _comparison(path.stem, tomllib.loads(path.read_text(encoding="utf-8")))
    except ConfigError as error:
        raise ConfigError(f"{path.parent.name}/{path.name}: {error.field}", _problem(error)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.parent.name}/{path.name}", f"is not valid TOML: {error}.") from None


def find_preset(presets: Mapping[str, Comparison], wanted: Any) -> Comparison:
    """The preset with this id, else ConfigError listing the ids there are."""
    return presets[checked_choice("preset", wanted, presets)]


def _problem(error: ConfigError) -> str:
    return str(error).removeprefix(f"{error.field}: ")


def _comparison(name: str, data: dict[str, Any]) -> Comparison:
    _check_keys("top level", data, _TOP_KEYS)
    texts = {key: _text(key, data[key]) for key in _TEXT_KEYS if key in data}
    if not texts.get("title"):
        raise ConfigError("title", "is missing; say in a few words what is compared.")
    base = _table("base", data.get("base", {}))
    _check_keys("base", base, _BASE_KEYS)
    rows = data.get("slots", [])
    if not isinstance(rows, list) or not rows:
        raise ConfigError("slots", "is missing; give at least one [[slots]] table.")
    slots = tuple(_slot(f"slots[{i}]", base, _table(f"slots[{i}]", row)) for i, row in enumerate(rows))
    return Comparison(
        id=name,
        slots=slots,
        reference=_text("reference", data.get("reference", slots[0].id)),
        settings=checked_settings(_table("settings", data.get("settings", {}))),
        quality=checked_bool("quality", data.get("quality", False)),
        **texts,
    )


def _slot(where: str, base: dict[str, Any], row: dict[str, Any]) -> SlotSpec:
    _check_keys(where, row, _SLOT_KEYS)
    if not row.get("id"):
        raise ConfigError(f"{where}.id", "is missing; give a short id such as \"sdpa\".")
    merged = {**base, **row}
    decode = {k: merged[k] for k in _DECODE_KEYS if k in merged}
    model = {k: merged[k] for k in _MODEL_KEYS if k in merged}
    if "drafter" in decode:
        decode["drafter"] = _drafter(f"{where}.drafter", decode["drafter"], model)
    _read_quantization(where, model)
    return SlotSpec(
        id=_text(f"{where}.id", row["id"]),
        name=_text(f"{where}.name", row.get("name", row["id"])),
        model=_spec(where, ModelSpec, model),
        decode=_spec(where, DecodeSpec, decode),
    )


def _drafter(where: str, given: Any, target: dict[str, Any]) -> ModelSpec:
    """A drafter is a model id or a table; dtype and device follow the target's unless given."""
    row = {"model": given} if isinstance(given, str) else _table(where, given)
    _check_keys(where, row, _MODEL_KEYS)
    follows = {k: target[k] for k in ("dtype", "device") if k in target}
    merged = {**follows, **row}
    _read_quantization(where, merged)
    return _spec(where, ModelSpec, merged)


def _read_quantization(where: str, model: dict[str, Any]) -> None:
    """Replace a quantization given as a method's name, or as a table with options, by a Quantization."""
    if "quantization" not in model:
        return
    given = model["quantization"]
    where = f"{where}.quantization"
    row = {"method": given} if isinstance(given, str) else _table(where, given)
    _check_keys(where, row, _QUANTIZATION_KEYS)
    try:
        model["quantization"] = Quantization(**row)
    except ConfigError as error:
        raise ConfigError(f"{where}.{error.field}", _problem(error)) from None


def _spec(where: str, kind: type, values: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    if kind is ModelSpec and not values.get("model"):
        raise ConfigError(f"{where}.model", 'is missing; give "builtin", a hub id or a folder.')
    for key, value in values.items():
        if key in ("drafter", "quantization"):
            continue
        if key in ("lean", "keep_prefix"):
            checked_bool(f"{where}.{key}", value)
            continue
        if key == "exit_layer":
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{where}.{key}", f"got {value!r}; give a number of layers, 1 or more.")
            continue
        if getattr(hints[key], "__args__", None) and type(None) not in hints[key].__args__:
            checked_choice(f"{where}.{key}", value, hints[key])
        else:
            _text(f"{where}.{key}", value)
    return kind(**values)


def _check_keys(where: str, table: dict[str, Any], allowed: tuple[str, ...]) -> None:
    for key in table:
        if key not in allowed:
            raise ConfigError(where, f"unknown key {key!r}; allowed keys: {', '.join(allowed)}.")


def _table(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(where, f"got {value!r}; give a table.")
    return value


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(where, f"got {value!r}; give a string.")
    return value
