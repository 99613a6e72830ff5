"""Lean slots: the same ids from packed weights, shared, counted and freed."""

import pytest
import torch

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.engines import lean
from playground.engines.memory import bytes_of
from playground.events import Done, Failed, Ready
from playground.quantization import Quantization

from .conftest import ask, ids_of, make_head, make_model, run

pytestmark = pytest.mark.skipif(
    not lean.possible(torch.bfloat16, torch.device("cpu")), reason="this CPU does not compute in bfloat16"
)


def slot(model, name="s", **decode):
    return SlotSpec(name, name, model, DecodeSpec(**decode))


@pytest.fixture
def model(tmp_path):
    return ModelSpec(make_model(tmp_path / "m", width=128), dtype="bfloat16")


@pytest.mark.parametrize("rows", [1, 2, 5, 33, 64])
def test_a_packed_product_is_the_plain_one(rows):
    torch.manual_seed(0)
    linear = torch.nn.Linear(192, 320).to(torch.bfloat16)
    given = torch.randn(1, rows, 192, dtype=torch.bfloat16)
    with torch.no_grad():
        found = lean.PackedLinear(linear, lean.packed(linear.weight))(given)
        expected = torch.nn.functional.linear(given.float(), linear.weight.float(), linear.bias.float())
    torch.testing.assert_close(found.float(), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("how", [{}, {"attention": "eager"}, {"cache": "static"}, {"cache": "none"}])
def test_the_same_ids(engine, model, how):
    plainly = run(engine, slot(model, **how))
    leanly = run(engine, slot(model, "lean", lean=True, **how))
    assert isinstance(leanly[-1], Done) and ids_of(leanly) == ids_of(plainly)


@pytest.mark.parametrize("how", ["prompt-lookup", "draft-model", "draft-head", "early-exit"])
def test_with_speculation(engine, model, tmp_path, how):
    companion = {
        "prompt-lookup": {}, "draft-model": {"drafter": model}, "draft-head": {"draft_head": make_head(tmp_path / "h", model)},
        "early-exit": {"exit_layer": 1},
    }[how]
    events = run(engine, slot(model, lean=True, speculation=how, **companion), ask("fox fox fox"))
    assert isinstance(events[-1], Done) and len(ids_of(events)) == 24


def test_quantized_weights_stay_and_only_the_output_embedding_is_packed(engine, tmp_path):
    spec = ModelSpec(make_model(tmp_path / "m", width=128), dtype="bfloat16", quantization=Quantization("torchao-int4", group_size=32))
    leanly = run(engine, slot(spec, lean=True))
    assert isinstance(leanly[-1], Done)
    (weights,) = engine._store._weights.values()
    head = weights.pristine.lm_head.weight
    assert weights.packs.bytes == head.numel() * 2


def test_packed_bytes_are_counted_once_for_all_lean_slots_and_freed(engine, model):
    def ready(**how):
        return next(e for e in run(engine, slot(model, str(how), **how)) if isinstance(e, Ready))

    plain, one, two = ready(), ready(lean=True), ready(lean=True, attention="eager")
    (weights,) = engine._store._weights.values()
    linears = [m for m in weights.pristine.modules() if isinstance(m, torch.nn.Linear)]
    assert one.weights_bytes - plain.weights_bytes == 2 * sum(m.weight.numel() for m in linears)
    assert one.weights_bytes == two.weights_bytes == engine.resident()[0].bytes
    leanly = weights.modules[(slot(model, str({"lean": True}), lean=True), "sdpa", True)]
    assert bytes_of(leanly) == one.weights_bytes
    del weights, linears, leanly
    engine.unload(None)
    assert engine.resident() == ()


def test_float32_is_refused_with_what_to_set(engine, tiny):
    failed = run(engine, slot(tiny, lean=True))[-1]
    assert isinstance(failed, Failed) and "float32" in failed.message and "bfloat16" in failed.hint
    assert engine.resident() == ()
