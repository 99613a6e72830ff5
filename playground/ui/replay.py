"""The player of recorded comparisons: it runs in the browser, without a model and without asking the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from ..charts import slot_colour
from ..recording import Recording, Track
from .columns import megabytes
from .i18n import Words

_SCRIPT = Path(__file__).with_name("replay.js").read_text(encoding="utf-8")
OWN = "own"  # in the menu, the comparison that this session ran last
_SPEEDS = (0.5, 1, 2, 4)
_SKELETON = (
    '<section class="replay"><div class="replay-head"><b class="replay-title"></b><span class="replay-prompt"></span></div>'
    '<div class="replay-controls"><button type="button" class="replay-play"></button>'
    '<input type="range" class="replay-scrub" min="0" step="0.01" value="0" data-word="scrub" aria-label="time">'
    '<span class="replay-clock"></span><label><span data-word="speed"></span> <select class="replay-speed">'
    + "".join(f'<option value="{speed}"{" selected" if speed == 1 else ""}>{speed}×</option>' for speed in _SPEEDS)
    + '</select></label><button type="button" class="replay-presentation" data-word="presentation"></button></div>'
    '<div class="replay-columns"></div>'
    '<svg class="replay-race" viewBox="0 0 1000 180" preserveAspectRatio="none" role="img" data-word="race"></svg>'
    '<p class="replay-machine"></p></section>'
)


@dataclass
class ReplayPanel:
    """Created inside the page's layout."""

    chosen: gr.Dropdown = None
    player: gr.HTML = None


def lay_out(say: Any, words: Words, recordings: Mapping[str, Recording]) -> ReplayPanel:
    """The choice of recordings and the player, which plays the first one at once."""
    panel = ReplayPanel()
    first = next(iter(recordings), None)
    with gr.Column(elem_id="replay", visible=bool(recordings)):
        panel.chosen = gr.Dropdown(choices(recordings, words), value=first, elem_id="recording")
        panel.player = gr.HTML(
            payload(recordings[first], words, True) if first else {}, html_template=_SKELETON, js_on_load=_SCRIPT,
            apply_default_css=False, elem_id="player",
        )
    say(panel.chosen, label="replay.choose")
    return panel


def choices(recordings: Mapping[str, Recording], words: Words, own: bool = False) -> list[tuple[str, str]]:
    """The recordings that ship, by title, and the session's own last comparison where there is one."""
    shipped = [(words.pick(found.title, found.title_ko), name) for name, found in recordings.items()]
    return [*shipped, (words("replay.own"), OWN)] if own else shipped


def payload(found: Recording, words: Words, autoplay: bool) -> dict[str, Any]:
    """What the player needs, as plain JSON. It sets every text as text."""
    names = ("play", "pause", "speed", "scrub", "presentation", "waiting", "answering", "done", "race")
    return {
        "title": words.pick(found.title, found.title_ko),
        "prompt": found.prompt,
        "machine": words("replay.machine", found.machine.device, found.machine.processor, found.machine.cores, found.made[:10]),
        "words": {name: words(f"replay.{name}") for name in names},
        "tracks": [
            {
                "name": track.name,
                "colour": slot_colour(place),
                "rate": track.decode_tok_per_s,
                "note": _note(track, words),
                "steps": [[step.t_s, step.ids, step.text, step.drafted_chars] for step in track.steps],
            }
            for place, track in enumerate(found.tracks)
        ],
        "autoplay": autoplay,
    }


def _note(track: Track, words: Words) -> str:
    ratio = "" if track.speedup is None else f" · {track.speedup:.2f}×"
    return f"{ratio} · {megabytes(track.memory_bytes)}"
