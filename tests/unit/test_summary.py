"""The summary names a winner only where there is one."""

import re

from playground.board import Board
from playground.config import Comparison, DecodeSpec, ModelSpec, SlotSpec
from playground.engines.scripted import spoken
from playground.events import Failed, SlotEvent
from playground.ui.i18n import Words
from playground.ui.summary import summary_html

SLOTS = (SlotSpec("a", "A", ModelSpec("m")), SlotSpec("b", "<B>", ModelSpec("m"), DecodeSpec(attention="eager")))


def board(gaps, mode="fair", last=None):
    found = Board(Comparison("c", "C", SLOTS, "a"), mode)
    for slot, gap in zip(SLOTS, gaps):
        events = spoken("hello", ttft_s=gap, gap_s=gap)
        found.absorb(SlotEvent(slot.id, e) for e in (events if slot.id == "a" or last is None else [last]))
    return found


def winners(html):
    return dict(re.findall(r'data-question="(\w+)" data-slot="(\w+)"', html))


def test_the_fastest_and_soonest_are_named_with_the_speedup():
    html = summary_html(board((0.1, 0.05)), Words("en"))
    assert winners(html) == {"fastest": "b", "soonest": "b"}, "both need the same memory: nobody needs least"
    assert "2.00× A" in html and "&lt;B&gt;" in html and "<B>" not in html


def test_nothing_is_said_of_races_of_unfinished_runs_and_of_failures():
    assert summary_html(board((0.1, 0.05), mode="race"), Words("en")) == ""
    half = Board(Comparison("c", "C", SLOTS, "a"))
    half.absorb([SlotEvent("a", e) for e in spoken("hello")])
    assert summary_html(half, Words("en")) == ""
    assert summary_html(board((0.1, 0.05), last=Failed("no", "")), Words("en")) == ""


def test_the_nearest_is_asked_only_among_other_weights():
    found = board((0.1, 0.05))
    assert "nearest" not in winners(summary_html(found, Words("en")))
