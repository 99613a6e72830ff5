"""How a run ends early: refused with a reason, or stopped while it was still loading."""

from __future__ import annotations

from ..engine import EngineError


class Refusal(EngineError):
    """A run that cannot go on: what happened, and what the user can do about it."""

    def __init__(self, message: str, hint: str = ""):
        super().__init__(message)
        self.message = message
        self.hint = hint


class Stopped(BaseException):
    """The user stopped a run that was not yet generating. Not an Exception: no fallback may swallow it."""
