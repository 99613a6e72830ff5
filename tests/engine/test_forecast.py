"""What is said before a run is what the run then does: needs, evictions, refusals."""

import dataclasses

import pytest

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.engines.local import LocalEngine
from playground.engines.options import EngineOptions
from playground.events import Done, Failed, Memory, Ready

from .conftest import ask, make_model, run


def slot(model, name="s", **decode):
    return SlotSpec(name, name, model, DecodeSpec(**decode))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Three models of equal size, large enough to be more than noise."""
    return [ModelSpec(make_model(tmp_path_factory.mktemp(f"m{i}"), seed=i, width=256), dtype="float32") for i in range(3)]


def limited(tmp_path, models, count, **options):
    """An engine with memory for so many of the models, and the size of one."""
    probe = LocalEngine(EngineOptions(str(tmp_path), offline=True))
    size = next(e for e in run(probe, slot(models[0])) if isinstance(e, Ready)).weights_bytes
    probe.close()
    return LocalEngine(EngineOptions(str(tmp_path), offline=True, memory_limit_bytes=int(size * (count + 0.7)), **options))


def test_what_was_foreseen_is_what_the_run_needs(engine, models):
    (seen,) = engine.forecast((slot(models[0]),), ask())
    assert engine.resident() == (), "nothing is loaded for the answer"
    events = run(engine, slot(models[0]))
    ready = next(e for e in events if isinstance(e, Ready))
    memory = next(e for e in events if isinstance(e, Memory))
    assert seen.weights_bytes == pytest.approx(ready.weights_bytes, rel=0.05)
    # The cache holds all but the last id, which nothing follows.
    assert seen.kv_bytes >= memory.kv_bytes > 0.9 * seen.kv_bytes
    assert (seen.device, seen.dtype) == ("cpu", "float32") and seen.problem == "" and seen.needed_bytes > seen.weights_bytes


def test_loaded_weights_cost_nothing_again_and_slots_on_the_same_weights_count_them_once(engine, models):
    both = (slot(models[0], "a"), slot(models[0], "b", attention="eager"))
    first, second = engine.forecast(both, ask())
    assert first.weights_bytes > 0 and second.weights_bytes == 0 and second.working_bytes > first.working_bytes
    run(engine, both[0])
    assert [f.weights_bytes for f in engine.forecast(both, ask())] == [0, 0]


def test_evictions_are_foreseen_in_order_and_happen(tmp_path, models):
    engine = limited(tmp_path, models, 2)
    slots = tuple(slot(model, f"s{i}") for i, model in enumerate(models))
    seen = engine.forecast(slots, ask())
    assert [len(f.evicts) for f in seen] == [0, 0, 1] and models[0].model in seen[2].evicts[0]
    for one in slots:
        assert isinstance(run(engine, one)[-1], Done)
    assert [item.model for item in engine.resident()] == models[1:], "as foreseen"
    again = engine.forecast(slots[:1], ask())[0]
    assert models[1].model in again.evicts[0] and [item.model for item in engine.resident()] == models[1:]
    engine.close()


def test_a_refusal_is_foreseen_with_the_same_words_unless_loaded_anyway(tmp_path, models):
    engine = limited(tmp_path, models, 0)
    (seen,) = engine.forecast((slot(models[0]),), ask())
    failed = run(engine, slot(models[0]))[-1]
    assert isinstance(failed, Failed)
    assert seen.problem.partition(";")[0] == failed.message.partition(";")[0] and seen.remedy == failed.hint
    engine.close()
    anyway = limited(tmp_path, models, 0, load_anyway=True)
    assert anyway.forecast((slot(models[0]),), ask())[0].problem == ""
    anyway.close()


def test_what_admission_refuses_and_what_the_device_does_badly_is_said_before(engine, models):
    slow = dataclasses.replace(models[0], dtype="float16")
    long, half = engine.forecast((slot(models[0], "long", cache="offloaded"), slot(slow, "half")), ask())
    assert "GPU" in long.problem and long.remedy
    assert any("float16" in warning for warning in half.warnings) and half.problem == ""


def test_a_model_that_is_not_here_is_left_out(engine, models):
    assert [f.slot_id for f in engine.forecast((slot(ModelSpec("no/such"), "x"), slot(models[0], "y")), ask())] == ["y"]
