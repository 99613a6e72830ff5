"""What a slot will need, said before anything is loaded for it. Plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Forecast:
    """One slot's needs in bytes against what its device has free when its turn comes.

    `weights_bytes` and `drafter_bytes` are 0 for what is loaded by then. `evicts` names what would be unloaded for
    it. `problem` and `remedy` are those with which the slot would be refused; `warnings` is what this device does badly.
    """

    slot_id: str
    device: str
    dtype: str
    weights_bytes: int
    drafter_bytes: int
    kv_bytes: int
    working_bytes: int
    free_bytes: int
    evicts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""

    @property
    def needed_bytes(self) -> int:
        return self.weights_bytes + self.drafter_bytes + self.kv_bytes + self.working_bytes
