"""Where the time goes adds up, and a slower slot is told why in its own figures."""

import dataclasses

import pytest

from playground.breakdown import breakdown, why_slower
from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.events import Done, Ready, Round, Spent, Started, Tokens, WarmedUp
from playground.metrics import RunMetrics, measure
from playground.quantization import Quantization

NONE = Quantization()


def slot(quantization=NONE, **decode):
    return SlotSpec("s", "s", ModelSpec("m", quantization=quantization), DecodeSpec(**decode))


def timed(spent, rounds=False):
    """Five ids, the first after 1 s, the last after 5 s."""
    tokens = [Tokens(i * 10**9, (1,), "x", 1) for i in range(1, 6)]
    events = [e for t in tokens for e in ((Round(2, 0, 0.25, 0.5), t) if rounds else (t,))]
    return measure([WarmedUp(0.1), Started(0, 4), *events, spent, Done("length")])


def parts(run):
    return {part.name: part.seconds for part in breakdown(run)}


def test_a_run_on_a_cpu_is_split_to_the_last_second():
    run = timed(Spent(0.9, 3.0, 0.1, 0.0, 2))
    assert parts(run) == pytest.approx({"prefill": 0.9, "decode": 3.0, "text": 0.1, "host": 1.0})
    assert sum(p.share for p in breakdown(run)) == pytest.approx(1.0)


def test_under_speculation_forwards_verify_and_drafts_are_apart():
    assert parts(timed(Spent(0.9, 2.0, 0.1, 0.0, 2), rounds=True)) == pytest.approx(
        {"prefill": 0.9, "draft": 1.25, "verify": 2.0, "text": 0.1, "host": 0.75}
    )


def test_where_forwards_cannot_be_timed_nothing_is_made_up():
    assert parts(timed(Spent(None, None, 0.5, None, 2))) == pytest.approx({"prefill": 1.0, "decode": 3.5, "text": 0.5})
    assert breakdown(RunMetrics()) == ()


def test_bandwidth_counts_weights_and_the_mean_cache_once_a_step():
    """1 GB of weights and on average 0.0 GB of cache, one step a second, 10 GB/s: a tenth."""
    ready = Ready(0.1, 10**9, None, "bfloat16", "cpu", "x", read_bytes=10**9, copy_bytes_per_s=1e10)
    run = measure([ready, Started(0, 4), *(Tokens(i * 10**9, (1, 2), "x", 2) for i in range(1, 6)), Done("length")])
    assert run.bandwidth_utilization == pytest.approx(0.1)
    assert measure([Started(0, 4), Tokens(1, (1,), "x", 1)]).bandwidth_utilization is None


BASE = RunMetrics(decode_tok_per_s=20.0, steps_per_s=20.0, read_bytes=270 * 10**6, tpot_s=0.05, dtype="bfloat16", device="cpu")


def reasons(one, base_slot=None, **numbers):
    run = dataclasses.replace(BASE, **({"decode_tok_per_s": 10.0, "steps_per_s": 10.0} | numbers))
    return dict(why_slower(one, base_slot or slot(), run, BASE))


def test_each_reason_comes_with_its_figures():
    assert reasons(slot(cache="none"), prompt_tokens=10, new_tokens=5)["no_cache"] == ("15",)
    assert reasons(slot(Quantization("bnb-int8")), read_bytes=160 * 10**6, quantized_layers=9)["unpacking"] == ("160", "270", "100", "50")
    speculative = reasons(slot(speculation="prompt-lookup"), rounds=4, itl_s=(0.1, 0.1), acceptance_rate=0.05)
    assert speculative["low_acceptance"] == ("5%", "1.00", "2.00")
    assert "half_on_cpu" in reasons(slot(), dtype="float16")
    assert "math_kernel" in reasons(slot(attention="sdpa-math"), kernels="math")
    assert "eager" in reasons(slot(attention="eager"))
    assert reasons(slot(cache="fp8"))["packed_cache"] == ("fp8",)
    host = reasons(slot(), total_s=10.0, ttft_s=1.0, prefill_s=1.0, forward_s=5.0, text_s=0.0)
    assert host["host"][0] == "40%"
    little = reasons(slot(), total_s=10.0, ttft_s=1.0, prefill_s=1.0, forward_s=8.0, text_s=0.0)
    assert "host" not in little, "a tenth is no reason"


def test_a_slot_that_did_not_lose_is_given_no_reason():
    assert why_slower(slot(cache="none"), slot(), dataclasses.replace(BASE, decode_tok_per_s=21.0), BASE) == ()
    assert why_slower(slot(), slot(), BASE, BASE) == () and why_slower(slot(), slot(), RunMetrics(), BASE) == ()
    assert reasons(slot()) == {}, "nothing is made up where nothing is known"
