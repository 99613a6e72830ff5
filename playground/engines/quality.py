"""What a slot's weights cost in quality, measured against the reference slot's.

Teacher-forced: both models read the reference's own answer and are compared at every position
where one of its ids is predicted. Logits are made a chunk at a time on a growing KV cache, so
that however long the answer, only a chunk of them exists; together that is one forward pass.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ..divergence import Parting
from .refusal import Refusal
from .text import Codec

CHUNK_TOKENS = 64

# Called between chunks; raises to stop.
Tick = Callable[[], None]


@torch.no_grad()
def logits_for(module: Any, ids: torch.Tensor, start: int, tick: Tick) -> Iterator[torch.Tensor]:
    """Logits that predict ids[0, start:], in order, as float32 chunks of shape (n, vocabulary).

    `ids` has shape (1, length) and 1 <= start < length; the ids before `start` are context.
    """
    tick()
    output = module(input_ids=ids[:, :start], use_cache=True, logits_to_keep=1)
    yield output.logits[0].float()
    for begin in range(start, ids.shape[1] - 1, CHUNK_TOKENS):
        tick()
        piece = ids[:, begin : min(begin + CHUNK_TOKENS, ids.shape[1] - 1)]
        output = module(input_ids=piece, cache=output.cache, use_cache=True)
        yield output.logits[0].float()


def divergence(module: Any, reference: Any, ids: torch.Tensor, start: int, tick: Tick) -> tuple[float, float]:
    """Mean KL(reference || module) in nats, and the share of positions with the same most likely id.

    Raises Refusal for logits that are not finite.
    """
    total, agreeing, positions = 0.0, 0, ids.shape[1] - start
    for ours, theirs in zip(logits_for(module, ids, start, tick), logits_for(reference, ids, start, tick)):
        log_p, log_q = theirs.log_softmax(-1), ours.log_softmax(-1)
        # Never negative in exact arithmetic; rounding may leave a speck below 0.
        total += (log_p.exp() * (log_p - log_q)).sum(-1).clamp(min=0).sum().item()
        agreeing += (ours.argmax(-1) == theirs.argmax(-1)).sum().item()
    if not math.isfinite(total):
        raise Refusal("quality: a model's logits are not finite numbers.", "Another dtype or quantization may help.")
    return total / positions, agreeing / positions


@torch.no_grad()
def weigh(parted: Parting, module: Any, reference: Any, ids: torch.Tensor, codec: Codec) -> Parting:
    """A parting with both candidates' texts and log-probabilities, under the reference and under the slot.

    `ids`, of shape (1, length), are the prompt and what both answers share. Where one answer had ended there is
    nothing to weigh.
    """
    candidates = (parted.reference_id, parted.slot_id)
    texts = ["" if i is None else codec.decode((i,)) for i in candidates]
    parted = dataclasses.replace(parted, reference_text=texts[0], slot_text=texts[1])
    if None in candidates:
        return parted
    found = []
    for model in (reference, module):
        scores = model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[0, -1]
        found.append(tuple(scores.float().log_softmax(-1)[list(candidates)].tolist()))
        if model is reference:
            spacing = torch.finfo(reference.dtype).eps * scores.abs().max().item()
    return dataclasses.replace(parted, reference_logprobs=found[0], slot_logprobs=found[1], resolution=spacing)


def perplexities(module: Any, texts: Mapping[str, torch.Tensor], tick: Tick) -> tuple[float, dict[str, float]]:
    """exp of the mean negative log-likelihood over all texts' ids, and the same for each text alone.

    Each text has shape (1, length), length >= 2; its first id is context.
    """
    losses = {name: _negative_log_likelihood(module, ids, tick) for name, ids in texts.items()}
    counts = {name: ids.shape[1] - 1 for name, ids in texts.items()}
    overall = _exp(sum(losses.values()) / sum(counts.values()))
    return overall, {name: _exp(losses[name] / counts[name]) for name in texts}


def _negative_log_likelihood(module: Any, ids: torch.Tensor, tick: Tick) -> float:
    total, position = 0.0, 1
    for logits in logits_for(module, ids, 1, tick):
        wanted = ids[0, position : position + logits.shape[0]]
        total -= logits.log_softmax(-1).gather(-1, wanted[:, None]).sum().item()
        position += logits.shape[0]
    return total


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))  # a broken model's loss must not overflow
