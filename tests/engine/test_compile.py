"""torch.compile slots: same ids, compile time apart from every other number, a bound and a Stop that work."""

import threading
import time

import pytest
import torch

from playground.config import DecodeSpec, SlotSpec
from playground.engine import Stop
from playground.engines import compiling
from playground.engines.refusal import Refusal, Stopped
from playground.events import Compiled, Done, Failed, Loading, Started, WarmedUp

from .conftest import ask, ids_of, measure, run


def compiled(model, mode="default"):
    return SlotSpec("c", "c", model, DecodeSpec(cache="static", compile=mode))


def plain(model):
    return SlotSpec("p", "p", model, DecodeSpec(cache="static"))


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_a_compiled_slot_gives_the_same_ids_and_its_compile_time_lies_before_the_warm_up(engine, tiny):
    events = run(engine, compiled(tiny))
    assert ids_of(events) == ids_of(run(engine, plain(tiny)))
    kinds = [type(event) for event in events]
    assert kinds.index(Compiled) < kinds.index(WarmedUp) < kinds.index(Started)
    numbers = measure(events)
    assert numbers.compile_s > 0 and numbers.recompiled_s is None
    assert numbers.warmup_s < numbers.compile_s and numbers.ttft_s < numbers.compile_s


def test_the_second_run_and_another_length_in_the_same_room_compile_nothing(engine, tiny):
    run(engine, compiled(tiny))
    for prompt in (ask(), ask("a much longer prompt than before, of several more words", new_tokens=40)):
        numbers = measure(run(engine, compiled(tiny), prompt))
        assert numbers.compile_s == 0 and numbers.recompiled_s is None


def test_an_uncompiled_slot_says_nothing_of_compiling(engine, tiny):
    assert measure(run(engine, plain(tiny))).compile_s is None


def test_a_stop_while_torch_compiles_ends_the_run_and_the_next_one_compiles_again(engine, tiny, monkeypatch):
    stop, reached = Stop(), threading.Event()
    real = torch._dynamo.callback.callback_handler.run_start_callbacks

    def endless(arguments):
        real(arguments)
        reached.set()
        while True:  # as a compilation that takes for ever
            time.sleep(0.01)

    monkeypatch.setattr(torch._dynamo.callback.callback_handler, "run_start_callbacks", endless)
    threading.Thread(target=lambda: (reached.wait(), stop.set())).start()
    events = run(engine, compiled(tiny), stop=stop)
    assert events[-1] == Done("stopped") and not any(isinstance(e, Started) for e in events)
    monkeypatch.undo()
    assert measure(run(engine, compiled(tiny))).compile_s > 0


def test_a_compilation_past_its_bound_fails_the_slot_with_the_bound(monkeypatch):
    heard = []
    with pytest.raises(Refusal, match="not done after 0 s"):
        with compiling.interruptible(Stop(), heard.append, limit_s=0):
            while True:
                time.sleep(0.01)


def test_work_that_ends_in_time_is_left_alone_and_errors_pass():
    with compiling.interruptible(Stop(), lambda seconds: None):
        pass
    with pytest.raises(ZeroDivisionError):
        with compiling.interruptible(Stop(), lambda seconds: None):
            raise ZeroDivisionError
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        with compiling.interruptible(stop, lambda seconds: None):
            while True:
                time.sleep(0.01)


def test_the_column_hears_how_long_and_how_long_at_most(engine, tiny, monkeypatch):
    ticks = []

    real = compiling.interruptible

    def ticking(stop, tick, limit_s=compiling.LIMIT_S):
        tick(12.0)
        ticks.append(limit_s)
        return real(stop, tick, limit_s)

    monkeypatch.setattr(compiling, "interruptible", ticking)
    stages = [e.stage for e in run(engine, compiled(tiny)) if isinstance(e, Loading)]
    assert any("12 s" in stage and str(compiling.LIMIT_S) in stage for stage in stages) and ticks


def test_without_a_compiler_the_slot_is_refused(engine, tiny, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    failed = run(engine, compiled(tiny))[-1]
    assert isinstance(failed, Failed) and "C++ compiler" in failed.message and "g++" in failed.hint


def test_weights_that_transformers_does_not_compile_are_refused(engine, tiny, monkeypatch):
    monkeypatch.setattr(compiling, "config_for", lambda mode, device: None)
    failed = run(engine, compiled(tiny))[-1]
    assert isinstance(failed, Failed) and "does not compile" in failed.message
