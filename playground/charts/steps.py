"""What lies behind a rate: what each choice gave, where the time goes, and the gaps between steps."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from ..breakdown import PARTS, breakdown
from ..ladder import PROMISE
from .frame import HOVER_TEXT, PART_COLOURS, Row, Words, dashes, figure_of, names, say, slot_colour


def ladder(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """A waterfall of decode rates from the reference on, a bar a choice."""
    figure = figure_of(words, "chart.ladder", contended)
    rungs = sorted(((row.rung, i) for i, row in enumerate(rows) if row.rung is not None), key=lambda item: item[0][0])
    for (_, rung), index in rungs:
        falls = rung.rate < rung.from_rate
        first = rung.choice is None
        figure.add_bar(
            x=[_rung_label(rung, words)],
            base=[0 if first else min(rung.from_rate, rung.rate)],
            y=[rung.rate if first else abs(rung.rate - rung.from_rate)],
            marker={"color": slot_colour(index), "pattern": {"shape": "x" if falls else ""}},
            text=[f"{rung.rate:.1f}" if first else f"{rung.factor:.2f}×"],
            textposition="outside",
            cliponaxis=False,
            hovertext=[f"{html.escape(rung.slot.name)}: {rung.from_rate:.1f} → {rung.rate:.1f} tok/s"],
            hovertemplate=HOVER_TEXT,
        )
    figure.update_layout(showlegend=False, barmode="overlay")
    figure.update_xaxes(type="category", visible=bool(rungs))
    figure.update_yaxes(rangemode="tozero", autorange=True, visible=bool(rungs))
    if not rungs:
        say(figure, words("chart.no_ladder"))
        return figure
    start, end = rungs[0][0][1].rate, rungs[-1][0][1].rate
    figure.layout.title.text += f"<br><sup>{words('chart.ladder_total', f'{end / start:.2f}', f'{PROMISE:g}')}</sup>"
    highest = max(max(rung.rate, rung.from_rate) for (_, rung), _ in rungs)
    figure.update_yaxes(range=[0, max(highest, PROMISE * start) * 1.15], autorange=False)
    figure.add_hline(y=PROMISE * start, line={"dash": "dot", "color": "#7F7F7F"})
    return figure


def _rung_label(rung, words: Words) -> str:
    if rung.choice is None:
        return f"{words('chart.ladder_start')}<br>{html.escape(rung.slot.name)}"
    return f"{words(f'choice.{rung.choice}')}<br>{html.escape(rung.before)} → {html.escape(rung.after)}"


def time(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Seconds of each part of a run, stacked."""
    figure = figure_of(words, "chart.time", contended)
    split = [{part.name: part for part in breakdown(row.run)} for row in rows]
    for place, part in enumerate(PARTS):
        found = [parts.get(part) for parts in split]
        if any(found):
            figure.add_bar(
                orientation="h",
                y=names(rows),
                x=[item.seconds if item else None for item in found],
                name=words(f"time.{part}"),
                marker={"color": PART_COLOURS[place]},
                hovertext=[
                    f"{html.escape(row.name)}: {words(f'time.{part}')} {item.seconds:.3f} s, {item.share:.0%}" if item else ""
                    for row, item in zip(rows, found)
                ],
                hovertemplate=HOVER_TEXT,
            )
    figure.update_layout(barmode="stack", showlegend=True)
    dashes(figure, rows, [1.0 if parts else None for parts in split], words)
    return figure


def gaps(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Every gap between steps, a box a slot: the middle half, the median, and what lies outside."""
    figure = figure_of(words, "chart.gaps", contended)
    for index, row in enumerate(rows):
        if row.run.itl_s:
            figure.add_box(
                orientation="h", x=[1e3 * gap for gap in row.run.itl_s], y=[html.escape(row.name)] * len(row.run.itl_s), name=html.escape(row.name),
                marker={"color": slot_colour(index), "size": 3}, line={"width": 1.5}, boxpoints="outliers", hoverinfo="x+name",
            )
    figure.update_layout(showlegend=False)
    figure.update_xaxes(ticksuffix=" ms")
    figure.update_yaxes(categoryorder="array", categoryarray=names(rows))
    dashes(figure, rows, [1.0 if row.run.itl_s else None for row in rows], words)
    return figure
