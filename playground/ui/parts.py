"""The page's components by name, and which of their texts come from the word list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from .benchmark_panel import BenchmarkPanel
from .column_editor import ColumnEditor
from .gptq_form import GptqForm
from .i18n import Words
from .kv_panel import KvPanel
from .replay import ReplayPanel
from .sweep_panel import SweepPanel


@dataclass
class Parts:
    """Filled in by page.py, read by handlers.py: handlers name components, never count them."""

    words: Words = Words("en")
    heading: gr.HTML = None
    present: gr.Button = None
    language: gr.Radio = None
    preset: gr.Dropdown = None
    mode: gr.Radio = None
    quality: gr.Checkbox = None
    tint: gr.Checkbox = None
    markdown: gr.Checkbox = None
    saved: gr.BrowserState = None
    saved_columns: gr.BrowserState = None
    cards: list[gr.Button] = field(default_factory=list)
    editor: ColumnEditor = field(default_factory=ColumnEditor)
    prompt: gr.Textbox = None
    examples: gr.Dataset = None
    description: gr.HTML = None
    compare: gr.Button = None
    follow_up: gr.Button = None
    stop: gr.Button = None
    notice: gr.HTML = None
    summary: gr.HTML = None
    benchmark: BenchmarkPanel = field(default_factory=BenchmarkPanel)
    settings: dict[str, Any] = field(default_factory=dict)
    columns: list[gr.HTML] = field(default_factory=list)
    charts: dict[str, gr.Plot] = field(default_factory=dict)
    gptq: GptqForm = field(default_factory=GptqForm)
    kv: KvPanel = field(default_factory=KvPanel)
    sweep: SweepPanel = field(default_factory=SweepPanel)
    replay: ReplayPanel = field(default_factory=ReplayPanel)
    capabilities: gr.Accordion = None
    techniques: gr.HTML = None
    table: gr.HTML = None
    fit: gr.Accordion = None
    forecast: gr.HTML = None
    models: gr.Accordion = None
    machine: gr.HTML = None
    loaded: gr.HTML = None
    chosen_model: gr.Dropdown = None
    unload: gr.Button = None
    unload_all: gr.Button = None
    refresh: gr.Button = None
    _texts: list[tuple[Any, dict[str, str]]] = field(default_factory=list)

    def say(self, component: Any, **properties: str) -> None:
        """Let a component's properties follow the language: property name -> key of the word list."""
        self._texts.append((component, properties))
        for name, key in properties.items():
            setattr(component, name, self.words(key))

    def texts(self, words: Words) -> dict[Any, dict[str, str]]:
        """Each component's properties in one language."""
        return {component: {p: words(key) for p, key in keys.items()} for component, keys in self._texts}

    def kept(self) -> dict[str, Any]:
        """What a browser remembers of a visitor's choices, by name."""
        return {
            "language": self.language, "preset": self.preset, "mode": self.mode, "repeats": self.benchmark.repeats, "quality": self.quality,
            "markdown": self.markdown, "prompt": self.prompt, **self.settings,
        }

    def asked_panels(self) -> dict[Any, Any]:
        """The panels that ask the machine when they are opened, each with what shows the answer."""
        return {
            self.capabilities: self.techniques, self.fit: self.forecast, self.kv.accordion: self.kv.result,
            self.editor.accordion: self.editor.reasons,
        }

    def drawn_by_a_run(self) -> list[Any]:
        """What a comparison changes from its start to its end. Gradio goes through all of them at every update."""
        panel = [self.machine, self.loaded, self.chosen_model]
        fixed = [self.compare, self.follow_up, self.stop, self.notice, self.summary, self.table, *panel]
        return [*fixed, *self.columns, *self.charts.values(), *vars(self.benchmark).values(), *vars(self.replay).values()]

    def all(self) -> list[Any]:
        """Every component that a handler may change."""
        named = [
            value
            for name, value in vars(self).items()
            if name not in ("words", "settings", "columns", "charts", "gptq", "kv", "benchmark", "sweep", "replay", "cards", "saved", "editor", "_texts")
        ]
        spoken = [component for component, _ in self._texts]
        found = [*named, *spoken, self.kv.result, *self.settings.values(), *self.gptq.components(), *vars(self.benchmark).values(), *self.sweep.components(), *vars(self.replay).values(), *self.editor.components(), *self.columns, *self.charts.values()]
        return list(dict.fromkeys(found))
