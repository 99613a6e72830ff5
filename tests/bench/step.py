"""Where one decode step of the built-in model goes on a CPU: generate, modules and Python, products, attention, the rest.

    python -m tests.bench.step [--repeats 5] [--steps 20]

Plain and packed linear layers take turns; medians. The products are timed on their own, with the same shapes and
weights; operators by kind come from torch's profiler, which itself costs time. Prints rows of a Markdown table, in
milliseconds a step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import DynamicCache

from playground.config import ModelSpec
from playground.engines.local import LocalEngine
from playground.engines.options import EngineOptions, default_cache_folder
from playground.engines.quiet import quieten

PROMPT = 64
_PRODUCTS = ("aten::mm", "aten::addmm", "mkldnn::_linear_pointwise")


def per_call_ms(work: Callable[[], Any], times: int) -> float:
    work()
    began = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - began) / times * 1e3


@torch.no_grad()
def forward_ms(module: Any, steps: int) -> float:
    cache, token = DynamicCache(config=module.config), torch.tensor([[5]])
    module(torch.arange(5, 5 + PROMPT)[None], cache=cache)
    return per_call_ms(lambda: module(token, cache=cache), steps)


def generate_ms(module: Any, steps: int) -> float:
    """A step inside generate: a long call less a short one."""
    prompt = torch.arange(5, 5 + PROMPT)[None]

    def call(tokens: int) -> float:
        began = time.perf_counter()
        module.generate(prompt, max_new_tokens=tokens, do_sample=False, pad_token_id=0, disable_compile=True)
        return time.perf_counter() - began

    call(2)
    return (call(steps + 2) - call(2)) / steps * 1e3


@torch.no_grad()
def products_ms(module: Any, steps: int) -> float:
    layers = [m for m in module.modules() if hasattr(m, "in_features")]
    rows = [torch.randn(1, 1, m.in_features, dtype=torch.bfloat16) for m in layers]
    return per_call_ms(lambda: [layer(row) for layer, row in zip(layers, rows)], steps)


@torch.no_grad()
def operator_shares(module: Any, steps: int) -> dict[str, float]:
    """Milliseconds a step under the profiler, by kind of operator."""
    cache, token = DynamicCache(config=module.config), torch.tensor([[5]])
    module(torch.arange(5, 5 + PROMPT)[None], cache=cache)
    module(token, cache=cache)
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for _ in range(steps):
            module(token, cache=cache)
    spent = {"products": 0.0, "attention": 0.0, "other operators": 0.0}
    for event in found.key_averages():
        kind = "products" if event.key in _PRODUCTS else "attention" if "scaled_dot_product" in event.key else "other operators"
        spent[kind] += event.self_cpu_time_total / 1e3 / steps
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    flags = parser.parse_args()
    quieten()
    engine = LocalEngine(EngineOptions(default_cache_folder()))
    with engine._store.use(ModelSpec("builtin"), lambda *_: None) as weights:
        sides = {"plain": weights.module("plain", "sdpa"), "lean": weights.module("lean", "sdpa", lean=True)}
        measures = {"a step in generate": generate_ms, "the model's forward": forward_ms, "products on their own": products_ms}
        found = {(side, name): [] for side in sides for name in measures}
        for _ in range(flags.repeats):
            for name, measure in measures.items():
                for side, module in sides.items():
                    found[side, name].append(measure(module, flags.steps))
        middle = {key: median(values) for key, values in found.items()}
        print(f"{torch.get_num_threads()} threads\n| | plain | lean |\n| --- | --- | --- |")
        for name in measures:
            print(f"| {name} | {middle['plain', name]:.1f} | {middle['lean', name]:.1f} |")
        own = [middle[side, "a step in generate"] - middle[side, "the model's forward"] for side in sides]
        print(f"| generate's own work | {own[0]:.1f} | {own[1]:.1f} |")
        operators = {side: operator_shares(module, flags.steps) for side, module in sides.items()}
        for kind in operators["plain"]:
            print(f"| {kind}, under the profiler | {' | '.join(f'{operators[s][kind]:.1f}' for s in sides)} |")


if __name__ == "__main__":
    main()
