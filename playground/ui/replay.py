"""The player of recorded comparisons: it runs in the browser, without a model and without asking the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from ..charts import slot_colour
from ..recording import Recording, Track
from .columns import megabytes, seconds
from .i18n import Words
from .summary import winner

_SCRIPT = Path(__file__).with_name("replay.js").read_text(encoding="utf-8")
OWN = "own"  # in the menu, the comparison that this session ran last
_SPEEDS = (0.5, 1, 2, 4)
_SKELETON = (
    '<section class="replay"><div class="replay-head"><b class="replay-title"></b><span class="replay-prompt"></span></div>'
    '<div class="replay-controls"><button type="button" class="replay-play"></button>'
    '<input type="range" class="replay-scrub" min="0" step="0.01" value="0" data-word="scrub" aria-label="time">'
    '<span class="replay-clock"></span><label><span data-word="speed"></span> <select class="replay-speed">'
    + "".join(f'<option value="{speed}"{" selected" if speed == 1 else ""}>{speed}×</option>' for speed in _SPEEDS)
    + '</select></label></div>'
    '<div class="replay-columns"></div>'
    '<div class="replay-summary"></div>'
    '<div class="replay-chart"><svg class="replay-race" viewBox="0 0 1000 180" preserveAspectRatio="none" role="img" data-word="race"></svg>'
    '<span class="replay-most"></span><span class="replay-end"></span></div>'
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
        panel.chosen = gr.Dropdown(choices(recordings, words), value=first, show_label=False, container=False, elem_id="recording")
        panel.player = gr.HTML(
            payload(recordings[first], words, True) if first else {}, html_template=_SKELETON, js_on_load=_SCRIPT,
            apply_default_css=False, elem_id="player",
        )
    say(panel.chosen, label="replay.choose")
    return panel


def choices(recordings: Mapping[str, Recording], words: Words, own: bool = False) -> list[tuple[str, str]]:
    """The recordings that ship, by title, and the session's own last comparison where there is one."""
    shipped = [(words("replay.choice", words.pick(found.title, found.title_ko)), name) for name, found in recordings.items()]
    return [*shipped, (words("replay.choice", words("replay.own")), OWN)] if own else shipped


def payload(found: Recording, words: Words, autoplay: bool) -> dict[str, Any]:
    """What the player needs, as plain JSON. It sets every text as text."""
    names = ("play", "pause", "speed", "scrub", "waiting", "answering", "done", "race", "tokens")
    return {
        "title": words.pick(found.title, found.title_ko),
        "prompt": found.prompt,
        "machine": words("replay.machine", found.machine.device, found.machine.processor, found.machine.cores, found.made[:10]),
        "words": {name: words(f"replay.{name}") for name in names},
        "tracks": [
            {
                "name": track.name,
                "colour": slot_colour(track.place),
                "rate": track.decode_tok_per_s,
                "note": _note(track, words),
                "steps": [[step.t_s, step.ids, step.text, step.drafted_chars] for step in track.steps],
            }
            for track in found.tracks
        ],
        "summary": _summary(found, words),
        "autoplay": autoplay,
    }


def _summary(found: Recording, words: Words) -> list[dict[str, str]]:
    """Who decodes fastest, answers soonest and needs least, as under a live comparison's columns."""
    questions = (
        ("fastest", lambda track: track.decode_tok_per_s, max, lambda track: f"{track.decode_tok_per_s:.1f} tok/s{_over(found, track, words)}"),
        ("soonest", lambda track: track.ttft_s, min, lambda track: seconds(track.ttft_s)),
        ("leanest", lambda track: track.memory_bytes, min, lambda track: megabytes(track.memory_bytes)),
    )
    tracks, cards = {track.slot_id: track for track in found.tracks}, []
    for question, value, best, shown in questions:
        won = winner({slot: value(track) for slot, track in tracks.items()}, best)
        if won is not None:
            colour = slot_colour(tracks[won].place)
            cards.append({"question": words(f"summary.{question}"), "name": tracks[won].name, "value": shown(tracks[won]), "colour": colour})
    return cards


def _over(found: Recording, track: Track, words: Words) -> str:
    reference = next((t.name for t in found.tracks if t.slot_id == found.reference), None)
    return "" if track.speedup is None or reference is None else " · " + words("summary.over", f"{track.speedup:.2f}", reference)


def _note(track: Track, words: Words) -> str:
    ratio = "" if track.speedup is None else f" · {track.speedup:.2f}×"
    return f"{ratio} · {megabytes(track.memory_bytes)}"
