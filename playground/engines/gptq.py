"""GPTQ checkpoints made here: quantized once, in a process of its own, and kept in the cache folder.

A process of its own, because quantizing takes minutes, must be stoppable at any moment, and
leaves memory and library state behind. The folder it makes is an ordinary GPTQ checkpoint
that Transformers and vLLM load. As a command it makes one where the user wants it:

    python -m playground.engines.gptq builtin --bits 4 --group-size 64 --out FOLDER
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from ..checks import ConfigError
from ..config import ModelSpec
from ..quantization import BITS, DEFAULT_CALIBRATION, Quantization
from .calibration import Calibration, read_calibration
from .kept import make_once
from .options import EngineOptions, default_cache_folder
from .progress import Report, report_to_console
from .refusal import Refusal
from .sources import Source, locate

log = logging.getLogger(__name__)

RECORD = "playground-quantization.json"
_ROOT = Path(__file__).resolve().parents[2]
_FINGERPRINT_BYTES = 1 << 20


def quantized_folder(
    source: Source, spec: ModelSpec, dtype: str, device: str, options: EngineOptions, report: Report
) -> Path:
    """The folder of `source` quantized as `spec` says; made now unless it is in the cache.

    `dtype` is what the model computes in meanwhile ("bfloat16"). `report` hears the layer and
    the time left, and may raise to stop. Raises Refusal when quantizing fails.
    """
    quantization = spec.quantization
    calibration = read_calibration(quantization.calibration)
    target = Path(options.cache_folder) / "quantized" / _name(source, spec, calibration)
    job = {
        "source": str(source.folder), "origin": source.origin, "model": spec.model, "revision": spec.revision,
        "bits": quantization.bits, "group_size": quantization.group_size, "act_order": quantization.act_order,
        "calibration": quantization.calibration, "dtype": dtype, "device": device, "record": RECORD,
    }  # fmt: skip

    def make(partial: Path) -> None:
        _run({**job, "out": str(partial)}, report)

    make_once(target, RECORD, source.stored_bytes, make, report)
    return target


def read_record(folder: Path) -> dict[str, Any]:
    """What a folder made here says of itself: model, options, calibration, versions; {} for others."""
    path = folder / RECORD
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def describe_record(record: dict[str, Any]) -> str:
    """One line for people about how a checkpoint was quantized here; empty for {}."""
    if not record:
        return ""
    text = record["calibration"]
    return (
        f"quantized here: GPTQ {record['bits']}-bit, group {record['group_size']}, "
        f"act order {'on' if record['act_order'] else 'off'}, {record['modules']} layers, "
        f"calibrated on {text['tokens']:,} tokens ({text['name']}), {record['made'][:10]}"
    )


def _name(source: Source, spec: ModelSpec, calibration: Calibration) -> str:
    """A folder name for people, made unique by what went in: weights, options, calibration text."""
    quantization = spec.quantization
    digest = hashlib.sha256(json.dumps([_fingerprint(source.folder), str(quantization), calibration.sha256]).encode())
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", Path(spec.model).name).strip("-") or "model"
    group = "column" if quantization.group_size == -1 else f"g{quantization.group_size}"
    return f"{slug}-gptq-{quantization.bits}bit-{group}-{digest.hexdigest()[:10]}"


def _fingerprint(folder: Path) -> str:
    """Changes when a checkpoint does: its config, and each weight file's size and first megabyte."""
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(f"{path.name} {path.stat().st_size}".encode())
        with path.open("rb") as file:
            digest.update(file.read(_FINGERPRINT_BYTES))
            file.seek(-min(_FINGERPRINT_BYTES, path.stat().st_size), os.SEEK_END)
            digest.update(file.read())
    return digest.hexdigest()


def _run(job: dict[str, Any], report: Report) -> None:
    """Let another process do the job and pass on what it says. It dies with this call."""
    stage = "preparing GPTQ quantization"
    report(stage, None)
    environment = {**os.environ, "TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1"}
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "playground.engines.gptq_main"], cwd=_ROOT, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.close()
            _follow(process, report)
        finally:
            process.kill()
            process.wait()
        if process.returncode:
            errors.seek(0)
            log.error("GPTQ quantization failed\n%s", errors.read()[-4000:])
            raise Refusal(
                f"quantization: the process that quantizes ended with code {process.returncode}.",
                "The log has its last words. If memory ran out, unload other models first.",
            )
    log.info("quantized %s to %d bits in %.0f s", job["model"], job["bits"], time.monotonic() - started)


def _follow(process: subprocess.Popen, report: Report) -> None:
    """Report each line of progress until the process ends; report twice a second meanwhile, so that Stop is seen."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_read_lines, args=(process, lines), daemon=True).start()
    stage, fraction = "preparing GPTQ quantization", None
    while True:
        try:
            line = lines.get(timeout=0.5)
        except queue.Empty:
            report(stage, fraction)
            continue
        if line is None:
            process.wait()
            return
        said = _said(line)
        if "refusal" in said:
            raise Refusal(said["refusal"], said["hint"])
        if said:
            stage, fraction = said["stage"], said["fraction"]
            report(stage, fraction)


def _read_lines(process: subprocess.Popen, lines: queue.SimpleQueue) -> None:
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def _said(line: str) -> dict[str, Any]:
    """A line of the quantizing process as an object; {} for what libraries print in between."""
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def main() -> None:
    """Quantize a model into a folder, with progress on the console."""
    parser = argparse.ArgumentParser(description="Quantize a causal language model with GPTQ into a folder.")
    parser.add_argument("model", help='"builtin", a hub id or a folder')
    parser.add_argument("--out", type=Path, required=True, help="folder to make; must not exist")
    parser.add_argument("--bits", type=int, choices=BITS, default=4)
    parser.add_argument("--group-size", type=int, default=128, help="-1: one group a column (%(default)s)")
    parser.add_argument("--act-order", action="store_true", help="quantize columns by falling activation size")
    parser.add_argument("--calibration", default=DEFAULT_CALIBRATION, help="a text file (default: the text that ships)")
    parser.add_argument("--cache", default=default_cache_folder(), help="folder for converted models (%(default)s)")
    flags = parser.parse_args()
    if flags.out.exists():
        raise SystemExit(f"--out: {flags.out} exists; name a folder that does not.")
    try:
        quantization = Quantization(
            "gptq", bits=flags.bits, group_size=flags.group_size, act_order=flags.act_order, calibration=flags.calibration
        )
        _export(ModelSpec(flags.model, quantization=quantization), flags.out, EngineOptions(flags.cache))
    except (ConfigError, Refusal) as error:
        raise SystemExit(f"{error} {getattr(error, 'hint', '')}".strip()) from None


def _export(spec: ModelSpec, out: Path, options: EngineOptions) -> None:
    source = locate(spec.model, spec.revision, options, report_to_console)
    folder = quantized_folder(source, spec, "auto", "auto", options, report_to_console)
    partial = out.with_name(out.name + ".partial")
    shutil.copytree(folder, partial, dirs_exist_ok=True)
    partial.rename(out)
    print(f"\r\033[K{out}: {describe_record(read_record(out))}", file=sys.stderr)


if __name__ == "__main__":
    main()
