"""A board -> what its columns and charts show. Used when the page is built and whenever it changes."""

from __future__ import annotations

from html import escape
from typing import Any

from ..board import Board
from ..charts import CHARTS, RACE, Row, draw
from ..config import Comparison
from ..protocol import MEDIANS
from .columns import column_html
from .i18n import Words


def draw_columns(board: Board, words: Words, only: set[str] | None = None, markdown: bool = False) -> dict[str, str]:
    """HTML of each column, or of some, by slot id, in the comparison's order."""
    verdicts = board.speedups()
    return {
        slot: column_html(board, column, words, verdicts.get(slot), markdown)
        for slot, column in board.columns.items()
        if only is None or slot in only
    }


def draw_charts(board: Board, words: Words) -> dict[str, Any]:
    """Each chart by name. While nothing has ended only the race says so, and the rest are None.

    That one has the browser fetch Plotly when the page opens, not when the first numbers are there.
    """
    if not any(board.settled().values()):
        return dict.fromkeys(CHARTS) | {RACE: draw(RACE, [], words)}
    climbed = board.ladder()
    rungs = {rung.slot.id: (place, rung) for place, rung in enumerate(climbed.rungs)} if climbed else {}
    spread = {s.slot.id: s.spread() for s in board.outcome.series} if board.outcome else {}
    noise = {name: board.outcome.noise_floor(name) or 0.0 for name in MEDIANS} if board.outcome else {}
    rows = [
        Row(
            slot.name, board.columns[slot.id].run, board.sharers(slot), board.counts_weights(slot),
            rungs.get(slot.id), board.prospect(slot), spread.get(slot.id, {}), noise if slot.id == board.comparison.reference else {},
        )
        for slot in board.comparison.slots
    ]
    return {name: draw(name, rows, words, board.mode == "race") for name in CHARTS}


def draw_heading(words: Words) -> str:
    """The page's title and tagline."""
    return f"<h1>{escape(words('title'))}</h1><p>{escape(words('tagline'))}</p>"


def draw_description(comparison: Comparison, words: Words) -> str:
    """What a comparison is about."""
    return f"<p>{escape(words.pick(comparison.description, comparison.description_ko))}</p>"


def draw_error(error: Exception, words: Words) -> str:
    """What a check or an engine refused, as a notice in the page's language."""
    return draw_notice(words.said(str(error)))


def draw_notice(problem: str) -> str:
    """A problem that concerns the whole page."""
    return f'<div class="notice" role="alert">{escape(problem)}</div>'
