"""When speculation pays: what a round costs in plain steps, what it yields, and what acceptance would be needed.

The model behind the curve: each drafted id is accepted with the same chance as long as all before it were, so that a
round of k drafts yields 1 + a + a² + … + aᵏ ids (Leviathan et al. 2023, https://arxiv.org/abs/2211.17192).
"""

from __future__ import annotations

from dataclasses import dataclass

from .metrics import RunMetrics

MOST_DRAFTS = 16  # longest k that is looked at for the best one
_STEPS = 60  # of the bisection: far beyond a float's resolution


@dataclass(frozen=True)
class BreakEven:
    """What a round of speculation costs and yields, its first one left out, which holds the prefill.

    `cost` is its time in plain steps: with fewer ids a round than that it loses. `yielded` is how
    many ids it gave; yielded / cost is the speed-up.
    """

    round_s: float
    step_s: float
    yielded: float

    @property
    def cost(self) -> float:
        return self.round_s / self.step_s


@dataclass(frozen=True)
class Prospect:
    """A drafter's curve from one run of it and one without: times in seconds, `k` the mean real draft length.

    `chance` is that of one drafted id, read off the measured mean length.
    """

    k: float
    draft_s: float
    verify_s: float
    step_s: float
    chance: float

    def cost(self, k: float) -> float:
        """A round of k drafts in plain steps. Drafting takes time by the id; verifying grows from a plain step (k = 0)
        through what was measured, and never takes less than a plain step: a shorter time is noise."""
        grown = max(0.0, self.verify_s - self.step_s)
        return (self.draft_s * k / self.k + self.step_s + grown * k / self.k) / self.step_s

    def speedup(self, k: float, chance: float) -> float:
        """Expected, for rounds of k drafts that are accepted with that chance."""
        return yielded(k, chance) / self.cost(k)

    def needed(self, k: float) -> float | None:
        """The chance at which a round of k drafts breaks even; None where not even 1 would."""
        if self.speedup(k, 1.0) < 1:
            return None
        low, high = 0.0, 1.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.speedup(k, middle) >= 1 else (middle, high)
        return high

    def best_k(self) -> int:
        """The draft length with the highest expected speed-up at the chance that was measured; 0: do not draft."""
        lengths = range(1, MOST_DRAFTS + 1)
        best = max(lengths, key=lambda k: self.speedup(k, self.chance))
        return best if self.speedup(best, self.chance) > 1 else 0


def yielded(k: float, chance: float) -> float:
    """Expected ids of a round of k drafts, the target's own included."""
    return k + 1 if chance >= 1 else (1 - chance ** (k + 1)) / (1 - chance)


def break_even(run: RunMetrics, plain: RunMetrics) -> BreakEven | None:
    """Of a speculative run and the plain one; None where either has no gap between steps."""
    if not (run.rounds and run.itl_s and run.decode_tok_per_s and plain.tpot_s):
        return None
    round_s = sum(run.itl_s) / len(run.itl_s)
    return BreakEven(round_s, plain.tpot_s, run.decode_tok_per_s * round_s)


def prospect(run: RunMetrics, plain: RunMetrics) -> Prospect | None:
    """The curve of a speculative run against the plain one; None where nothing was drafted or timed."""
    if not (run.drafted and run.draft_s is not None and run.verify_s and plain.tpot_s and run.mean_accepted_len):
        return None
    k = run.drafted / run.rounds
    return Prospect(k, run.draft_s, run.verify_s, plain.tpot_s, _chance(k, run.mean_accepted_len))


def _chance(k: float, length: float) -> float:
    """The chance with which rounds of k drafts have this mean length."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if yielded(k, middle) >= length else (middle, high)
    return high
