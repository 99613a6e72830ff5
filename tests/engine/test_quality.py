"""Quality against the reference: exact where weights are equal, right against a plain computation elsewhere."""

import math

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.engine import Stop
from playground.engines import quality
from playground.engines.calibration import QUALITY_TEXTS, quality_texts
from playground.events import Assessing, NoQuality, Quality
from playground.quantization import Quantization

from .conftest import ask, ids_of, make_model, make_tokenizer, run


def slot(model, decode=DecodeSpec(), name="s"):
    return SlotSpec(name, name, model, decode)


def assess(engine, one, reference, answer, stop=None):
    events = list(engine.assess(one, reference, ask(), tuple(answer), stop or Stop()))
    assert sum(isinstance(e, (Quality, NoQuality)) for e in events) == 1
    return events[-1]


def quiet():
    pass


def test_equal_weights_are_exactly_equal(engine, tiny):
    """Also through another slot's module, and through speculation, which leaves the distribution alone."""
    reference = slot(tiny, name="r")
    answer = ids_of(run(engine, reference))
    itself = assess(engine, reference, reference, answer)
    assert (itself.kl_nats, itself.top1, itself.positions) == (0.0, 1.0, len(answer))
    for decode in (DecodeSpec(), DecodeSpec(speculation="prompt-lookup")):
        again = assess(engine, slot(tiny, decode, "x"), reference, answer)
        assert (again.kl_nats, again.top1, again.perplexity) == (0.0, 1.0, itself.perplexity)
        assert again.perplexity_by_text == itself.perplexity_by_text


def test_worse_weights_are_measured_worse_and_the_further_the_worse(engine, tiny, other):
    reference = slot(tiny, name="r")
    answer = ids_of(run(engine, reference))
    int8 = assess(engine, slot(ModelSpec(tiny.model, dtype="float32", quantization=Quantization("torchao-int8"))), reference, answer)
    nf4 = assess(engine, slot(ModelSpec(tiny.model, dtype="float32", quantization=Quantization("bnb-nf4"))), reference, answer)
    stranger = assess(engine, slot(other), reference, answer)
    assert 0 < int8.kl_nats < nf4.kl_nats < stranger.kl_nats
    assert int8.top1 >= nf4.top1 >= stranger.top1


def test_divergence_equals_a_plain_computation_over_all_logits_at_once(tiny, other):
    ours, theirs = (AutoModelForCausalLM.from_pretrained(m.model, dtype=torch.float32) for m in (other, tiny))
    ids = torch.randint(2, 300, (1, 200), generator=torch.Generator().manual_seed(0))
    for start in (1, 7, quality.CHUNK_TOKENS, 198, 199):
        with torch.no_grad():
            q, p = (m(ids).logits[0, start - 1 : -1].double().log_softmax(-1) for m in (ours, theirs))
        kl = (p.exp() * (p - q)).sum(-1).mean().item()
        top1 = (p.argmax(-1) == q.argmax(-1)).double().mean().item()
        found = quality.divergence(ours, theirs, ids, start, quiet)
        assert found == (pytest.approx(kl, rel=1e-3), pytest.approx(top1, abs=1e-9)), start


