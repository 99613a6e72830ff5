"""Run cards come back as they were, and nothing else is taken for one."""

import dataclasses
import json

import pytest

from playground.checks import ConfigError
from playground.config import DecodeSpec, ModelSpec, Prompt, Settings, SlotSpec
from playground.engines.scripted import spoken
from playground.metrics import measure
from playground.presets import load_presets
from playground.protocol import TWIN, Outcome, Series
from playground.quantization import Quantization
from playground.report import against, report
from playground.runcard import SCHEMA, Machine, RunCard, load, save, this_machine

MACHINE = Machine("CPU", "Linux", "a processor", 2, 10**9, None, 0.1, "3.11", (("torch", "2"),))


def card(rate=1.0):
    comparison = load_presets()["quantization"]
    runs = [dataclasses.replace(measure(spoken("hello")), decode_tok_per_s=20.0 * rate * f) for f in (1.0, 1.1, 0.9)]
    series = [Series(slot, tuple(runs)) for slot in comparison.slots[:-1]]
    series.append(Series(comparison.slots[-1], (), "broken | mend it"))
    twin = Series(SlotSpec(TWIN, TWIN, ModelSpec("m", quantization=Quantization("bnb-nf4")), DecodeSpec()), tuple(runs))
    return RunCard(SCHEMA, "2026-01-01T00:00:00+00:00", MACHINE, Outcome(comparison, Prompt("하늘"), 3, "interleaved", tuple(series), twin))


def test_a_card_comes_back_as_it_was(tmp_path):
    save(card(), tmp_path / "card.json")
    assert load(tmp_path / "card.json") == card()
    assert [p.name for p in tmp_path.iterdir()] == ["card.json"]


@pytest.mark.parametrize(("path", "value", "where"), [
    (("schema",), 99, "schema"), (("machine", "cores"), "2", "cores"), (("machine", "cores"), True, "cores"),
    (("outcome", "order"), "sideways", "order"), (("outcome", "series", 0, "runs", 0, "rounds"), 1.5, "rounds"),
    (("outcome", "series", 0, "slot", "model", "quantization", "method"), "magic", "method"),
    (("outcome", "prompt", "text"), None, "text"), (("outcome", "series"), {}, "series"), (("extra",), 1, "extra"),
])  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, path, value, where):
    data = json.loads(json.dumps(dataclasses.asdict(card())))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    (tmp_path / "card.json").write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=where):
        load(tmp_path / "card.json")


@pytest.mark.parametrize("text", ["", "[]", "3", "not json"])
def test_other_files_are_no_cards(tmp_path, text):
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(ConfigError):
        load(tmp_path / "card.json")


def test_a_report_tells_noise_failures_and_ties():
    text = report(card())
    assert "no measurable difference" in text and "failed: broken \\| mend it |" in text and "Noise floor" in text
    assert "20.0 ± 2.0" in text and "reference" in text
    busy = dataclasses.replace(card(), machine=dataclasses.replace(MACHINE, load=1.9))
    assert "busy" in report(busy) and "busy" not in text


def test_two_cards_are_compared_slot_by_slot_and_their_differences_named():
    other = dataclasses.replace(card(0.5), machine=dataclasses.replace(MACHINE, processor="another"))
    text = against(card(), other)
    assert "2.00×" in text and "- machine: CPU, a processor / CPU, another" in text and "- torch" not in text


def test_this_machine_is_described():
    found = this_machine("CPU")
    assert found.cores >= 1 and found.memory_bytes > 10**8 and found.processor and dict(found.libraries)["torch"]


@pytest.mark.parametrize("change", [{"temperature": 1.0}, {"new_tokens": 7}, {"draft_threshold": 0.4}, {"stop_strings": "x"}, {"chat_template": False}])
def test_cards_that_were_asked_for_different_things_give_no_ratio(change):
    asked = Prompt("하늘", dataclasses.replace(Settings(), **change))
    text = against(card(), dataclasses.replace(card(), outcome=dataclasses.replace(card().outcome, prompt=asked)))
    assert "×" not in text and "not asked for the same" in text and next(iter(change)) in text
    other = dataclasses.replace(card(), outcome=dataclasses.replace(card().outcome, prompt=Prompt("another")))
    assert "prompt: 하늘 / another" in against(card(), other)


def test_a_slot_that_is_another_one_in_the_other_card_is_not_compared():
    outcome = card().outcome
    series = outcome.series[0]
    changed = dataclasses.replace(series, slot=dataclasses.replace(series.slot, decode=DecodeSpec(attention="eager")))
    other = dataclasses.replace(card(), outcome=dataclasses.replace(outcome, series=(changed, *outcome.series[1:])))
    lines = against(card(), other).splitlines()
    assert "×" not in next(line for line in lines if line.startswith(f"| {series.slot.name}")) and any("another slot" in line for line in lines)
