"""What a column says beside its numbers, escaped, and only where it is known."""

from playground.board import Board
from playground.config import Comparison, DecodeSpec, ModelSpec, SlotSpec
from playground.divergence import Parting
from playground.engines.scripted import spoken
from playground.events import Done, Failed, Quality, SlotEvent
from playground.ui.i18n import Words
from playground.ui.verdict_html import differences_html, parting_row, why_slower_html

WORDS = Words("en")
REFERENCE = SlotSpec("a", "A <b>", ModelSpec("m"))
SLOW = SlotSpec("b", "B", ModelSpec("m"), DecodeSpec(cache="none", attention="eager"))


def board(ours, theirs, mode="fair"):
    found = Board(Comparison("c", "C", (REFERENCE, SLOW), "a"), mode)
    found.absorb([SlotEvent("a", e) for e in theirs] + [SlotEvent("b", e) for e in ours])
    return found


def column(found):
    return found.columns["b"]


def weighed(margin, resolution=0.1):
    part = Parting(1, 101, 120, "e", "x", (-1.0, -1.0 - margin), (-3.0, -1.0), resolution)
    return Quality(0.1, 0.9, 5, 10.0, (), part)


def test_a_slower_slot_is_told_why_in_a_fair_run_only():
    slow, quick = spoken("hello", gap_s=0.2), spoken("hello", gap_s=0.1)
    said = why_slower_html(board(slow, quick), column(board(slow, quick)), WORDS)
    assert "without a KV cache" in said and "eager" in said
    for found in (board(quick, slow), board(slow, quick, "race"), board(slow[:-1], quick), board(spoken("hel", gap_s=0.2), quick)):
        assert why_slower_html(found, column(found), WORDS) == ""


def test_the_first_difference_is_named_by_its_place():
    found = board(spoken("hexlo"), spoken("hello"))
    label, value, why = parting_row(found, column(found), WORDS)
    assert value == "id 3 of 5" and "Measure quality" in why
    assert parting_row(found, found.columns["a"], WORDS) is None, "the reference parts from nobody"
    same = board(spoken("hello"), spoken("hello"))
    assert parting_row(same, column(same), WORDS)[1] == "none" and differences_html(same, column(same), WORDS) == ""


def test_a_tie_is_told_from_a_change_once_it_is_weighed():
    for margin, word in ((0.05, "rounding tie"), (0.5, "real change")):
        found = board([*spoken("hxllo"), weighed(margin)], spoken("hello"))
        assert word in parting_row(found, column(found), WORDS)[2]


def test_an_answer_that_ended_early_and_a_failed_one():
    ended = board(spoken("hel"), spoken("hello"))
    assert "ends" in parting_row(ended, column(ended), WORDS)[2]
    failed = board([*spoken("hxllo")[:-1], Failed("no")], spoken("hello"))
    assert parting_row(failed, column(failed), WORDS) is None and differences_html(failed, column(failed), WORDS) == ""
    silent = board([Done("stopped")], spoken("hello"))
    assert differences_html(silent, column(silent), WORDS) == "", "a slot that said nothing has no text to compare"
    unfinished = board(spoken("hxllo"), spoken("hello")[:-1])
    assert parting_row(unfinished, column(unfinished), WORDS) is None


def test_both_texts_are_shown_marked_and_escaped():
    found = board(spoken("so <i>new</i> it is"), spoken("so <b>old</b> it is"))
    said = differences_html(found, column(found), WORDS)
    assert "<del> &lt;b&gt;old&lt;/b&gt;</del>" in said and "<ins> &lt;i&gt;new&lt;/i&gt;</ins>" in said
    assert "A &lt;b&gt;" in said and "so" in said
