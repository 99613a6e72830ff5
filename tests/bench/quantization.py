"""What every way of quantizing costs and gains on the built-in model: memory, speed, quality.

    python -m tests.bench.quantization [--repeats 5] [--new-tokens 64] [--only gptq]

Speed: decode tok/s over the unquantized slot's, the two taking turns. Quality: against the
unquantized slot over its own answers to the example prompts. Prints rows of a Markdown table.
"""

from __future__ import annotations

import argparse
from functools import partial

import torch

from playground.config import ModelSpec, Prompt, Settings, SlotSpec
from playground.engine import Stop
from playground.engines.local import LocalEngine
from playground.engines.options import EngineOptions, default_cache_folder
from playground.engines.quiet import quieten
from playground.events import Quality, Tokens
from playground.metrics import RunMetrics, measure
from playground.quantization import Quantization
from playground.ui.examples import EXAMPLES

from .sides import PROMPT, by_turns, ratio

FORMATS = (
    Quantization(),
    Quantization("bnb-int8"),
    Quantization("bnb-nf4"),
    Quantization("bnb-fp4"),
    Quantization("gptq", group_size=64),
    Quantization("gptq", group_size=64, act_order=True),
    Quantization("torchao-int8"),
    Quantization("torchao-int8-dynamic"),
    Quantization("torchao-int8-static"),
    Quantization("torchao-int4", group_size=64),
    Quantization("torchao-int4", group_size=32),
)


def slot(quantization: Quantization) -> SlotSpec:
    return SlotSpec(str(quantization), str(quantization), ModelSpec("builtin", quantization=quantization))


def run(engine: LocalEngine, one: SlotSpec, text: str, new_tokens: int) -> tuple[RunMetrics, tuple[int, ...]]:
    events = list(engine.run(one, Prompt(text, Settings(new_tokens=new_tokens, ignore_eos=True)), Stop()))
    return measure(events), tuple(i for e in events if isinstance(e, Tokens) for i in e.ids)


def quality(engine: LocalEngine, one: SlotSpec, answers: dict[str, tuple[int, ...]]) -> tuple[float, float, float]:
    """KL in nats and top-1 agreement over all answers' ids, and perplexity of the texts that ship."""
    found = []
    for text, answer in answers.items():
        prompt = Prompt(text, Settings(new_tokens=len(answer), ignore_eos=True))
        found.append(list(engine.assess(one, slot(Quantization()), prompt, answer, Stop()))[-1])
    assert all(isinstance(f, Quality) for f in found), found
    total = sum(f.positions for f in found)
    return (
        sum(f.kl_nats * f.positions for f in found) / total,
        sum(f.top1 * f.positions for f in found) / total,
        found[0].perplexity,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--only", help="formats whose name contains this text")
    flags = parser.parse_args()
    quieten()
    torch.manual_seed(0)
    engine, reference = LocalEngine(EngineOptions(default_cache_folder())), slot(Quantization())
    answers = {e.text: run(engine, reference, e.text, flags.new_tokens)[1] for e in EXAMPLES}
    print("| weights | MB | decode rate over unquantized | KL, nats | top-1 | perplexity |\n| --- | --- | --- | --- | --- | --- |")
    for quantization in (q for q in FORMATS if (flags.only or "") in str(q)):
        one = slot(quantization)
        first, _ = run(engine, one, PROMPT, flags.new_tokens)  # loads, or quantizes
        sides = [partial(run, engine, side, PROMPT, flags.new_tokens) for side in (one, reference)]
        ours, theirs = ([run.decode_tok_per_s for run, _ in side] for side in by_turns(flags.repeats, *sides))
        kl, top1, perplexity = quality(engine, one, answers)
        print(
            f"| {quantization} | {first.weights_bytes / 1e6:.0f} | {ratio(ours, theirs)} | {kl:.4f} | {top1:.1%} | {perplexity:.2f} |",
            flush=True,
        )
        if not quantization.is_none:
            engine.unload(one.model)


if __name__ == "__main__":
    main()
