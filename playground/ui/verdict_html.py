"""What a column says beside its numbers: why it is slower, where its answer parts from the reference's, and both texts compared."""

from __future__ import annotations

from html import escape

from ..board import Board, Column
from ..divergence import Parting, word_differences
from .i18n import Words

_MARKS = {"same": "{}", "only_slot": "<ins>{}</ins>", "only_reference": "<del>{}</del>"}


def why_slower_html(board: Board, column: Column, words: Words) -> str:
    """A sentence from the slot's own figures; empty for a slot that did not lose, or when nothing is known."""
    reasons = [words(f"slower.{key}", *arguments) for key, arguments in board.why_slower(column.slot)]
    if not reasons:
        return ""
    return f'<p class="note slower-why"><b>{escape(words("slower"))}</b> {escape("; ".join(reasons))}.</p>'


def parting_row(board: Board, column: Column, words: Words) -> tuple[str, str, str] | None:
    """Label, value and explanation of the first differing id; None where there is nothing to compare."""
    reference = board.columns[board.comparison.reference]
    if not (board.comparable(column.slot) and column.ids and reference.ids):
        return None
    found = board.parting(column.slot)
    if found is None:
        return words("parting"), words("parting.none"), words("parting.none_why")
    return words("parting"), words("parting.at", found.index + 1, len(reference.ids)), _why(found, words)


def _why(found: Parting, words: Words) -> str:
    if None in (found.reference_id, found.slot_id):
        return words("parting.ended")
    if found.is_tie is None:
        return words("parting.unweighed")
    facts = [found.reference_text, found.slot_text, f"{found.margin:.3f}", f"{found.resolution:.3f}"]
    if found.is_tie:
        return words("parting.tie", *facts)
    return words("parting.real", *facts, f"{found.slot_logprobs[0] - found.slot_logprobs[1]:+.3f}")


def differences_html(board: Board, column: Column, words: Words) -> str:
    """Both answers in one, to be unfolded; empty where they are the same or one is missing.

    Once all have answered: comparing long texts while the next slot runs would be paid for in its numbers.
    """
    reference = board.columns[board.comparison.reference]
    if not (board.answered and column.ids and reference.ids) or board.parting(column.slot) is None or column.text == reference.text:
        return ""
    runs = "".join(_MARKS[kind].format(escape(text)) for kind, text in word_differences(reference.text, column.text))
    title = escape(words("parting.text", reference.slot.name))
    return (
        f'<details class="differences"><summary title="{escape(words("parting.text_why"))}">{title}</summary>'
        f'<div class="text" tabindex="0">{runs}</div></details>'
    )
