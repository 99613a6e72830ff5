"""What the figures hold: the right traces, gaps where nothing was measured, direction in the title, definitions on hover."""

import dataclasses
import html

import pytest

from playground.breakeven import Prospect
from playground.charts import CHARTS, Row, acceptance, decode, draw, memory, slot_colour, timeline, ttft
from playground.config import ModelSpec, SlotSpec
from playground.engines.scripted import spoken
from playground.ladder import Rung
from playground.metrics import RunMetrics, measure
from playground.ui.i18n import Words

WORDS = Words("en")
FULL = RunMetrics(
    ttft_s=0.5, decode_tok_per_s=20.0, weights_bytes=200_000_000, drafter_bytes=50_000_000, kv_bytes=3_000_000,
    working_bytes=7_000_000, peak_bytes=900_000_000, memory_counter="process RSS", prompt_tokens=5, new_tokens=9,
    groups=9, finish="length", acceptance_rate=0.5, acceptance_by_position=(0.75, 0.25),
)
EMPTY = RunMetrics()


def bars(figure):
    return [trace for trace in figure.data if trace.type == "bar"]


def dashes(figure):
    return next(trace for trace in figure.data if trace.type == "scatter")


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("rows", [[], [Row("a", EMPTY)], [Row("a", FULL), Row("b", EMPTY)]], ids=["none", "empty", "mixed"])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_titles_say_which_direction_is_better(name, rows, language):
    title = CHARTS[name](rows, Words(language)).layout.title.text
    assert ("is better" in title) if language == "en" else ("좋음" in title)


@pytest.mark.parametrize(("draw", "value"), [(ttft, 0.5), (decode, 20.0)])
def test_a_missing_number_is_a_gap_with_its_reason(draw, value):
    figure = draw([Row("a", FULL), Row("b", EMPTY)], WORDS)
    assert bars(figure)[0].x == (value, None), "never a bar of height 0"
    assert dashes(figure).y == ("b",) and dashes(figure).text == ("–",)
    assert "not run yet" in dashes(figure).hovertext[0]


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (RunMetrics(finish="failed"), "failed"),
        (RunMetrics(prompt_tokens=3, finish="stopped"), "no token"),
        (RunMetrics(prompt_tokens=3, new_tokens=1, groups=1, finish="length"), "no rate"),
    ],
)
def test_reasons_for_a_gap(run, reason):
    assert reason in dashes(decode([Row("a", run)], WORDS)).hovertext[0]


def test_the_race_starts_at_nothing_and_ends_at_all_ids():
    run = measure(spoken("hello", ttft_s=0.5, gap_s=0.1))
    (line,) = timeline([Row("a", EMPTY), Row("b", run)], WORDS).data
    assert line.x[:2] == (0.0, 0.5) and line.x[-1] == pytest.approx(0.9) and line.y == (0, 1, 2, 3, 4, 5)
    assert line.line.color == slot_colour(1) and line.name == "b"


def test_memory_stacks_its_four_parts():
    figure = memory([Row("a", FULL)], WORDS)
    assert figure.layout.barmode == "stack"
    assert [trace.x[0] for trace in bars(figure)] == [200.0, 50.0, 3.0, 7.0]


def test_shared_weights_are_marked_and_counted_once():
    rows = [Row("a", FULL, 2, True), Row("b", FULL, 2, False)]
    figure = memory(rows, WORDS)
    assert tuple(bars(figure)[0].marker.pattern.shape) == ("", "/")
    assert "once" in figure.layout.title.text and "shared by 2" in bars(figure)[0].hovertext[0]


def test_a_memory_part_that_was_not_measured_is_left_out():
    run = RunMetrics(weights_bytes=1_000_000, finish="length", prompt_tokens=1, new_tokens=1, groups=1)
    assert [trace.x[0] for trace in bars(memory([Row("a", run)], WORDS))] == [1.0, None, None, None]


