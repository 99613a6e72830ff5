"""The prompts from which a target writes training text, and those held out."""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Split = Literal["train", "heldout"]

PROMPTS_FILE = Path(__file__).parent / "prompts.toml"

_HELD_OUT_EVERY = 10


@dataclass(frozen=True)
class Ask:
    """One prompt and the kind of answer it asks for."""

    kind: str
    text: str


def read_prompts(split: Split, seed: int = 0, path: Path = PROMPTS_FILE) -> tuple[Ask, ...]:
    """All prompts of a split, shuffled by `seed`. Splits share no topic: every tenth is held out."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    topics = [t for i, t in enumerate(data["topics"]) if (i % _HELD_OUT_EVERY == 0) == (split == "heldout")]
    asks = [
        Ask(kind, template.format(topic=topic))
        for kind, templates in data["templates"].items()
        for template in templates
        for topic in topics
    ]
    random.Random(seed).shuffle(asks)
    return tuple(asks)


def spread(asks: tuple[Ask, ...], each: int) -> tuple[Ask, ...]:
    """The first `each` prompts of every kind."""
    kinds = dict.fromkeys(ask.kind for ask in asks)
    return tuple(ask for kind in kinds for ask in [a for a in asks if a.kind == kind][:each])
