"""Draft heads: drafts as if made from scratch, what does not fit, and the tool that trains them."""

import json
import math
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, GenerationConfig, LogitsProcessorList

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.distill import training
from playground.distill.evaluation import acceptances
from playground.distill.hidden import lessons
from playground.distill.loss import draft_loss
from playground.distill.making import head_for, prepared
from playground.distill.prompts import read_prompts
from playground.distill.recipe import Recipe
from playground.distill.unrolling import unroll
from playground.distill.writing import Row, read_rows, write_training_text
from playground.engines.draft_head import CONFIG, load_head
from playground.engines.head_candidates import HeadCandidates
from playground.engines.refusal import Refusal
from playground.events import Done, Failed, Ready

from .conftest import ask, ids_of, make_head, make_model, measure, run

ROOT = Path(__file__).resolve().parents[2]


def slot(model, head, name="s"):
    return SlotSpec(name, name, model, DecodeSpec(speculation="draft-head", draft_head=str(head)))


@pytest.fixture
def target(tiny):
    return AutoModelForCausalLM.from_pretrained(tiny.model).eval()


def attached(tiny, target, tmp_path):
    return load_head(Path(make_head(tmp_path / "head", tiny)), "it").to(torch.float32).attach(target)


@torch.no_grad()
def test_drafts_are_those_made_from_scratch_whatever_was_accepted_before(tiny, target, tmp_path):
    """The head's cache after any mix of acceptances holds true hidden states only."""
    head, rng = attached(tiny, target, tmp_path), random.Random(0)
    for parameter in head.body.parameters():
        parameter.mul_(8)  # so that what the head attends to decides what it drafts
    taps, k = list(head.config.taps), 3
    ids = torch.randint(2, 300, (1, 60))
    whole = target.model(ids, output_hidden_states=taps).hidden_states
    states = torch.cat([whole[tap] for tap in taps], dim=-1)
    limits = GenerationConfig(
        num_assistant_tokens=k, num_assistant_tokens_schedule="constant", assistant_confidence_threshold=0.0
    )
    candidates = HeadCandidates(head, limits, GenerationConfig(max_length=60, do_sample=False), LogitsProcessorList())
    assert candidates.get_candidates(ids[:, :7], is_first_iteration=True)[0].shape == (1, 7)
    seen, known = 0, 8
    while known + k < 60:
        outputs = target.model(ids[:, seen : known - 1 + k], output_hidden_states=taps, cache=_upto(target, ids, seen))
        drafted, _ = candidates.get_candidates(ids[:, :known], model_outputs=outputs)
        # From scratch: true states up to the last but one known id, then own drafts.
        fresh = unroll(head, states[:, : known + k], torch.cat([ids[:, :known], drafted[:, known:]], 1), k, own_drafts=True)[1]
        assert drafted[0, known:].tolist() == [int(fresh[s][0, known - 2 + s]) for s in range(k)]
        seen, known = known - 1, known + rng.randint(1, k + 1)


def _upto(target, ids, length):
    cache = DynamicCache(config=target.config)
    if length:
        target.model(ids[:, :length], cache=cache, use_cache=True)
    return cache


def test_measured_acceptance_is_that_of_decoding(engine, tiny, target, tmp_path):
    """`acceptances` walks an answer without decoding; the engine decodes it. Both accept the same."""
    prompt = ask("fox fox fox", new_tokens=60, draft_len=3)
    answer = tuple(ids_of(run(engine, slot(tiny, make_head(tmp_path / "random", tiny)), prompt)))
    prompt_ids = next(iter(engine._store._cards.values())).codec.encode(prompt)[0].tolist()
    row = Row("k", "p", 0.0, tuple(prompt_ids), answer)
    folder = make_head(tmp_path / "head", tiny, [row], passes=40)
    numbers = measure(run(engine, slot(tiny, folder), prompt))
    head = load_head(Path(folder), "it").to(torch.float32).attach(target)
    (found,) = acceptances(head, lessons(target, head, [row], tmp_path / "l", 4, lambda n: None), [3])
    assert 5 < numbers.accepted < numbers.drafted
    # Hidden states are kept in bf16, so a near tie may fall the other way.
    assert (found.drafted, found.accepted) == pytest.approx((numbers.drafted, numbers.accepted), abs=6)


def test_what_does_not_fit_is_refused_with_what_was_made_for_what(engine, tiny, tmp_path):
    wide = ModelSpec(make_model(tmp_path / "wide", width=128), dtype="float32")
    failed = run(engine, slot(tiny, make_head(tmp_path / "head", wide)))[-1]
    assert isinstance(failed, Failed) and "width 128" in failed.message and "distill" in failed.hint


def test_a_folder_without_a_head_is_refused(engine, tiny):
    failed = run(engine, slot(tiny, tiny.model))[-1]
    assert isinstance(failed, Failed) and "draft_head" in failed.message and "distill" in failed.hint


def test_a_head_for_other_weights_runs_and_says_so(engine, tiny, other, tmp_path):
    events = run(engine, slot(tiny, make_head(tmp_path / "head", other)))
    (ready,) = (e for e in events if isinstance(e, Ready))
    assert isinstance(events[-1], Done) and any("other weights" in note for note in ready.notes)


def test_its_own_bytes_are_the_drafters_and_go_with_the_weights(engine, tiny, tmp_path):
    folder = make_head(tmp_path / "head", tiny)
    (ready,) = (e for e in run(engine, slot(tiny, folder)) if isinstance(e, Ready))
    (resident,) = engine.resident()
    assert 0 < ready.drafter_bytes < ready.weights_bytes and resident.bytes == ready.weights_bytes + ready.drafter_bytes
    assert not ready.notes
    engine.unload(None)
    assert engine.resident() == ()


