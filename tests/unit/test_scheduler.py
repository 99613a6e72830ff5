"""Who runs when; whose failure is whose; what a stop reaches. No test here waits for time to pass."""

import threading

import pytest

from playground.config import Comparison, DecodeSpec, ModelSpec, Prompt, SlotSpec
from playground.engine import Stop
from playground.engines.scripted import Hold, ScriptedEngine, spoken
from playground.events import Assessing, Done, Failed, NoQuality, Quality, Queued, Repetition, Started, Tokens
from playground.scheduler import Scheduler

PATIENCE_S = 20


def slots(*ids, device="auto"):
    return tuple(SlotSpec(i, i, ModelSpec("m", device=device), DecodeSpec()) for i in ids)


def comparison(*ids, extra=()):
    all_slots = slots(*ids) + tuple(extra)
    return Comparison("c", "C", all_slots, all_slots[0].id)


def submit(scheduler, what, mode="fair", session="me", text="hi"):
    return scheduler.submit(what, Prompt(text), mode, session)


def by_slot(job):
    found = {}
    for item in job.events():
        found.setdefault(item.slot_id, []).append(item.event)
    return found


def until(job, wanted):
    """Events up to the first of which `wanted` is true; fails if the job ends before."""
    seen = []
    while not job.ended:
        seen += job.next_events(PATIENCE_S)
        if any(wanted(item) for item in seen):
            return seen
    pytest.fail("the job ended without the awaited event")


def test_every_slot_ends_in_exactly_one_done_or_failed():
    def script(slot, prompt):
        if slot.id == "raises":
            raise RuntimeError("boom")
        if slot.id == "silent":
            return []
        return spoken("ok") + spoken("more after the end")

    found = by_slot(submit(Scheduler(ScriptedEngine(script)), comparison("good", "raises", "silent", "also")))
    for slot, events in found.items():
        ends = [e for e in events if isinstance(e, (Done, Failed))]
        assert len(ends) == 1 and events[-1] is ends[0], slot
    assert isinstance(found["raises"][-1], Failed) and "boom" in found["raises"][-1].message
    assert isinstance(found["silent"][-1], Failed)
    assert isinstance(found["also"][-1], Done), "one slot's failure is not another's"


def test_fair_slots_of_one_device_take_turns_in_order():
    engine = ScriptedEngine(lambda slot, prompt: spoken("ok"))
    by_slot(submit(Scheduler(engine), comparison("a", "b", "c")))
    assert engine.ran == ["a", "b", "c"] and engine.most_running == 1


def test_a_slot_over_several_devices_takes_turns_with_all_others():
    engine = ScriptedEngine(lambda slot, prompt: spoken("ok"))
    several = slots("b", device="cuda:1") + slots("c", device="tensor:2") + slots("d", device="cuda:0+cuda:1")
    by_slot(submit(Scheduler(engine), comparison("a", extra=several)))
    assert engine.most_running == 1 and engine.ran == ["a", "b", "c", "d"]


def test_fair_slots_of_two_devices_run_at_once():
    meet = threading.Barrier(2, timeout=PATIENCE_S)

    def script(slot, prompt):
        meet.wait()  # passes only when both lanes are here
        return spoken("ok")

    found = by_slot(submit(Scheduler(ScriptedEngine(script)), comparison("a", extra=slots("b", device="cuda:1"))))
    assert all(isinstance(events[-1], Done) for events in found.values())


def test_race_runs_all_slots_at_once():
    meet = threading.Barrier(3, timeout=PATIENCE_S)

    def script(slot, prompt):
        meet.wait()
        return spoken("ok")

    engine = ScriptedEngine(script)
    by_slot(submit(Scheduler(engine), comparison("a", "b", "c"), mode="race"))
    assert engine.most_running == 3


def test_a_second_comparison_waits_visibly_and_then_runs():
    hold = Hold()
    scheduler = Scheduler(ScriptedEngine(lambda slot, prompt: [hold, *spoken(prompt.text)] if prompt.text == "1" else spoken(prompt.text)))
    first = submit(scheduler, comparison("a"), session="one", text="1")
    second = submit(scheduler, comparison("a"), session="two", text="2")
    third = submit(scheduler, comparison("a"), session="three", text="3")
    until(third, lambda item: item.event == Queued(2))
    second.stop()
    until(third, lambda item: item.event == Queued(1))
    hold.gate.set()
    assert isinstance(by_slot(first)["a"][-1], Done)
    assert by_slot(second)["a"][-1] == Done("stopped")
    assert by_slot(third)["a"][-1] == Done("length")


