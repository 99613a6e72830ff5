"""How long a user waits: first page over an empty Gradio page's, first token over the same, and a whole
five-slot comparison over a plain script that loads and runs each configuration in turn.

    python -m tests.bench.startup [--repeats 5]

The model is converted beforehand. The sides take turns; every time starts with the process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from gradio_client import Client

from playground.engines.embedded import locate_builtin
from playground.engines.options import EngineOptions, default_cache_folder

from .plain import NEW_TOKENS
from .sides import PROMPT, ROOT, app, by_turns, free_port, ratio, serving

EMPTY = "import gradio as gr\nwith gr.Blocks() as page: pass\npage.launch(server_port={port}, ssr_mode=False)"


def empty_page() -> float:
    port = free_port()
    with serving([sys.executable, "-c", EMPTY.format(port=port)], port) as (_, _, seconds):
        return seconds


def our_page() -> tuple[float, float, float]:
    """Seconds from the start of the process to the first page, the first token, the end of five slots."""
    command, port = app()
    with serving(command, port) as (url, started, page_s):
        client = Client(url, verbose=False)
        settings = {"new_tokens": NEW_TOKENS, "ignore_eos": True}
        token_s = None
        for state in client.submit("five-ways", PROMPT, settings, api_name="/compare"):
            if token_s is None and any(slot["text"] for slot in state["slots"].values()):
                token_s = time.perf_counter() - started
        end_s = time.perf_counter() - started
        client.close()
    assert all(slot["phase"] == "done" for slot in state["slots"].values()), state
    return page_s, token_s, end_s


def plain_script(folder: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tests.bench.plain", folder], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    folder = str(locate_builtin(EngineOptions(default_cache_folder()), lambda stage, fraction: None)[0])
    empty_page(), our_page(), plain_script(folder)  # file caches warm on all sides
    empty, ours, plain = by_turns(repeats, empty_page, our_page, lambda: plain_script(folder))
    pages, tokens, ends = (list(times) for times in zip(*ours))
    print(f"first page  / empty Gradio page   {ratio(pages, empty)}")
    print(f"first token / empty Gradio page   {ratio(tokens, empty)}")
    print(f"five slots  / plain script        {ratio(ends, plain)}")


if __name__ == "__main__":
    main()
