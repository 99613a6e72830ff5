"""Every cache, attention kernel and the lean slot over plain SDPA with a growing cache: decode rate and TTFT.

    python -m tests.bench.decode [--repeats 3] [--new-tokens 48] [--prompt-tokens 32 1024] [--only lean]

The built-in model, greedy, end of sequence ignored; each way and the plain one take turns. What does not run here is
named with the reason. Prints rows of a Markdown table.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import get_args

from playground.config import Attention, Cache, DecodeSpec, ModelSpec, Prompt, Settings, SlotSpec
from playground.engines import attention, caches
from playground.engines.local import LocalEngine
from playground.engines.memory import pick_device
from playground.engines.options import EngineOptions, default_cache_folder
from playground.engines.quiet import quieten
from playground.engines.text import Codec

from .sides import by_turns, finished, ratio

TEXT = "The keeper of the lighthouse wrote down the weather, the ships and what the sea had brought. "


def ways() -> dict[str, DecodeSpec]:
    found = {f"cache {name}": DecodeSpec(cache=name) for name in get_args(Cache)}
    found |= {f"attention {name}": DecodeSpec(attention=name) for name in get_args(Attention)}
    found |= {"lean": DecodeSpec(lean=True), "lean, static cache": DecodeSpec(lean=True, cache="static")}
    return found | {"compiled, static cache": DecodeSpec(cache="static", compile="default")}


def text_of(codec: Codec, tokens: int) -> str:
    """A text of so many ids, as the plain tokenizer counts."""
    ids = codec.plain_ids(TEXT * (tokens // 10 + 1))[:tokens]
    return codec.decode(ids)


def slot(decode: DecodeSpec) -> SlotSpec:
    return SlotSpec("s", "s", ModelSpec("builtin"), decode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--new-tokens", type=int, default=48)
    parser.add_argument("--prompt-tokens", type=int, nargs="+", default=[32, 1024])
    parser.add_argument("--only", default="", help="ways whose name contains this")
    flags = parser.parse_args()
    quieten()
    engine = LocalEngine(EngineOptions(default_cache_folder()))
    codec = engine._store.card(ModelSpec("builtin"), lambda *_: None).codec
    device = pick_device("auto")
    settings = Settings(new_tokens=flags.new_tokens, ignore_eos=True, chat_template=False)
    print("| way | prompt | decode rate over plain | TTFT over plain | KV cache MB |\n| --- | --- | --- | --- | --- |")
    for name, decode in ways().items():
        if flags.only not in name:
            continue
        reason = caches.unavailable(decode.cache, device) or attention.unavailable(decode.attention, device)
        if reason:
            print(f"| {name} | – | {reason.message} | | |", flush=True)
            continue
        for tokens in flags.prompt_tokens:
            prompt = Prompt(text_of(codec, tokens), settings)
            sides = [partial(finished, engine, slot(side), prompt) for side in (decode, DecodeSpec())]
            ours, theirs = by_turns(flags.repeats, *sides)
            rates = [[r.decode_tok_per_s for r in side] for side in (ours, theirs)]
            waits = [[r.ttft_s for r in side] for side in (ours, theirs)]
            held = ours[-1].kv_bytes / 1e6
            print(f"| {name} | {ours[-1].prompt_tokens:,} | {ratio(*rates)} | {ratio(*waits)} | {held:.1f} |", flush=True)


if __name__ == "__main__":
    main()
