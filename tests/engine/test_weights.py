"""Weights are loaded once, shared, counted truly, evicted when short, and really freed."""

import dataclasses
import gc
import threading
import weakref

import psutil
import pytest
import torch

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.engine import Stop
from playground.engines import weights as weights_module
from playground.engines.local import LocalEngine
from playground.engines.memory import Device, bytes_of, release_memory, tensors_of
from playground.engines.options import EngineOptions
from playground.engines.quantize import count_quantized
from playground.engines.refusal import Refusal
from playground.engines.weights import WeightStore
from playground.events import Failed
from playground.quantization import Quantization

from .conftest import ask, ids_of, make_model, measure, run


def quiet(stage, fraction):
    pass


@pytest.fixture
def store(tmp_path):
    store = WeightStore(EngineOptions(str(tmp_path), offline=True))
    yield store
    store.unload(None)


def slot(model, decode=DecodeSpec(), name="s"):
    return SlotSpec(name, name, model, decode)


def quantized(model, how):
    return ModelSpec(model.model, dtype=model.dtype, quantization=Quantization(how))


@pytest.mark.parametrize("how", ["none", "bnb-int8", "bnb-nf4"])
def test_a_second_module_shares_every_tensor_and_answers_the_same(store, tiny, how):
    ids = torch.arange(2, 12)[None]
    with store.use(quantized(tiny, how), quiet) as loaded, torch.no_grad():
        eager, sdpa = loaded.module("a", "eager"), loaded.module("b", "sdpa")
        assert bytes_of([loaded.pristine, eager, sdpa]) == loaded.bytes, "no copy of any tensor"
        first = eager(ids).logits
        assert torch.equal(eager(ids).logits, first)
        assert torch.allclose(sdpa(ids).logits, first, atol=1e-4)
        assert eager.config is not sdpa.config and loaded.module("a", "eager") is eager
        assert (eager.config._attn_implementation, sdpa.config._attn_implementation) == ("eager", "sdpa")
        assert eager.model.layers[0].self_attn.config is eager.config


def test_a_quantized_copy_shares_what_stays_unquantized(store, tiny):
    """Embeddings and norms of one checkpoint are held once, whichever was loaded first."""
    with store.use(quantized(tiny, "bnb-nf4"), quiet) as small, store.use(tiny, quiet) as full:
        together = bytes_of([small.pristine, full.pristine])
        embedding = full.pristine.get_input_embeddings().weight
        assert small.pristine.get_input_embeddings().weight.data_ptr() == embedding.data_ptr()
        assert together <= small.bytes + full.bytes - embedding.numel() * 4
        linear = full.pristine.model.layers[0].self_attn.q_proj.weight
        assert torch.equal(full.module("a", "sdpa").model.layers[0].self_attn.q_proj.weight, linear)


def test_weights_of_another_checkpoint_or_dtype_are_not_mixed(store, tiny, other):
    with store.use(tiny, quiet) as one, store.use(other, quiet) as two:
        assert not torch.equal(one.pristine.lm_head.weight, two.pristine.lm_head.weight)
        with store.use(ModelSpec(tiny.model, dtype="bfloat16"), quiet) as three:
            assert three.pristine.lm_head.weight.dtype == torch.bfloat16


def test_bytes_count_parameters_once_even_when_tied(store, tmp_path):
    folder = make_model(tmp_path / "tied", tie_word_embeddings=True)
    with store.use(ModelSpec(folder, dtype="float32"), quiet) as loaded:
        names = dict(loaded.pristine.named_parameters())
        assert "lm_head.weight" not in names, "tied"
        buffers = sum(b.numel() * b.element_size() for b in loaded.pristine.buffers())
        assert loaded.bytes == sum(p.numel() * 4 for p in names.values()) + buffers


def test_nf4_bytes_include_the_quantization_state(store, tmp_path):
    """Per linear weight: half a byte each, an 8-bit scale per 64, and the scales' own scales."""
    folder = make_model(tmp_path / "m", width=256, layers=1)
    with store.use(ModelSpec(folder, dtype="float32", quantization=Quantization("bnb-nf4")), quiet) as loaded:
        layers = [m for m in loaded.pristine.modules() if type(m).__name__ == "Linear4bit"]
        assert len(layers) == count_quantized(loaded.pristine, "bnb-nf4") == 7
        for layer in layers:
            count = layer.in_features * layer.out_features
            floor = count // 2 + count // 64
            assert floor < bytes_of(layer) < floor + count // 64 + 4096
            assert bytes_of(layer) > layer.weight.untyped_storage().nbytes(), "the packed weight is not all"


