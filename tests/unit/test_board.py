"""A comparison as it unfolds, for the page and for API clients."""

import dataclasses
import json
from html.parser import HTMLParser

import pytest

from playground.board import Board
from playground.config import Comparison, DecodeSpec, ModelSpec, Prompt, SlotSpec
from playground.engines.scripted import spoken
from playground.events import Done, Failed, Loading, Queued, Round, SlotEvent, Started, Tokens
from playground.metrics import RunMetrics
from playground.protocol import Outcome, Series
from playground.quantization import Quantization
from playground.ui.columns import column_html, megabytes, seconds
from playground.ui.i18n import Words

MODEL = ModelSpec("m")
SLOTS = (
    SlotSpec("a", "A", MODEL, DecodeSpec("eager", "none")),
    SlotSpec("b", "B", MODEL, DecodeSpec("eager")),
    SlotSpec("q", "Q", ModelSpec("m", quantization=Quantization("bnb-nf4")), DecodeSpec("eager")),
    SlotSpec("p", "P", MODEL, DecodeSpec("eager", speculation="prompt-lookup")),
)
HOSTILE = "<img src=x onerror=alert(1)> ${1+1} {{value}} $3 and $4 <script>x</script> & </div>"


def board(mode="fair"):
    return Board(Comparison("c", "C", SLOTS, "a"), mode)


def play(target, slot, events):
    return target.absorb(SlotEvent(slot, event) for event in events)


class Texts(HTMLParser):
    """Collects tags, and the text inside class="text"."""

    def __init__(self):
        super().__init__()
        self.tags, self.inside, self.text = [], False, ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = self.inside or ("class", "text") in attrs

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        self.text += data if self.inside else ""


def show(target, slot, language="en"):
    return column_html(target, target.columns[slot], Words(language), target.speedups().get(slot))


def test_model_text_is_shown_as_typed():
    target = board()
    play(target, "a", [*spoken("")[:2], Tokens(2, (1,), HOSTILE, 1), Failed(HOSTILE, HOSTILE)])
    parser = Texts()
    parser.feed(show(target, "a"))
    assert parser.text == HOSTILE
    assert "img" not in parser.tags and "script" not in parser.tags


def test_columns_keep_what_was_streamed_when_they_fail():
    target = board()
    play(target, "a", [*spoken("kept")[:-2], Failed("the reason", "the hint")])
    html = show(target, "a")
    assert "kept" in html and "the reason" in html and "the hint" in html and 'data-phase="failed"' in html


def test_a_dash_is_never_a_zero():
    html = show(board(), "b")
    assert "–" in html and ">0" not in html and "None" not in html and "nan" not in html


def test_status_names_the_stage_and_the_place_in_line():
    target = board()
    play(target, "a", [Queued(2)])
    assert "2 comparison(s) ahead" in show(target, "a")
    play(target, "a", [Queued(0), Loading("fetching it", 0.25)])
    assert "fetching it" in show(target, "a") and 'value="0.250"' in show(target, "a")


def test_each_slot_says_what_sets_it_apart_from_the_nearest_earlier_one():
    target = board()
    assert "vs A: cache none → dynamic" in show(target, "b")
    assert "vs B: speculation none → prompt-lookup" in show(target, "p"), "nearest, not the one just before"


def test_weights_are_counted_by_the_first_slot_that_uses_them():
    target = board()
    assert [target.counts_weights(slot) for slot in SLOTS] == [True, False, True, False]
    assert [target.sharers(slot) for slot in SLOTS] == [3, 3, 1, 3]


def test_a_slow_down_is_marked():
    target = board()
    play(target, "a", spoken("hello", gap_s=0.1))
    play(target, "b", spoken("hello", gap_s=0.2))
    assert "0.50×" in show(target, "b") and "slower" in show(target, "b")


def test_race_columns_carry_the_badge_and_no_ratio():
    target = board("race")
    play(target, "a", spoken("hello"))
    play(target, "b", spoken("hello"))
    assert "contended" in show(target, "b") and "×" not in show(target, "b")


