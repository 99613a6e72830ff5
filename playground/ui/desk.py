"""What the page's handlers share: its components, what each session looks at, and how a board becomes updates."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import gradio as gr

from ..board import Board
from ..checkup import Checkup
from ..config import Comparison, Mode, Prompt, describe_model
from ..presets import find_preset
from ..recording import Recording
from ..runcard import Machine, RunCard
from ..scheduler import Scheduler
from ..sweep import Sweep
from .asking import Asked, checked_request
from .benchmark_panel import progress_html, result_html, write_files
from .drawing import draw_charts, draw_columns, draw_description, draw_heading
from .examples import EXAMPLES
from .gptq_form import with_gptq
from .i18n import Words
from .numbers_table import numbers_table
from .panels import loaded_table, machine_line
from .parts import Parts
from .replay import OWN, choices, payload
from .summary import summary_html
from .sweep_panel import draw as draw_sweep
from .sweep_panel import variable_choices

Updates = dict[Any, Any]


def over(updates: Updates, more: Updates) -> Updates:
    """`more` on top of `updates`, property by property: a value beside a label, which an update of a value alone would not carry."""
    return updates | {part: _update(updates[part]) | _update(update) if part in updates else update for part, update in more.items()}


def _update(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) and value.get("__type__") == "update" else gr.update(value=value)


@dataclass
class View:
    """What a session looks at. A run draws on its own view only: another one means that the page moved on."""

    board: Board
    words: Words
    prompt: Prompt | None = None
    checkup: Checkup | None = None
    recording: Recording | None = None
    own: Recording | None = None
    sweep: Sweep | None = None
    edited: Comparison | None = None
    markdown: bool = False
    drawn: tuple[str, bool] | None = None

    @property
    def manner(self) -> tuple[str, bool]:
        """How things are drawn; `drawn` is how a run's last update was."""
        return self.words.language, self.markdown


