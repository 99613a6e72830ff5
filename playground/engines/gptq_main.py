"""The process that quantizes: one job on standard input, progress as JSON lines on standard output."""

from __future__ import annotations

import contextlib
import datetime
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .calibration import read_calibration, samples
from .quiet import quieten
from .refusal import Refusal

_VERSIONS = ("torch", "transformers", "optimum", "gptqmodel")

Say = Callable[[str, float | None], None]


def main() -> None:
    """Do the job. A Refusal goes to standard output, anything else ends the process with a traceback."""
    quieten()
    lines = sys.stdout
    job = json.loads(sys.stdin.readline())

    def say(stage: str, fraction: float | None) -> None:
        print(json.dumps({"stage": stage, "fraction": fraction}), file=lines, flush=True)

    try:
        with contextlib.redirect_stdout(sys.stderr):
            _quantize(job, say)
    except Refusal as refusal:
        print(json.dumps({"refusal": refusal.message, "hint": refusal.hint}), file=lines, flush=True)


def _quantize(job: dict[str, Any], say: Say) -> None:
    import torch

    from .memory import pick_device
    from .packages import broken_package
    from .quantize import check
    from .weights import input_widths

    say("importing GPTQ", None)
    for package in ("optimum", "gptqmodel"):
        broken_package(package)  # what they do to the environment is undone here
    from optimum.gptq import GPTQQuantizer
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from ..quantization import Quantization

    started = time.perf_counter()
    device = pick_device(job["device"])
    config = AutoConfig.from_pretrained(job["source"], local_files_only=True)
    options = {key: job[key] for key in ("bits", "group_size", "act_order", "calibration")}
    check(Quantization("gptq", **options), input_widths(config), device)
    tokenizer = AutoTokenizer.from_pretrained(job["source"], local_files_only=True)
    calibration = read_calibration(job["calibration"])
    pieces = samples(tokenizer(calibration.text, verbose=False)["input_ids"])
    say("loading weights to quantize", None)
    model = AutoModelForCausalLM.from_pretrained(
        job["source"], dtype=_dtype(job["dtype"], config, device), use_safetensors=True, local_files_only=True,
        **({"device_map": {"": device.name}} if device.is_cuda else {}),
    ).eval()  # fmt: skip
    data = [{"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)} for ids in pieces]
    quantizer = GPTQQuantizer(
        bits=job["bits"], group_size=job["group_size"], desc_act=job["act_order"], sym=True, dataset=data,
        act_group_aware=not job["act_order"], model_seqlen=max(map(len, pieces)), batch_size=1,
    )  # fmt: skip
    with _progress(model, len(pieces), say):
        quantizer.quantize_model(model, tokenizer)
    say("saving the quantized model", None)
    modules = _save(quantizer, model, tokenizer, Path(job["out"]))
    record = {
        "method": "gptq", "symmetric": True, **options, "modules": modules,
        "calibration": {
            "name": calibration.name, "sha256": calibration.sha256, "samples": len(pieces),
            "tokens": sum(map(len, pieces)),
        },
        "model": job["model"], "revision": job["revision"], "origin": job["origin"],
        "dtype": str(model.dtype).removeprefix("torch."), "device": device.name,
        "seconds": round(time.perf_counter() - started, 1),
        "versions": {name: version(name) for name in _VERSIONS},
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    (Path(job["out"]) / job["record"]).write_text(json.dumps(record, indent=1), encoding="utf-8")


def _dtype(asked: str, config: Any, device: Any) -> Any:
    import torch

    from .weights import dtype_for

    return dtype_for(config, device) if asked == "auto" else getattr(torch, asked)


@contextmanager
def _progress(model: Any, pieces: int, say: Say) -> Iterator[None]:
    """Inside the block, count the passes through each transformer block.

    GPTQ runs every sample through a block once for each of its layers and once more for the
    block's output, so passes measure the work done.
    """
    import torch
    from optimum.gptq.utils import get_block_name_with_pattern, get_layers

    blocks = model.get_submodule(get_block_name_with_pattern(model))
    total = sum(pieces * (len(get_layers(block)) + 1) for block in blocks)
    begun, done = time.perf_counter(), 0

    def count(block: torch.nn.Module, _inputs: Any, _output: Any) -> None:
        nonlocal done
        done += 1
        if done % max(1, total // 200) == 0:
            left = (time.perf_counter() - begun) * (total - done) / done
            layer = next(i for i, b in enumerate(blocks, 1) if b is block)
            say(f"quantizing layer {layer} of {len(blocks)}, about {_readable(left)} left", done / total)

    hooks = [block.register_forward_hook(count) for block in blocks]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _readable(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _save(quantizer: Any, model: Any, tokenizer: Any, out: Path) -> int:
    """Save model, tokenizer and configs; returns how many modules were quantized."""
    from .quantize import check_quantized

    modules = check_quantized(model, "gptq")
    quantizer.dataset = None  # ids are no JSON; the record says what they were
    model.config.quantization_config = quantizer.to_dict()
    quantizer.save(model, str(out))
    tokenizer.save_pretrained(out)
    config_file = out / "config.json"
    config = json.loads(config_file.read_text(encoding="utf-8"))
    # Saving may have changed the format; under its other name AutoGPTQ, GPTQModel and vLLM read it.
    config["quantization_config"] |= {"format": quantizer.format, "checkpoint_format": quantizer.format}
    config_file.write_text(json.dumps(config, indent=2), encoding="utf-8")
    return modules


if __name__ == "__main__":
    main()
