"""One slot's run, for every decode path, against plain generate in fp32."""

import threading

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.engine import Stop
from playground.engines.local import LocalEngine
from playground.engines.options import EngineOptions
from playground.events import Done, Failed, Memory, Ready, Round, Started, Tokens, WarmedUp

from .conftest import ask, ids_of, make_head, make_model, make_tokenizer, measure, run, text_of

PATHS = {
    "no cache": DecodeSpec("eager", "none"),
    "eager": DecodeSpec("eager"),
    "sdpa": DecodeSpec("sdpa"),
    "prompt lookup": DecodeSpec(speculation="prompt-lookup"),
}


def slot(model, decode=DecodeSpec(), name="s"):
    return SlotSpec(name, name, model, decode)


def drafted(target, drafter):
    return slot(target, DecodeSpec(speculation="draft-model", drafter=drafter))


def plain(model, prompt):
    """Greedy ids of an untouched model, without any of our code between."""
    module = AutoModelForCausalLM.from_pretrained(model.model, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(model.model)
    turns = [{"role": "user", "content": prompt.text}]
    inputs = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=True, return_tensors="pt")
    module.generation_config.eos_token_id = None if prompt.settings.ignore_eos else 1
    out = module.generate(**inputs, do_sample=False, max_new_tokens=prompt.settings.new_tokens, pad_token_id=0)
    return out[0, inputs["input_ids"].shape[1] :].tolist(), tokenizer, inputs["input_ids"].shape[1]


@pytest.mark.parametrize("decode", PATHS.values(), ids=PATHS)
def test_greedy_stream_equals_plain_generate(engine, tiny, decode):
    events = run(engine, slot(tiny, decode))
    expected, tokenizer, prompt_tokens = plain(tiny, ask())
    assert ids_of(events) == expected
    assert text_of(events) == tokenizer.decode(expected, skip_special_tokens=True)
    assert measure(events).prompt_tokens == prompt_tokens
    assert events[-1].reason == "length"


@pytest.mark.parametrize("length", [1, 2, 6, 23])
@pytest.mark.parametrize("draft_len", [1, 5])
@pytest.mark.parametrize("drafter", ["tiny", "other"])
def test_speculation_changes_no_greedy_id(engine, tiny, request, length, draft_len, drafter):
    prompt = ask(new_tokens=length, draft_len=draft_len)
    events = run(engine, drafted(tiny, request.getfixturevalue(drafter)), prompt)
    assert ids_of(events) == plain(tiny, prompt)[0]
    assert measure(events).new_tokens == length


@pytest.mark.parametrize("length", [1, 2, 3, 4, 9, 40])
def test_prompt_lookup_changes_no_greedy_id(engine, tiny, length):
    prompt = ask("fox fox fox fox fox fox", new_tokens=length, draft_len=3)
    assert ids_of(run(engine, slot(tiny, DecodeSpec(speculation="prompt-lookup")), prompt)) == plain(tiny, prompt)[0]


def test_the_first_event_with_ids_is_the_first_new_id(engine, tiny):
    events = run(engine, slot(tiny))
    first = next(e for e in events if isinstance(e, Tokens))
    start = next(e for e in events if isinstance(e, Started))
    assert len(first.ids) == 1, "the prompt's ids are not handed on"
    assert first.t_ns > start.t_ns


def test_events_come_in_order_and_end_once(engine, tiny):
    events = run(engine, slot(tiny))
    kinds = [type(e) for e in events]
    order = [kinds.index(k) for k in (Ready, WarmedUp, Started, Tokens, Memory, Done)]
    assert order == sorted(order)
    assert sum(isinstance(e, (Done, Failed)) for e in events) == 1 and isinstance(events[-1], Done)


def test_a_drafter_identical_to_its_target_is_always_accepted(engine, tiny):
    """Counting the bonus id, or dividing by k where the limit cut a draft short, would not give exactly 1."""
    numbers = measure(run(engine, drafted(tiny, tiny), ask(new_tokens=23, draft_len=5)))
    assert numbers.acceptance_rate == 1.0
    assert set(numbers.acceptance_by_position) == {1.0}


@pytest.mark.parametrize("draft_len", [1, 3, 8])
def test_draft_lengths_are_what_was_asked(engine, tiny, other, draft_len):
    """On the target's call k would be ignored, and by default a threshold cuts drafts short."""
    prompt = ask(new_tokens=40, draft_len=draft_len)
    rounds = [e for e in run(engine, drafted(tiny, other), prompt) if isinstance(e, Round)]
    lengths = [r.drafted for r in rounds]
    full = lengths[: next(i for i in range(len(lengths) + 1) if i == len(lengths) or lengths[i] < draft_len)]
    assert full and set(full) == {draft_len}
    emitted = sum(1 + r.accepted for r in rounds[: len(full)])
    assert 40 - emitted <= draft_len, "only the token limit shortens a draft"


def test_rounds_account_for_every_id(engine, tiny, other):
    events = run(engine, drafted(tiny, other), ask(new_tokens=40))
    rounds = [e for e in events if isinstance(e, Round)]
    assert len(rounds) == len([e for e in events if isinstance(e, Tokens)])
    assert sum(1 + r.accepted for r in rounds) == 40
    assert all(0 <= r.accepted <= r.drafted for r in rounds)


