"""What a drafter gains on this machine: its slot and the plain slot by turns, in one process."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ..config import DecodeSpec, ModelSpec, Prompt, Settings, SlotSpec
from ..engine import Stop
from ..engines.local import LocalEngine
from ..engines.refusal import Refusal
from ..events import Failed
from ..metrics import RunMetrics, measure
from .prompts import Ask


@dataclass(frozen=True)
class Gain:
    """Decode rate over the plain slot's for one prompt: the median of paired ratios."""

    kind: str
    ratio: float
    acceptance: float


def gains(
    engine: LocalEngine, model: ModelSpec, head: str, asks: Sequence[Ask], draft_len: int, new_tokens: int,
    repeats: int, chat_template: bool,
) -> tuple[Gain, ...]:
    """Run both slots on every prompt. Raises Refusal with what a slot said when it fails."""
    plain = SlotSpec("plain", "plain", model)
    drafting = SlotSpec("head", "head", model, DecodeSpec(speculation="draft-head", draft_head=head))
    settings = Settings(new_tokens=new_tokens, draft_len=draft_len, ignore_eos=True, chat_template=chat_template)
    found = []
    for ask in asks:
        prompt, ratios = Prompt(ask.text, settings), []
        for turn in range(repeats):
            sides = [plain, drafting] if turn % 2 else [drafting, plain]
            runs = {slot.id: _run(engine, slot, prompt) for slot in sides}
            ratios.append(runs["head"].decode_tok_per_s / runs["plain"].decode_tok_per_s)
        found.append(Gain(ask.kind, statistics.median(ratios), runs["head"].acceptance_rate))
    return tuple(found)


def _run(engine: LocalEngine, slot: SlotSpec, prompt: Prompt) -> RunMetrics:
    events = list(engine.run(slot, prompt, Stop()))
    if isinstance(events[-1], Failed):
        raise Refusal(f"the {slot.name} slot could not be measured: {events[-1].message}", events[-1].hint)
    return measure(events)
