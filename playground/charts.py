"""RunMetrics -> Plotly figures. Colours of text and grid come from the page's style sheet.

A number that is missing is a dash with the reason on hover, never a bar of height 0.
To add a chart: a function here, its name in CHARTS; the page lays out whatever is listed.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from .metrics import RunMetrics

Words = Callable[..., str]

# Okabe and Ito's palette: distinguishable with colour-vision deficiency, on light and on dark.
SLOT_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A900", "#7F7F7F")
_PART_COLOURS = {"weights": "#0072B2", "drafter": "#CC79A7", "kv": "#E69F00", "working": "#009E73"}
_MB = 1e6
_LARGEST_DOT = 34


@dataclass(frozen=True)
class Row:
    """One slot in a chart. `sharers` counts the slots on its weights; `counts` marks the one that counts them."""

    name: str
    run: RunMetrics
    sharers: int = 1
    counts: bool = True


def slot_colour(index: int) -> str:
    """The colour of the slot at this place in the comparison, in every chart and column."""
    return SLOT_COLOURS[index % len(SLOT_COLOURS)]


def timeline(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Ids over seconds since the start of each slot's own run, a line a slot: a race, though they took turns."""
    figure = _figure(words, "chart.timeline", contended)
    running = [(i, row) for i, row in enumerate(rows) if row.run.timeline]
    for index, row in running:
        seconds, ids = zip((0.0, 0), *row.run.timeline)
        figure.add_scatter(
            x=list(seconds),
            y=list(ids),
            name=html.escape(row.name),
            mode="lines",
            line={"color": slot_colour(index), "shape": "hv", "width": 2.5},
            hoverinfo="x+y+name",
        )
    figure.update_layout(showlegend=bool(running))
    figure.update_xaxes(ticksuffix=" s", visible=bool(running))
    figure.update_yaxes(rangemode="tozero", autorange=True, visible=bool(running))
    if not running:
        _say(figure, words("chart.not_yet"))
    return figure