def test_sessions_never_see_each_other():
    scheduler = Scheduler(ScriptedEngine(lambda slot, prompt: spoken(prompt.text)))
    jobs = {name: submit(scheduler, comparison("a", "b"), session=name, text=name) for name in ("ann", "ben")}
    for name, job in jobs.items():
        for events in by_slot(job).values():
            assert "".join(e.text for e in events if isinstance(e, Tokens)) == name


def test_stop_ends_the_running_slot_and_the_waiting_ones():
    def script(slot, prompt):
        yield Started(0, 1)
        yield Tokens(1, (1,), "kept", 1)
        yield Hold()
        yield Tokens(2, (2,), "never", 1)

    engine = ScriptedEngine(script)
    job = submit(Scheduler(engine), comparison("a", "b"))
    seen = until(job, lambda item: isinstance(item.event, Tokens))
    job.stop()
    rest = [item for item in job.events()]
    ends = {item.slot_id: item.event for item in seen + rest if isinstance(item.event, Done)}
    assert ends == {"a": Done("stopped"), "b": Done("stopped")}
    assert engine.ran == ["a"], "the waiting slot never reached the engine"
    assert not any(isinstance(item.event, Tokens) and item.event.text == "never" for item in rest)


def test_stopping_a_session_stops_only_its_own():
    hold = Hold()
    scheduler = Scheduler(ScriptedEngine(lambda slot, prompt: [hold, *spoken("ok")]))
    mine = submit(scheduler, comparison("a"), session="mine")
    theirs = submit(scheduler, comparison("a"), session="theirs")
    scheduler.stop_session("mine")
    assert by_slot(mine)["a"][-1] == Done("stopped")
    hold.gate.set()
    assert by_slot(theirs)["a"][-1] == Done("length")


def test_a_reader_that_goes_away_stops_its_job():
    job = submit(Scheduler(ScriptedEngine(lambda slot, prompt: [Started(0, 1), Hold()])), comparison("a"))
    events = job.events()
    next(events)
    events.close()
    until(job, lambda item: item.event == Done("stopped"))


def test_stop_tells_listeners_once_even_late_ones():
    stop, heard = Stop(), []
    forget = stop.listen(lambda: heard.append("forgotten"))
    stop.listen(lambda: heard.append("early"))
    forget()
    stop.set()
    stop.set()
    stop.listen(lambda: heard.append("late"))
    assert heard == ["early", "late"]


def assessing_job(script, assessment=None, ids=("a", "b")):
    engine = ScriptedEngine(script, assessment) if assessment else ScriptedEngine(script)
    return by_slot(Scheduler(engine).submit(comparison(*ids), Prompt("hi"), "fair", "me", quality=True))


def test_quality_is_measured_after_all_answers_over_the_references_own_ids():
    order, given = [], []

    def script(slot, prompt):
        order.append(slot.id)
        return spoken("ok" if slot.id == "a" else "another")

    def assessment(slot, reference, answer):
        order.append(f"assess {slot.id}")
        given.append((reference.id, answer))
        return [Quality(0.0, 1.0, len(answer), 2.0, ())]

    found = assessing_job(script, assessment)
    assert order == ["a", "b", "assess a", "assess b"], "no assessment comes between two timed runs"
    assert given == [("a", (ord("o"), ord("k")))] * 2
    assert all(isinstance(events[-1], Quality) for events in found.values())


def test_without_being_asked_nothing_is_assessed():
    found = by_slot(submit(Scheduler(ScriptedEngine(lambda slot, prompt: spoken("ok"))), comparison("a", "b")))
    assert all(isinstance(events[-1], Done) for events in found.values())


def test_one_slots_failed_assessment_is_not_anothers():
    def assessment(slot, reference, answer):
        if slot.id == "raises":
            raise RuntimeError("boom")
        return [] if slot.id == "silent" else [Assessing(0.5), Quality(0.0, 1.0, 2, 2.0, ()), Assessing(0.9)]

    found = assessing_job(lambda slot, prompt: spoken("ok"), assessment, ("good", "raises", "silent", "also"))
    for slot, events in found.items():
        assert sum(isinstance(e, (Quality, NoQuality)) for e in events) == 1, slot
        assert isinstance(events[-1], (Quality, NoQuality)), "it comes last"
    assert "boom" in found["raises"][-1].message and isinstance(found["silent"][-1], NoQuality)
    assert isinstance(found["also"][-1], Quality)


