"""RunMetrics -> Plotly figures. Colours of text and grid come from the page's style sheet.

Every chart says on hover what it shows. A number that is missing is a dash with the reason on hover, never a bar of height 0.
To add a chart: a function in one of the modules, its name in CHARTS; the page lays out whatever is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from .frame import Row, Words, define, slot_colour
from .overview import decode, memory, quality, timeline, ttft
from .speculation import acceptance, breakeven, rounds
from .steps import gaps, ladder, time

RACE = "timeline"
CHARTS: dict[str, Callable[..., go.Figure]] = {
    RACE: timeline,
    "ttft": ttft,
    "decode": decode,
    "memory": memory,
    "ladder": ladder,
    "time": time,
    "gaps": gaps,
    "acceptance": acceptance,
    "rounds": rounds,
    "breakeven": breakeven,
    "quality": quality,
}


def draw(name: str, rows: Sequence[Row], words: Words, contended: bool = False) -> go.Figure:
    """A chart by name, with its definition."""
    return define(CHARTS[name](rows, words, contended), words(f"define.{name}"))


__all__ = ("CHARTS", "RACE", "Row", "acceptance", "decode", "draw", "memory", "slot_colour", "timeline", "ttft")
