"""A metric over the values of a sweep, a line a slot with the spread of its runs around it."""

from __future__ import annotations

import html

import plotly.graph_objects as go

from ..sweep import Sweep, position
from .frame import MB, Words, define, figure_of, say, slot_colour

_SCALE = {"kv_bytes": MB}
_SUFFIX = {"all_tok_per_s": "", "ttft_s": " s", "kv_bytes": " MB", "acceptance_rate": ""}


def sweep_chart(found: Sweep, metric: str, words: Words) -> go.Figure:
    """Median lines; the bands are the median absolute deviation on either side."""
    figure = figure_of(words, f"chart.sweep.{metric}", False)
    lines = 0
    slots = found.points[0].outcome.comparison.slots if found.points else ()
    for index, slot in enumerate(slots):
        rows = [
            (position(point, series, found.variable), middle, series.mad(metric) or 0.0)
            for point in found.points
            if (middle := (series := point.series(slot.id)).median(metric)) is not None
        ]
        if not rows:
            continue
        lines += 1
        scale = _SCALE.get(metric, 1.0)
        x = [row[0] for row in rows]
        low, high = ([(middle + sign * mad) / scale for _, middle, mad in rows] for sign in (-1, 1))
        name, colour = html.escape(slot.name), slot_colour(index)
        figure.add_scatter(
            x=[*x, *reversed(x)], y=[*high, *reversed(low)], fill="toself", fillcolor=colour, opacity=0.2, line={"width": 0},
            hoverinfo="skip", showlegend=False, mode="lines",
        )
        figure.add_scatter(
            x=x, y=[row[1] / scale for row in rows], name=name, mode="lines+markers", line={"color": colour, "width": 2}, hovertemplate="%{x}: %{y}<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(showlegend=bool(lines))
    figure.update_xaxes(title={"text": words(found.variable)}, visible=bool(lines))
    figure.update_yaxes(rangemode="tozero", autorange=True, visible=bool(lines), ticksuffix=_SUFFIX[metric])
    if metric == "acceptance_rate":
        figure.update_yaxes(tickformat=".0%")
    if not lines:
        say(figure, words("chart.no_speculation" if metric == "acceptance_rate" else "chart.not_yet"))
    return define(figure, words("define.sweep"))
