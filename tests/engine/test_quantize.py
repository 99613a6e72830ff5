"""Every way of quantizing that a CPU can do: counted, measured, shared, saved, and refused with the reason."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.engine import Stop
from playground.engines import gptq, packages, quantize
from playground.engines.calibration import MAX_SAMPLES, SAMPLE_TOKENS, read_calibration, samples
from playground.engines.local import LocalEngine
from playground.engines.memory import Device, bytes_of
from playground.engines.options import EngineOptions
from playground.engines.refusal import Refusal
from playground.engines.weights import WeightStore
from playground.events import Done, Failed, Loading, Ready
from playground.quantization import Quantization

from .conftest import ask, ids_of, make_model, make_tokenizer, measure, run

ROOT = Path(__file__).resolve().parents[2]
CPU = Device("cpu")
GPTQ = Quantization("gptq", group_size=32)
LAYERS = 14  # 7 linear layers in each of 2 blocks, the head left out

# What a CPU runs without a checkpoint of its own, and bytes a weight: int8 rows and int4 groups carry scales.
ON_A_CPU = {
    "bnb-int8": Quantization("bnb-int8"),
    "bnb-nf4": Quantization("bnb-nf4"),
    "bnb-nf4 single": Quantization("bnb-nf4", double_quantization=False),
    "bnb-fp4": Quantization("bnb-fp4"),
    "torchao-int8": Quantization("torchao-int8"),
    "torchao-int8-dynamic": Quantization("torchao-int8-dynamic"),
    "torchao-int8-static": Quantization("torchao-int8-static"),
    "torchao-int4": Quantization("torchao-int4", group_size=32),
}


def quiet(stage, fraction):
    pass


def slot(model, decode=DecodeSpec(), name="s"):
    return SlotSpec(name, name, model, decode)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"), dtype=torch.bfloat16)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def engine(cache):
    engine = LocalEngine(EngineOptions(str(cache), offline=True))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def made(folder, cache):
    """The tiny model quantized with GPTQ: what its first run said, and the folder that it left."""
    engine = LocalEngine(EngineOptions(str(cache), offline=True))
    events = run(engine, slot(ModelSpec(folder, quantization=GPTQ)))
    resident = engine.resident()
    engine.close()
    assert isinstance(events[-1], Done), events[-1]
    return events, Path(resident[0].folder)


@pytest.mark.parametrize("quantization", ON_A_CPU.values(), ids=ON_A_CPU)
def test_every_layer_but_the_head_is_quantized_and_answers(engine, folder, quantization):
    events = run(engine, slot(ModelSpec(folder, quantization=quantization)))
    assert isinstance(events[-1], Done), events[-1]
    assert measure(events).quantized_layers == LAYERS and len(ids_of(events)) == 24


@pytest.mark.parametrize("quantization", ON_A_CPU.values(), ids=ON_A_CPU)
def test_modules_of_one_quantized_copy_share_every_tensor_and_agree(cache, folder, quantization):
    store, ids = WeightStore(EngineOptions(str(cache), offline=True)), torch.arange(2, 12)[None]
    with store.use(ModelSpec(folder, quantization=quantization), quiet) as loaded, torch.no_grad():
        one, two = loaded.module("a", "sdpa"), loaded.module("b", "sdpa")
        first = one(ids).logits
        assert torch.equal(two(ids).logits, first)
        # bitsandbytes keeps the last forward's outlier columns; the smallest layer has 2,048 bytes
        assert 0 <= bytes_of([loaded.pristine, one, two]) - loaded.bytes < 1024, "no copy, before or after a forward"


def weights_in_linear_layers(folder):
    model = AutoModelForCausalLM.from_pretrained(folder)
    layers = [m for m in model.modules() if isinstance(m, torch.nn.Linear) and m is not model.lm_head]
    return sum(m.weight.numel() for m in layers), sum(m.out_features for m in layers)


@pytest.mark.parametrize("method", ["torchao-int8", "torchao-int8-dynamic", "torchao-int8-static", "bnb-int8"])
def test_int8_bytes_are_one_a_weight_and_a_scale_a_row(engine, folder, method):
    """Transformers' own footprint reports a torchao model at its unquantized size."""
    weights, rows = weights_in_linear_layers(folder)
    plain = measure(run(engine, slot(ModelSpec(folder)))).weights_bytes
    small = measure(run(engine, slot(ModelSpec(folder, quantization=Quantization(method))))).weights_bytes
    saved = 2 * weights - (weights + 4 * rows)
    assert plain - small == pytest.approx(saved, abs=3 * rows), "a scale has two to four bytes, and torchao keeps zeros"


