"""For any sequence of events: counts add up, no number is NaN or negative, None where undefined."""

import dataclasses
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from playground.breakdown import breakdown, why_slower
from playground.breakeven import break_even, prospect
from playground.config import Comparison, DecodeSpec, ModelSpec, SlotSpec
from playground.events import Compiled, Done, Failed, Memory, Ready, Round, Spent, Started, Tokens, WarmedUp
from playground.ladder import ladder
from playground.metrics import RunMetrics, live_tok_per_s, measure, phase_of, summary, text_of
from playground.verdicts import speedup

small = st.floats(0, 1e4)
maybe = st.none() | st.integers(0, 10**12)
steps = st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 6), st.integers(0, 8)), max_size=12)
SLOT = SlotSpec("a", "a", ModelSpec("m"), DecodeSpec(speculation="prompt-lookup"))


@st.composite
def runs(draw):
    """A run as engines tell it: set-up, perhaps a start, steps in order of time, perhaps an end."""
    events = [Ready(draw(small), draw(st.integers(0, 10**10)), draw(maybe), "bfloat16", "cpu", "x", read_bytes=draw(maybe),
                    copy_bytes_per_s=draw(st.none() | st.floats(1, 1e12)))]  # fmt: skip
    events += [Compiled(draw(small))] if draw(st.booleans()) else []
    events += [WarmedUp(draw(small))] if draw(st.booleans()) else []
    clock = draw(st.integers(0, 10**12))
    prompt = draw(st.integers(1, 10**5))
    events.append(Started(clock, prompt, draw(st.integers(0, prompt - 1)), draw(st.integers(0, 2**32))))
    speculative = draw(st.booleans())
    for gap, ids, extra in draw(steps):
        clock += gap
        if speculative:
            events.append(Round(ids - 1 + extra, ids - 1, draw(st.none() | small), draw(st.none() | small)))
        events.append(Tokens(clock, tuple(range(ids)), "x" * ids, draw(st.integers(0, ids))))
    if draw(st.booleans()):
        events.append(Spent(draw(st.none() | small), draw(st.none() | small), draw(small), draw(st.none() | small), 2))
    if draw(st.booleans()):
        events.append(Memory("c", draw(maybe), draw(maybe), draw(maybe), draw(maybe), draw(maybe)))
    events += draw(st.sampled_from([[], [Done("length")], [Done("stopped")], [Failed("no")]]))
    return events


def numbers(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, (int, float)):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from numbers(part)


@given(runs())
@settings(max_examples=300, deadline=None)
def test_numbers_are_finite_not_negative_and_add_up(events):
    run = measure(events)
    for field in dataclasses.fields(RunMetrics):
        for number in numbers(getattr(run, field.name)):
            assert math.isfinite(number) and number >= 0, (field.name, number)
    groups = [e for e in events if isinstance(e, Tokens)]
    assert run.new_tokens == sum(len(g.ids) for g in groups) and run.groups == len(groups)
    assert 0 <= run.visible_tokens <= run.new_tokens and run.accepted <= run.drafted
    assert (run.ttft_s is None) == (not groups)
    assert run.acceptance_rate is None or 0 <= run.acceptance_rate <= 1
    assert (run.acceptance_rate is None) == (run.drafted == 0)
    assert run.itl_s is None or len(run.itl_s) == run.groups - 1
    assert run.timeline == () or run.timeline[-1][1] == run.new_tokens
    if run.decode_tok_per_s is not None:
        assert run.tpot_s * run.decode_tok_per_s == 1 or math.isclose(run.tpot_s * run.decode_tok_per_s, 1)
    assert len(text_of(events)) == run.new_tokens and phase_of(events) and summary(run)
    assert (live_tok_per_s(events) or 0) >= 0


@given(runs(), runs())
@settings(max_examples=300, deadline=None)
def test_verdicts_never_break_and_a_ratio_or_a_reason_is_given(ours, theirs):
    run, base = measure(ours), measure(theirs)
    found = speedup(run, base, "fair", (SLOT, SLOT))
    assert (found.value is None) != (found.reason == "") and (found.value is None or found.value > 0)
    parts = breakdown(run)
    assert not parts or math.isclose(sum(p.share for p in parts), 1) and all(p.seconds > 0 for p in parts)
    why_slower(SLOT, SLOT, run, base)
    break_even(run, base)
    curve = prospect(run, base)
    if curve is not None:
        assert 0 <= curve.chance <= 1 and 0 <= curve.best_k() and math.isfinite(curve.speedup(curve.k, curve.chance))


@given(st.lists(runs(), min_size=2, max_size=4))
@settings(max_examples=100, deadline=None)
def test_a_ladder_multiplies_to_its_total(several):
    decodes = [DecodeSpec(cache="none", attention="eager"), DecodeSpec(attention="eager"), DecodeSpec(), DecodeSpec(lean=True)]
    slots = [SlotSpec(str(i), str(i), ModelSpec("m"), decode) for i, decode in enumerate(decodes[: len(several)])]
    measured = {slot.id: measure(events) for slot, events in zip(slots, several)}
    found = ladder(Comparison("c", "C", tuple(slots), "0"), measured)
    if found is not None:
        assert math.isclose(math.prod(rung.factor for rung in found.rungs), found.total)