def test_acceptance_shows_the_rate_and_each_position():
    figure = acceptance([Row("plain", EMPTY), Row("spec", FULL)], WORDS)
    assert len(bars(figure)) == 1 and bars(figure)[0].y == (0.5, 0.75, 0.25)
    assert bars(figure)[0].x == ("overall", "1", "2")


def test_acceptance_without_speculation_says_so():
    figure = acceptance([Row("plain", EMPTY)], WORDS)
    assert not bars(figure) and "drafted" in figure.layout.annotations[0].text


def test_race_figures_say_that_they_are_contended():
    assert "contended" in decode([Row("a", FULL)], WORDS, contended=True).layout.title.text


@pytest.mark.parametrize("draw", CHARTS.values(), ids=CHARTS)
def test_names_are_shown_as_typed(draw):
    name = "<img onerror=x> $3 and $4"
    text = draw([Row(name, FULL)], WORDS).to_json()
    assert "<img" not in text.replace("\\u003c", "<")


def test_quality_is_a_dot_a_slot_by_speed_and_agreement_with_the_area_of_its_weights():
    good = dataclasses.replace(FULL, top1=1.0, kl_nats=0.0, perplexity=9.0)
    small = dataclasses.replace(good, top1=0.5, decode_tok_per_s=40.0, weights_bytes=FULL.weights_bytes // 4)
    figure = CHARTS["quality"]([Row("a", good), Row("<b>", small), Row("c", FULL)], WORDS)
    assert [(trace.x[0], trace.y[0]) for trace in figure.data] == [(20.0, 1.0), (40.0, 0.5)], "c was not assessed"
    sizes = [trace.marker.size for trace in figure.data]
    assert sizes[0] == pytest.approx(2 * sizes[1]), "a quarter of the area is half the diameter"
    assert [trace.marker.color for trace in figure.data] == [slot_colour(0), slot_colour(1)]
    assert "&lt;b&gt;" in figure.data[1].text[0] and "<b>" not in figure.data[1].hovertext[0]


def test_without_an_assessment_the_quality_chart_says_how_to_get_one():
    figure = CHARTS["quality"]([Row("a", FULL)], WORDS)
    assert not figure.data and "Measure quality" in figure.layout.annotations[0].text


def test_rounds_are_a_line_a_speculating_slot():
    figure = CHARTS["rounds"]([Row("a", FULL), Row("b", dataclasses.replace(FULL, accepted_by_round=(2, 0, 4)))], WORDS)
    (line,) = figure.data
    assert (tuple(line.x), tuple(line.y), line.line.color) == ((1, 2, 3), (2, 0, 4), slot_colour(1))
    assert "drafted" in CHARTS["rounds"]([Row("a", FULL)], WORDS).layout.annotations[0].text


def test_the_ladder_is_a_waterfall_in_order_with_the_total_against_the_promise():
    slots = [SlotSpec(name, name, ModelSpec("m")) for name in ("base", "<b>", "slow")]
    rungs = [
        Rung(slots[0], None, "", "", 4.0, 4.0), Rung(slots[1], "cache", "none", "dynamic", 4.0, 10.0),
        Rung(slots[2], "attention", "sdpa", "eager", 10.0, 8.0),
    ]  # fmt: skip
    rows = [Row("slow", FULL, rung=(2, rungs[2])), Row("base", FULL, rung=(0, rungs[0])), Row("<b>", FULL, rung=(1, rungs[1]))]
    figure = CHARTS["ladder"](rows, WORDS)
    assert [(b.base[0], b.y[0]) for b in bars(figure)] == [(0, 4.0), (4.0, 6.0), (8.0, 2.0)]
    assert [b.text[0] for b in bars(figure)] == ["4.0", "2.50×", "0.80×"]
    assert [b.marker.pattern.shape for b in bars(figure)] == ["", "", "x"], "a fall is marked, not by colour alone"
    assert [b.marker.color for b in bars(figure)] == [slot_colour(1), slot_colour(2), slot_colour(0)]
    assert "2.00×" in figure.layout.title.text and figure.layout.shapes[0].y0 == 8.0, "twice the start"


def test_time_is_stacked_by_part_and_adds_up():
    run = dataclasses.replace(FULL, total_s=10.0, prefill_s=1.0, forward_s=7.0, text_s=0.5)
    found = {b.name: b.x for b in bars(CHARTS["time"]([Row("a", run), Row("b", EMPTY)], WORDS))}
    assert {name: x[0] for name, x in found.items()} == {"prefill": 1.0, "decode": 7.0, "text": 0.5, "host": 1.5}
    assert all(x[1] is None for x in found.values())


def test_gaps_are_a_box_a_slot_in_milliseconds():
    figure = CHARTS["gaps"]([Row("a", EMPTY), Row("b", dataclasses.replace(FULL, itl_s=(0.01, 0.02, 0.5)))], WORDS)
    (box,) = [t for t in figure.data if t.type == "box"]
    assert list(box.x) == [10.0, 20.0, 500.0] and box.marker.color == slot_colour(1)


def test_break_even_shows_the_curve_and_where_the_run_stands_on_it():
    curve = Prospect(k=4, draft_s=0.01, verify_s=0.05, step_s=0.04, chance=0.5)
    line, dot = CHARTS["breakeven"]([Row("a", FULL, prospect=curve)], WORDS).data
    assert line.y[0] == pytest.approx(curve.speedup(4, 0)) and line.y[-1] == pytest.approx(curve.speedup(4, 1))
    assert (dot.x[0], dot.y[0]) == (0.5, pytest.approx(curve.speedup(4, 0.5))) and "50%" in dot.hovertext[0]
    never = Prospect(k=1, draft_s=1.0, verify_s=0.05, step_s=0.04, chance=0.5)
    assert "never" in CHARTS["breakeven"]([Row("a", FULL, prospect=never)], WORDS).data[1].hovertext[0]


def test_of_several_runs_the_spread_and_the_noise_are_drawn():
    rows = [Row("a", FULL, spread={"decode_tok_per_s": 1.5}, noise={"decode_tok_per_s": 0.1}), Row("b", FULL, spread={"decode_tok_per_s": 0.5})]
    figure = decode(rows, WORDS)
    assert list(bars(figure)[0].error_x.array) == [1.5, 0.5] and bars(figure)[0].error_x.visible
    (band,) = figure.layout.shapes
    assert (band.x0, band.x1) == (pytest.approx(18.0), pytest.approx(22.0)) and "10.0%" in figure.layout.title.text
    assert not bars(decode([Row("a", FULL)], WORDS))[0].error_x.visible


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_chart_says_on_hover_what_it_shows(name, language):
    words = Words(language)
    figure = draw(name, [everything("a"), everything("b")], words)
    definition = words(f"define.{name}")
    marks = [a for a in figure.layout.annotations if a.name == "definition"]
    assert [plain(mark.hovertext) for mark in marks] == [definition]
    hovering = [t for t in figure.data if t.hoverinfo != "skip" and t.type != "box"]
    assert hovering or name == "gaps", "the rows have something for every chart"
    for trace in hovering:
        assert plain(trace.hovertemplate).count(definition) == 1


def plain(text):
    return html.unescape(text.replace("<br>", " "))


def everything(name):
    """A row with something for each chart."""
    run = dataclasses.replace(
        FULL, total_s=10.0, prefill_s=1.0, forward_s=7.0, text_s=0.5, top1=0.9, kl_nats=0.1, perplexity=10.0, itl_s=(0.05, 0.06), timeline=((0.5, 1), (1.0, 9)), accepted_by_round=(1, 2),
    )
    slot = SlotSpec(name, name, ModelSpec("m"))
    return Row(name, run, rung=(0, Rung(slot, None, "", "", 10.0, 10.0)), prospect=Prospect(k=4, draft_s=0.01, verify_s=0.05, step_s=0.04, chance=0.5))