def test_int4_bytes_are_half_a_weight_and_a_scale_and_a_zero_a_group(engine, folder):
    weights, _ = weights_in_linear_layers(folder)
    plain = measure(run(engine, slot(ModelSpec(folder)))).weights_bytes
    small = measure(run(engine, slot(ModelSpec(folder, quantization=ON_A_CPU["torchao-int4"])))).weights_bytes
    assert plain - small == 2 * weights - (weights // 2 + weights // 32 * 4)


def test_the_threshold_reaches_bitsandbytes(cache, folder):
    store = WeightStore(EngineOptions(str(cache), offline=True))
    for threshold in (0.0, 3.0):
        spec = ModelSpec(folder, quantization=Quantization("bnb-int8", threshold=threshold))
        with store.use(spec, quiet) as loaded:
            layer = next(m for m in loaded.pristine.modules() if type(m).__name__ == "Linear8bitLt")
            assert layer.state.threshold == threshold


# GPTQ


def test_gptq_says_how_far_it_is_and_how_long_it_takes(made):
    stages = [e for e in made[0] if isinstance(e, Loading) and "quantizing layer" in e.stage]
    assert stages and all("left" in e.stage and "of 2" in e.stage for e in stages)
    fractions = [e.fraction for e in stages]
    assert fractions == sorted(fractions) and fractions[-1] == 1.0


def test_gptq_counts_its_layers_and_says_how_they_were_made(made):
    ready = next(e for e in made[0] if isinstance(e, Ready))
    assert ready.quantized_layers == LAYERS
    assert any("GPTQ 4-bit, group 32" in note and "calibrated" in note for note in ready.notes)


def test_the_folder_records_what_was_quantized_with_what(made, folder):
    record = json.loads((made[1] / gptq.RECORD).read_text())
    assert (record["bits"], record["group_size"], record["act_order"], record["modules"]) == (4, 32, False, LAYERS)
    assert record["model"] == folder and record["origin"] == f"folder {folder}"
    assert record["calibration"]["name"] == "default" and record["calibration"]["tokens"] >= 256
    assert record["calibration"]["sha256"] == read_calibration("default").sha256
    assert set(record["versions"]) >= {"torch", "transformers", "gptqmodel"}


def test_a_quantized_folder_is_found_again_and_answers_the_same(made, folder, cache, monkeypatch):
    monkeypatch.setattr(gptq, "_run", lambda *a: pytest.fail("it was quantized again"))
    fresh = LocalEngine(EngineOptions(str(cache), offline=True))
    events = run(fresh, slot(ModelSpec(folder, quantization=GPTQ)))
    assert ids_of(events) == ids_of(made[0])
    fresh.close()


def test_the_folder_is_an_ordinary_checkpoint_that_transformers_loads(made, folder):
    """What vLLM and AutoGPTQ read is there too: method, bits, group size, the format under its older name."""
    stored = json.loads((made[1] / "config.json").read_text())["quantization_config"]
    assert (stored["quant_method"], stored["bits"], stored["group_size"], stored["sym"]) == ("gptq", 4, 32, True)
    assert stored["checkpoint_format"] == "gptq" and stored["desc_act"] is False
    packages.broken_package("gptqmodel")
    model = AutoModelForCausalLM.from_pretrained(made[1], dtype=torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(made[1])
    turns = [{"role": "user", "content": ask().text}]
    inputs = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=True, return_tensors="pt")
    model.generation_config.eos_token_id = None
    out = model.generate(**inputs, do_sample=False, max_new_tokens=24, pad_token_id=0)
    assert out[0, inputs["input_ids"].shape[1] :].tolist() == ids_of(made[0])


def test_the_order_of_columns_is_plain_without_activation_order(made):
    """vLLM ignores g_idx where desc_act is false, so groups must lie in order."""
    tensors = load_file(made[1] / "model.safetensors")
    for name, groups in tensors.items():
        if name.endswith("g_idx"):
            assert torch.equal(groups, torch.arange(len(groups), dtype=groups.dtype) // 32), name


def copy_of(folder, target, edit=lambda config: None, tensors=None):
    shutil.copytree(folder, target)
    (target / gptq.RECORD).unlink()
    config = json.loads((target / "config.json").read_text())
    edit(config)
    (target / "config.json").write_text(json.dumps(config))
    if tensors:
        save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    return str(target)


def test_old_and_new_zero_point_formats_give_the_same_answers(engine, made, tmp_path):
    """AutoGPTQ stored zero points less one; the newer format stores them as they are."""
    tensors = load_file(made[1] / "model.safetensors")
    newer = {n: t + 0x11111111 if n.endswith("qzeros") else t for n, t in tensors.items()}
    names = {"format": "gptq_v2", "checkpoint_format": "gptq_v2"}
    new = copy_of(made[1], tmp_path / "new", lambda c: c["quantization_config"].update(names), newer)
    old = copy_of(made[1], tmp_path / "old", lambda c: [c["quantization_config"].pop(k) for k in ("format", "checkpoint_format", "meta")])
    expected = ids_of(made[0])
    assert ids_of(run(engine, slot(ModelSpec(new, dtype="bfloat16")))) == expected
    assert ids_of(run(engine, slot(ModelSpec(old, dtype="bfloat16")))) == expected


def test_a_checkpoint_that_keeps_its_options_in_a_file_apart_loads(engine, made, tmp_path):
    """Early AutoGPTQ wrote quantize_config.json and left config.json as it was."""
    early = copy_of(made[1], tmp_path / "early", lambda config: config.pop("quantization_config"))
    events = run(engine, slot(ModelSpec(early, dtype="bfloat16")))
    assert ids_of(events) == ids_of(made[0]) and measure(events).quantized_layers == LAYERS
    assert any("gptq 4-bit g32" in note for note in measure(events).notes)


def test_a_quantized_checkpoint_is_not_quantized_again(engine, made):
    failed = run(engine, slot(ModelSpec(str(made[1]), quantization=Quantization("bnb-nf4"))))[-1]
    assert isinstance(failed, Failed) and "gptq 4-bit g32" in failed.message and "none" in failed.hint


def test_gptq_shares_the_unquantized_embedding(engine, made, folder):
    run(engine, slot(ModelSpec(folder)))
    run(engine, slot(ModelSpec(folder, quantization=GPTQ), name="g"))
    embedding = 2 * len(make_tokenizer()) * 64
    quantized = next(r for r in engine.resident() if not r.model.quantization.is_none)
    assert quantized.bytes - quantized.added_bytes >= embedding


def test_slots_on_one_gptq_copy_share_it_and_speculate(engine, made, folder):
    model = ModelSpec(folder, quantization=GPTQ)
    plain = run(engine, slot(model))
    looked_up = run(engine, slot(model, DecodeSpec(speculation="prompt-lookup"), "p"))
    assert isinstance(plain[-1], Done) and isinstance(looked_up[-1], Done)
    assert len(engine.resident()) == 1 and engine.resident()[0].modules == 2


def test_a_stop_ends_quantizing_at_once_and_leaves_nothing_half_made(engine, folder, cache):
    stop, model = Stop(), ModelSpec(folder, quantization=Quantization("gptq", bits=8, group_size=32))
    before = set((cache / "quantized").glob("*")) if (cache / "quantized").exists() else set()
    events = []
    for event in engine.run(slot(model), ask(), stop):
        events.append(event)
        if isinstance(event, Loading) and "importing GPTQ" in event.stage:  # said by that process
            assert any("gptq_main" in " ".join(child.cmdline()) for child in psutil.Process().children())
            stop.set()
    assert events[-1] == Done("stopped")
    assert not any("gptq_main" in " ".join(c.cmdline()) for c in psutil.Process().children()), "its process is gone"
    assert {p for p in (cache / "quantized").glob("*") if p.is_dir()} <= before


def test_group_sizes_that_do_not_divide_are_known_before_quantizing(engine, tmp_path, monkeypatch):
    """64 divides 192 and 384, 128 only the latter."""
    monkeypatch.setattr(gptq, "_run", lambda *a: pytest.fail("quantizing began"))
    folder = make_model(tmp_path / "m", width=192, layers=1)
    failed = run(engine, slot(ModelSpec(folder, quantization=Quantization("gptq", group_size=128))))[-1]
    assert isinstance(failed, Failed) and "128" in failed.message and "192" in failed.message
    assert failed.hint == "Sizes that do: 32, 64, -1."
    assert engine.group_sizes(ModelSpec(folder)) == (32, 64, -1)
    int4 = run(engine, slot(ModelSpec(folder, quantization=Quantization("torchao-int4", group_size=128))))[-1]
    assert isinstance(int4, Failed) and "192" in int4.message, "torchao would skip the layers without a word"


def test_group_sizes_of_a_model_that_is_not_here_are_unknown_and_nothing_is_fetched(engine):
    assert engine.group_sizes(ModelSpec("org/uncached")) is None


def test_the_command_makes_a_folder_of_its_own_and_never_overwrites_one(made, folder, cache, tmp_path):
    out = tmp_path / "exported"
    command = [sys.executable, "-m", "playground.engines.gptq", folder, "--group-size", "32", "--out", str(out), "--cache", str(cache)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"config.json", "model.safetensors", "tokenizer.json", gptq.RECORD} <= {p.name for p in out.iterdir()}
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert again.returncode != 0 and "exists" in again.stderr


def test_other_options_or_another_text_make_another_folder(folder, tmp_path):
    source = WeightStore(EngineOptions(str(tmp_path), offline=True)).card(ModelSpec(folder), quiet).source
    mine = tmp_path / "mine.txt"
    mine.write_text("some other text")

    def name(quantization):
        calibration = read_calibration(quantization.calibration)
        return gptq._name(source, ModelSpec(folder, quantization=quantization), calibration)

    names = {name(GPTQ), name(Quantization("gptq", group_size=64)), name(Quantization("gptq", bits=8, group_size=32)),
             name(Quantization("gptq", group_size=32, act_order=True)),
             name(Quantization("gptq", group_size=32, calibration=str(mine)))}
    assert len(names) == 5 and name(GPTQ) in names


# calibration


def test_calibration_text_that_cannot_be_used_is_refused_by_name(engine, folder, tmp_path):
    short, binary = tmp_path / "short.txt", tmp_path / "binary.txt"
    short.write_text("too little")
    binary.write_bytes(b"\xff\xfe\x00\x01" * 100)
    for path, part in ((short, "tokens"), (binary, "UTF-8"), (tmp_path / "none.txt", "cannot be read")):
        for method, options in (("gptq", {"group_size": 32}), ("torchao-int8-static", {})):
            quantization = Quantization(method, calibration=str(path), **options)
            failed = run(engine, slot(ModelSpec(folder, quantization=quantization)))[-1]
            assert isinstance(failed, Failed) and "calibration" in failed.message and part in failed.message, failed


def test_samples_are_whole_bounded_and_spread_over_the_text():
    long = samples(list(range(SAMPLE_TOKENS * (2 * MAX_SAMPLES) + 5)))
    assert len(long) == MAX_SAMPLES and all(len(ids) == SAMPLE_TOKENS for ids in long)
    assert long[0][0] == 0 and long[-1][-1] > SAMPLE_TOKENS * (2 * MAX_SAMPLES - 3)
    with pytest.raises(Refusal):
        samples(list(range(10)))


def test_static_int8_uses_the_calibrated_scale(cache, folder, tmp_path):
    """Another calibration text gives other activation scales; the weights stay the same."""
    mine = tmp_path / "mine.txt"
    mine.write_text("x y z " * 400)
    store, scales = WeightStore(EngineOptions(str(cache), offline=True)), []
    for calibration in ("default", str(mine)):
        spec = ModelSpec(folder, quantization=Quantization("torchao-int8-static", calibration=calibration))
        with store.use(spec, quiet) as loaded:
            weight = loaded.pristine.model.layers[0].mlp.down_proj.weight
            scales.append((weight.act_quant_scale.item(), weight.qdata.clone()))
    assert scales[0][0] > 0 and scales[0][0] != scales[1][0]
    assert torch.equal(scales[0][1], scales[1][1])


# what cannot work here


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    folder, tokenizer = tmp_path_factory.mktemp("gpt2"), make_tokenizer()
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=64, n_layer=1, n_head=4, n_positions=512, bos_token_id=0, eos_token_id=1)
    GPT2LMHeadModel(config).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize("method", quantize.METHODS)
def test_conv1d_models_are_quantized_or_refused_never_passed_over(engine, gpt2, method):
    options = {"group_size": 32} if method in ("gptq", "torchao-int4") else {}
    events = run(engine, slot(ModelSpec(gpt2, quantization=Quantization(method, **options))))
    if isinstance(events[-1], Done):
        assert measure(events).quantized_layers == 4
    else:
        assert isinstance(events[-1], Failed) and "quantization" in events[-1].message, events[-1]
    if method.startswith("torchao"):
        assert isinstance(events[-1], Failed)


def test_fp8_is_refused_on_a_cpu_with_what_it_needs(engine, folder):
    if torch.cuda.is_available():
        pytest.skip("a rule for CPUs")
    failed = run(engine, slot(ModelSpec(folder, quantization=Quantization("torchao-fp8"))))[-1]
    assert isinstance(failed, Failed) and "8.9" in failed.message and "cpu" in failed.message
    assert engine.resident() == ()


def test_an_older_gpu_is_refused_fp8_by_its_own_number(monkeypatch):
    gpu = Device("cuda:0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 6))
    refusal = quantize.unavailable("torchao-fp8", gpu)
    assert refusal and "8.6" in refusal.message and "8.9" in refusal.message
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert quantize.unavailable("torchao-fp8", gpu) is None


@pytest.mark.parametrize(
    ("method", "bits", "dtype", "part"),
    [
        ("bnb-nf4", None, torch.float16, "float16"),
        (None, None, torch.float16, "float16"),
        ("gptq", 4, torch.float32, "float32"),
        ("gptq", 3, torch.bfloat16, "3 bits"),
        ("gptq", 4, torch.bfloat16, ""),
        (None, None, torch.bfloat16, ""),
    ],
)
def test_what_a_cpu_does_badly_is_said(method, bits, dtype, part):
    said = quantize.slow_here(method, bits, dtype, CPU)
    assert part in said and bool(said) == bool(part)
    assert quantize.slow_here(method, bits, dtype, Device("cuda:0")) == ""


def test_a_slow_dtype_stands_in_the_slots_notes(engine, folder):
    assert any("float16" in note for note in measure(run(engine, slot(ModelSpec(folder, dtype="float16")))).notes)


def test_a_checkpoint_that_lacks_tensors_is_refused_not_filled_with_noise(engine, folder, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    tensors = load_file(broken / "model.safetensors")
    tensors.pop("model.layers.1.mlp.up_proj.weight")
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    failed = run(engine, slot(ModelSpec(str(broken))))[-1]
    assert isinstance(failed, Failed) and "model.layers.1.mlp.up_proj.weight" in failed.message


def test_importing_gptq_leaves_the_environment_as_it_was():
    """It sets allocator options and the hub's folders, for every other slot too."""
    code = (
        "import os; from playground.engines import packages; before = dict(os.environ)\n"
        "assert packages.broken_package('gptqmodel') == ''\n"
        "changed = {k for k in before.keys() | os.environ.keys() if before.get(k) != os.environ.get(k)}\n"
        "assert not changed, changed\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_broken_packages_take_down_their_own_techniques_only(folder, tmp_path):
    """Each package raises when imported; the worker starts, plain slots run, and the panel says why others do not."""
    for package in ("bitsandbytes", "gptqmodel", "optimum", "torchao"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(f"raise RuntimeError('{package} is broken')\n")
    code = (
        "from playground.config import *; from playground.quantization import *\n"
        "from playground.engines.worker import WorkerEngine; from playground.engines.options import EngineOptions\n"
        "from playground.engine import Stop\n"
        f"engine = WorkerEngine(EngineOptions({str(tmp_path / 'cache')!r}, offline=True))\n"
        "def last(q): return list(engine.run(SlotSpec('s', 's', ModelSpec(%r, quantization=q)), Prompt('hi', Settings(new_tokens=2)), Stop()))[-1]\n"
        "print(last(Quantization()))\n"
        "for method in ('bnb-nf4', 'gptq', 'torchao-int8'): print(last(Quantization(method)))\n"
        "print({t.name: t.runs for t in engine.capabilities() if t.kind == 'quantization'})\n"
        "print([t.remedy for t in engine.capabilities() if not t.runs])\n"
        "engine.close()\n"
    ) % folder
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    plain, nf4, gptq_said, int8, runs, remedies = done.stdout.strip().splitlines()
    assert plain.startswith("Done(")
    for said, reason in ((nf4, "bitsandbytes is broken"), (gptq_said, "optimum is broken"), (int8, "left out")):
        assert said.startswith("Failed(") and reason in said and "pip install" in said
    assert "torchao is broken" in done.stderr, "the log says why it was left out"
    assert "True" not in runs and "pip install -r requirements.txt" in remedies


def test_capabilities_list_every_method_with_reason_and_remedy(engine):
    found = {t.name: t for t in engine.capabilities() if t.kind == "quantization"}
    assert set(found) == set(quantize.METHODS)
    assert all(t.runs or (t.reason and t.remedy) for t in found.values())
    assert found["bnb-nf4"].runs and found["gptq"].runs and found["torchao-int4"].runs


def test_two_first_runs_quantize_once(folder, tmp_path, monkeypatch):
    made = []

    def fake(job, report):
        made.append(job["out"])
        shutil.copytree(folder, job["out"], dirs_exist_ok=True)
        (Path(job["out"]) / gptq.RECORD).write_text("{}")

    monkeypatch.setattr(gptq, "_run", fake)
    source = WeightStore(EngineOptions(str(tmp_path), offline=True)).card(ModelSpec(folder), quiet).source
    spec, options = ModelSpec(folder, quantization=GPTQ), EngineOptions(str(tmp_path), offline=True)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(gptq.quantized_folder(source, spec, "float32", "cpu", options, quiet)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and len(set(found)) == 1 and len(found) == 4


def test_on_a_gpu_everything_is_placed_at_load_and_on_that_gpu(folder, tmp_path, monkeypatch):
    """Moving a bitsandbytes model afterwards raises; "auto" would leave layers on the CPU without a word."""
    from playground.engines import weights

    asked = {}

    def from_pretrained(name, **options):
        asked.update(options)
        raise OSError("far enough")

    card = WeightStore(EngineOptions(str(tmp_path), offline=True)).card(ModelSpec(folder), quiet)
    card = dataclasses.replace(card, device=Device("cuda:0"))
    monkeypatch.setattr(weights.AutoModelForCausalLM, "from_pretrained", from_pretrained)
    for quantization in (Quantization(), Quantization("bnb-nf4"), Quantization("torchao-int4", group_size=32)):
        asked.clear()
        with pytest.raises(Refusal):
            weights._from_pretrained(ModelSpec(folder, quantization=quantization), card, Path(folder), None)
        assert asked["device_map"] == {"": "cuda:0"}
        assert ("quantization_config" in asked) == (not quantization.is_none)


@pytest.mark.parametrize("quantization", ON_A_CPU.values(), ids=ON_A_CPU)
def test_quantizing_one_slot_changes_no_setting_of_the_others(engine, folder, quantization):
    """torchao would otherwise set the compiler's options for the whole process."""
    import torch._inductor.config as inductor

    def settings():
        return (
            inductor.coordinate_descent_tuning, inductor.force_fuse_int_mm_with_mul,
            torch.get_float32_matmul_precision(), torch.get_num_threads(), torch.get_default_dtype(),
        )

    before = settings()
    run(engine, slot(ModelSpec(folder, quantization=quantization)))
    assert settings() == before