def eos_model(folder):
    """A model that says <eos> soon, found by trying seeds."""
    for seed in range(40):
        model = ModelSpec(make_model(folder / str(seed), seed=seed), dtype="float32")
        ids = plain(model, ask(ignore_eos=False, new_tokens=60))[0]
        if 1 in ids and ids.index(1) > 3:
            return model, ids
    raise AssertionError("no seed ends early")


def test_one_rule_for_the_end_of_sequence(engine, tmp_path):
    """Every decode path counts it as generated, never as visible, and stops there; drafts past it do not count."""
    model, expected = eos_model(tmp_path)
    prompt = ask(ignore_eos=False, new_tokens=60)
    for decode in (*PATHS.values(), DecodeSpec(speculation="draft-model", drafter=model)):
        events = run(engine, slot(model, decode), prompt)
        numbers = measure(events)
        assert ids_of(events) == expected, decode
        assert (numbers.finish, numbers.new_tokens - numbers.visible_tokens) == ("eos", 1), decode
        assert "<eos>" not in text_of(events)
    assert numbers.acceptance_rate == 1.0, "an identical drafter, cut by an end of sequence"


def test_ignoring_the_end_of_sequence_forces_the_length(engine, tmp_path):
    model, _ = eos_model(tmp_path)
    for decode in PATHS.values():
        numbers = measure(run(engine, slot(model, decode), ask(new_tokens=60)))
        assert (numbers.new_tokens, numbers.finish) == (60, "length")


def test_sampling_repeats_with_its_seed(engine, tiny):
    def sample(seed):
        return ids_of(run(engine, slot(tiny), ask(temperature=1.0, seed=seed, new_tokens=16)))

    assert sample(1) == sample(1) and sample(1) != sample(2)


def test_the_cache_is_as_long_as_asked_and_absent_when_off(engine, tiny):
    """KV bytes by formula: positions × layers × 2 × kv heads × head dim × 4 bytes; the last id is never fed back."""
    prompt = ask(new_tokens=10)
    numbers = measure(run(engine, slot(tiny), prompt))
    positions = numbers.prompt_tokens + 10 - 1
    assert numbers.kv_bytes == positions * 2 * 2 * 2 * 16 * 4
    assert measure(run(engine, slot(tiny, DecodeSpec("eager", "none")), prompt)).kv_bytes == 0


@pytest.mark.parametrize("decode", [*PATHS.values(), "drafter"], ids=[*PATHS, "draft model"])
def test_stop_ends_within_one_step_and_keeps_a_prefix(engine, tiny, decode):
    decode = DecodeSpec(speculation="draft-model", drafter=tiny) if decode == "drafter" else decode
    stop, seen = Stop(), []
    engine.execute(
        slot(tiny, decode),
        ask(new_tokens=100),
        stop,
        lambda e: (seen.append(e), stop.set() if len([x for x in seen if isinstance(x, Tokens)]) == 3 else None),
    )
    assert seen[-1].reason == "stopped"
    assert len([e for e in seen if isinstance(e, Tokens)]) <= 4, "at most the step that had begun"
    assert ids_of(seen) == plain(tiny, ask(new_tokens=100))[0][: len(ids_of(seen))]
    assert measure(seen).peak_bytes is not None, "a stopped run has its numbers too"


def test_a_stop_before_loading_loads_nothing(engine, tiny):
    stop = Stop()
    stop.set()
    assert run(engine, slot(tiny), stop=stop) == [Done("stopped")] and engine.resident() == ()


def test_too_long_is_refused_by_field_before_weights_load(engine, tiny):
    failed = run(engine, slot(tiny), ask(new_tokens=4000))[-1]
    assert isinstance(failed, Failed) and failed.message.startswith("new_tokens") and "256" in failed.message
    assert engine.resident() == ()


def test_a_failure_ends_the_run_and_the_next_one_works(engine, tiny, monkeypatch):
    from playground.engines import local

    def broken(*args):
        raise RuntimeError("kernel exploded")

    with monkeypatch.context() as patch:
        patch.setattr(local, "call_generate", broken)
        assert "kernel exploded" in run(engine, slot(tiny))[-1].message
    assert run(engine, slot(tiny))[-1] == Done("length", run(engine, slot(tiny))[-1].text)


@pytest.mark.parametrize("same_size", [True, False])
def test_a_drafter_with_another_vocabulary_is_refused_before_it_loads(engine, tiny, tmp_path, same_size):
    """The same number of pieces with other meanings would pass a size check and be accepted at about 0 %."""
    tokenizer, ours = make_tokenizer(vocab_size=300, corpus=["zzz yyy xxx www"] * 4), make_tokenizer()
    missing = len(ours) - len(tokenizer)
    tokenizer.add_tokens([f"extra{i}" for i in range(missing if same_size else missing + 1)])
    assert (len(tokenizer) == len(ours)) == same_size
    drafter = ModelSpec(make_model(tmp_path / "d", tokenizer=tokenizer), dtype="float32")
    failed = run(engine, drafted(tiny, drafter))[-1]
    assert isinstance(failed, Failed) and failed.message.startswith("drafter") and "differs" in failed.message
    assert engine.resident() == (), "known from the tokenizers, before any weights"


