"""The head run over whole sequences as if every position began a draft: for training and for measuring."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from ..engines.draft_head import DraftHead


def unroll(
    head: DraftHead, states: torch.Tensor, ids: torch.Tensor, steps: int, own_drafts: bool = False
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Outputs of `steps` steps of drafting from every position at once, each (batch, length - 1, hidden size).

    `states` (batch, length, taps * hidden size) are the target's; `ids` (batch, length). At step s, position t has gone
    s steps on from the true hidden states at t - s, and its output answers for the last hidden state at t + 1. The ids
    fed back are the true ones or, with `own_drafts`, those drafted, which are returned too.
    """
    batch, length = ids.shape[0], ids.shape[1] - 1
    positions = torch.arange(length, device=ids.device).expand(batch, length)
    cache, outputs, drafts = head.new_cache(), [], []
    fed, tokens = head.read(states[:, :-1]), ids[:, 1:]
    for step in range(steps):
        mask = _mask(length, step, ids.device).expand(batch, 1, length, length * (step + 1))
        outputs.append(head(fed, tokens, positions, cache, mask))
        fed = pad(outputs[-1][:, :-1], (0, 0, 1, 0))
        if own_drafts:
            drafts.append(head.ids.long()[head.scores(outputs[-1]).argmax(-1)])
            tokens = pad(drafts[-1][:, :-1], (1, 0))
    return outputs, drafts


def _mask(length: int, step: int, device: torch.device) -> torch.Tensor:
    """What position t may look at in step `step`: true states up to t - step, then its own earlier steps.

    Shape (1, 1, length, length * (step + 1)), to be added to attention scores.
    """
    t = torch.arange(length, device=device)[:, None]
    at = torch.arange(length, device=device)[None]
    allowed = torch.cat([at <= t - step, *(at == t - (step - s) for s in range(1, step + 1))], dim=1)
    allowed[:step, 0] = True  # positions that no draft reaches: a row of nothing would be NaN
    lowest = torch.finfo(torch.float32).min
    return torch.zeros(allowed.shape, device=device).masked_fill(~allowed, lowest)[None, None]
