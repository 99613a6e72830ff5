"""The documented endpoint and the page's rules, driven by gradio_client on the launched app."""

import json
import math
import threading

import httpx
import pytest
from gradio_client import Client

from playground.config import Settings
from playground.engines.scripted import Hold, ScriptedEngine, spoken
from playground.events import Started, Tokens
from tests.scripted_app import echo, launch, troubled

PATIENCE_S = 60


@pytest.fixture(scope="module")
def echoing():
    engine = ScriptedEngine(echo)
    with launch(engine) as (url, _):
        yield url, engine


@pytest.fixture
def client(echoing):
    client = Client(echoing[0], verbose=False)
    yield client
    client.close()


def test_compare_is_documented_and_nothing_else_is_public(client):
    described = client.view_api(return_format="dict")["named_endpoints"]
    assert list(described) == ["/compare"]
    names = [p["parameter_name"] for p in described["/compare"]["parameters"]]
    assert names == ["preset", "prompt", "settings", "mode", "slots", "quality", "repeats"]


def test_compare_streams_every_slots_text_and_numbers(client):
    job = client.submit("five-ways", "hello", {"new_tokens": 8}, api_name="/compare")
    final = job.result(timeout=PATIENCE_S)
    assert len(job.outputs()) >= 1
    json.dumps(final, allow_nan=False)
    assert list(final["slots"]) == ["baseline", "kv-cache", "sdpa", "bnb-nf4", "draft-head"]
    for slot, state in final["slots"].items():
        assert state["text"] == f"{slot} heard hello" and state["phase"] == "done"
        assert state["metrics"]["ttft_s"] == pytest.approx(0.1)
        assert state["metrics"]["decode_tok_per_s"] == pytest.approx(20.0)
    assert final["slots"]["baseline"]["speedup"] is None


def test_some_slots_only(client):
    final = client.predict("five-ways", "hello", {}, "fair", ["sdpa"], api_name="/compare")
    assert list(final["slots"]) == ["sdpa"]


BAD_NUMBERS = [math.nan, math.inf, None, "1", -1, 10**30]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("nope", "hi"), "preset"),
        (("five-ways", ""), "prompt"),
        (("five-ways", "  "), "prompt"),
        (("five-ways", None), "prompt"),
        (("five-ways", "hi", {}, "sprint"), "mode"),
        (("five-ways", "hi", {"speed": 9}), "settings"),
        (("five-ways", "hi", {}, "fair", ["nope"]), "slots"),
        (("five-ways", "hi", {"chat_template": "yes"}), "chat_template"),
        *((("five-ways", "hi", {"new_tokens": value}), "new_tokens") for value in BAD_NUMBERS),
        *((("five-ways", "hi", {"temperature": value}), "temperature") for value in BAD_NUMBERS),
        *((("five-ways", "hi", {"seed": value}), "seed") for value in (-1, 10**30, 0.5)),
        *((("five-ways", "hi", {"draft_len": value}), "draft_len") for value in (0, 33)),
    ],
)
def test_bad_input_is_refused_by_name_before_any_slot_runs(echoing, client, arguments, field):
    ran = len(echoing[1].ran)
    with pytest.raises(Exception) as refused:
        client.predict(*arguments, api_name="/compare")
    assert len(echoing[1].ran) == ran, "no model was called"
    the_client_refused = isinstance(refused.value, ValueError) and "JSON" in str(refused.value)
    assert the_client_refused or field in str(refused.value)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_clients_cannot_send_are_refused_too(echoing, number):
    """Sent by hand: Python's own client will not write them."""
    ran = len(echoing[1].ran)
    body = f'{{"data": ["five-ways", "hi", {{"new_tokens": {number}}}, "fair", null, null, null]}}'
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{echoing[0]}gradio_api/call/compare", content=body, headers=headers)
    if answer.is_success:
        events = httpx.get(f"{echoing[0]}gradio_api/call/compare/{answer.json()['event_id']}", timeout=PATIENCE_S).text
        assert "event: error" in events and "new_tokens" in events
    assert len(echoing[1].ran) == ran


def test_two_clients_at_once_see_their_own_answers_only(echoing):
    clients = {name: Client(echoing[0], verbose=False) for name in ("ann", "ben")}
    jobs = {name: c.submit("kv-cache", name, {}, api_name="/compare") for name, c in clients.items()}
    for name, job in jobs.items():
        job.result(timeout=PATIENCE_S)
        for update in job.outputs():
            for state in update["slots"].values():
                assert state["text"] == "" or state["text"].endswith(name[: len(state["text"].split(" ")[-1])])
                assert not any(other in state["text"] for other in clients if other != name)
    [c.close() for c in clients.values()]


