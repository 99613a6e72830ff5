"""Where a run's time went, what it reads a step, and what others took of the machine."""

import pytest

from playground.breakdown import breakdown
from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.engines import memory
from playground.engines.memory import Device, HostLoad
from playground.events import Ready, Spent, Started

from .conftest import ask, make_model, measure, run


def slot(model, **decode):
    return SlotSpec("s", "s", model, DecodeSpec(**decode))


def found(events, kind):
    return next(e for e in events if isinstance(e, kind))


@pytest.mark.parametrize("decode", [{}, {"cache": "none"}, {"speculation": "prompt-lookup"}, {"speculation": "early-exit", "exit_layer": 1}], ids=str)
def test_the_parts_lie_inside_the_run_and_add_up(engine, tiny, decode):
    numbers = measure(run(engine, slot(tiny, **decode)))
    assert 0 < numbers.prefill_s <= numbers.ttft_s and 0 < numbers.forward_s and 0 < numbers.text_s
    told = numbers.prefill_s + numbers.forward_s + (numbers.draft_total_s or 0) + numbers.text_s
    assert told <= 1.05 * numbers.total_s, "a drafter that is the model itself is not counted twice"
    assert sum(part.seconds for part in breakdown(numbers)) == pytest.approx(max(told, numbers.total_s), rel=0.01)


def test_the_module_is_left_as_it_was(engine, tiny):
    run(engine, slot(tiny))
    with engine._store.use(tiny, lambda *_: None) as weights:
        assert all("forward" not in vars(module) for module in weights.modules.values())


def test_compiled_steps_are_not_timed_one_by_one(engine, tiny):
    assert found(run(engine, slot(tiny, cache="static", compile="default")), Spent).forward_s is None


@pytest.mark.parametrize("tied", [True, False])
def test_a_step_reads_every_weight_but_an_input_table_of_its_own(engine, tmp_path, tied):
    model = ModelSpec(make_model(tmp_path / "m", tie_word_embeddings=tied), dtype="float32")
    ready = found(run(engine, slot(model)), Ready)
    table = found(run(engine, slot(model)), Ready).weights_bytes - ready.read_bytes
    assert table == 0 if tied else table > 300 * 64 * 4


def test_the_key_is_that_of_the_ids(engine, tiny):
    keys = [found(run(engine, slot(tiny), ask(text)), Started).prompt_key for text in ("one fox", "one fox", "two fox")]
    assert keys[0] == keys[1] != keys[2] and all(keys)


def test_the_copy_rate_is_measured_once_and_not_where_there_is_no_room(engine, tiny, monkeypatch):
    monkeypatch.setattr(memory, "_COPIED_BYTES", 1 << 20)
    rates = [found(run(engine, slot(tiny)), Ready).copy_bytes_per_s for _ in range(2)]
    assert rates[0] == rates[1] > 0
    monkeypatch.setattr(Device, "free_bytes", lambda self: 1)
    assert Device("cpu").copy_bytes_per_s() is None


def test_what_others_take_is_told_from_what_this_process_takes(monkeypatch):
    readings = iter([(0.0, 100.0, 50.0), (10.0, 115.0, 60.0)])  # clock, busy seconds of all CPUs, our own
    monkeypatch.setattr(HostLoad, "_read", staticmethod(lambda: next(readings)))
    assert HostLoad().other_cores() == pytest.approx(0.5), "15 s busy, 10 of them ours, in 10 s"


def test_a_mixture_of_experts_has_no_bytes_a_step(engine, tiny, monkeypatch):
    card = engine._store.card(tiny, lambda *_: None)
    monkeypatch.setattr(type(card.config), "num_experts", 8, raising=False)
    assert found(run(engine, slot(tiny)), Ready).read_bytes is None