def test_the_compute_dtype_follows_the_model(store, tmp_path):
    folder = make_model(tmp_path / "m")
    for dtype in ("float32", "bfloat16"):
        with store.use(ModelSpec(folder, dtype=dtype, quantization=Quantization("bnb-nf4")), quiet) as loaded:
            layer = next(m for m in loaded.pristine.modules() if type(m).__name__ == "Linear4bit")
            assert layer.compute_dtype == getattr(torch, dtype)


def test_widths_that_4_bit_cannot_do_on_a_cpu_are_known_before_loading(engine, tmp_path):
    """bitsandbytes packs blocks of 64 on a CPU; 96 is not a multiple."""
    if Device("cpu").is_cuda or torch.cuda.is_available():
        pytest.skip("a rule of the CPU kernels")
    folder = make_model(tmp_path / "m", width=96)
    failed = run(engine, slot(ModelSpec(folder, dtype="float32", quantization=Quantization("bnb-nf4"))))[-1]
    assert isinstance(failed, Failed) and "96" in failed.message and "multiples of 64" in failed.message
    assert engine.resident() == ()


def test_a_broken_quantization_package_fails_its_slot_only(engine, tiny, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "bitsandbytes", None)  # what a missing package looks like to import
    failed = run(engine, slot(quantized(tiny, "bnb-nf4")))[-1]
    assert isinstance(failed, Failed) and "bitsandbytes" in failed.message and "pip install" in failed.hint
    assert run(engine, slot(tiny))[-1].reason == "length"


@pytest.mark.parametrize("how", ["bnb-int8", "bnb-nf4"])
def test_quantized_slots_speculate_and_share(engine, tiny, how):
    model = quantized(tiny, how)
    plain = run(engine, slot(model))
    looked_up = run(engine, slot(model, DecodeSpec(speculation="prompt-lookup"), "p"))
    assert len(ids_of(plain)) == len(ids_of(looked_up)) == 24
    assert len(engine.resident()) == 1


