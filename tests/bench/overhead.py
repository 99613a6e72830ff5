"""What the app costs a running model: decode tok/s through worker, pipe and a connected page client,
over a bare model.generate in a process without any of it.

    python -m tests.bench.overhead [--repeats 5] [--new-tokens 64]

One slot at a time; the two sides take turns, and which goes first alternates.
"""

from __future__ import annotations

import argparse

from gradio_client import Client

from playground.engines.embedded import locate_builtin
from playground.engines.options import EngineOptions, default_cache_folder
from playground.engines.quiet import quieten

from . import plain
from .sides import PROMPT, SLOTS, app, by_turns, ratio, serving


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--new-tokens", type=int, default=64)
    flags = parser.parse_args()
    quieten()
    folder = str(locate_builtin(EngineOptions(default_cache_folder()), lambda stage, fraction: None)[0])
    ids = plain.inputs(folder)
    command, port = app()
    with serving(command, port) as (url, _, _):
        client = Client(url, verbose=False)
        for slot in SLOTS:
            model = plain.load(slot, folder)

            def ours(slot=slot) -> float:
                settings = {"new_tokens": flags.new_tokens, "ignore_eos": True}
                state = client.predict("five-ways", PROMPT, settings, "fair", [slot], api_name="/compare")
                return state["slots"][slot]["metrics"]["decode_tok_per_s"]

            def theirs(model=model, slot=slot) -> float:
                return plain.generate(model, slot, ids, flags.new_tokens).decode_tok_per_s()

            ours(), theirs()  # both sides warm
            app_rates, bare_rates = by_turns(flags.repeats, ours, theirs)
            print(f"{slot:14s} app/bare decode rate {ratio(app_rates, bare_rates)}", flush=True)
        client.close()


if __name__ == "__main__":
    main()
