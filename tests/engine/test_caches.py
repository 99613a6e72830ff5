"""Every kind of cache and attention kernel: ids, bytes against the formula, and what cannot work."""

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM

from playground.config import ConfigError, DecodeSpec, ModelSpec, SlotSpec
from playground.events import Done, Failed, WarmedUp

from .conftest import ask, ids_of, make_tokenizer, measure, run
from .test_runs import plain


def slot(model, name="s", **decode):
    return SlotSpec(name, name, model, DecodeSpec(**decode))


@pytest.fixture(scope="session")
def windowed(tmp_path_factory):
    """A model in which every layer sees 16 positions."""
    folder, tokenizer = tmp_path_factory.mktemp("windowed"), make_tokenizer()
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=16, max_position_embeddings=256, initializer_range=0.2,
        bos_token_id=0, eos_token_id=1,
    )
    MistralForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return ModelSpec(str(folder), dtype="float32")


@pytest.mark.parametrize("how", [
    {"cache": "static"}, {"attention": "sdpa-flash"}, {"attention": "sdpa-math"}, {"attention": "eager"},
    {"cache": "static", "attention": "eager"}, {"cache": "static", "speculation": "prompt-lookup"},
    {"cache": "static", "speculation": "early-exit", "exit_layer": 1},
])  # fmt: skip
def test_what_loses_nothing_changes_no_greedy_id(engine, tiny, how):
    prompt = ask("fox fox the quick brown fox", new_tokens=60)
    events = run(engine, slot(tiny, **how), prompt)
    assert isinstance(events[-1], Done), events[-1]
    assert ids_of(events) == plain(tiny, prompt)[0]


@pytest.mark.parametrize("cache", ["fp8", "quanto-int4", "quanto-int2"])
def test_quantized_caches_run_and_are_smaller(engine, tiny, cache):
    prompt = ask("the quick brown fox " * 3, new_tokens=160)
    full = measure(run(engine, slot(tiny, cache="dynamic"), prompt))
    events = run(engine, slot(tiny, cache=cache), prompt)
    assert isinstance(events[-1], Done), events[-1]
    assert len(ids_of(events)) == 160 and measure(events).kv_bytes < 0.75 * full.kv_bytes


@pytest.mark.parametrize("cache", ["none", "dynamic", "static", "fp8"])
@pytest.mark.parametrize("model", ["tiny", "windowed"])
def test_the_formula_says_what_the_cache_holds(engine, request, model, cache):
    if (model, cache) == ("windowed", "fp8"):
        pytest.skip("refused: another test")
    found = measure(run(engine, slot(request.getfixturevalue(model), cache=cache), ask(new_tokens=60)))
    assert found.kv_bytes == pytest.approx(found.kv_predicted_bytes, rel=0.02), cache
    assert (found.kv_bytes == 0) == (cache == "none")


def test_a_group_quantized_cache_is_between_the_formula_and_its_unquantized_rest(engine, tiny):
    prompt = ask("the quick brown fox " * 3, new_tokens=160)
    found = measure(run(engine, slot(tiny, cache="quanto-int4"), prompt))
    rest = 2 * 2 * 128 * 32 * 4  # layers, keys and values, residual positions, kv heads × width, float32
    assert found.kv_predicted_bytes * 0.9 <= found.kv_bytes <= found.kv_predicted_bytes + rest


def test_a_quantized_cache_of_a_windowed_model_is_refused(engine, windowed):
    failed = run(engine, slot(windowed, cache="quanto-int4"))[-1]
    assert isinstance(failed, Failed) and "sliding_attention" in failed.message and "dynamic" in failed.hint


@pytest.mark.parametrize(("how", "word"), [
    ({"cache": "offloaded"}, "CPU"), ({"cache": "offloaded-static"}, "CPU"), ({"cache": "hqq-int4"}, "hqq"),
    ({"attention": "sdpa-cudnn"}, "cudnn"), ({"attention": "sdpa-efficient"}, "efficient"),
    ({"attention": "flash_attention_2"}, "GPU"), ({"attention": "flex_attention"}, "GPU"),
])  # fmt: skip
def test_what_this_device_lacks_is_refused_before_loading(engine, tiny, how, word):
    failed = run(engine, slot(tiny, **how))[-1]
    assert isinstance(failed, Failed) and word in failed.message and failed.hint
    assert engine.resident() == ()


def test_without_a_compiler_quanto_is_refused_with_what_to_install(engine, tiny, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    failed = run(engine, slot(tiny, cache="quanto-int4"))[-1]
    assert isinstance(failed, Failed) and "compiler" in failed.message and "g++" in failed.hint
    assert isinstance(run(engine, slot(tiny, cache="fp8"))[-1], Done)


@pytest.mark.parametrize("cache", ["none", "fp8", "quanto-int4", "hqq-int4"])
def test_speculation_with_a_cache_that_cannot_be_cropped_is_refused_when_a_slot_is_made(tiny, cache):
    with pytest.raises(ConfigError, match="takes back"):
        slot(tiny, cache=cache, speculation="prompt-lookup")


def test_the_kernel_that_ran_is_told(engine, tiny):
    def kernels(**how):
        return next(e for e in run(engine, slot(tiny, **how)) if isinstance(e, WarmedUp)).kernels

    assert kernels(attention="eager") == ""
    assert kernels(attention="sdpa-math") == "math"
    assert kernels(attention="sdpa-flash") == "flash"
    assert kernels(attention="sdpa") == kernels(attention="sdpa-flash")


def test_restricting_one_slot_leaves_the_next_as_it_was(engine, tiny):
    run(engine, slot(tiny, attention="sdpa-math"))
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.math_sdp_enabled()