def test_a_second_user_waits_with_a_position_and_a_cancelled_job_stops():
    hold, started = Hold(), threading.Event()

    def script(slot, prompt):
        yield Started(0, 1)
        yield Tokens(1, (1,), "begun", 1)
        started.set()
        yield hold if prompt.text == "hold" else Started(0, 1)
        yield from spoken("done")

    engine = ScriptedEngine(script)
    with launch(engine) as (url, _):
        first, second = Client(url, verbose=False), Client(url, verbose=False)
        holding = first.submit("kv-cache", "hold", {}, api_name="/compare")
        assert started.wait(PATIENCE_S)
        waiting = second.submit("kv-cache", "later", {}, api_name="/compare")
        seen = next(iter(waiting))
        assert {s["phase"] for s in seen["slots"].values()} == {"queued"}
        assert {s["queue_position"] for s in seen["slots"].values()} == {1}
        holding.cancel()
        final = waiting.result(timeout=PATIENCE_S)
        assert {s["phase"] for s in final["slots"].values()} == {"done"}, "the cancelled job gave the engine up"
        assert engine.ran.count("on") == 1, "and its second slot never ran"
        first.close()
        second.close()


def test_one_columns_failure_stays_its_own():
    with launch(ScriptedEngine(troubled)) as (url, _):
        client = Client(url, verbose=False)
        slots = client.predict("five-ways", "hi", {}, api_name="/compare")["slots"]
        assert slots["kv-cache"]["error"] == "The device is on fire." and slots["kv-cache"]["text"] == "a few words"
        assert {s["phase"] for name, s in slots.items() if name != "kv-cache"} == {"done"}
        assert slots["kv-cache"]["speedup"] is None and "did not finish" in slots["kv-cache"]["speedup_reason"]
        client.close()


def test_settings_left_out_follow_the_preset(echoing, client):
    assert Settings().new_tokens != 192
    client.predict("kv-cache", "hi", {}, api_name="/compare")


def test_quality_is_measured_when_asked_for_or_when_the_preset_says_so(echoing, client):
    final = client.predict("kv-cache", "hi", {}, "fair", None, True, api_name="/compare")
    for state in final["slots"].values():
        numbers = state["metrics"]
        assert state["phase"] == "done" and (numbers["kl_nats"], numbers["top1"], numbers["perplexity"]) == (0.0, 1.0, 10.0)
    for preset, quality, measured in (("kv-cache", None, False), ("quantization", None, True), ("quantization", False, False)):
        final = client.predict(preset, "hi", {}, "fair", None, quality, api_name="/compare")
        assert all((s["metrics"]["perplexity"] is not None) == measured for s in final["slots"].values()), preset


@pytest.mark.parametrize("quality", [1, "yes", 0.0, {}])
def test_quality_is_true_or_false_and_nothing_like_it(echoing, client, quality):
    ran = len(echoing[1].ran)
    with pytest.raises(Exception, match="quality"):
        client.predict("kv-cache", "hi", {}, "fair", None, quality, api_name="/compare")
    assert len(echoing[1].ran) == ran


def test_a_benchmark_runs_every_slot_by_turns_and_tells_medians_noise_and_raw_values(echoing):
    engine = ScriptedEngine(lambda slot, prompt: spoken("hello", gap_s=0.1 if slot.decode.cache == "none" else 0.05))
    with launch(engine) as (url, _):
        client = Client(url, verbose=False)
        job = client.submit("kv-cache", "hi", {}, "benchmark", None, False, 3, api_name="/compare")
        final = job.result(timeout=PATIENCE_S)
        client.close()
    # The scripted engine keeps nothing loaded, so the slots' runs follow one another after the first turn.
    assert sorted(engine.ran) == sorted(["off", "on", "reference again"] * 3)
    bench = final["benchmark"]
    assert bench["repeats"] == 3 and bench["stopped"] is False and bench["noise_floor"]["decode_tok_per_s"] == 0
    assert {slot: len(runs["decode_tok_per_s"]) for slot, runs in bench["runs"].items()} == {"off": 3, "on": 3}
    assert final["slots"]["on"]["speedup"] == pytest.approx(2.0)
    assert final["slots"]["on"]["metrics"]["decode_tok_per_s"] == pytest.approx(20.0)


@pytest.mark.parametrize("repeats", [0, 101, 2.5, True, "3", -1])
def test_a_number_of_runs_that_cannot_be_is_refused(client, echoing, repeats):
    before = len(echoing[1].ran)
    with pytest.raises(Exception, match="repeats"):
        client.submit("kv-cache", "hi", {}, "benchmark", None, False, repeats, api_name="/compare").result(timeout=PATIENCE_S)
    assert len(echoing[1].ran) == before
