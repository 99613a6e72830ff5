"""A speed-up is given only where it holds."""

import pytest

from playground.metrics import RunMetrics
from playground.verdicts import REASONS, speedups


def run(rate=10.0, tokens=50, prompt=8, finish="length"):
    return RunMetrics(decode_tok_per_s=rate, new_tokens=tokens, prompt_tokens=prompt, finish=finish)


def verdict(other, base=None, mode="fair"):
    return speedups({"base": base or run(), "other": other}, "base", mode)["other"]


def test_ratio_of_decode_rates():
    assert verdict(run(rate=25.0)).value == 2.5


def test_a_slow_down_is_shown_as_such():
    assert verdict(run(rate=4.0)).value == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("other", "mode", "reason"),
    [
        (run(), "race", "contended"),
        (run(finish="stopped"), "fair", "unfinished"),
        (run(finish="failed"), "fair", "unfinished"),
        (run(finish=None), "fair", "unfinished"),
        (run(tokens=49), "fair", "unequal_work"),
        (run(prompt=9), "fair", "unequal_prompt"),
        (run(rate=None), "fair", "no_rate"),
    ],
)
def test_no_ratio_without_equal_finished_uncontended_work(other, mode, reason):
    given = verdict(other, mode=mode)
    assert given.value is None and given.reason == reason
    REASONS[reason].format(*given.details)


def test_the_reference_has_no_speedup_over_itself():
    assert "base" not in speedups({"base": run()}, "base", "fair")
