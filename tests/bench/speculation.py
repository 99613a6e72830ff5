"""Every drafter on six kinds of prompt: acceptance, mean accepted length, and decode rate over the plain slot's.

    python -m tests.bench.speculation [--repeats 3] [--new-tokens 96] [--draft-len 4] [--only "draft head"]

The built-in model, greedy, end of sequence ignored. Each drafter and the plain slot take turns.
Prints rows of a Markdown table.
"""

from __future__ import annotations

import argparse
from functools import partial

from playground.config import DecodeSpec, ModelSpec, Prompt, Settings, SlotSpec
from playground.engines.local import LocalEngine
from playground.engines.options import EngineOptions, default_cache_folder
from playground.engines.quiet import quieten
from playground.quantization import Quantization

from .sides import by_turns, finished, ratio

KINDS = {
    "chat": "I slept badly and have a long day ahead. What would you do in the morning?",
    "summary": "Summarise in two sentences, using the words of the text. Bees visit flowers to collect nectar and pollen. "
    "While they do so, grains of pollen stick to their hair and are carried to the next flower. About a third of what "
    "people eat depends on this service, from apples to almonds.",
    "code": "Rename the variable total to amount and repeat the function.\n\ndef total_price(items):\n    total = 0\n"
    "    for item in items:\n        total = total + item.price * item.count\n    return total\n",
    "list": "Write a packing list for a week of hiking, one item a line.",
    "story": "Tell a short story about a clockmaker who can hear time.",
    "Korean": "한국의 가을을 세 문장으로 소개해 주세요.",
}
DRAFTERS = {
    "prompt lookup": DecodeSpec(speculation="prompt-lookup"),
    "draft model, NF4 copy": DecodeSpec(
        speculation="draft-model", drafter=ModelSpec("builtin", quantization=Quantization("bnb-nf4"))
    ),
    "draft model, int4 copy": DecodeSpec(
        speculation="draft-model", drafter=ModelSpec("builtin", quantization=Quantization("torchao-int4", group_size=32))
    ),
    "draft head": DecodeSpec(speculation="draft-head", draft_head="builtin"),
    "draft head, both lean": DecodeSpec(speculation="draft-head", draft_head="builtin", lean=True),
    "early exit, 24 of 30 layers": DecodeSpec(speculation="early-exit", exit_layer=24),
}


def slot(decode: DecodeSpec) -> SlotSpec:
    return SlotSpec(f"{decode.speculation} {decode.lean}", decode.speculation, ModelSpec("builtin"), decode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--new-tokens", type=int, default=96)
    parser.add_argument("--draft-len", type=int, default=4)
    parser.add_argument("--only", choices=DRAFTERS, help="one drafter (all)")
    flags = parser.parse_args()
    quieten()
    engine = LocalEngine(EngineOptions(default_cache_folder()))
    settings = Settings(new_tokens=flags.new_tokens, draft_len=flags.draft_len, ignore_eos=True)
    print("| drafter | prompt | acceptance | mean length | decode rate over plain |\n| --- | --- | --- | --- | --- |")
    for name, decode in DRAFTERS.items():
        if flags.only not in (None, name):
            continue
        for kind, text in KINDS.items():
            ways = (decode, decode.without_speculation())
            sides = [partial(finished, engine, slot(side), Prompt(text, settings)) for side in ways]
            ours, theirs = by_turns(flags.repeats, *sides)
            last = ours[-1]
            rates = [[r.decode_tok_per_s for r in side] for side in (ours, theirs)]
            accepted = "–" if last.acceptance_rate is None else f"{last.acceptance_rate:.0%}"
            print(f"| {name} | {kind} | {accepted} | {last.mean_accepted_len:.2f} | {ratio(*rates)} |", flush=True)


if __name__ == "__main__":
    main()
