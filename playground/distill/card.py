"""The model card that goes with a saved head."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from pathlib import Path

from ..engines.draft_head import CARD, WEIGHTS, HeadConfig
from .evaluation import Acceptance
from .recipe import Recipe
from .speed import Gain
from .training import Progress

_INTRO = """# Draft head for {target}

A speculative drafter: {layers} decoder layer{s} of width {width} that read{reads} the target's hidden states and draft{reads} its
next ids. It uses the target's own embeddings, so `{weights}` ({megabytes:.1f} MB) holds the layer only and is
of no use without the target. Greedy answers stay the target's, id for id, and sampled ones keep its distribution.

```toml
speculation = "draft-head"
draft_head = "path/of/this/folder"
```

Licence: {licence}.
"""


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the card reports, all of it counted or measured in the run that made the head."""

    rows: int
    text_tokens: int
    scored_share: float
    progress: Progress
    heldout_rows: int
    acceptances: Sequence[Acceptance]
    gains: Sequence[Gain]
    machine: str
    draft_len: int
    licence: str


def write_card(folder: Path, config: HeadConfig, recipe: Recipe, facts: Facts) -> str:
    """Write the card into the head's folder and return its text."""
    several = config.layers > 1
    intro = _INTRO.format(
        target=config.target, layers=config.layers, s="s" if several else "", reads="" if several else "s",
        width=config.hidden_size, weights=WEIGHTS, megabytes=(folder / WEIGHTS).stat().st_size / 1e6,
        licence=facts.licence,
    )
    text = "\n".join([intro, *_training(config, recipe, facts), "", *_acceptance(facts), "", *_speed(facts)]).rstrip()
    (folder / CARD).write_text(text + "\n", encoding="utf-8")
    return text


def _training(config: HeadConfig, recipe: Recipe, facts: Facts) -> list[str]:
    options = ", ".join(f"{k} {v}" for k, v in dataclasses.asdict(recipe).items() if k != "target")
    return [
        "## Training",
        "",
        f"- Data: {facts.text_tokens:,} ids in {facts.rows:,} answers that the target itself wrote, greedily and at "
        "temperature 0.7 by turns, to the training prompts of `playground/distill/prompts.toml`.",
        f"- It scores the {config.scored_ids:,} ids that occur most in them, {facts.scored_share:.1%} of all that occur.",
        f"- {facts.progress.steps:,} steps in {facts.progress.seconds / 60:.0f} minutes on {facts.machine}; at the end "
        f"the loss was {facts.progress.loss:.2f} nats over the unrolled steps, and the first drafted id was the "
        f"target's likeliest in {facts.progress.agreement:.0%} of the training positions.",
        f"- Recipe: {options}.",
    ]


def _acceptance(facts: Facts) -> list[str]:
    kinds = [kind for kind, _ in facts.acceptances[0].by_kind]
    lines = [
        "## Acceptance on held-out topics",
        "",
        f"Greedy, {facts.heldout_rows} answers. Accepted ids over drafted ones; the mean length counts the target's own id.",
        "",
        f"| k | acceptance | mean length | {' | '.join(kinds)} |",
        f"| --- | --- | --- | {' | '.join('---' for _ in kinds)} |",
    ]
    for a in facts.acceptances:
        shares = " | ".join(f"{share:.2f}" for _, share in a.by_kind)
        lines.append(f"| {a.draft_len} | {a.rate:.3f} | {a.mean_length:.2f} | {shares} |")
    return lines


def _speed(facts: Facts) -> list[str]:
    if not facts.gains:
        return []
    lines = [
        "## Speed",
        "",
        f"Decode rate over the plain slot's on the same machine, by turns, k = {facts.draft_len}, held-out prompts, "
        f"end of sequence ignored. Median {statistics.median(g.ratio for g in facts.gains):.2f}.",
        "",
        "| kind | ratio | acceptance |",
        "| --- | --- | --- |",
    ]
    return lines + [f"| {g.kind} | {g.ratio:.2f} | {g.acceptance:.2f} |" for g in facts.gains]
