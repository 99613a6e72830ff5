"""The same model and lengths through optimum-benchmark and through the playground's engine, alternating in one run.

optimum-benchmark 0.6.0 cannot be imported beside Transformers 5, so it lives in a venv of its own, made at the first
use: python -m tests.bench.peer --venv FOLDER. What the two Transformers differ by is measured too (bare generate in
each) and taken out.

Definitions differ: optimum-benchmark's prefill is a whole call of generate for one id and its decode the difference
between a call for N ids and that one, ours are stamps inside one call; and it calls generate in torch's inference mode,
which generate does not use by itself. What that mode gives is measured in the peer's venv and taken out as well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
import transformers
from transformers import AutoTokenizer

from playground.config import DecodeSpec, ModelSpec, Prompt, Settings, SlotSpec
from playground.engine import Stop
from playground.engines.embedded import locate_builtin
from playground.engines.local import LocalEngine
from playground.engines.options import EngineOptions, default_cache_folder
from playground.events import Event
from playground.metrics import measure

from . import plain
from .sides import ROOT, by_turns

PACKAGES = ("torch==2.13.0", "transformers<5", "optimum-benchmark==0.6.0")
METRICS = ("ttft_s", "decode_tok_per_s")
CLOSE = 0.05  # the two tools should agree within this


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--venv", type=Path, required=True, help="where optimum-benchmark lives, or is installed")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=64)
    flags = parser.parse_args()
    options = EngineOptions(default_cache_folder())
    folder = str(locate_builtin(options, lambda stage, fraction: None)[0])
    ask, versions = _start_peer(_python_of(flags.venv), folder, flags.prompt_tokens, flags.new_tokens)
    print(f"here: torch {torch.__version__}, transformers {transformers.__version__}; peer: torch {versions['torch']}, "
          f"transformers {versions['transformers']}, optimum-benchmark 0.6.0")  # fmt: skip
    ours = _our_side(options, folder, flags)
    model = plain.load("sdpa", folder)
    ids = torch.arange(100, 100 + flags.prompt_tokens)[None]
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    sides = (ours, lambda: ask("peer"), lambda: _bare(model, inputs, flags.new_tokens), lambda: ask("bare"), lambda: ask("inference mode"))
    for side in sides:
        side()  # file and kernel caches warm on all of them
    found = dict(zip(("ours", "peer", "bare here", "bare there", "bare there, inference mode"), by_turns(flags.repeats, *sides)))
    for metric in METRICS:
        _report(metric, {name: [run[metric] for run in runs] for name, runs in found.items()})


def _python_of(venv: Path) -> str:
    """The venv's Python; the venv is made where it is missing."""
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return str(python)


def _start_peer(python: str, *arguments: str | int) -> tuple[Callable[[str], dict[str, float]], dict[str, str]]:
    """A process that measures when asked ("peer" or "bare"), and its versions."""
    command = [python, str(ROOT / "tests" / "bench" / "peer_side.py"), *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(what: str) -> dict[str, float]:
        process.stdin.write(what + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    return ask, json.loads(process.stdout.readline())


def _our_side(options: EngineOptions, folder: str, flags: argparse.Namespace) -> Callable[[], dict[str, float]]:
    """The plain SDPA slot on a text of exactly as many ids."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = tokenizer.decode(tokenizer(" the sky is blue because" * flags.prompt_tokens)["input_ids"][: flags.prompt_tokens])
    assert len(tokenizer(text)["input_ids"]) == flags.prompt_tokens
    engine, slot = LocalEngine(options), SlotSpec("sdpa", "sdpa", ModelSpec("builtin"), DecodeSpec())
    prompt = Prompt(text, Settings(new_tokens=flags.new_tokens, ignore_eos=True, chat_template=False))

    def ours() -> dict[str, float]:
        events: list[Event] = []
        engine.execute(slot, prompt, Stop(), events.append)  # in this thread, as the worker does: a second team of threads costs a third
        run = measure(events)
        assert run.finish == "length" and run.prompt_tokens == flags.prompt_tokens
        return {metric: getattr(run, metric) for metric in METRICS}

    return ours


def _bare(model: object, inputs: dict, new_tokens: int) -> dict[str, float]:
    plain.generate(model, "sdpa", inputs, 2)
    began = time.perf_counter()
    stamps = plain.generate(model, "sdpa", inputs, new_tokens)
    return {"ttft_s": stamps.times[1] - began, "decode_tok_per_s": stamps.decode_tok_per_s()}


def _report(metric: str, found: dict[str, list[float]]) -> None:
    middle = {name: median(values) for name, values in found.items()}
    plain_ratio, versions = middle["ours"] / middle["peer"], middle["bare here"] / middle["bare there"]
    mode = middle["bare there"] / middle["bare there, inference mode"]
    left = plain_ratio / versions / mode
    print(f"{metric}: " + ", ".join(f"{name} {value:.4g}" for name, value in middle.items()))
    print(f"  ours over peer {plain_ratio:.3f}; Transformers here over there, bare, {versions:.3f}; without over with inference mode {mode:.3f}; left {left:.3f}, "
          f"{'within' if abs(left - 1) <= CLOSE else 'MORE THAN'} {CLOSE:.0%}")  # fmt: skip


if __name__ == "__main__":
    main()
