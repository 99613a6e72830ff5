"""A ladder changes one choice a rung, and only fair pairs make one."""

import pytest

from playground.config import Comparison, DecodeSpec, ModelSpec, SlotSpec
from playground.ladder import ladder, one_choice
from playground.metrics import RunMetrics
from playground.quantization import Quantization

NONE = Quantization()


def slot(name, quantization=NONE, **decode):
    return SlotSpec(name, name, ModelSpec("m", quantization=quantization), DecodeSpec(**decode))


BASE = slot("base", cache="none", attention="eager")
CACHE = slot("cache", attention="eager")
SDPA = slot("sdpa")
INT4 = slot("int4", Quantization("bnb-nf4"))
HEAD = slot("head", speculation="draft-head", draft_head="builtin")
LOOKUP = slot("lookup", Quantization("bnb-nf4"), speculation="prompt-lookup")


def run(rate, **others):
    return RunMetrics(decode_tok_per_s=rate, finish="length", new_tokens=9, prompt_tokens=3, warmup_s=0.1, **others)


def climbed(slots, **rates):
    return ladder(Comparison("c", "C", tuple(slots), slots[0].id), {name: rate if isinstance(rate, RunMetrics) else run(rate) for name, rate in rates.items()})


def test_rungs_multiply_to_the_total():
    found = climbed([BASE, CACHE, SDPA, INT4], base=2.0, cache=6.0, sdpa=9.0, int4=12.0)
    assert [r.slot.id for r in found.rungs] == ["base", "cache", "sdpa", "int4"]
    assert [r.choice for r in found.rungs] == [None, "cache", "attention", "quantization"]
    assert [r.factor for r in found.rungs] == pytest.approx([1.0, 3.0, 1.5, 4 / 3])
    assert found.total == pytest.approx(6.0) and found.left_out == ()
    assert (found.rungs[1].before, found.rungs[1].after) == ("none", "dynamic")


def test_a_drafter_is_one_choice_with_its_kind_of_speculation():
    assert one_choice(SDPA, HEAD) == ("speculation", "none", "draft-head")
    assert one_choice(SDPA, SDPA) is None and one_choice(BASE, SDPA) is None and one_choice(SDPA, LOOKUP) is None


def test_of_two_branches_the_longer_is_climbed_then_the_faster_and_the_rest_named():
    found = climbed([SDPA, INT4, HEAD], sdpa=10.0, int4=12.0, head=15.0)
    assert [r.slot.id for r in found.rungs] == ["sdpa", "head"] and found.left_out == (INT4,)
    longer = climbed([SDPA, INT4, HEAD, LOOKUP], sdpa=10.0, int4=12.0, head=15.0, lookup=9.0)
    assert [r.slot.id for r in longer.rungs] == ["sdpa", "int4", "lookup"] and longer.total == pytest.approx(0.9)


def test_a_slot_is_skipped_where_its_run_is_missing_failed_or_unfair():
    assert climbed([SDPA, INT4], sdpa=10.0) is None
    assert climbed([SDPA, INT4], int4=10.0) is None, "nothing without the reference"
    assert climbed([SDPA, INT4], sdpa=10.0, int4=run(12.0, recompiled_s=1.0)) is None
    assert climbed([SDPA, INT4], sdpa=10.0, int4=run(None)) is None


def test_identical_slots_make_no_rung():
    assert climbed([SDPA, slot("twin")], sdpa=10.0, twin=10.0) is None
