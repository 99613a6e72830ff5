"""A speed-up is given only where it holds."""

import dataclasses

import pytest

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.metrics import RunMetrics
from playground.quantization import Quantization
from playground.verdicts import REASONS, speedup, speedups, unfairness


def run(rate=10.0, tokens=50, prompt=8, finish="length", **others):
    known = {"warmup_s": 0.1, "prompt_key": 5, "other_cores": 0.1, "cores": 4, "dtype": "bfloat16"} | others
    return RunMetrics(decode_tok_per_s=rate, new_tokens=tokens, prompt_tokens=prompt, finish=finish, **known)


NONE = Quantization()


def slot(model="m", dtype="auto", quantization=NONE, **decode):
    return SlotSpec("s", "s", ModelSpec(model, dtype=dtype, quantization=quantization), DecodeSpec(**decode))


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
        (run(prompt_key=6), "fair", "other_prompt"),
        (run(warmup_s=None), "fair", "cold"),
        (run(recompiled_s=0.5), "fair", "recompiled"),
        (run(other_cores=1.1), "fair", "busy"),
    ],
)
def test_no_ratio_without_equal_finished_uncontended_work(other, mode, reason):
    given = verdict(other, mode=mode)
    assert given.value is None and given.reason == reason
    REASONS[reason].format(*given.details)


def test_the_reference_has_no_speedup_over_itself():
    assert "base" not in speedups({"base": run()}, "base", "fair")


def test_the_reference_is_held_to_the_same():
    for base in (run(warmup_s=None), run(other_cores=3.0), run(finish="stopped"), run(recompiled_s=1.0)):
        assert verdict(run(), base=base).value is None


@pytest.mark.parametrize("free", [{"other_cores": 1.0}, {"other_cores": None}, {"prompt_key": None}, {"compile_s": 40.0}])
def test_what_is_unknown_or_within_bounds_withholds_nothing(free):
    assert verdict(run(**free)).value == 1.0


def test_another_model_or_revision_is_no_speedup():
    other = speedup(run(), run(), "fair", (slot("small"), slot("large")))
    assert other.value is None and other.reason == "other_model" and other.details == ("small", "large")
    revised = dataclasses.replace(slot(), model=ModelSpec("m", revision="v2"))
    assert unfairness(run(), run(), "fair", (revised, slot())).reason == "other_model"


def test_dtype_may_be_the_choice_under_test_but_not_one_among_others():
    half, base = run(dtype="float32"), run(dtype="bfloat16")
    assert speedup(half, base, "fair", (slot(dtype="float32"), slot())).value == 1.0
    mixed = speedup(half, base, "fair", (slot(dtype="float32", attention="eager"), slot()))
    assert mixed.reason == "other_dtype" and mixed.details == ("float32", "bfloat16")
    assert speedup(run(), run(), "fair", (slot(quantization=Quantization("bnb-nf4")), slot())).value == 1.0


def test_every_reason_fills_in_with_its_details():
    for reason, text in REASONS.items():
        assert text.count("{") <= 2 and text.format("x", "y"), reason
