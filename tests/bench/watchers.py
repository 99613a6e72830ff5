"""Does it matter who looks? Decode tok/s of the SDPA slot with ten other clients waiting in line, over alone, by turns.

    python -m tests.bench.watchers --repeats 5

Each waiting client is sent its place in line three times a second, as an open page is. The first line is the slot alone
against itself: the noise.
"""

from __future__ import annotations

import argparse

from gradio_client import Client

from .sides import PROMPT, app, by_turns, ratio, serving

CLIENTS, NEW_TOKENS = 10, 64
_SETTINGS = {"new_tokens": NEW_TOKENS, "ignore_eos": True}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    command, port = app()
    with serving(command, port) as (url, _, _):
        clients = [Client(url, verbose=False) for _ in range(CLIENTS + 1)]
        measured, others = clients[0], clients[1:]

        def alone() -> float:
            return _rate(_submit(measured))

        def watched() -> float:
            job = _submit(measured)
            waiting = [_submit(client) for client in others]
            rate = _rate(job)
            for item in waiting:
                item.cancel()
            for item in waiting:
                _ended(item)
            return rate

        alone()
        once, again, with_others = by_turns(repeats, alone, alone, watched)
    print(f"alone over alone            {ratio(again, once)}")
    print(f"ten waiting over alone      {ratio(with_others, once)}")


def _ended(job) -> None:
    """Wait for a cancelled job to end."""
    try:
        job.result(timeout=60)
    except Exception:  # cancelled is what was asked for
        return


def _submit(client: Client):
    return client.submit("five-ways", PROMPT, _SETTINGS, "fair", ["sdpa"], False, 1, api_name="/compare")


def _rate(job) -> float:
    return job.result(timeout=600)["slots"]["sdpa"]["metrics"]["decode_tok_per_s"]


if __name__ == "__main__":
    main()