def ttft(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Seconds to the first token, a bar a slot."""
    return _bars(rows, [row.run.ttft_s for row in rows], "{:.3f}", words, "chart.ttft", contended)


def decode(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Decode tokens per second, a bar a slot."""
    return _bars(rows, [row.run.decode_tok_per_s for row in rows], "{:.1f}", words, "chart.decode", contended)


def memory(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Weights, drafter, KV cache and the rest of the run's own peak, stacked; shared weights hatched."""
    figure = _figure(words, "chart.memory", contended)
    parts = (
        ("weights", words("weights"), [row.run.weights_bytes for row in rows]),
        ("drafter", words("drafter"), [row.run.drafter_bytes for row in rows]),
        ("kv", words("kv"), [row.run.kv_bytes for row in rows]),
        ("working", words("chart.working"), [row.run.working_bytes for row in rows]),
    )
    for part, label, values in parts:
        figure.add_bar(
            orientation="h",
            y=_names(rows),
            x=[value / _MB if value is not None else None for value in values],
            name=label,
            marker={
                "color": _PART_COLOURS[part],
                "pattern": {"shape": ["/" if part == "weights" and not row.counts else "" for row in rows]},
            },
            hovertext=[_memory_hover(label, value, row, words) for value, row in zip(values, rows)],
            hoverinfo="text",
        )
    figure.update_layout(barmode="stack", showlegend=True)
    if not all(row.counts for row in rows):
        figure.layout.title.text += f"<br><sup>{words('chart.memory_note')}</sup>"
    totals = [None if row.run.weights_bytes is None else 0.0 for row in rows]
    _dashes(figure, rows, totals, words)
    return figure


def acceptance(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Acceptance rate, then acceptance by position in the draft, a colour a slot."""
    figure = _figure(words, "chart.acceptance", contended)
    drafting = [(i, row) for i, row in enumerate(rows) if row.run.acceptance_rate is not None]
    for index, row in drafting:
        by_position = row.run.acceptance_by_position or ()
        figure.add_bar(
            x=[words("chart.overall"), *(str(p + 1) for p in range(len(by_position)))],
            y=[row.run.acceptance_rate, *by_position],
            name=html.escape(row.name),
            marker={"color": slot_colour(index)},
            text=[f"{value:.0%}" for value in (row.run.acceptance_rate, *by_position)],
            hoverinfo="x+text+name",
        )
    figure.update_layout(showlegend=len(drafting) > 1)
    figure.update_yaxes(range=[0, 1.08], tickformat=".0%", visible=bool(drafting), autorange=False)
    figure.update_xaxes(type="category", visible=bool(drafting))
    if not drafting:
        _say(figure, words("chart.no_speculation"))
    return figure


def rounds(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Accepted ids of each round, a line a speculating slot."""
    figure = _figure(words, "chart.rounds", contended)
    drafting = [(i, row) for i, row in enumerate(rows) if row.run.accepted_by_round]
    for index, row in drafting:
        accepted = row.run.accepted_by_round
        figure.add_scatter(
            x=list(range(1, len(accepted) + 1)),
            y=list(accepted),
            name=html.escape(row.name),
            mode="lines+markers",
            line={"color": slot_colour(index), "shape": "hvh", "width": 1.5},
            marker={"size": 4},
            hoverinfo="x+y+name",
        )
    figure.update_layout(showlegend=len(drafting) > 1)
    figure.update_xaxes(visible=bool(drafting))
    figure.update_yaxes(rangemode="tozero", autorange=True, visible=bool(drafting))
    if not drafting:
        _say(figure, words("chart.no_speculation"))
    return figure


def quality(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Top-1 agreement with the reference over decode tokens/s, a dot a slot whose area is its weights."""
    figure = _figure(words, "chart.quality", contended)
    measured = [
        (i, row) for i, row in enumerate(rows) if row.run.top1 is not None and row.run.decode_tok_per_s is not None
    ]
    largest = max((row.run.weights_bytes or 0 for _, row in measured), default=0) or 1
    for place, (index, row) in enumerate(sorted(measured, key=lambda item: item[1].run.decode_tok_per_s)):
        run = row.run
        figure.add_scatter(
            x=[run.decode_tok_per_s],
            y=[run.top1],
            mode="markers+text",
            text=[html.escape(row.name)],
            textposition=("top center", "bottom center", "middle left")[place % 3],
            marker={"color": slot_colour(index), "size": _LARGEST_DOT * ((run.weights_bytes or 0) / largest) ** 0.5},
            hovertext=[_quality_hover(row, words)],
            hoverinfo="text",
            cliponaxis=False,
        )
    figure.update_layout(showlegend=False)
    figure.update_xaxes(title={"text": words("chart.quality_x")}, visible=bool(measured))
    figure.update_yaxes(title={"text": words("chart.quality_y")}, visible=bool(measured), tickformat=".0%", autorange=None)
    if measured:
        speeds, lowest = [row.run.decode_tok_per_s for _, row in measured], min(row.run.top1 for _, row in measured)
        figure.update_xaxes(range=[0, max(speeds) * 1.15])
        figure.update_yaxes(range=[max(0.0, lowest - 0.12 * (1.05 - lowest) - 0.02), 1 + 0.25 * (1.05 - lowest)])
    else:
        _say(figure, words("chart.no_quality"))
    return figure


def _quality_hover(row: Row, words: Words) -> str:
    run = row.run
    return "<br>".join((
        html.escape(row.name),
        f"{run.decode_tok_per_s:.1f} tok/s",
        f"{words('top1')} {run.top1:.1%}",
        f"{words('kl')} {run.kl_nats:.3g}",
        f"{words('perplexity')} {run.perplexity:.4g}",
        f"{words('weights')} {(run.weights_bytes or 0) / _MB:,.0f} MB",
    ))


CHARTS: dict[str, Callable[..., go.Figure]] = {
    "timeline": timeline,
    "ttft": ttft,
    "decode": decode,
    "memory": memory,
    "acceptance": acceptance,
    "rounds": rounds,
    "quality": quality,
}


def _bars(
    rows: Sequence[Row], values: list[float | None], form: str, words: Words, title: str, contended: bool
) -> go.Figure:
    figure = _figure(words, title, contended)
    figure.add_bar(
        orientation="h",
        y=_names(rows),
        x=values,
        text=[form.format(value) if value is not None else "" for value in values],
        textposition="outside",
        cliponaxis=False,
        marker={"color": [slot_colour(i) for i in range(len(rows))]},
        hoverinfo="y+text",
    )
    _dashes(figure, rows, values, words)
    figure.update_layout(showlegend=False)
    highest = max((value for value in values if value is not None), default=1.0)
    figure.update_xaxes(range=[0, highest * 1.15 or 1.0])
    return figure


def _say(figure: go.Figure, text: str) -> None:
    """A sentence in the middle of a chart that has nothing to show."""
    figure.add_annotation(text=text, showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5)


def _dashes(figure: go.Figure, rows: Sequence[Row], values: Sequence[float | None], words: Words) -> None:
    """A dash where a value is missing, with the reason on hover."""
    gaps = [row for row, value in zip(rows, values) if value is None]
    figure.add_scatter(
        x=[0] * len(gaps),
        y=_names(gaps),
        mode="text",
        text=["–"] * len(gaps),
        textposition="middle right",
        hovertext=[f"{html.escape(row.name)}: {words('missing.' + why_missing(row.run))}" for row in gaps],
        hoverinfo="text",
        showlegend=False,
    )


def why_missing(run: RunMetrics) -> str:
    """Why a run has no rate: the part of an i18n key behind "missing."."""
    if run.finish is None and run.prompt_tokens is None:
        return "not_run"
    if run.finish == "failed":
        return "failed"
    if run.new_tokens == 0:
        return "no_token"
    return "one_group" if run.groups == 1 else "unmeasurable"


def _memory_hover(label: str, value: int | None, row: Row, words: Words) -> str:
    if value is None:
        return ""
    lines = [f"{html.escape(row.name)}: {html.escape(label)} {value / _MB:,.1f} MB"]
    if label == words("weights") and row.sharers > 1:
        lines.append(words("weights_shared", row.sharers))
    if row.run.peak_bytes is not None:
        lines.append(f"{words('peak')} ({html.escape(row.run.memory_counter or '')}): {row.run.peak_bytes / _MB:,.0f} MB")
    return "<br>".join(lines)


def _names(rows: Sequence[Row]) -> list[str]:
    return [html.escape(row.name) for row in rows]


def _figure(words: Words, title: str, contended: bool) -> go.Figure:
    text = words(title) + (f"  [{words('chart.contended')}]" if contended else "")
    figure = go.Figure()
    figure.update_layout(
        template="none",
        title={"text": text, "x": 0, "xanchor": "left", "xref": "container", "pad": {"l": 12}, "font": {"size": 15}},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 10, "r": 20, "t": 44, "b": 30},
        height=290,
        legend={"orientation": "h", "y": -0.16, "x": 0, "traceorder": "normal"},
        bargap=0.35,
    )
    figure.update_yaxes(automargin=True, autorange="reversed", ticks="")
    figure.update_xaxes(automargin=True, rangemode="tozero")
    return figure