def test_perplexity_equals_a_plain_computation(engine, tiny):
    found = assess(engine, slot(tiny), slot(tiny), [5, 6, 7])
    model = AutoModelForCausalLM.from_pretrained(tiny.model, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(tiny.model)
    losses, counts = {}, {}
    for name, text in quality_texts().items():
        ids = tokenizer(text, return_tensors="pt")["input_ids"][:, :256]  # the tiny model's context
        counts[name] = ids.shape[1] - 1
        with torch.no_grad():
            losses[name] = model(ids, labels=ids).loss.item() * counts[name]
    assert found.perplexity == pytest.approx(math.exp(sum(losses.values()) / sum(counts.values())), rel=1e-3)
    assert dict(found.perplexity_by_text) == {n: pytest.approx(math.exp(losses[n] / counts[n]), rel=1e-3) for n in losses}
    assert set(losses) == set(QUALITY_TEXTS)


def test_logits_never_exist_for_more_than_a_chunk(tiny):
    model = AutoModelForCausalLM.from_pretrained(tiny.model, dtype=torch.float32)
    sizes, ids = [], torch.randint(2, 300, (1, 230))
    model.lm_head.register_forward_hook(lambda module, inputs, output: sizes.append(output.shape[1]))
    pieces = list(quality.logits_for(model, ids, 20, quiet))
    assert sum(p.shape[0] for p in pieces) == 210 and max(sizes) <= quality.CHUNK_TOKENS


def test_another_vocabulary_cannot_be_compared_and_says_so(engine, tiny, tmp_path):
    stranger = ModelSpec(make_model(tmp_path / "m", tokenizer=make_tokenizer(380, corpus=["another text"] * 9)), dtype="float32")
    found = assess(engine, slot(stranger), slot(tiny, name="r"), [5, 6, 7])
    assert isinstance(found, NoQuality) and "vocabulary" in found.message and found.hint


def test_a_stop_ends_an_assessment_between_two_chunks(engine, tiny):
    stop, seen = Stop(), []
    for event in engine.assess(slot(tiny), slot(tiny, name="r"), ask(), tuple(range(2, 150)), stop):
        seen.append(event)
        if isinstance(event, Assessing) and event.fraction:
            stop.set()
    assert isinstance(seen[-1], NoQuality) and "topped" in seen[-1].message
    assert max(e.fraction or 0 for e in seen if isinstance(e, Assessing)) < 0.9


def test_progress_grows_and_never_passes_the_end(engine, tiny):
    events = list(engine.assess(slot(tiny), slot(tiny, name="r"), ask(), tuple(range(2, 150)), Stop()))
    fractions = [e.fraction for e in events if isinstance(e, Assessing) and e.fraction is not None]
    assert fractions == sorted(fractions) and fractions[0] == 0 and 0.8 < fractions[-1] < 1


def test_logits_that_are_no_numbers_are_no_quality(engine, tiny):
    reference = slot(tiny, name="r")
    answer = ids_of(run(engine, reference))
    broken = slot(ModelSpec(tiny.model, dtype="float32", quantization=Quantization("bnb-nf4")), name="x")
    run(engine, broken)
    with engine._store.use(broken.model, lambda stage, fraction: None) as loaded:
        loaded.pristine.model.norm.weight.data = torch.full_like(loaded.pristine.model.norm.weight, float("nan"))
    found = assess(engine, broken, reference, answer)
    assert isinstance(found, NoQuality) and "finite" in found.message


def test_a_loss_beyond_any_float_is_still_a_number():
    assert math.isfinite(quality._exp(1e6)) and quality._exp(1.0) == math.e


def test_where_two_answers_part_is_weighed_under_both_models(engine, tiny, other):
    """Their log-probabilities are those of a plain forward over the prompt and what both share."""
    reference, one = slot(tiny, name="r"), slot(other)
    answer, own = ids_of(run(engine, reference)), ids_of(run(engine, one))
    (found,) = [e for e in engine.assess(one, reference, ask(), tuple(answer), Stop(), tuple(own)) if isinstance(e, Quality)]
    part = found.parting
    assert answer[: part.index] == own[: part.index] and (part.reference_id, part.slot_id) == (answer[part.index], own[part.index])
    with engine._store.use(tiny, lambda *_: None) as weights:
        ids = engine._store.card(tiny, lambda *_: None).codec.encode(ask(), ())
        ids = torch.cat([ids, torch.tensor([answer[: part.index]], dtype=ids.dtype)], dim=1)
        scores = weights.module("test", "sdpa")(input_ids=ids).logits[0, -1].log_softmax(-1)
    assert part.reference_logprobs == pytest.approx([scores[part.reference_id].item(), scores[part.slot_id].item()], abs=1e-4)
    assert part.margin >= -part.resolution, "greedy: the reference took what it held most likely"
    assert part.slot_logprobs[1] >= part.slot_logprobs[0] - part.resolution and part.is_tie is False


def test_equal_answers_part_nowhere(engine, tiny):
    answer = tuple(ids_of(run(engine, slot(tiny))))
    (found,) = [e for e in engine.assess(slot(tiny), slot(tiny, name="r"), ask(), answer, Stop(), answer) if isinstance(e, Quality)]
    assert found.parting is None
