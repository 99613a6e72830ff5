"""What every chart is made of: its rows, a colour a slot, a frame without colours of its own, and how gaps are shown."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import plotly.graph_objects as go

from ..breakeven import Prospect
from ..ladder import Rung
from ..metrics import RunMetrics

Words = Callable[..., str]

# Okabe and Ito's palette: distinguishable with colour-vision deficiency, on light and on dark.
SLOT_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A900", "#7F7F7F")
PART_COLOURS = ("#0072B2", "#CC79A7", "#E69F00", "#009E73", "#56B4E9", "#7F7F7F")
MB = 1e6
_HEIGHT, _EMPTY_HEIGHT = 290, 120
_LINE = 64  # characters of a definition on one line; others are wider than ASCII
HOVER_TEXT = "%{hovertext}<extra></extra>"


@dataclass(frozen=True)
class Row:
    """One slot in a chart. `sharers` counts the slots on its weights; `counts` marks the one that counts them.

    `rung` is its place on the ladder and the rung, `prospect` its drafter's curve. Of several runs `run` holds medians,
    `spread` each metric's median absolute deviation, and `noise`, on the reference only, how far it differs from itself.
    """

    name: str
    run: RunMetrics
    sharers: int = 1
    counts: bool = True
    rung: tuple[int, Rung] | None = None
    prospect: Prospect | None = None
    spread: Mapping[str, float] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)


def slot_colour(index: int) -> str:
    """The colour of the slot at this place in the comparison, in every chart and column."""
    return SLOT_COLOURS[index % len(SLOT_COLOURS)]


def figure_of(words: Words, title: str, contended: bool) -> go.Figure:
    text = words(title) + (f"  [{words('chart.contended')}]" if contended else "")
    figure = go.Figure()
    figure.update_layout(
        template="none",
        title={"text": text, "x": 0, "xanchor": "left", "xref": "container", "pad": {"l": 12}, "font": {"size": 15}},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 10, "r": 20, "t": 44, "b": 30},
        height=_HEIGHT,
        legend={"orientation": "h", "y": -0.16, "x": 0, "traceorder": "normal"},
        bargap=0.35,
    )
    figure.update_yaxes(automargin=True, autorange="reversed", ticks="")
    figure.update_xaxes(automargin=True, rangemode="tozero")
    return figure


def define(figure: go.Figure, definition: str) -> go.Figure:
    """What the chart shows, in words: on a mark in its corner, and under what each point says on hover."""
    lines = "<br>".join(textwrap.wrap(html.escape(definition, quote=False), _LINE if definition.isascii() else _LINE * 3 // 5, break_on_hyphens=False))
    for trace in figure.data:
        if trace.hovertemplate is not None:
            trace.hovertemplate = trace.hovertemplate.replace("<extra>", f"<br><i>{lines}</i><extra>")
    figure.add_annotation(
        text="ⓘ", hovertext=lines, showarrow=False, xref="paper", yref="paper", x=1, y=1, xanchor="right", yanchor="bottom", yshift=10,
        font={"size": 15}, name="definition",
    )
    return figure


def say(figure: go.Figure, text: str) -> None:
    """A sentence in the middle of a chart that has nothing to show, and which then takes little room."""
    figure.update_layout(height=_EMPTY_HEIGHT)
    figure.add_annotation(text=text, showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)


def dashes(figure: go.Figure, rows: Sequence[Row], values: Sequence[float | None], words: Words) -> None:
    """A dash where a value is missing, with the reason on hover."""
    gaps = [row for row, value in zip(rows, values) if value is None]
    figure.add_scatter(
        x=[0] * len(gaps),
        y=names(gaps),
        mode="text",
        text=["–"] * len(gaps),
        textposition="middle right",
        hovertext=[f"{html.escape(row.name)}: {words('missing.' + why_missing(row.run))}" for row in gaps],
        hovertemplate=HOVER_TEXT,
        showlegend=False,
    )


def names(rows: Sequence[Row]) -> list[str]:
    return [html.escape(row.name) for row in rows]


def why_missing(run: RunMetrics) -> str:
    """Why a run has no rate: the part of an i18n key behind "missing."."""
    if run.finish is None and run.prompt_tokens is None:
        return "not_run"
    if run.finish == "failed":
        return "failed"
    if run.new_tokens == 0:
        return "no_token"
    return "one_group" if run.groups == 1 else "unmeasurable"