def test_race_runs_share_weights_and_do_not_mix(engine, tiny):
    """Eager and SDPA modules on one copy of the tensors, at once, each with its own prompt."""
    prompts = {"eager": ask("the quick"), "sdpa": ask("lazy dog")}
    found = {}

    def race(attention):
        found[attention] = ids_of(run(engine, slot(tiny, DecodeSpec(attention), attention), prompts[attention]))

    threads = [threading.Thread(target=race, args=(attention,)) for attention in prompts]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for attention, prompt in prompts.items():
        assert found[attention] == plain(tiny, prompt)[0]
    assert len(engine.resident()) == 1


def test_two_identical_slots_have_modules_of_their_own(engine, tiny):
    run(engine, slot(tiny, name="first"))
    run(engine, slot(tiny, name="second"))
    assert engine.resident()[0].modules == 2


@pytest.mark.parametrize("model", ["./nowhere", "/no/such/folder", "org/uncached-model"])
def test_a_model_that_cannot_be_had_says_so(engine, model):
    failed = run(engine, slot(ModelSpec(model)))[-1]
    assert isinstance(failed, Failed) and failed.message.startswith("model") and failed.hint


def test_checkpoint_defaults_do_not_leak_into_generation(tmp_path, tiny):
    """A checkpoint that ships sampling and a repetition penalty still answers greedily here."""
    from transformers import GenerationConfig

    folder = make_model(tmp_path / "m")
    GenerationConfig(do_sample=True, temperature=2.0, top_k=3, repetition_penalty=5.0, eos_token_id=1).save_pretrained(folder)
    engine = LocalEngine(EngineOptions(str(tmp_path), offline=True))
    assert ids_of(run(engine, slot(ModelSpec(folder, dtype="float32")))) == plain(tiny, ask())[0]


def one_vector_model(folder, logits):
    """A model whose next-token distribution is softmax(logits) whatever came before.

    All embeddings are one vector, so every position has the same hidden state h, and each row
    of the head is its logit times h / |h|².
    """
    from transformers import LlamaForCausalLM

    make_model(folder, layers=2, max_position_embeddings=4096)
    model = LlamaForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        model.model.embed_tokens.weight[:] = model.model.embed_tokens.weight[5]
        hidden = model.model(torch.tensor([[5, 6, 7]])).last_hidden_state[0, -1]
        full = torch.full((model.config.vocab_size,), -30.0)
        full[list(logits)] = torch.tensor(list(logits.values()))
        model.lm_head.weight[:] = full[:, None] * hidden / hidden.square().sum()
    model.save_pretrained(folder)
    return ModelSpec(str(folder), dtype="float32"), full.softmax(-1)


@pytest.mark.parametrize("how", ["plain", "prompt-lookup", "draft-model", "early-exit", "draft-head"])
def test_sampling_keeps_the_targets_distribution(engine, tmp_path, how):
    """1,500 independent draws. The drafter's own distribution is far off, so accepting too much would show."""
    target, expected = one_vector_model(tmp_path / "target", {10: 2.0, 11: 1.5, 12: 1.0, 13: 0.0})
    drafter, wrong = one_vector_model(tmp_path / "drafter", {10: 0.0, 11: 1.0, 12: 2.0, 13: 2.0})
    assert (expected - wrong).abs().sum() / 2 > 0.4
    decode = {
        "plain": DecodeSpec(),
        "prompt-lookup": DecodeSpec(speculation="prompt-lookup"),
        "draft-model": DecodeSpec(speculation="draft-model", drafter=drafter),
        "early-exit": DecodeSpec(speculation="early-exit", exit_layer=1),
        "draft-head": DecodeSpec(speculation="draft-head", draft_head=make_head(tmp_path / "head", target)),
    }[how]
    ids = ids_of(run(engine, slot(target, decode), ask(new_tokens=1500, temperature=1.0, draft_len=3)))
    found = torch.bincount(torch.tensor(ids), minlength=len(expected)) / len(ids)
    assert len(ids) == 1500 and (found - expected).abs().max() < 0.05


@pytest.mark.parametrize("how", ["prompt-lookup", "draft-model"])
def test_speculation_past_a_sliding_window_changes_no_id(engine, tmp_path, how):
    from transformers import MistralConfig, MistralForCausalLM

    tokenizer = make_tokenizer()
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=16, max_position_embeddings=256, initializer_range=0.2,
        bos_token_id=0, eos_token_id=1,
    )
    MistralForCausalLM(config).save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    model = ModelSpec(str(tmp_path / "m"), dtype="float32")
    decode = DecodeSpec(speculation=how, drafter=model if how == "draft-model" else None)
    prompt = ask("fox fox fox fox", new_tokens=60)
    assert ids_of(run(engine, slot(model, decode), prompt)) == plain(model, prompt)[0]
