"""The benchmark protocol on a scripted engine: order, noise, failures, stops."""

import pytest

from playground.config import Comparison, DecodeSpec, ModelSpec, Prompt, Settings, SlotSpec
from playground.engine import Resident, Stop
from playground.engines.scripted import ScriptedEngine, spoken
from playground.events import Failed
from playground.metrics import RunMetrics
from playground.protocol import TWIN, Outcome, Series, benchmark


def slot(name, model="m"):
    return SlotSpec(name, name.upper(), ModelSpec(model), DecodeSpec())


COMPARISON = Comparison("c", "C", (slot("a"), slot("b")), "a")


class Loaded(ScriptedEngine):
    """Says that these models are loaded."""

    def __init__(self, script, *models):
        super().__init__(script)
        self._models = models

    def resident(self):
        return tuple(Resident(ModelSpec(model), 1, 1, 1) for model in self._models)


def bench(engine, comparison=COMPARISON, repeats=3, stop=None, settings=Settings()):
    steps = []
    return benchmark(engine, comparison, Prompt("hello", settings), repeats, stop or Stop(), steps.append), steps


def test_slots_take_turns_and_the_reference_comes_twice():
    engine = Loaded(lambda s, p: spoken("hello"), "m")
    found, steps = bench(engine)
    assert engine.ran == ["a", "b", TWIN] * 3 and found.order == "interleaved"
    assert [len(s.runs) for s in found.series] == [3, 3] and len(found.twin.runs) == 3
    assert [step.done for step in steps] == list(range(9)) and steps[0].left_s is None and steps[-1].left_s is not None


def test_the_time_left_is_that_of_the_runs_so_far_for_each_to_come(monkeypatch):
    seconds = iter([0.0, 10.0, 20.0, 30.0, 40.0, 50.0])  # the beginning, then before every run but the first
    monkeypatch.setattr("playground.protocol.time.monotonic", lambda: next(seconds))
    _, steps = bench(Loaded(lambda s, p: spoken("hello"), "m"), repeats=2)
    assert [step.left_s for step in steps] == [None, 50.0, 40.0, 30.0, 20.0, 10.0]


def test_what_does_not_stay_loaded_together_is_run_slot_after_slot():
    comparison = Comparison("c", "C", (slot("a"), slot("b", "other")), "a")
    engine = Loaded(lambda s, p: spoken("hello"), "other")
    found, _ = bench(engine, comparison)
    assert found.order == "blocked" and engine.ran == ["a", "b", TWIN, "a", "a", "b", "b", TWIN, TWIN]


def test_every_slot_is_asked_for_the_same_length_greedily():
    asked = []

    def script(s, prompt):
        asked.append(prompt.settings)
        return spoken("hello")

    bench(Loaded(script, "m"), settings=Settings(temperature=1.0, stop_strings="x"))
    assert all(s.temperature == 0 and s.ignore_eos and not s.stops for s in asked)


def test_a_slot_that_fails_is_told_and_not_asked_again():
    def script(s, prompt):
        return [Failed("broken", "mend it")] if s.id == "b" else spoken("hello")

    engine = Loaded(script, "m")
    found, _ = bench(engine)
    assert engine.ran.count("b") == 1 and found.series[1].failure == "broken mend it" and found.series[1].runs == ()
    assert found.ratio(found.series[1], "decode_tok_per_s") is None


def test_a_stop_keeps_what_is_complete():
    stop = Stop()

    def script(s, prompt):
        if len(engine.ran) == 4:
            stop.set()
        return spoken("hello")

    engine = Loaded(script, "m")
    found, _ = bench(engine, stop=stop)
    assert found.stopped and [len(s.runs) for s in found.series] == [1, 1] and len(engine.ran) == 4


def outcome(reference, twin, other):
    def series(name, values):
        return Series(slot(name), tuple(RunMetrics(decode_tok_per_s=v) for v in values))

    return Outcome(COMPARISON, Prompt("x"), len(reference), "interleaved", (series("a", reference), series("b", other)), series(TWIN, twin))


def test_a_difference_counts_only_beyond_that_of_the_reference_to_itself():
    found = outcome([10, 10, 10], [9, 10, 11], [10.5, 10.9, 11])
    assert found.noise_floor("decode_tok_per_s") == pytest.approx(1 / 9)
    assert found.ratio(found.series[1], "decode_tok_per_s") == pytest.approx(1.09)
    assert found.differs(found.series[1], "decode_tok_per_s") is False
    assert outcome([10, 10, 10], [10, 10, 10.1], [10.5, 10.9, 11]).differs(found.series[1], "decode_tok_per_s") is True
    assert found.differs(found.series[1], "ttft_s") is None


def test_median_deviation_variation_and_percentiles():
    series = Series(slot("a"), tuple(RunMetrics(ttft_s=v, itl_s=(0.01,) * 99 + (1.0,)) for v in (1.0, 2.0, 9.0)))
    assert series.median("ttft_s") == 2.0 and series.mad("ttft_s") == 1.0
    assert series.variation("ttft_s") == pytest.approx(4.358898943540674 / 4)
    gaps = Series(slot("a"), (RunMetrics(itl_s=tuple(range(1, 51))), RunMetrics(itl_s=tuple(range(51, 102))))).gaps()
    assert gaps == {"p50": pytest.approx(51.0), "p90": pytest.approx(91.0), "p99": pytest.approx(100.0)}, "of 1 to 101, all runs together"
    assert Series(slot("a")).median("ttft_s") is None and Series(slot("a")).gaps() == {}


def full(rate, **others):
    return RunMetrics(decode_tok_per_s=rate, finish="length", new_tokens=5, prompt_tokens=3, warmup_s=0.1, **others)


def told(ours, reference=(10.0, 10.0), twin=(10.0, 10.5)):
    def series(name, rates):
        return Series(slot(name), tuple(r if isinstance(r, RunMetrics) else full(r) for r in rates))

    found = Outcome(COMPARISON, Prompt("x"), 2, "interleaved", (series("a", reference), series("b", ours)), series(TWIN, twin))
    return found.verdict(found.series[1])


def test_a_verdict_is_a_ratio_only_beyond_the_noise_and_only_of_fair_pairs():
    assert told([20.0, 20.0]).value == pytest.approx(2.0)
    noise = told([10.2, 10.2])
    assert noise.value is None and noise.reason == "no_difference" and noise.details == ("1.02", "4.8%")
    assert told([full(20.0), full(20.0, recompiled_s=1.0)]).reason == "recompiled"
    assert told([full(20.0), full(20.0, other_cores=2.0, cores=2)]).reason == "busy"
    assert told([]).reason == "unfinished"


def test_the_typical_run_is_the_median_one_with_medians_of_its_own():
    series = Series(slot("a"), tuple(full(rate, ttft_s=ttft, groups=i) for i, (rate, ttft) in enumerate([(9.0, 1.0), (30.0, 3.0), (10.0, 9.0)])))
    typical = series.typical
    assert (typical.decode_tok_per_s, typical.ttft_s, typical.groups) == (10.0, 3.0, 2)
    assert series.spread()["decode_tok_per_s"] == 1.0 and "peak_bytes" not in series.spread()
    assert Series(slot("a"), failure="x").typical.finish == "failed"
