"""When speculation pays, with exact values."""

import pytest

from playground.breakeven import MOST_DRAFTS, Prospect, break_even, prospect, yielded
from playground.events import Done, Round, Started, Tokens, WarmedUp
from playground.metrics import RunMetrics, measure
from playground.verdicts import speedup


def plain_run():
    """An id every 40 ms."""
    tokens = (Tokens(10**9 + i * 40_000_000, (1,), "", 1) for i in range(7))
    return measure([WarmedUp(0.1), Started(0, 4), *tokens, Done("length")])


def drafted_run(groups, k=4, draft_s=0.01, verify_s=0.05):
    events = [e for n, t in groups for e in (Round(k, n - 1, draft_s, verify_s), Tokens(round(t * 1e9), (1,) * n, "", n))]
    return measure([WarmedUp(0.1), Started(0, 4), *events, Done("length")])


def test_a_round_costs_plain_steps_and_yields_ids_and_their_ratio_is_the_speedup():
    """Plain: an id every 40 ms. Speculative: rounds of 60 ms that give 3, 1 and 2 ids after the first."""
    plain = measure([WarmedUp(0.1), Started(0, 4), *(Tokens(10**9 + i * 40_000_000, (1,), "", 1) for i in range(7)), Done("length")])
    groups = [(1, 1.0), (3, 1.06), (1, 1.12), (2, 1.18)]
    events = [e for n, t in groups for e in (Round(4, n - 1), Tokens(round(t * 1e9), (1,) * n, "", n))]
    run = measure([WarmedUp(0.1), Started(0, 4), *events, Done("length")])
    even = break_even(run, plain)
    assert even.cost == pytest.approx(1.5) and even.yielded == pytest.approx(2.0)
    assert even.yielded / even.cost == pytest.approx(speedup(run, plain, "fair").value)
    assert break_even(plain, plain) is None and break_even(run, RunMetrics()) is None


def test_expected_ids_of_a_round():
    assert yielded(4, 0) == 1 and yielded(4, 1) == 5
    assert yielded(2, 0.5) == pytest.approx(1 + 0.5 + 0.25)


def test_the_curve_goes_through_what_was_measured():
    """Rounds of 4 drafts in 10 ms, verified in 50 ms, a plain step 40 ms: a round costs 1.5 steps."""
    found = prospect(drafted_run([(1, 1.0), (3, 1.06), (1, 1.12), (3, 1.18)]), plain_run())
    assert found.cost(4) == pytest.approx(1.5) and found.cost(0) == 1.0 and found.cost(2) == pytest.approx(1.25)
    assert yielded(4, found.chance) == pytest.approx(2.0), "the measured mean length"
    assert found.speedup(4, found.chance) == pytest.approx(2.0 / 1.5)
    assert found.speedup(4, found.needed(4)) == pytest.approx(1.0)
    assert 0 < found.needed(4) < found.chance


def test_the_best_length_is_the_best_of_all_and_0_where_none_pays():
    good = Prospect(k=4, draft_s=0.004, verify_s=0.044, step_s=0.04, chance=0.8)
    best = good.best_k()
    assert all(good.speedup(best, 0.8) >= good.speedup(k, 0.8) for k in range(1, MOST_DRAFTS + 1)) and best > 1
    assert Prospect(k=4, draft_s=0.004, verify_s=0.044, step_s=0.04, chance=0.0).best_k() == 0


def test_a_drafter_that_never_agrees_has_chance_0_and_one_that_costs_too_much_never_pays():
    never = prospect(drafted_run([(1, 1.0), (1, 1.06), (1, 1.12)]), plain_run())
    assert never.chance == pytest.approx(0, abs=1e-9) and never.speedup(4, never.chance) < 1
    assert Prospect(k=1, draft_s=1.0, verify_s=0.05, step_s=0.04, chance=1.0).needed(1) is None


def test_a_drafter_that_always_agrees_has_chance_1():
    always = prospect(drafted_run([(5, 1.0), (5, 1.06), (5, 1.12)]), plain_run())
    assert always.chance == pytest.approx(1.0)


@pytest.mark.parametrize("run", [RunMetrics(), RunMetrics(rounds=3), plain_run()])
def test_nothing_drafted_or_timed_has_no_curve(run):
    assert prospect(run, plain_run()) is None and prospect(drafted_run([(1, 1.0), (2, 1.1)]), RunMetrics()) is None