def test_the_saved_file_holds_no_tensor_of_the_target(tiny, tmp_path):
    from safetensors.torch import load_file

    config = AutoModelForCausalLM.from_pretrained(tiny.model).config
    tensors = load_file(Path(make_head(tmp_path / "head", tiny)) / "draft_head.safetensors")
    assert tensors and not any(config.vocab_size in tensor.shape for tensor in tensors.values())


def test_prompts_of_the_two_splits_share_no_topic():
    train, heldout = ({a.text for a in read_prompts(split)} for split in ("train", "heldout"))
    assert len(train) > 3000 and len(heldout) > 300 and not train & heldout
    assert len({a.kind for a in read_prompts("train")}) == len({a.kind for a in read_prompts("heldout")}) == 8


def test_the_loss_and_its_gradient_are_those_of_cross_entropy():
    torch.manual_seed(0)
    hidden, rows = torch.randn(300, 16, requires_grad=True), torch.randn(50, 16)
    top = torch.stack([torch.randperm(50)[:4] for _ in range(300)])
    shares = torch.rand(300, 4).softmax(-1)
    losses, hits = draft_loss(hidden, rows, top, shares)
    losses.sum().backward()
    ours, hidden.grad = hidden.grad, None
    scores = hidden @ rows.T
    expected = -(shares * scores.log_softmax(-1).gather(1, top)).sum(-1)
    expected.sum().backward()
    torch.testing.assert_close(losses, expected)
    torch.testing.assert_close(ours, hidden.grad, rtol=1e-4, atol=1e-4)
    assert torch.equal(hits, scores.argmax(-1) == top[:, 0])


def follower(folder):
    """A target whose next id depends on the last one alone: its layers add nothing."""
    make_model(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    model.save_pretrained(folder)
    return model.eval()


def school(target, tmp_path, recipe):
    """A head and the lessons that a few random texts give."""
    torch.manual_seed(0)
    rows = [Row("k", "p", 0.0, tuple(torch.randint(2, 300, (4,)).tolist()), tuple(torch.randint(2, 300, (20,)).tolist())) for _ in range(64)]
    head = head_for(target, recipe, rows)
    return head, lessons(target, head, rows, tmp_path / "lessons", 4, lambda n: None)


def test_training_finds_what_a_simple_target_does(tmp_path):
    target = follower(tmp_path / "m")
    head, seen = school(target, tmp_path, Recipe("t", passes=20, scored_ids=300, unroll=2, learning_rate=0.01))
    found = []
    training.train(head, seen, Recipe("t", passes=20, scored_ids=300, unroll=2, learning_rate=0.01), tmp_path / "c", found.append)
    assert found[0].agreement < 0.1 and found[-1].agreement > 0.5 and found[-1].loss < found[0].loss / 2


def test_training_that_was_broken_off_goes_on_to_the_same_weights(tmp_path, target, monkeypatch):
    monkeypatch.setattr(training, "CHECKPOINT_S", 0.0)
    recipe = Recipe("t", passes=2, scored_ids=300, unroll=2)
    head, seen = school(target, tmp_path, recipe)
    training.train(head, seen, recipe, tmp_path / "whole", lambda p: None)

    def break_off(progress):
        if progress.step == 7:
            raise KeyboardInterrupt

    broken, _ = school(target, tmp_path, recipe)
    with pytest.raises(KeyboardInterrupt):
        training.train(broken, seen, recipe, tmp_path / "parts", break_off)
    resumed, _ = school(target, tmp_path, recipe)
    steps = []
    training.train(resumed, seen, recipe, tmp_path / "parts", lambda p: steps.append(p.step))
    assert steps[0] == 8 and steps[-1] == math.ceil(2 * 64 / recipe.batch)
    for ours, theirs in zip(resumed.parameters(), head.parameters()):
        torch.testing.assert_close(ours, theirs)


def test_text_that_was_broken_off_goes_on_where_it_stopped(engine, tiny, tmp_path):
    asks = read_prompts("train")[:5]
    with engine._store.use(tiny, lambda *_: None) as weights:
        def write(path, tokens):
            return write_training_text(
                weights.module("w", "sdpa"), weights.card, asks, path, tokens, 8, 0, True, lambda n: None
            )

        whole = write(tmp_path / "whole.jsonl", 1000)
        write(tmp_path / "parts.jsonl", 10)
        with (tmp_path / "parts.jsonl").open("a") as file:
            file.write('{"kind": "half a li')
        assert write(tmp_path / "parts.jsonl", 1000) == whole == read_rows(tmp_path / "parts.jsonl")


def test_a_work_folder_of_another_recipe_is_refused_with_the_difference(tmp_path):
    prepared(tmp_path / "w", Recipe("t"))
    prepared(tmp_path / "w", Recipe("t"))
    with pytest.raises(Refusal, match="another seed, passes"):
        prepared(tmp_path / "w", Recipe("t", passes=1, seed=4))


def test_the_command_makes_a_head_that_a_slot_runs_with(engine, tmp_path):
    model = ModelSpec(make_model(tmp_path / "m", max_position_embeddings=1024), dtype="float32")
    command = [
        sys.executable, "-m", "playground.distill", "--target", model.model, "--out", str(tmp_path / "made"), "--offline",
        "--dtype", "float32", "--text-tokens", "300", "--answer-tokens", "6", "--scored-ids", "100", "--passes", "1",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    card = (tmp_path / "made" / "README.md").read_text()
    assert "Acceptance on held-out topics" in card and "| korean |" in card and "## Speed" in card
    assert json.loads((tmp_path / "made" / CONFIG).read_text())["scored_ids"] == 100
    assert isinstance(run(engine, slot(model, tmp_path / "made"))[-1], Done)
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert again.returncode == 1 and "holds a result already" in again.stderr
