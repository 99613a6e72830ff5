"""The summary names a winner only where there is one."""

import re

from playground.board import Board
from playground.config import Comparison, DecodeSpec, ModelSpec, Prompt, SlotSpec
from playground.engines.scripted import spoken
from playground.events import Failed, SlotEvent
from playground.metrics import RunMetrics
from playground.protocol import TWIN, Outcome, Series
from playground.quantization import Quantization
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
    assert "20.0 tok/s · 2.00× A · 1.1 MB<" in html, "by how much, and at what memory"
    assert "&lt;B&gt;" in html and "<B>" not in html


def test_nothing_is_said_of_races_of_unfinished_runs_and_of_failures():
    assert summary_html(board((0.1, 0.05), mode="race"), Words("en")) == ""
    half = Board(Comparison("c", "C", SLOTS, "a"))
    half.absorb([SlotEvent("a", e) for e in spoken("hello")])
    assert summary_html(half, Words("en")) == ""
    assert summary_html(board((0.1, 0.05), last=Failed("no", "")), Words("en")) == ""


def test_the_nearest_is_asked_only_among_other_weights():
    found = board((0.1, 0.05))
    assert "nearest" not in winners(summary_html(found, Words("en")))


def measured(rate, **others):
    return RunMetrics(decode_tok_per_s=rate, finish="length", new_tokens=5, prompt_tokens=3, warmup_s=0.1, weights_bytes=10**6, **others)


def test_of_a_benchmark_the_fastest_is_given_no_gain_that_noise_explains_and_says_how_near_it_stays():
    slots = (SLOTS[0], SlotSpec("b", "B", ModelSpec("m", quantization=Quantization("bnb-nf4"))))
    found = Board(Comparison("c", "C", slots, "a"), "benchmark")
    found.absorb(SlotEvent(slot.id, e) for slot in slots for e in spoken("hello"))
    series = (Series(slots[0], (measured(10.0),)), Series(slots[1], (measured(10.5, top1=0.9, kl_nats=0.1),)))
    twin = Series(SlotSpec(TWIN, TWIN, ModelSpec("m")), (measured(9.0),))
    found.conclude(Outcome(found.comparison, Prompt("x"), 1, "interleaved", series, twin))
    html = summary_html(found, Words("en"))
    assert winners(html)["fastest"] == "b" and "no measurable difference: 1.05×" in html and "1.05× A" not in html
    assert "Top-1 agreement 90.0%" in html and "KL 0.1" not in html, "nearest has one candidate only"
