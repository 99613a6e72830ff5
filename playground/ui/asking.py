"""A request for a comparison, every part of it checked before any model sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..checks import checked_bool, checked_choice, checked_count
from ..config import MOST_REPEATS, REPEATS, Comparison, Mode, Prompt, checked_prompt, checked_settings
from ..scheduler import Job, Scheduler


@dataclass(frozen=True)
class Asked:
    """A checked request for a comparison."""

    comparison: Comparison
    prompt: Prompt
    mode: Mode
    quality: bool
    repeats: int

    def submit_to(self, scheduler: Scheduler, session: str) -> Job:
        return scheduler.submit(self.comparison, self.prompt, self.mode, session, self.quality, self.repeats)


def checked_request(
    comparison: Comparison, text: Any, settings: Any, mode: Any, quality: Any, repeats: Any, slots: Any = None
) -> Asked:
    """What was asked for, every part of it checked. Raises ConfigError naming the field."""
    prompt = checked_prompt(text, checked_settings(settings, comparison.settings))
    repeats = REPEATS[1] if repeats is None else checked_count("repeats", repeats, MOST_REPEATS)
    wants_quality = comparison.quality if quality is None else checked_bool("quality", quality)
    if slots is not None:
        comparison = comparison.only(slots)
    return Asked(comparison, prompt, checked_choice("mode", mode, Mode), wants_quality, repeats)
