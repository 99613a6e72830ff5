"""What a machine can run, as plain data: an engine finds it out, the page shows it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Technique:
    """One choice of one kind ("quantization", "attention"). An empty `reason` means that it runs here.

    `remedy` is what a user can do about it: a command, or another choice.
    """

    kind: str
    name: str
    reason: str = ""
    remedy: str = ""

    @property
    def runs(self) -> bool:
        return not self.reason
