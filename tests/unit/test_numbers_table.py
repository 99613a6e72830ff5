"""The table says what the charts show: every measured number once, a dash for the rest, names as typed."""

import re

from playground.board import Board
from playground.charts import slot_colour
from playground.config import Comparison, DecodeSpec, ModelSpec, SlotSpec
from playground.engines.scripted import spoken
from playground.events import Failed, SlotEvent
from playground.ui.i18n import Words
from playground.ui.numbers_table import numbers_table

SLOTS = (SlotSpec("a", "A <b>", ModelSpec("m")), SlotSpec("b", "B", ModelSpec("m"), DecodeSpec(attention="eager")))


def board(*runs):
    found = Board(Comparison("c", "C", SLOTS, "a"))
    found.absorb(SlotEvent(slot.id, e) for slot, events in zip(SLOTS, runs) for e in events)
    return found


def test_a_row_a_number_with_a_dash_for_what_failed():
    html = numbers_table(board(spoken("hello", gap_s=0.1), [Failed("no")]), Words("en"))
    rows = dict(re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', html))
    assert re.findall("<td>(.*?)</td>", rows["Decode, tokens/s"]) == ["10.00", "–"]
    assert re.findall("<td>(.*?)</td>", rows["TTFT, s"]) == ["0.1000", "–"]
    assert "Acceptance" not in rows and "A &lt;b&gt;" in html and "A <b>" not in html


def test_before_any_run_there_is_a_sentence():
    assert "<table" not in numbers_table(board(), Words("ko"))


def test_each_slot_has_the_colour_of_its_column_and_charts():
    html = numbers_table(board(spoken("hello"), spoken("hello")), Words("en"))
    colours = re.findall(r'scope="col" class="of-slot" style="--slot: (#\w+)">', html)
    assert colours == [slot_colour(0), slot_colour(1)]
