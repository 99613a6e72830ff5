"""Slots over several devices: two processes give one process's ids, can be stopped, and what does not fit is refused."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from accelerate import dispatch_model

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.engine import Stop
from playground.engines import placement
from playground.engines import weights as weights_module
from playground.engines.options import EngineOptions
from playground.engines.refusal import Refusal
from playground.engines.worker import WorkerEngine
from playground.events import Done, Failed, Quality, Ready, Tokens

from .conftest import ask, ids_of, make_model, run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return ModelSpec(make_model(tmp_path_factory.mktemp("ranks"), max_position_embeddings=4096), dtype="float32")


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """A worker of two processes on the CPU."""
    worker = WorkerEngine(EngineOptions(str(tmp_path_factory.mktemp("cache")), offline=True), ranks=2)
    yield worker
    worker.close()


def split(model, **decode):
    return SlotSpec("tp", "tp", dataclasses.replace(model, device="tensor:2"), DecodeSpec(**decode))


def ready(events):
    return next(event for event in events if isinstance(event, Ready))


@pytest.mark.parametrize("decode", [{}, {"attention": "eager"}, {"cache": "none"}, {"speculation": "prompt-lookup"}], ids=str)
def test_two_processes_give_the_ids_of_one(group, engine, model, decode):
    whole, halves = run(engine, SlotSpec("s", "s", model, DecodeSpec(**decode))), run(group, split(model, **decode))
    assert ids_of(halves) == ids_of(whole) and len(ids_of(whole)) == 24


def test_the_script_of_a_split_slot_run_by_torchrun_prints_its_ids(group, model, tmp_path):
    events = run(group, split(model))
    source = ready(events).script
    assert "torchrun --nproc-per-node 2" in source
    (tmp_path / "slot.py").write_text(source)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "slot.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert str(ids_of(events)) in said


def test_sampling_is_the_same_on_both_ranks_and_ends_regularly(group, engine, model):
    prompt = ask(temperature=1.0, seed=7)
    assert ids_of(run(group, split(model), prompt)) == ids_of(run(engine, SlotSpec("s", "s", model), prompt))


def test_the_halves_together_weigh_what_the_whole_does(group, engine, model):
    whole, halves = ready(run(engine, SlotSpec("s", "s", model))), ready(run(group, split(model)))
    # Norms are on every rank, so two halves are a little more than the whole.
    assert whole.weights_bytes <= halves.weights_bytes < 1.05 * whole.weights_bytes
    assert any("tensor parallel" in note and "2" in note for note in halves.notes)


def test_a_stop_ends_all_ranks_at_one_step_and_the_next_run_works(group, model):
    stop, events = Stop(), []
    for event in group.run(split(model), ask(new_tokens=3000), stop):
        events.append(event)
        if isinstance(event, Tokens):
            stop.set()
    assert events[-1] == Done("stopped", events[-1].text) and len(ids_of(events)) < 3000
    assert isinstance(run(group, split(model))[-1], Done)


def test_quality_is_measured_on_all_ranks(group, model):
    slot = split(model)
    answer = tuple(ids_of(run(group, slot)))
    found = list(group.assess(slot, SlotSpec("s", "s", model), ask(), answer, Stop()))[-1]
    assert isinstance(found, Quality) and abs(found.kl_nats) < 1e-5 and found.top1 == 1.0


def test_unloading_frees_every_rank_and_the_weights_load_again(group, model):
    run(group, split(model))
    group.unload(None)
    assert group.resident() == ()
    assert isinstance(run(group, split(model))[-1], Done)


def test_heads_that_do_not_divide_are_refused_with_the_numbers_that_do(tmp_path):
    model = ModelSpec(make_model(tmp_path / "m", num_attention_heads=8, num_key_value_heads=4), dtype="float32", device="tensor:3")
    worker = WorkerEngine(EngineOptions(str(tmp_path), offline=True), ranks=3)
    try:
        failed = run(worker, SlotSpec("s", "s", model))[-1]
        assert isinstance(failed, Failed) and "3 ranks" in failed.message and "2, 4" in failed.hint
        worker.close()
    finally:
        worker.close()


@pytest.mark.parametrize("device", ["cuda:7", "cuda:0+cuda:9", "nonsense"])
def test_a_device_that_is_not_here_is_refused_by_name(engine, model, device):
    failed = run(engine, SlotSpec("s", "s", dataclasses.replace(model, device=device)))[-1]
    assert isinstance(failed, Failed) and "not on this machine" in failed.message and "cpu" in failed.hint


@pytest.mark.parametrize("device", ["cpu+cpu"])
def test_a_device_named_twice_is_refused(device):
    with pytest.raises(Refusal, match="twice"):
        placement.check(device)


def test_parts_left_on_the_disk_are_counted_and_the_ids_are_the_same(engine, model, tmp_path, monkeypatch):
    whole = ids_of(run(engine, SlotSpec("s", "s", model)))
    engine.unload(None)
    load = weights_module._from_pretrained

    def offloading(*arguments):
        places = {"model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk", "model.norm": "cpu",
                  "model.rotary_emb": "cpu", "lm_head": "cpu"}
        return dispatch_model(load(*arguments), places, offload_dir=str(tmp_path / "disk"), main_device="cpu", force_hooks=True)

    monkeypatch.setattr(weights_module, "_from_pretrained", offloading)
    monkeypatch.setattr(weights_module, "_bring_in", lambda *_, **__: None)
    events = run(engine, SlotSpec("s", "s", model))
    assert ids_of(events) == whole
    assert any("offloaded" in note and "of 6" in note for note in ready(events).notes)


def test_spread_layers_name_only_the_devices_that_were_asked_for(monkeypatch):
    monkeypatch.setattr(placement, "Device", lambda part: type("D", (), {"free_bytes": lambda self: 1000})())
    found = placement.options_for("cuda:0+cuda:2+cpu", None, None)
    assert found["device_map"] == "auto" and set(found["max_memory"]) == {0, 2, "cpu"}
    assert all(0 < share < 1000 for share in found["max_memory"].values())


def test_a_model_without_a_plan_is_refused():
    config = type("C", (), {"get_text_config": lambda self: self, "model_type": "odd", "base_model_tp_plan": None})()
    with pytest.raises(Refusal, match="odd"):
        placement.check_plan(config, 2)


@pytest.mark.parametrize(("places", "counted"), [
    ({"a": 0, "b": "cpu", "c": "disk"}, "2 of 3"), ({"a": 0, "b": "cpu"}, "1 of 2"), ({"a": "cpu", "b": "cpu"}, ""), ({"a": 0, "b": 1}, ""),
    (None, ""),
])  # fmt: skip
def test_parts_outside_the_gpus_are_counted_unless_all_lie_together(places, counted):
    note = placement.offloaded(type("M", (), {"hf_device_map": places})())
    assert counted in note and bool(note) == bool(counted)


@pytest.mark.parametrize(("heads", "kv_heads", "ranks", "fits"), [(8, 4, 4, True), (8, 2, 4, False), (6, 3, 2, False), (9, 3, 3, True)])
def test_ranks_divide_both_kinds_of_heads(heads, kv_heads, ranks, fits):
    config = type("C", (), {
        "get_text_config": lambda self: self, "model_type": "m", "base_model_tp_plan": {"x": "colwise"},
        "num_attention_heads": heads, "num_key_value_heads": kv_heads,
    })()  # fmt: skip
    if fits:
        placement.check_plan(config, ranks)
    else:
        with pytest.raises(Refusal, match=f"{kv_heads} key-value heads"):
            placement.check_plan(config, ranks)


def test_one_process_is_alone():
    from playground.engines import ranks

    assert ranks.alone() and ranks.agreed(True) and not ranks.agreed(False)
    assert ranks.total(5) == 5 and ranks.least(5) == 5 and ranks.total(None) is None
    assert ranks.shared("x") == "x" and not torch.distributed.is_initialized()


AGREEING = """
from playground.engines import ranks
ranks.meet()
mine = ranks.rank() == 1
print(ranks.agreed(mine), ranks.agreed(not mine), ranks.total(ranks.rank() + 1), ranks.least(ranks.rank() + 5), ranks.shared(ranks.rank()), flush=True)
"""


def test_two_processes_follow_the_first_one_and_add_up(tmp_path):
    script = tmp_path / "agreeing.py"
    script.write_text(AGREEING)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert said.stdout.split("\n")[:2] == ["False True 3 5 0"] * 2, said.stderr
