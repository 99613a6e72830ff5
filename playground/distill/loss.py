"""Cross entropy between a target's likeliest next ids and a drafter's scores, without keeping all scores."""

from __future__ import annotations

from typing import Any

import torch

_CHUNK = 128  # rows whose scores stay in a core's cache


class _DraftLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, rows: torch.Tensor, top: torch.Tensor, shares: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = hidden.to(rows.dtype)
        gradient, losses = torch.empty_like(hidden), hidden.new_empty(len(hidden), dtype=torch.float32)
        hits = hidden.new_empty(len(hidden), dtype=torch.bool)
        for start in range(0, len(hidden), _CHUNK):
            part = slice(start, start + _CHUNK)
            scores = (hidden[part] @ rows.T).float()
            hits[part] = scores.gather(1, top[part, :1])[:, 0] >= scores.amax(1)
            total = scores.logsumexp(1, keepdim=True)
            losses[part] = total[:, 0] - (shares[part] * scores.gather(1, top[part])).sum(1)
            scores.sub_(total).exp_().scatter_add_(1, top[part], -shares[part])
            gradient[part] = scores.to(rows.dtype) @ rows
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(hits)
        return losses, hits

    @staticmethod
    def backward(ctx: Any, by_loss: torch.Tensor, _: Any) -> tuple[torch.Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * by_loss[:, None].to(gradient.dtype), None, None, None


def draft_loss(
    hidden: torch.Tensor, rows: torch.Tensor, top: torch.Tensor, shares: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of each position and whether the best scored id is the target's.

    `hidden` (n, width) from the head, `rows` (scored ids, width), `top` (n, m) indices of rows, `shares` (n, m) their
    probabilities under the target. Returns nats (n,) and booleans (n,). The gradient is made in the forward pass, so
    that scores over all ids exist for a few positions at a time only.
    """
    return _DraftLoss.apply(hidden, rows, top, shares)
