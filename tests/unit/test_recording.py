"""A recording holds what was said and when, comes back from its file as it was, and only fair runs are recorded."""

import dataclasses
import json

import pytest

from playground.board import Board
from playground.charts import slot_colour
from playground.checks import ConfigError
from playground.config import Comparison, DecodeSpec, ModelSpec, SlotSpec
from playground.engines.scripted import spoken
from playground.events import Done, Failed, SlotEvent, Tokens
from playground.metrics import text_of
from playground.recording import load, load_recordings, record, save
from playground.runcard import this_machine
from playground.ui.i18n import Words
from playground.ui.replay import payload

SLOTS = (SlotSpec("a", "A", ModelSpec("m")), SlotSpec("b", "B", ModelSpec("m"), DecodeSpec(attention="eager")))
HOSTILE = "<img src=x onerror=alert(1)> ${1+1} {{value}}"


def board(a, b, mode="fair"):
    found = Board(Comparison("c", "C", SLOTS, "a"), mode)
    found.absorb([SlotEvent("a", e) for e in a] + [SlotEvent("b", e) for e in b])
    return found


def recorded(a=None, b=None, mode="fair"):
    return record(board(a or spoken("hello"), b or spoken("hexlo", gap_s=0.1), mode), "hi", this_machine("cpu"), "2026-01-01T00:00:00")


def test_every_group_is_kept_with_its_time_and_text():
    first, second = recorded().tracks
    assert "".join(step.text for step in first.steps) == "hello" and first.steps[-1].ids == 5
    assert [step.t_s for step in second.steps] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])
    assert first.speedup is None and second.speedup == pytest.approx(0.5) and first.memory_bytes == 1_100_000


def test_what_the_last_ids_add_at_the_end_is_not_lost():
    events = [*spoken("hel")[:-1], Done("length", "lo")]
    assert "".join(step.text for step in recorded(a=events).tracks[0].steps) == text_of(events) == "hello"


def test_slots_that_did_not_finish_are_left_out_and_races_and_benchmarks_are_not_recorded():
    assert [t.slot_id for t in recorded(b=[*spoken("hexlo")[:-1], Failed("no")]).tracks] == ["a"]
    assert recorded(a=[Failed("no")], b=[Done("stopped")]) is None
    assert recorded(mode="race") is None and recorded(mode="benchmark") is None


def test_a_file_gives_the_recording_back(tmp_path):
    found = recorded(a=[dataclasses.replace(e, drafted_chars=1) if isinstance(e, Tokens) else e for e in spoken("hello")])
    save(found, tmp_path / "r.json")
    assert load(tmp_path / "r.json") == found


@pytest.mark.parametrize(("change", "word"), [
    (lambda d: d.update(schema=99), "schema"), (lambda d: d["tracks"][0].update(steps=[]), "no steps"),
    (lambda d: d["tracks"][0]["steps"][0].update(t_s="soon"), "t_s"), (lambda d: d["tracks"][0]["steps"].reverse(), "order"),
    (lambda d: d.pop("prompt"), "prompt"), (lambda d: d.update(extra=1), "extra"),
])  # fmt: skip
def test_a_file_that_was_tampered_with_is_refused_by_its_part(tmp_path, change, word):
    save(recorded(), tmp_path / "r.json")
    data = json.loads((tmp_path / "r.json").read_text())
    change(data)
    (tmp_path / "r.json").write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=word):
        load(tmp_path / "r.json")


def test_the_recordings_that_ship_are_three_real_ones_and_say_where_they_were_made():
    found = load_recordings()
    assert len(found) == 3
    for name, one in found.items():
        assert len(one.tracks) > 1 and one.machine.device.startswith("CPU") and one.machine.processor and one.made, name
        assert one.title_ko and all(track.decode_tok_per_s and len(track.steps) > 5 for track in one.tracks), name
        assert len({track.steps[-1].ids for track in one.tracks}) == 1, "equal work"


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_player_gets_plain_json_with_texts_as_they_are(language):
    found = recorded(a=spoken(HOSTILE))
    sent = json.loads(json.dumps(payload(found, Words(language), True)))
    assert "".join(step[2] for step in sent["tracks"][0]["steps"]) == HOSTILE
    assert sent["autoplay"] is True and all(sent["words"].values()) and "CPU" in sent["machine"].upper()


def test_the_player_names_who_is_best_only_where_somebody_is():
    words, slow, fast = Words("en"), spoken("hello", ttft_s=0.2, gap_s=0.1), spoken("hello", ttft_s=0.1, gap_s=0.05)
    found = payload(recorded(a=slow, b=fast), words, True)["summary"]
    assert [(card["question"], card["name"]) for card in found] == [("Decodes fastest", "B"), ("First token soonest", "B")]
    assert found[0]["value"] == "20.0 tok/s · 2.00× A" and found[1]["value"] == "100 ms" and found[0]["colour"] == slot_colour(1)
    assert payload(recorded(a=slow, b=slow), words, True)["summary"] == []


def test_a_slot_keeps_its_colour_when_one_before_it_did_not_finish():
    found = recorded(a=[Failed("no")])
    assert [t.place for t in found.tracks] == [1]
    assert payload(found, Words("en"), True)["tracks"][0]["colour"] == slot_colour(1)