def test_two_first_uses_load_once(store, tiny, monkeypatch):
    loads, original = [], weights_module._load_pristine
    monkeypatch.setattr(weights_module, "_load_pristine", lambda *a: (loads.append(a), original(*a))[1])
    inside = threading.Barrier(4, timeout=60)

    def use():
        with store.use(tiny, quiet):
            inside.wait()

    threads = [threading.Thread(target=use) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(loads) == 1


def test_unloading_frees_the_module_and_its_tensors(engine, tiny):
    run(engine, slot(tiny))
    loaded = engine._store._weights[tiny]
    alive = [weakref.ref(loaded.pristine), *(weakref.ref(m) for m in loaded.modules.values())]
    alive += [weakref.ref(t) for t in tensors_of(loaded.pristine)]
    del loaded
    engine.unload(tiny)
    assert [r for r in alive if r() is not None] == []
    assert engine.resident() == ()


def test_a_failed_run_keeps_nothing_alive(engine, tiny, monkeypatch):
    """An exception's traceback refers to frames that hold the module."""
    from playground.engines import local

    seen = []

    def broken(run_slot, *args):
        seen.append(weakref.ref(run_slot.module))
        raise RuntimeError("no")

    monkeypatch.setattr(local, "call_generate", broken)
    run(engine, slot(tiny))
    engine.unload(None)
    assert seen[0]() is None


def test_memory_falls_back_to_a_plateau(tmp_path):
    """Ten loads and unloads of a 100 MB model end where the third ended."""
    model = ModelSpec(make_model(tmp_path / "m", width=768, layers=3, intermediate_size=3072), dtype="float32")
    store, readings = WeightStore(EngineOptions(str(tmp_path), offline=True)), []
    for _ in range(10):
        with store.use(model, quiet) as loaded:
            size = loaded.bytes
            del loaded
        store.unload(None)
        readings.append(psutil.Process().memory_info().rss)
    assert size > 80e6
    assert readings[-1] - readings[2] < size / 2, f"{[r // 2**20 for r in readings]} MiB"


def test_the_least_recently_used_idle_weights_are_evicted(tmp_path):
    specs = [ModelSpec(make_model(tmp_path / str(i), seed=i), dtype="float32") for i in range(3)]
    probe = WeightStore(EngineOptions(str(tmp_path), offline=True))
    with probe.use(specs[0], quiet) as loaded:
        size = loaded.bytes
        del loaded
    probe.unload(None)
    store = WeightStore(EngineOptions(str(tmp_path), memory_limit_bytes=int(2.5 * size), offline=True))
    for spec in (specs[0], specs[1], specs[0], specs[2]):  # 1 is now the oldest
        with store.use(spec, quiet):
            pass
    # the reserve is subtracted from free memory only, never from the user's own limit
    assert [r.model for r in store.resident()] == [specs[0], specs[2]]
    store.unload(None)


def test_what_does_not_fit_is_refused_before_it_is_loaded_and_an_expert_may_insist(tmp_path):
    folder = make_model(tmp_path / "m")
    options = EngineOptions(str(tmp_path), memory_limit_bytes=1000, offline=True)
    store = WeightStore(options)
    with pytest.raises(Refusal, match="MB of weights and 7 MB of KV cache") as refused:
        with store.use(ModelSpec(folder, dtype="float32"), quiet, run_bytes=7_000_000):
            pass
    assert "--load-anyway" in refused.value.hint and store.resident() == ()
    insisting = WeightStore(dataclasses.replace(options, load_anyway=True))
    with insisting.use(ModelSpec(folder, dtype="float32"), quiet, run_bytes=7_000_000) as loaded:
        assert loaded.bytes > 1000


def test_a_run_that_does_not_fit_beside_loaded_weights_is_refused(tmp_path):
    spec = ModelSpec(make_model(tmp_path / "m"), dtype="float32")
    store = WeightStore(EngineOptions(str(tmp_path), memory_limit_bytes=10_000_000, offline=True))
    with store.use(spec, quiet):
        pass
    with pytest.raises(Refusal, match="needs about 90 MB of KV cache"), store.use(spec, quiet, run_bytes=90_000_000):
        pass
    assert [r.model for r in store.resident()] == [spec], "what is asked for is not evicted for itself"


def test_weights_in_use_are_neither_evicted_nor_unloaded(tmp_path):
    specs = [ModelSpec(make_model(tmp_path / str(i), seed=i), dtype="float32") for i in range(2)]
    store = WeightStore(EngineOptions(str(tmp_path), memory_limit_bytes=1, offline=True, load_anyway=True))
    with store.use(specs[0], quiet):
        with store.use(specs[1], quiet):
            assert {r.model for r in store.resident()} == set(specs)
        with pytest.raises(Refusal, match="running"):
            store.unload(None)
        assert [r.model for r in store.resident()] == [specs[0]]
    store.unload(None)


@pytest.mark.parametrize(("stored", "used"), [("float16", "bfloat16"), ("bfloat16", "bfloat16"), ("float32", "float32")])
def test_auto_dtype_never_picks_float16_on_a_cpu(store, tmp_path, stored, used):
    spec = ModelSpec(make_model(tmp_path / "m", dtype=getattr(torch, stored)), device="cpu")
    assert store.card(spec, quiet).dtype == getattr(torch, used)


def test_the_peak_is_reset_for_each_run():
    """A big allocation in the past must not show on a small run."""
    device = Device("cpu")
    big = torch.ones(60_000_000)  # 240 MB
    del big
    release_memory(thorough=True)
    device.reset_peak()
    before = device.current_bytes()
    assert device.peak_bytes() - before < 120e6
    big = torch.ones(60_000_000)
    assert device.peak_bytes() - before > 200e6
    del big


def test_a_peak_that_cannot_be_reset_is_not_reported(monkeypatch):
    from playground.engines import memory

    monkeypatch.setattr(memory, "_reset_peak_rss", lambda: False)
    device = Device("cpu")
    device.reset_peak()
    assert device.peak_bytes() is None


def test_the_counter_is_named(engine, tiny):
    numbers = measure(run(engine, slot(tiny), ask(new_tokens=4)))
    assert numbers.memory_counter == "process RSS" and numbers.device == "cpu" and numbers.dtype == "float32"


def test_closing_an_engine_frees_everything(tmp_path, tiny):
    engine = LocalEngine(EngineOptions(str(tmp_path), offline=True))
    engine.execute(slot(tiny), ask(new_tokens=2), Stop(), lambda event: None)
    engine.close()
    gc.collect()
    assert engine.resident() == ()
