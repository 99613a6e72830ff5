"""The KV cache of a conversation's earlier turns, kept so that the next turn prefills only what is new."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from .memory import bytes_of


@dataclass(frozen=True)
class Prefix:
    """A growing cache and the ids that its positions hold, as many as it has positions."""

    ids: tuple[int, ...]
    cache: Any

    @property
    def bytes(self) -> int:
        return bytes_of(self.cache)

    def shared(self, ids: tuple[int, ...]) -> int:
        """How many leading ids a new prompt can take over; its last id is always computed, for the logits."""
        same = 0
        for ours, theirs in zip(self.ids, ids[:-1]):
            if ours != theirs:
                break
            same += 1
        return same

    def cropped(self, length: int) -> Any:
        """A copy of the cache that holds the first `length` positions."""
        cache = copy.deepcopy(self.cache)
        cache.crop(length - cache.get_seq_length())
        return cache


def kept(ids: tuple[int, ...], cache: Any) -> Prefix:
    """What is kept of a run: its ids, prompt and answer, as far as the cache got."""
    return Prefix(ids[: cache.get_seq_length()], cache)
