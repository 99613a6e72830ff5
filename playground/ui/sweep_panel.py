"""The panel that varies one setting over several benchmarks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from ..charts.sweeps import sweep_chart
from ..events import Repetition
from ..sweep import METRICS, VARIABLES, Sweep
from .benchmark_panel import progress_bar, runs_so_far
from .i18n import Words

_VALUES = {"prompt_tokens": "16, 64, 256, 1024", "new_tokens": "16, 64, 256", "draft_len": "1, 2, 4, 8", "batch": "1, 2, 4, 8"}


@dataclass
class SweepPanel:
    """Created inside the page's layout."""

    accordion: gr.Accordion = None
    variable: gr.Dropdown = None
    values: gr.Textbox = None
    run: gr.Button = None
    progress: gr.HTML = None
    charts: dict[str, gr.Plot] = field(default_factory=dict)

    def components(self) -> list[Any]:
        return [self.accordion, self.variable, self.values, self.run, self.progress, *self.charts.values()]


def lay_out(say: Any, words: Words) -> SweepPanel:
    """The panel, closed, with empty charts."""
    panel = SweepPanel()
    with gr.Accordion(open=False, elem_id="sweep") as panel.accordion:
        with gr.Row():
            panel.variable = gr.Dropdown(variable_choices(words), value=VARIABLES[0], elem_id="sweep-variable", min_width=200)
            panel.values = gr.Textbox(_VALUES[VARIABLES[0]], elem_id="sweep-values", min_width=240, max_lines=1)
            panel.run = gr.Button(elem_id="sweep-run", min_width=160)
        panel.progress = gr.HTML(elem_id="sweep-progress")
        with gr.Row(elem_id="sweep-charts"):
            for metric in METRICS:
                panel.charts[metric] = gr.Plot(show_label=False, elem_id=f"sweep-{metric}")
    say(panel.accordion, label="sweep")
    say(panel.variable, label="sweep.variable")
    say(panel.values, label="sweep.values", info="sweep.values_info")
    say(panel.run, value="sweep.run")
    return panel


def variable_choices(words: Words) -> list[tuple[str, str]]:
    """What can be varied, in the page's language."""
    return [(words(name), name) for name in VARIABLES]


def usual_values(variable: str) -> str:
    """Values to start from."""
    return _VALUES[variable]


def draw(found: Sweep | None, words: Words) -> dict[str, Any]:
    """A chart a metric; None for each before any sweep."""
    return {metric: sweep_chart(found, metric, words) if found else None for metric in METRICS}


def progress_html(variable: str, value: int, place: tuple[int, int], step: Repetition | None, words: Words) -> str:
    """The value under way, which of how many it is, and its benchmark's progress."""
    text = words("sweep.progress", words(variable), f"{value:,}", place[0] + 1, place[1])
    if step is not None:
        text += f" · {runs_so_far(step, words)}"
    return progress_bar((place[0] + (step.done / step.total if step else 0)) / place[1], text)
