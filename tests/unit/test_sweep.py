"""Sweeps: values are checked, one setting changes at a time, a stop keeps what is complete, lines and bands are medians."""

import dataclasses

import pytest

from playground.charts.sweeps import sweep_chart
from playground.checks import ConfigError
from playground.config import Comparison, ModelSpec, Prompt, Settings, SlotSpec
from playground.engine import Stop
from playground.engines.scripted import ScriptedEngine, spoken
from playground.metrics import RunMetrics
from playground.protocol import Outcome, Series
from playground.sweep import METRICS, VARIABLES, Point, Sweep, checked_values, sweep, varied
from playground.ui.i18n import Words

SLOT = SlotSpec("a", "<A>", ModelSpec("m"))
COMPARISON = Comparison("c", "C", (SLOT,), "a")
WORDS = Words("en")


def test_values_come_as_text_or_list_and_are_sorted():
    assert checked_values("new_tokens", "64, 16 256") == ("new_tokens", (16, 64, 256))
    assert checked_values("batch", [2, 1]) == ("batch", (1, 2))


@pytest.mark.parametrize(("variable", "values", "word"), [
    ("new_tokens", "0, 5", "4,096"), ("batch", "65", "64"), ("draft_len", "x", "whole numbers"), ("new_tokens", "", "values"),
    ("new_tokens", "5, 5", "different"), ("new_tokens", "1.5", "whole"), ("new_tokens", " ".join(map(str, range(1, 20))), "12"),
    ("colour", "1", "sweep"), ("prompt_tokens", "-1", "100,000"),
])  # fmt: skip
def test_values_that_cannot_be_are_refused_with_what_is_allowed(variable, values, word):
    with pytest.raises(ConfigError, match=word):
        checked_values(variable, values)


@pytest.mark.parametrize("variable", VARIABLES)
def test_only_what_is_varied_changes(variable):
    prompt = Prompt("hello", Settings(temperature=0.5))
    found = varied(prompt, variable, 8)
    if variable == "prompt_tokens":
        assert found.settings == prompt.settings and found.text != prompt.text
        assert len(varied(prompt, variable, 800).text.split()) == pytest.approx(640, abs=1), "and is the same every time"
        assert varied(prompt, variable, 800) == varied(prompt, variable, 800)
    else:
        assert found == Prompt("hello", dataclasses.replace(prompt.settings, **{variable: 8}))


def test_a_benchmark_at_each_value_and_a_stop_keeps_the_complete_ones():
    asked, stop = [], Stop()

    def script(slot, prompt):
        asked.append(prompt.settings.new_tokens)
        if prompt.settings.new_tokens == 64:
            stop.set()
        return spoken("hi")

    engine, told = ScriptedEngine(script), []
    found = sweep(engine, COMPARISON, Prompt("x"), "new_tokens", (16, 32, 64, 128), 2, stop, lambda value, step: told.append((value, step.done)))
    assert [p.value for p in found.points] == [16, 32] and asked[:8] == [16] * 4 + [32] * 4 and 128 not in asked
    assert told[:4] == [(16, 0), (16, 1), (16, 2), (16, 3)]


def point(value, *rates):
    series = Series(SLOT, tuple(RunMetrics(all_tok_per_s=rate, prompt_tokens=value + 7, kv_bytes=10**6 * value) for rate in rates))
    return Point(value, Outcome(COMPARISON, Prompt("x"), len(rates), "interleaved", (series,), series))


def test_lines_are_medians_with_their_deviation_as_a_band():
    found = Sweep("batch", (point(1, 9.0, 10.0, 12.0), point(2, 20.0, 20.0, 26.0)))
    band, line = sweep_chart(found, "all_tok_per_s", WORDS).data
    assert list(line.x) == [1, 2] and list(line.y) == [10.0, 20.0] and line.name == "&lt;A&gt;"
    assert list(band.y) == [11.0, 20.0, 20.0, 9.0]
    assert list(sweep_chart(found, "kv_bytes", WORDS).data[1].y) == [1.0, 2.0], "in MB"


def test_a_prompt_lies_where_its_real_length_puts_it():
    assert list(sweep_chart(Sweep("prompt_tokens", (point(16, 1.0),)), "all_tok_per_s", WORDS).data[1].x) == [23]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("found", [Sweep("batch", ()), Sweep("batch", (point(1),))])
def test_without_numbers_the_chart_says_so(metric, found):
    figure = sweep_chart(found, metric, WORDS)
    assert not figure.data and figure.layout.annotations and "is better" in figure.layout.title.text