class Desk:
    """Shared by the handlers of one page. `views` is what each session looks at, so that a change of language redraws it."""

    def __init__(
        self, scheduler: Scheduler, presets: Mapping[str, Comparison], first_preset: str, parts: Parts,
        recordings: Mapping[str, Recording],
    ):
        self.scheduler = scheduler
        self.presets = presets
        self.first_preset = first_preset
        self.parts = parts
        self.recordings = recordings
        self.views: dict[str, View] = {}
        self._files = tempfile.TemporaryDirectory(prefix="playground-")  # goes with the app

    def turn_to(
        self, board: Board, words: Words, request: gr.Request, prompt: Prompt | None = None, edited: Comparison | None = None
    ) -> View:
        """Let a session look at another board; what it has recorded, and how it reads answers, stays."""
        old = self.views.get(request.session_hash) or View(board, words)
        view = View(board, words, prompt, recording=old.recording, own=old.own, sweep=old.sweep, edited=edited, markdown=old.markdown)
        self.views[request.session_hash] = view
        return view

    def edited(self, request: gr.Request) -> Comparison | None:
        view = self.views.get(request.session_hash)
        return view.edited if view is not None else None

    def chosen(self, values: Updates, request: gr.Request) -> Comparison:
        """The chosen preset, as this session has edited it."""
        preset, view = find_preset(self.presets, values[self.parts.preset]), self.views.get(request.session_hash)
        return view.edited if view is not None and view.edited is not None and view.edited.id == preset.id else preset

    def asked_on_page(self, values: Updates, request: gr.Request) -> Asked:
        """The comparison that the page's controls ask for. Raises ConfigError naming the field."""
        asked = self.asked_of(self.chosen(values, request), values)
        return dataclasses.replace(asked, comparison=with_gptq(asked.comparison, self.parts.gptq, values))

    def asked_of(self, comparison: Comparison, values: Updates) -> Asked:
        """What the page's controls ask of a comparison. Raises ConfigError naming the field."""
        parts = self.parts
        settings = {name: values[control] for name, control in parts.settings.items()}
        return checked_request(
            comparison, values[parts.prompt], settings, values[parts.mode], values[parts.quality], values[parts.benchmark.repeats]
        )

    def no_benchmark(self) -> Updates:
        panel = self.parts.benchmark
        hidden = gr.update(visible=False)
        return {panel.progress: "", panel.result: "", panel.card: hidden, panel.markdown: hidden}

    def files(self, finished: RunCard, words: Words) -> Updates:
        """A finished benchmark's card, to be taken home."""
        panel, (card, markdown) = self.parts.benchmark, write_files(finished, Path(self._files.name))
        return {
            panel.card: gr.update(value=card, visible=True, label=words("benchmark.card")),
            panel.markdown: gr.update(value=markdown, visible=True, label=words("benchmark.markdown")),
        }

    def texts(self, words: Words) -> Updates:
        updates = {c: gr.update(**properties) for c, properties in self.parts.texts(words).items()}
        modes = [(words(mode), mode) for mode in get_args(Mode)]
        updates[self.parts.mode] = gr.update(
            label=words("mode"), info=words("mode_info"), choices=modes
        )
        updates[self.parts.sweep.variable] = gr.update(label=words("sweep.variable"), choices=variable_choices(words))
        labels = [words.pick(example.label, example.label_ko) for example in EXAMPLES]
        updates[self.parts.examples] = gr.update(label=words("examples"), sample_labels=labels)
        updates[self.parts.heading] = draw_heading(words)
        return updates

    def preset_choices(self, words: Words, chosen: str) -> Any:
        titles = [(words.pick(p.title, p.title_ko), p.id) for p in self.presets.values()]
        return gr.update(choices=titles, value=chosen, label=words("preset"))

    def preset_updates(self, comparison: Comparison, words: Words) -> Updates:
        updates: Updates = {
            control: gr.update(value=getattr(comparison.settings, name), label=words(name))
            for name, control in self.parts.settings.items()
        }
        updates[self.parts.description] = draw_description(comparison, words)
        updates[self.parts.quality] = gr.update(value=comparison.quality, label=words("quality"))
        updates[self.parts.notice] = ""
        return updates

    def redraw(self, board: Board, words: Words, machine: Machine | None = None, markdown: bool = False) -> Updates:
        """All columns, the summary, a benchmark's table and all charts."""
        charts = {self.parts.charts[name]: figure for name, figure in draw_charts(board, words).items()}
        panel = self.parts.benchmark
        bench = {panel.progress: progress_html(board, words), panel.result: result_html(board, machine, words)}
        return self.columns(board, words, markdown=markdown) | {
            self.parts.summary: summary_html(board, words), self.parts.table: numbers_table(board, words),
        } | bench | charts

    def columns(self, board: Board, words: Words, only: set[str] | None = None, markdown: bool = False) -> Updates:
        drawn = draw_columns(board, words, only, markdown)
        return {part: drawn[slot] for part, slot in zip(self.parts.columns, board.columns) if slot in drawn}

    def other_columns(self, board: Board, words: Words) -> Updates:
        """As many columns as the comparison has slots, drawn; and all charts.

        Visibility is sent only when the comparison changes: Gradio mounts a newly visible
        component late, and would then show what it was first given over what came since.
        """
        drawn = self.redraw(board, words)
        columns = {part: drawn.get(part, "") for part in self.parts.columns}
        return drawn | self.no_benchmark() | {part: gr.update(value=html, visible=bool(html)) for part, html in columns.items()}

    def panel(self, words: Words) -> Updates:
        loaded = self.scheduler.engine.resident()
        names = [describe_model(item.model) for item in loaded]
        return {
            self.parts.machine: machine_line(self.scheduler.engine.machine(), words),
            self.parts.loaded: loaded_table(loaded, words),
            self.parts.chosen_model: gr.update(label=words("model"), choices=names, value=names[0] if names else None),
        }

    def sweep(self, view: View) -> Updates:
        """The charts of this session's last sweep, in its language."""
        panel = self.parts.sweep
        return {panel.charts[metric]: figure for metric, figure in draw_sweep(view.sweep, view.words).items()}

    def replay(self, view: View) -> Updates:
        """The player, at rest, with what this session last recorded or chose, in its language."""
        panel = self.parts.replay
        own = {OWN: view.own} if view.own else {}
        shown = next((name for name, found in (own | dict(self.recordings)).items() if found is view.recording), None)
        titles = gr.update(choices=choices(self.recordings, view.words, bool(own)), value=shown, label=view.words("replay.choose"))
        return {panel.chosen: titles} | ({panel.player: payload(view.recording, view.words, autoplay=False)} if view.recording else {})
