"""What an engine needs to know of the machine's owner: folders and limits, from the flags."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class EngineOptions:
    """`memory_limit_bytes` bounds all weights together; None leaves it to the free memory.

    `load_anyway` loads what is predicted not to fit, at the risk of a killed process.
    """

    cache_folder: str
    builtin_folder: str | None = None
    memory_limit_bytes: int | None = None
    offline: bool = False
    load_anyway: bool = False


def default_cache_folder() -> str:
    """Where converted models go: $PLAYGROUND_CACHE, else the user's cache folder."""
    chosen = os.environ.get("PLAYGROUND_CACHE")
    if chosen:
        return chosen
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return str(Path(root) / "llm-speed-playground")
