"""Speculation: acceptance by position and by round, and when a drafter pays."""

from __future__ import annotations

import html
from collections.abc import Sequence

import plotly.graph_objects as go

from .frame import HOVER_TEXT, Row, Words, figure_of, say, slot_colour

_POINTS = 50


def acceptance(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Acceptance rate, then acceptance by position in the draft, a colour a slot."""
    figure = figure_of(words, "chart.acceptance", contended)
    drafting = [(i, row) for i, row in enumerate(rows) if row.run.acceptance_rate is not None]
    for index, row in drafting:
        by_position = row.run.acceptance_by_position or ()
        figure.add_bar(
            x=[words("chart.overall"), *(str(p + 1) for p in range(len(by_position)))],
            y=[row.run.acceptance_rate, *by_position],
            name=html.escape(row.name),
            marker={"color": slot_colour(index)},
            text=[f"{value:.0%}" for value in (row.run.acceptance_rate, *by_position)],
            hovertemplate="%{x}: %{text}<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(showlegend=len(drafting) > 1)
    figure.update_yaxes(range=[0, 1.08], tickformat=".0%", visible=bool(drafting), autorange=False)
    figure.update_xaxes(type="category", visible=bool(drafting))
    if not drafting:
        say(figure, words("chart.no_speculation"))
    return figure


def rounds(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Accepted ids of each round, a line a speculating slot."""
    figure = figure_of(words, "chart.rounds", contended)
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
            hovertemplate="%{x}: %{y}<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(showlegend=len(drafting) > 1)
    figure.update_xaxes(visible=bool(drafting))
    figure.update_yaxes(rangemode="tozero", autorange=True, visible=bool(drafting))
    if not drafting:
        say(figure, words("chart.no_speculation"))
    return figure


def breakeven(rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """Expected speed-up over the chance of acceptance for each drafter's k, with the point that was measured."""
    figure = figure_of(words, "chart.breakeven", contended)
    drafting = [(i, row, row.prospect) for i, row in enumerate(rows) if row.prospect is not None]
    chances = [i / _POINTS for i in range(_POINTS + 1)]
    for index, row, curve in drafting:
        name, colour = html.escape(row.name), slot_colour(index)
        figure.add_scatter(
            x=chances, y=[curve.speedup(curve.k, chance) for chance in chances], name=name, mode="lines", line={"color": colour, "width": 2},
            hovertemplate="%{x}: %{y:.2f}×<extra>%{fullData.name}</extra>",
        )
        needed = curve.needed(curve.k)
        hover = words(
            "chart.breakeven_hover", name, f"{curve.chance:.0%}", words("chart.breakeven_never") if needed is None else f"{needed:.0%}",
            f"{curve.k:.1f}", str(curve.best_k() or "–"),
        )
        figure.add_scatter(
            x=[curve.chance], y=[curve.speedup(curve.k, curve.chance)], mode="markers", marker={"color": colour, "size": 12}, name=name,
            hovertext=[hover], hovertemplate=HOVER_TEXT, showlegend=False,
        )
    figure.update_layout(showlegend=bool(drafting))
    figure.update_xaxes(range=[0, 1], tickformat=".0%", title={"text": words("chart.breakeven_x")}, visible=bool(drafting))
    figure.update_yaxes(rangemode="tozero", autorange=True, ticksuffix="×", visible=bool(drafting))
    if drafting:
        figure.add_hline(y=1, line={"dash": "dot", "color": "#7F7F7F"})
    else:
        say(figure, words("chart.no_speculation"))
    return figure
