"""How often a target accepts a head's drafts on held-out topics, found without decoding round by round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence

from ..engines.draft_head import DraftHead
from .hidden import Lessons
from .unrolling import unroll

DRAFT_LENS = (1, 2, 3, 4, 5, 6)

_BATCH = 16


@dataclass(frozen=True)
class Acceptance:
    """Greedy acceptance at one draft length: over all held-out answers, and by kind of prompt."""

    draft_len: int
    drafted: int
    accepted: int
    rounds: int
    by_kind: tuple[tuple[str, float], ...]

    @property
    def rate(self) -> float:
        return self.accepted / self.drafted

    @property
    def mean_length(self) -> float:
        """Ids a round yields: those accepted and the target's own."""
        return 1 + self.accepted / self.rounds


@torch.no_grad()
def acceptances(head: DraftHead, lessons: Lessons, draft_lens: Sequence[int] = DRAFT_LENS) -> tuple[Acceptance, ...]:
    """Walk the target's greedy answers as speculative decoding would, for every draft length."""
    runs: dict[int, dict[str, list[int]]] = {k: defaultdict(lambda: [0, 0, 0]) for k in draft_lens}
    order = sorted(range(len(lessons)), key=lambda i: len(lessons.rows[i].ids))
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        right = _agreements(head, lessons, batch, max(draft_lens))
        for row, i in enumerate(batch):
            answer = lessons.rows[i]
            for k, by_kind in runs.items():
                found = _walk(right[row], len(answer.prompt_ids), len(answer.ids), k)
                by_kind[answer.kind] = [a + b for a, b in zip(by_kind[answer.kind], found)]
    return tuple(_acceptance(k, by_kind) for k, by_kind in runs.items())


def _agreements(head: DraftHead, lessons: Lessons, batch: list[int], steps: int) -> list[list[list[bool]]]:
    """For every row, position t and step s: whether the s-th id drafted from t is the target's."""
    taken = [lessons[i] for i in batch]
    ids = pad_sequence([lesson.ids for lesson in taken], batch_first=True).to(head.rows.device)
    states = pad_sequence([lesson.states for lesson in taken], batch_first=True).to(head.rows.device)
    _, drafts = unroll(head, states.to(head.join.weight.dtype), ids, steps, own_drafts=True)
    width = ids.shape[1] - 1
    right = torch.zeros(*ids.shape, steps, dtype=torch.bool)
    for s, draft in enumerate(drafts):
        # The s-th draft from t stands at position t + s and is the id at t + s + 2.
        reach = max(0, width - 1 - s)
        right[:, :reach, s] = (draft[:, s : s + reach] == ids[:, s + 2 : s + 2 + reach]).cpu()
    return right.tolist()


def _walk(right: list[list[bool]], prompt: int, length: int, k: int) -> tuple[int, int, int]:
    """Ids drafted, accepted, and rounds, over one answer.

    The first id comes from the prompt's own forward, and a round drafts no further than what its own id leaves.
    """
    drafted = accepted = rounds = 0
    at = prompt - 1
    while at + 2 < length:
        asked = min(k, length - (at + 2) - 1)
        good = next((s for s in range(asked) if not right[at][s]), asked)
        drafted, accepted, rounds = drafted + asked, accepted + good, rounds + 1
        at += good + 1
    return drafted, accepted, rounds


def _acceptance(k: int, by_kind: dict[str, list[int]]) -> Acceptance:
    drafted, accepted, rounds = (sum(column) for column in zip(*by_kind.values()))
    return Acceptance(
        k, drafted, accepted, rounds, tuple((kind, a / d) for kind, (d, a, _) in sorted(by_kind.items()) if d)
    )
