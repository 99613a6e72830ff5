"""A new, untrained head for a target, and the folder in which its making is kept."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..config import BUILTIN
from ..engines.draft_head import DraftHead, HeadConfig, fingerprint
from ..engines.embedded import HUB_ID
from ..engines.refusal import Refusal
from .hidden import scored_ids
from .recipe import Recipe, differing
from .writing import Row

_RECIPE = "recipe.json"


def prepared(folder: Path, recipe: Recipe) -> Path:
    """The work folder, made or gone on with. Raises Refusal when it was begun with another recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _RECIPE
    if path.is_file():
        begun = Recipe(**json.loads(path.read_text(encoding="utf-8")))
        if names := differing(begun, recipe):
            raise Refusal(
                f"{folder} was begun with another {', '.join(names)}.",
                f"Give the same again ({path} has it), or remove the folder to begin anew.",
            )
    else:
        path.write_text(json.dumps(dataclasses.asdict(recipe), indent=1) + "\n", encoding="utf-8")
    return folder


def head_for(target: Any, recipe: Recipe, rows: Sequence[Row]) -> DraftHead:
    """A head with random layers of the target's shape, attached, in float32, the same for the same seed."""
    config = target.config.get_text_config()
    ids = scored_ids(rows, recipe.scored_ids)
    heads = config.num_attention_heads
    torch.manual_seed(recipe.seed)
    head = DraftHead(
        HeadConfig(
            target=HUB_ID if recipe.target == BUILTIN else recipe.target,
            fingerprint=fingerprint(target),
            vocab_size=config.vocab_size,
            hidden_size=config.hidden_size,
            intermediate_size=recipe.intermediate_size or getattr(config, "intermediate_size", 4 * config.hidden_size),
            layers=recipe.layers,
            heads=heads,
            kv_heads=getattr(config, "num_key_value_heads", None) or heads,
            scored_ids=len(ids),
            taps=_taps(config.num_hidden_layers),
        ),
        ids,
    )
    device = target.get_input_embeddings().weight.device
    return head.to(device, torch.float32).attach(target)


def _taps(layers: int) -> tuple[int, ...]:
    """Early, middle and late hidden states, and the one that the output embedding reads."""
    return (*sorted({min(2, layers - 1), layers // 2, max(1, layers - 3)}), -1)
