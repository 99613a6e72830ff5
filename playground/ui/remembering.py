"""What a browser remembers of a visitor, checked: it comes from outside, and from an older version perhaps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..cards import from_plain
from ..checks import ConfigError, checked_bool, checked_choice, checked_count, checked_text
from ..config import MOST_REPEATS, Comparison, Mode, checked_settings
from ..presets import find_preset
from .i18n import Language
from .parts import Parts


def checked_choices(saved: Any, presets: Mapping[str, Comparison], parts: Parts) -> dict[str, Any]:
    """What was chosen, by name, if all of it can still be; else nothing."""
    if not isinstance(saved, dict) or set(saved) != set(parts.kept()):
        return {}
    try:
        preset = find_preset(presets, saved["preset"])
        checked_settings({name: saved[name] for name in parts.settings}, preset.settings)
        checked_text("prompt", saved["prompt"])
        checked_choice("mode", saved["mode"], Mode)
        checked_choice("language", saved["language"], Language)
        checked_count("repeats", saved["repeats"], MOST_REPEATS)
        checked_bool("quality", saved["quality"])
        checked_bool("markdown", saved["markdown"])
    except ConfigError:
        return {}
    return saved


def columns_to_keep(edited: Comparison) -> dict[str, Any]:
    """Edited columns as plain JSON."""
    return dataclasses.asdict(edited)


def checked_columns(saved: Any, preset: Comparison) -> Comparison | None:
    """The columns as they were edited, where they belong to this preset and can still be; else None."""
    if saved is None:
        return None
    try:
        edited = from_plain("columns", Comparison, saved)
    except (ConfigError, TypeError, ValueError):
        return None
    if edited.id != preset.id:
        return None
    return dataclasses.replace(preset, slots=edited.slots, reference=edited.reference)
