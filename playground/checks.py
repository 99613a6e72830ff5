"""Checks of values from outside, and the error that a user reads when one fails."""

from __future__ import annotations

from typing import Any, get_args

MAX_PROMPT_CHARS = 200_000


class ConfigError(ValueError):
    """A request that cannot be carried out: says what was given, what is allowed, what to do.

    `field` names the setting at fault, as the page, the API and the presets call it.
    """

    def __init__(self, field: str, problem: str):
        super().__init__(f"{field}: {problem}")
        self.field = field


def checked_count(name: str, value: Any, most: int) -> int:
    """A whole number from 1 to `most`, else ConfigError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or not 1 <= value <= most or int(value) != value:
        raise ConfigError(name, f"got {shown(value)}; give a whole number from 1 to {most}.")
    return int(value)


def checked_text(name: str, value: Any) -> str:
    """A string of at most MAX_PROMPT_CHARS that can be encoded as UTF-8."""
    if not isinstance(value, str):
        raise ConfigError(name, f"got {shown(value)}; give text.")
    if len(value) > MAX_PROMPT_CHARS:
        raise ConfigError(
            name, f"got {len(value):,} characters; at most {MAX_PROMPT_CHARS:,} are taken. Shorten it."
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConfigError(name, "contains half of a surrogate pair; give valid Unicode text.") from None
    return value


def checked_choice(name: str, value: Any, choices: Any) -> Any:
    """`value` if it is one of a Literal's choices, else ConfigError listing them."""
    allowed = get_args(choices) or tuple(choices)
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(name, f"got {shown(value)}; allowed: {', '.join(allowed)}.")
    return value


def checked_bool(name: str, value: Any) -> bool:
    """True or false and nothing that merely resembles it, else ConfigError."""
    if not isinstance(value, bool):
        raise ConfigError(name, f"got {shown(value)}; give true or false.")
    return value


def shown(value: Any) -> str:
    """A given value as an error message quotes it: short, whatever it is."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."
