"""The real page on a scripted engine, for UI and browser tests. Start with `launch(script)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import gradio as gr

from playground.config import Prompt, SlotSpec
from playground.engines.scripted import Hold, ScriptedEngine, spoken
from playground.events import Failed, Loading, Memory, Ready, Round, Started, Tokens
from playground.presets import load_presets
from playground.recording import Recording
from playground.scheduler import Scheduler
from playground.ui.page import build_page
from playground.ui.theme import CSS, theme

HOSTILE = "<img src=x onerror=window.hacked=1> ${window.hacked=1} {{value}} $3 and $4 <script>window.hacked=1</script>"


@contextmanager
def launch(engine: ScriptedEngine, recordings: Mapping[str, Recording] = MappingProxyType({})) -> Iterator[tuple[str, gr.Blocks]]:
    """The page served on a free port, and closed again."""
    presets = load_presets()
    page = build_page(Scheduler(engine), presets, next(iter(presets)), recordings)
    page.queue(default_concurrency_limit=None)
    _, url, _ = page.launch(
        server_name="127.0.0.1", quiet=True, prevent_thread_lock=True, theme=theme(), css=CSS, ssr_mode=False,
        footer_links=["api"], run_history=False,
    )
    try:
        yield url, page
    finally:
        page.close()


def echo(slot: SlotSpec, prompt: Prompt):
    """Every slot answers with its name and the prompt."""
    return spoken(f"{slot.id} heard {prompt.text}")


class Conversation:
    """A script whose slots wait half-way until the test lets them go on."""

    def __init__(self) -> None:
        self.hold = Hold()

    def __call__(self, slot: SlotSpec, prompt: Prompt):
        first, *rest = _spoken_with_rounds(slot, prompt)
        yield Loading("loading weights", 0.5)
        yield first
        half = len(rest) // 2
        yield from rest[:half]
        yield self.hold
        yield from rest[half:]


def _spoken_with_rounds(slot: SlotSpec, prompt: Prompt):
    for event in spoken(f"{slot.id}: {prompt.text} " * 3):
        if slot.decode.speculation != "none" and isinstance(event, Tokens):
            yield Round(4, 2)
        yield event


def troubled(slot: SlotSpec, prompt: Prompt):
    """The second slot fails after a few words, the third speaks markup, the others answer."""
    if slot.id == "kv-cache":
        return [*spoken("a few words")[:-2], Failed("The device is on fire.", "Use another device.")]
    if slot.id == "sdpa":
        return [
            Ready(0.1, 10**6, None, "float32", "cpu", HOSTILE), Started(0, 3), Tokens(10**9, (1,), HOSTILE, 1),
            Memory("scripted", None, None, None, None), *spoken("")[-1:],
        ]
    return spoken(f"{slot.id} answers. " * 40)
