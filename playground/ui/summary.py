"""The strip under the columns: who decodes fastest, answers soonest, needs least, and is nearest to the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape

from ..board import Board, Column
from ..charts import slot_colour
from .columns import megabytes, seconds
from .i18n import Words


def summary_html(board: Board, words: Words) -> str:
    """One card a question, once every column has answered; empty before, and in a race, where numbers are contended."""
    if not board.answered or board.mode == "race" or len(board.columns) < 2:
        return ""
    cards = [
        _card(board, words, "fastest", lambda c: c.run.decode_tok_per_s, max, lambda v: f"{v:.1f} tok/s"),
        _card(board, words, "soonest", lambda c: c.run.ttft_s, min, seconds),
        _card(board, words, "leanest", lambda c: c.run.held_bytes, min, megabytes),
        _card(board, words, "nearest", lambda c: _distance(board, c), min, lambda v: f"KL {v:.3g}"),
    ]
    return f'<div class="summary" role="status">{"".join(cards)}</div>' if any(cards) else ""


def winner(values: Mapping[str, float | None], best: Callable[..., float]) -> str | None:
    """The key of the best value; None where fewer than two are known, or all are the same."""
    known = {key: value for key, value in values.items() if value is not None}
    if len(known) < 2 or len(set(known.values())) == 1:
        return None
    return best(known, key=known.__getitem__)


def _card(
    board: Board, words: Words, question: str, value: Callable[[Column], float | None],
    best: Callable[..., float], shown: Callable[[float], str],
) -> str:
    """The slot with the best value among those that finished; empty where nobody wins."""
    values = {slot: value(column) for slot, column in board.columns.items() if column.failure is None}
    won = winner(values, best)
    if won is None:
        return ""
    place = [slot.id for slot in board.comparison.slots].index(won)
    name = board.columns[won].slot.name
    return (
        f'<div style="--slot: {slot_colour(place)}" data-question="{question}" data-slot="{escape(won)}">'
        f"<span>{escape(words(f'summary.{question}'))}</span><b>{escape(name)}</b>"
        f"<span>{escape(shown(values[won]))}{escape(_beside(board, words, question, won))}</span></div>"
    )


def _beside(board: Board, words: Words, question: str, won: str) -> str:
    """Of the fastest: what may be said of it against the reference, what it needs, and how near it stays."""
    if question != "fastest":
        return ""
    column, verdict = board.columns[won], board.speedups().get(won)
    said = []
    if verdict is not None and verdict.value is not None:
        said.append(words("summary.over", f"{verdict.value:.2f}", board.columns[board.comparison.reference].slot.name))
    elif verdict is not None and verdict.reason == "no_difference":
        said.append(words("why.no_difference", *verdict.details))
    if (needed := column.run.held_bytes) is not None:
        said.append(megabytes(needed))
    if _distance(board, column) is not None:
        said.append(f"{words('top1')} {column.run.top1:.1%}")
    return "".join(f" · {part}" for part in said)


def _distance(board: Board, column: Column) -> float | None:
    """KL divergence of a slot with other weights than the reference's."""
    reference = board.columns[board.comparison.reference].slot
    return column.run.kl_nats if column.slot.model != reference.model else None
