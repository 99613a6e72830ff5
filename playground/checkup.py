"""A model's KV cache before anything runs: how large it gets on a machine, and what would spoil it. Plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KvShape:
    """`windows` has an entry a layer: positions that it keeps at most, None for all. `width` is kv heads × head width."""

    windows: tuple[int | None, ...]
    width: int
    bytes_per_value: int

    def values(self, length: int, batch: int = 1) -> int:
        """Stored numbers, keys and values, after `length` positions."""
        kept = sum(length if window is None else min(length, window) for window in self.windows)
        return 2 * batch * self.width * kept

    def bytes(self, length: int, batch: int = 1) -> int:
        """Bytes in the model's dtype."""
        return self.values(length, batch) * self.bytes_per_value

    def longest(self, room_bytes: int, batch: int = 1) -> int | None:
        """The most positions that fit into `room_bytes`; None when every layer has a window that fits."""
        if all(window is not None for window in self.windows) and self.bytes(max(self.windows), batch) <= room_bytes:
            return None
        low, high = 0, 1
        while self.bytes(high, batch) <= room_bytes:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.bytes(middle, batch) <= room_bytes else (low, middle)
        return low


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `name` is a key of the page's words, `facts` go into them; `ok` False needs a remedy."""

    name: str
    ok: bool
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checkup:
    """What was found of one model on one device. `room_bytes` is what is free beside its weights."""

    model: str
    device: str
    shape: KvShape | None
    context: int | None
    room_bytes: int
    findings: tuple[Finding, ...]
