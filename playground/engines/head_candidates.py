"""Drafts from a draft head, behind the interface that Transformers' assisted decoding asks for candidates.

The verifying forward returns the hidden states of what it processed; of those the ones at accepted
ids are fed to the head before it drafts on, so its cache holds true hidden states only.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import GenerationConfig, LogitsProcessorList
from transformers.generation.candidate_generator import CandidateGenerator

from .draft_head import DraftHead


class HeadCandidates(CandidateGenerator):
    """Candidates of one generate call; `limits` is the drafter's config (k, schedule, threshold)."""

    requires_model_outputs = True

    def __init__(
        self, head: DraftHead, limits: GenerationConfig, generation: GenerationConfig, processors: LogitsProcessorList
    ):
        self._head = head
        self.model_kwargs_overrides = {"output_hidden_states": list(head.config.taps)}
        self._k = limits.num_assistant_tokens
        self._adapts = limits.num_assistant_tokens_schedule != "constant"
        self._threshold = limits.assistant_confidence_threshold
        self._max_length = generation.max_length
        self._samples = generation.do_sample
        self._processors = processors
        self._cache = head.new_cache()
        self._seen = 0
        self._drafted = 0

    @torch.no_grad()
    def get_candidates(
        self, input_ids: torch.Tensor, model_outputs: Any = None, is_first_iteration: bool = False, **_: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """`input_ids` (1, length) with the draft appended, and for sampling the draft's logits, (1, drafted, ids).

        Nothing is drafted on the first call: the target has not seen the prompt yet.
        """
        self._drafted = 0
        length = input_ids.shape[1]
        wanted = min(self._k, self._max_length - length - 1)
        if is_first_iteration or wanted < 1:
            return input_ids, None
        new = length - 1 - self._seen
        states = [model_outputs.hidden_states[tap][:, :new] for tap in self._head.config.taps]
        hidden = self._head(
            self._head.read(torch.cat(states, dim=-1)),
            input_ids[:, self._seen + 1 :],
            torch.arange(self._seen, self._seen + new, device=input_ids.device)[None],
            self._cache,
        )[:, -1:]
        self._seen += new
        return self._draft(input_ids, hidden, wanted)

    def _draft(self, ids: torch.Tensor, hidden: torch.Tensor, wanted: int) -> tuple[torch.Tensor, torch.Tensor | None]:
        logits = []
        while True:
            chosen, scores, sure = self._choose(ids, hidden)
            ids = torch.cat([ids, chosen], dim=1)
            logits.append(scores)
            self._drafted += 1
            if self._drafted == wanted or not sure:
                break
            position = torch.full_like(chosen, self._seen + self._drafted - 1)
            hidden = self._head(hidden, chosen, position, self._cache)
        self._cache.crop(self._seen - self._cache.get_seq_length())
        return ids, torch.stack(logits, dim=1) if self._samples else None

    def _choose(self, ids: torch.Tensor, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None, bool]:
        """The next drafted id (1, 1), its logits over all ids when sampling, and whether to draft on after it.

        An unsure id is drafted all the same: leaving it out would bend the sampled distribution.
        """
        scored = self._head.scores(hidden)[:, 0].float()
        if self._samples:
            scores = scored.new_full((1, self._head.config.vocab_size), -torch.inf)
            scores[:, self._head.ids.long()] = scored
            scores = self._processors(ids, scores)
            probabilities = scores.softmax(-1)
            chosen = torch.multinomial(probabilities, 1)
            sure = not self._threshold or bool(probabilities[0, chosen[0, 0]] >= self._threshold)
            return chosen, scores, sure
        best = scored.argmax(-1, keepdim=True)
        sure = not self._threshold or bool(scored.softmax(-1)[0, best[0, 0]] >= self._threshold)
        return self._head.ids.long()[best], None, sure

    def update_candidate_strategy(self, input_ids: torch.Tensor, scores: torch.Tensor, num_matches: Any) -> None:
        """With a schedule: two ids more after a full acceptance, else one fewer, as for draft models."""
        if self._adapts and self._drafted:
            self._k = self._k + 2 if int(num_matches) == self._drafted else max(1, self._k - 1)