def test_a_benchmark_has_answered_with_its_outcome_not_with_the_run_that_ended_last():
    target = board("benchmark")
    for name in target.columns:
        play(target, name, spoken("hello"))
    assert not target.answered
    series = tuple(Series(slot, (RunMetrics(decode_tok_per_s=9.0),)) for slot in target.comparison.slots)
    target.conclude(Outcome(target.comparison, Prompt("x"), 1, "interleaved", series, series[0]))
    assert target.answered and target.columns["a"].run.decode_tok_per_s == 9.0


def test_api_state_is_plain_json_with_every_slot():
    target = board()
    play(target, "a", spoken("hello"))
    play(target, "b", [Queued(1)])
    play(target, "q", [Failed("no", "do this")])
    state = json.loads(json.dumps(target.as_json(), allow_nan=False))
    assert state["slots"]["a"]["text"] == "hello" and state["slots"]["a"]["metrics"]["new_tokens"] == 5
    assert len(state["slots"]["a"]["metrics"]["itl_s"]) == 4, "raw gaps, once the run has ended"
    assert state["slots"]["b"] | {"phase": "queued", "queue_position": 1} == state["slots"]["b"]
    assert state["slots"]["q"]["error"] == "no" and state["slots"]["q"]["hint"] == "do this"
    assert state["slots"]["b"]["speedup"] is None and state["slots"]["b"]["speedup_reason"]


def test_korean_columns_are_korean():
    assert "속도비" in show(board(), "b", "ko")


def test_units():
    assert [seconds(v) for v in (None, 0.0421, 1.5)] == ["–", "42 ms", "1.50 s"]
    assert [megabytes(v) for v in (None, 0, 3_200_000, 269_030_272, 1_080_000_000)] == [
        "–", "0 MB", "3.2 MB", "269 MB", "1.08 GB",
    ]


def speculating_board():
    plain = SlotSpec("plain", "Plain", ModelSpec("m"), DecodeSpec())
    slots = (
        SlotSpec("eager", "Eager", ModelSpec("m"), DecodeSpec("eager")),
        plain,
        SlotSpec("lookup", "Lookup", ModelSpec("m"), DecodeSpec(speculation="prompt-lookup")),
        SlotSpec("exit", "Exit", ModelSpec("m"), DecodeSpec("eager", speculation="early-exit", exit_layer=2)),
        SlotSpec("alone", "Alone", ModelSpec("other"), DecodeSpec(speculation="prompt-lookup")),
    )
    return Board(Comparison("c", "C", slots, "eager")), {slot.id: slot for slot in slots}


def test_speculation_is_held_against_the_same_slot_without_it():
    board, slots = speculating_board()
    assert board.plain_slot(slots["lookup"]).id == "plain"
    assert board.plain_slot(slots["exit"]).id == "eager"
    assert board.plain_slot(slots["alone"]) is None and board.plain_slot(slots["plain"]) is None
    assert board.gain(slots["exit"]) is None, "that is the speed-up already"
    for name, gap in (("eager", 1.0), ("plain", 0.5), ("lookup", 0.25)):
        for event in spoken("abcde", gap_s=gap):
            board.columns[name].events.append(event)
    assert board.gain(slots["lookup"]).value == pytest.approx(2.0)


def test_accepted_drafts_are_told_apart_in_the_text():
    board, _ = speculating_board()
    column = board.columns["lookup"]
    column.events += [
        Started(0, 1), Round(2, 2), Tokens(1, (1, 2, 3), "abC", 3, 2), Round(0, 0), Tokens(2, (4,), "D", 1),
        Round(2, 1), Tokens(3, (5, 6), "eF", 2, 1), Done("length", "G"),
    ]
    assert column.pieces == [("ab", 0), ("CD", None), ("e", 2), ("FG", None)]
    assert "".join(text for text, _ in column.pieces) == column.text


def test_a_slots_numbers_do_not_depend_on_its_place_in_the_order():
    """Engines' clocks run on between slots; what is measured is each slot's own."""
    def numbers(order):
        later = 0
        found = Board(Comparison("c", "C", order, order[0].id))
        for slot in order:
            later += 10**12
            shifted = [dataclasses.replace(e, t_ns=e.t_ns + later) if hasattr(e, "t_ns") else e for e in spoken(f"{slot.id} says", gap_s=0.01)]
            play(found, slot.id, shifted)
        return {slot: column.run for slot, column in found.columns.items()}

    assert numbers(SLOTS[:2]) == numbers(SLOTS[1::-1])
