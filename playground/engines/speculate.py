"""Speculative decoding: how a drafter is attached for one run, and how its rounds are counted.

Transformers asks the module for a candidate generator once per generate call. The slot's own
module answers with an observed one for the length of the run; nothing is patched for others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from transformers import GenerationConfig

from ..config import DecodeSpec, Settings
from ..events import Round
from .draft_head import DraftHead
from .head_candidates import HeadCandidates
from .refusal import Refusal
from .text import Codec


def options_for(decode: DecodeSpec, settings: Settings) -> dict[str, Any]:
    """What generate's own config needs for drafts that come without a second model."""
    match decode.speculation:
        case "prompt-lookup":
            return {"prompt_lookup_num_tokens": settings.draft_len}
        case "early-exit":
            return {"assistant_early_exit": decode.exit_layer}
        case "draft-head":
            return {"use_mtp": True}  # assisted decoding; `drafts_of` says by what
    return {}


def drafter_options(settings: Settings) -> dict[str, Any]:
    """What the drafter's own generation config needs, which is where Transformers reads k from.

    Constant k and threshold 0 unless asked for: left to itself k grows and shrinks and a
    confidence threshold of 0.4 cuts drafts short (and adapts if scikit-learn is installed).
    """
    return {
        "num_assistant_tokens": settings.draft_len,
        "num_assistant_tokens_schedule": settings.draft_schedule,
        "assistant_confidence_threshold": settings.draft_threshold,
    }


def drafter_config(settings: Settings) -> GenerationConfig:
    """The drafter's own generation config."""
    return GenerationConfig(**drafter_options(settings))


def drafts_of(head: DraftHead, settings: Settings) -> Callable[..., HeadCandidates]:
    """What `RoundCounter.watching` has a module ask for candidates, instead of Transformers' own choice."""

    def make(*, generation_config: GenerationConfig, logits_processor: Any, **_: Any) -> HeadCandidates:
        return HeadCandidates(head, drafter_config(settings), generation_config, logits_processor)

    return make


def check_exit_layer(exit_layer: int, layers: int) -> None:
    """Raise Refusal for an exit that leaves no layer out."""
    if not 1 <= exit_layer < layers:
        raise Refusal(
            f"exit_layer: got {exit_layer}; this model has {layers} layers.",
            f"Give a number from 1 to {layers - 1}: so many of them draft, the rest verify.",
        )


def check_vocabularies(target: Codec, drafter: Codec) -> None:
    """Raise Refusal unless both tokenizers map the same pieces to the same ids."""
    ours, theirs = target.vocabulary(), drafter.vocabulary()
    if ours == theirs:
        return
    differing = [piece for piece, i in ours.items() if theirs.get(piece) != i]
    example = f", for example {differing[0]!r}" if differing else ""
    raise Refusal(
        f"drafter: its tokenizer differs from the target's: {len(theirs):,} pieces against {len(ours):,}; "
        f"{len(differing):,} of the target's are missing there or have another id{example}.",
        "Choose a drafter of the target's family, or prompt lookup, which needs none.",
    )


class RoundCounter:
    """Pairs each draft with the ids that the target then emitted.

    `drafts` holds every round's counted draft and how many of its ids were accepted.
    """

    def __init__(self, eos_ids: tuple[int, ...]):
        self.drafts: list[tuple[tuple[int, ...], int]] = []
        self._eos_ids = eos_ids
        self._draft: tuple[int, ...] | None = None
        self._began_ns = self._drafted_ns = 0
        self.drafting = False

    @contextmanager
    def watching(self, module: Any, make: Callable[..., Any] | None = None) -> Iterator[None]:
        """See every draft made for `module` inside the block, by `make`'s generator if one is given."""
        make = make or module._get_candidate_generator

        def observed(*args: Any, **kwargs: Any) -> Any:
            return self._observe(make(*args, **kwargs))

        module._get_candidate_generator = observed
        try:
            yield
        finally:
            del module._get_candidate_generator

    def _observe(self, generator: Any) -> Any:
        draft = generator.get_candidates

        def observed(input_ids: Any, **kwargs: Any) -> Any:
            self._began_ns = time.perf_counter_ns()
            self.drafting = True
            try:
                candidates, logits = draft(input_ids, **kwargs)
            finally:
                self.drafting = False
            self._draft = tuple(candidates[0, input_ids.shape[1] :].tolist())  # waits for the device
            self._drafted_ns = time.perf_counter_ns()
            return candidates, logits

        generator.get_candidates = observed
        return generator

    def settle(self, emitted: tuple[int, ...], arrived_ns: int, cut: bool = False) -> Round | None:
        """The round that ended with these ids at that time; None when no draft was asked for.

        `cut` says that a stop string ended it there: ids drafted beyond do not count.

        Accepted are the leading ids that draft and answer share: after a rejection the
        target's own id differs by construction, and after a full acceptance the draft is
        used up. Ids drafted after an end of sequence do not count.
        """
        if self._draft is None:
            return None
        draft, self._draft = self._up_to_eos(self._draft), None
        if cut:
            draft = draft[: len(emitted)]
        accepted = 0
        for ours, theirs in zip(draft, emitted):
            if ours != theirs:
                break
            accepted += 1
        self.drafts.append((draft, accepted))
        draft_s, verify_s = self._drafted_ns - self._began_ns, arrived_ns - self._drafted_ns
        return Round(len(draft), accepted, draft_s / 1e9, verify_s / 1e9)

    def _up_to_eos(self, draft: tuple[int, ...]) -> tuple[int, ...]:
        for i, token in enumerate(draft):
            if token in self._eos_ids:
                return draft[: i + 1]
        return draft
