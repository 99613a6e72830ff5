"""A speed-up is given only where it holds."""

import pytest

from playground.events import Done, Round, Started, Tokens
from playground.metrics import RunMetrics, measure
from playground.verdicts import REASONS, break_even, speedup, speedups


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


def test_a_round_costs_plain_steps_and_yields_ids_and_their_ratio_is_the_speedup():
    """Plain: an id every 40 ms. Speculative: rounds of 60 ms that give 3, 1 and 2 ids after the first."""
    plain = measure([Started(0, 4), *(Tokens(10**9 + i * 40_000_000, (1,), "", 1) for i in range(7)), Done("length")])
    groups = [(1, 1.0), (3, 1.06), (1, 1.12), (2, 1.18)]
    events = [e for n, t in groups for e in (Round(4, n - 1), Tokens(round(t * 1e9), (1,) * n, "", n))]
    run = measure([Started(0, 4), *events, Done("length")])
    even = break_even(run, plain)
    assert even.cost == pytest.approx(1.5) and even.yielded == pytest.approx(2.0)
    assert even.yielded / even.cost == pytest.approx(speedup(run, plain, "fair").value)
    assert break_even(plain, plain) is None and break_even(run, RunMetrics()) is None
