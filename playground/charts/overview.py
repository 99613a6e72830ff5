"""The overview: the race, time to first token, decode rate, memory, and quality against speed."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from .frame import HOVER_TEXT, MB, PART_COLOURS, Row, Words, dashes, figure_of, names, say, slot_colour

_LARGEST_DOT = 34


def timeline(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Ids over seconds since the start of each slot's own run, a line a slot: a race, though they took turns."""
    figure = figure_of(words, "chart.timeline", contended)
    running = [(i, row) for i, row in enumerate(rows) if row.run.timeline]
    for index, row in running:
        seconds, ids = zip((0.0, 0), *row.run.timeline)
        figure.add_scatter(
            x=list(seconds),
            y=list(ids),
            name=html.escape(row.name),
            mode="lines",
            line={"color": slot_colour(index), "shape": "hv", "width": 2.5},
            hovertemplate=f"%{{y}} {words('new_tokens')}, %{{x:.2f}} s<extra>%{{fullData.name}}</extra>",
        )
    figure.update_layout(showlegend=bool(running))
    figure.update_xaxes(ticksuffix=" s", visible=bool(running))
    figure.update_yaxes(rangemode="tozero", autorange=True, visible=bool(running))
    if not running:
        say(figure, words("chart.not_yet"))
    return figure


def ttft(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Seconds to the first token, a bar a slot."""
    return _bars(rows, "ttft_s", "{:.3f}", words, "chart.ttft", contended)


def decode(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Decode tokens per second, a bar a slot."""
    return _bars(rows, "decode_tok_per_s", "{:.1f}", words, "chart.decode", contended)


def _bars(
    rows: Sequence[Row], metric: str, form: str, words: Words, title: str, contended: bool
) -> go.Figure:
    values = [getattr(row.run, metric) for row in rows]
    figure = figure_of(words, title, contended)
    _noise_band(figure, rows, metric, words)
    figure.add_bar(
        orientation="h",
        y=names(rows),
        x=values,
        text=[form.format(value) if value is not None else "" for value in values],
        textposition="inside" if any(row.spread for row in rows) else "outside",
        insidetextanchor="start",
        cliponaxis=False,
        marker={"color": [slot_colour(i) for i in range(len(rows))]},
        error_x={"type": "data", "array": [row.spread.get(metric, 0) for row in rows], "visible": any(row.spread for row in rows)},
        hovertemplate="%{y}: %{text}<extra></extra>",
    )
    dashes(figure, rows, values, words)
    figure.update_layout(showlegend=False)
    highest = max((value for value in values if value is not None), default=1.0)
    figure.update_xaxes(range=[0, highest * 1.15 or 1.0])
    return figure


def _noise_band(figure: go.Figure, rows: Sequence[Row], metric: str, words: Words) -> None:
    """Behind the bars: where a bar may end without a measurable difference from the reference."""
    for row in rows:
        value, noise = getattr(row.run, metric), row.noise.get(metric)
        if value is not None and noise:
            figure.add_vrect(
                x0=value * (1 - noise), x1=value * (1 + noise), fillcolor="#7F7F7F", opacity=0.25, line_width=0, layer="below",
            )
            figure.layout.title.text += f"<br><sup>{words('chart.noise', f'{noise:.1%}')}</sup>"


def memory(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Weights, drafter, KV cache and the rest of the run's own peak, stacked; shared weights hatched."""
    figure = figure_of(words, "chart.memory", contended)
    parts = (
        ("weights", words("weights"), [row.run.weights_bytes for row in rows]),
        ("drafter", words("drafter"), [row.run.drafter_bytes for row in rows]),
        ("kv", words("kv"), [row.run.kv_bytes for row in rows]),
        ("working", words("chart.working"), [row.run.working_bytes for row in rows]),
    )
    for place, (part, label, values) in enumerate(parts):
        figure.add_bar(
            orientation="h",
            y=names(rows),
            x=[value / MB if value is not None else None for value in values],
            name=label,
            marker={
                "color": PART_COLOURS[place],
                "pattern": {"shape": ["/" if part == "weights" and not row.counts else "" for row in rows]},
            },
            hovertext=[_memory_hover(label, value, row, words) for value, row in zip(values, rows)],
            hovertemplate=HOVER_TEXT,
        )
    figure.update_layout(barmode="stack", showlegend=True)
    if not all(row.counts for row in rows):
        figure.layout.title.text += f"<br><sup>{words('chart.memory_note')}</sup>"
    totals = [None if row.run.weights_bytes is None else 0.0 for row in rows]
    dashes(figure, rows, totals, words)
    return figure


def _memory_hover(label: str, value: int | None, row: Row, words: Words) -> str:
    if value is None:
        return ""
    lines = [f"{html.escape(row.name)}: {html.escape(label)} {value / MB:,.1f} MB"]
    if label == words("weights") and row.sharers > 1:
        lines.append(words("weights_shared", row.sharers))
    if row.run.peak_bytes is not None:
        lines.append(f"{words('peak')} ({html.escape(row.run.memory_counter or '')}): {row.run.peak_bytes / MB:,.0f} MB")
    return "<br>".join(lines)


def quality(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Top-1 agreement with the reference over decode tokens/s, a dot a slot whose area is its weights."""
    figure = figure_of(words, "chart.quality", contended)
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
            hovertemplate=HOVER_TEXT,
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
        say(figure, words("chart.no_quality"))
    return figure


def _quality_hover(row: Row, words: Words) -> str:
    run = row.run
    return "<br>".join((
        html.escape(row.name),
        f"{run.decode_tok_per_s:.1f} tok/s",
        f"{words('top1')} {run.top1:.1%}",
        f"{words('kl')} {run.kl_nats:.3g}",
        f"{words('perplexity')} {run.perplexity:.4g}",
        f"{words('weights')} {(run.weights_bytes or 0) / MB:,.0f} MB",
    ))