def test_a_failed_slot_is_not_assessed_and_a_failed_reference_leaves_nothing_to_compare_with():
    def script(failing):
        return lambda slot, prompt: [Failed("broken")] if slot.id == failing else spoken("ok")

    found = assessing_job(script("b"))
    assert isinstance(found["b"][-1], Failed) and isinstance(found["a"][-1], Quality)
    found = assessing_job(script("a"))
    assert isinstance(found["a"][-1], Failed)
    assert isinstance(found["b"][-1], NoQuality) and "reference" in found["b"][-1].message


def test_a_stop_ends_the_assessments():
    hold = Hold()
    engine = ScriptedEngine(lambda slot, prompt: spoken("ok"), lambda slot, reference, answer: [Assessing(), hold])
    job = Scheduler(engine).submit(comparison("a", "b"), Prompt("hi"), "fair", "me", quality=True)
    until(job, lambda item: isinstance(item.event, Assessing))
    job.stop()
    ends = [item.event for item in job.events() if isinstance(item.event, NoQuality)]
    assert len(ends) == 2


def test_a_question_is_answered_when_the_engine_is_idle_and_disturbs_no_run():
    hold = Hold()
    scheduler = Scheduler(ScriptedEngine(lambda slot, prompt: [Started(0, 1), hold, *spoken("ok")[-1:]]))
    assert scheduler.when_idle(lambda engine: engine.group_sizes(None)) == (32, 64, -1)
    job = submit(scheduler, comparison("a"))
    until(job, lambda item: isinstance(item.event, Started))
    assert scheduler.when_idle(lambda engine: pytest.fail("asked during a run")) is None
    hold.gate.set()
    list(job.events())


def test_a_comparison_waits_for_a_question_and_survives_its_failure():
    scheduler, asked, go_on = Scheduler(ScriptedEngine(lambda slot, prompt: spoken("ok"))), threading.Event(), threading.Event()

    def question(engine):
        asked.set()
        go_on.wait(PATIENCE_S)
        raise RuntimeError("boom")

    failures = []

    def ask():
        try:
            scheduler.when_idle(question)
        except RuntimeError as error:
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    asked.wait(PATIENCE_S)
    job = submit(scheduler, comparison("a"))
    assert [item.event for item in job.next_events(PATIENCE_S)][0] == Queued(1)
    go_on.set()
    thread.join()
    assert failures and isinstance(by_slot(job)["a"][-1], Done)


def benched(script, *ids, repeats=3):
    engine = ScriptedEngine(script)
    job = Scheduler(engine).submit(comparison(*ids), Prompt("x"), "benchmark", "me", repeats=repeats)
    return engine, job, list(job.events())


def test_a_benchmark_tells_every_run_in_its_slots_column_and_the_twin_in_the_references():
    engine, job, seen = benched(lambda slot, prompt: spoken("ok"), "a", "b")
    begun = [(i.slot_id, i.event.number, i.event.again) for i in seen if isinstance(i.event, Repetition)]
    assert sorted(begun) == sorted([(s, n, False) for s in "ab" for n in (1, 2, 3)] + [("a", n, True) for n in (1, 2, 3)])
    assert [i.event.done for i in seen if isinstance(i.event, Repetition)] == list(range(9))
    assert [len(series.runs) for series in job.outcome.series] == [3, 3] and len(job.outcome.twin.runs) == 3


def test_stopping_a_benchmark_keeps_its_complete_runs_and_ends_every_column():
    engine = ScriptedEngine(lambda slot, prompt: [Hold()] if slot.id == "b" else spoken("ok"))
    job = Scheduler(engine).submit(comparison("a", "b", "c"), Prompt("x"), "benchmark", "me", repeats=3)
    seen = until(job, lambda item: item.slot_id == "b" and isinstance(item.event, Repetition))
    job.stop()
    seen += list(job.events())
    assert job.outcome.stopped and [len(s.runs) for s in job.outcome.series] == [1, 0, 0]
    last = {item.slot_id: item.event for item in seen}
    assert last["a"].reason == "length" and last["b"] == last["c"] == Done("stopped")


def test_an_engine_that_breaks_fails_its_slot_and_the_benchmark_goes_on():
    def script(slot, prompt):
        if slot.id == "b":
            raise RuntimeError("boom")
        return spoken("ok")

    _, job, _ = benched(script, "a", "b")
    assert "boom" in job.outcome.series[1].failure and len(job.outcome.series[0].runs) == 3


def test_an_ordinary_comparison_has_no_outcome():
    job = Scheduler(ScriptedEngine(lambda slot, prompt: spoken("ok"))).submit(comparison("a"), Prompt("x"), "fair", "me")
    list(job.events())
    assert job.outcome is None
