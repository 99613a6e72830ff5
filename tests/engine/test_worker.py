"""The worker process: killed, stopped, restarted; and what the web process must not import."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from playground.config import Comparison, DecodeSpec, ModelSpec, SlotSpec
from playground.engine import Stop
from playground.engines.options import EngineOptions
from playground.engines.refusal import Refusal
from playground.engines.worker import WorkerEngine
from playground.events import Assessing, Done, Failed, NoQuality, Quality, Tokens
from playground.scheduler import Scheduler

from .conftest import ask, ids_of, make_model, run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def worker(tmp_path):
    worker = WorkerEngine(EngineOptions(str(tmp_path), offline=True))
    yield worker
    worker.close()


def slot(model, name="s"):
    return SlotSpec(name, name, model, DecodeSpec())


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """With a context so long that a run is still going when a test acts on it."""
    return ModelSpec(make_model(tmp_path_factory.mktemp("long"), max_position_embeddings=8192), dtype="float32")


def long():
    return ask(new_tokens=4000)


def test_killing_the_worker_fails_its_column_and_nothing_else(worker, tiny):
    slots = (slot(tiny, "killed"), slot(tiny, "after"))
    job = Scheduler(worker).submit(Comparison("c", "C", slots, "killed"), long(), "fair", "me")
    ends, killed = {}, False
    for item in job.events():
        if isinstance(item.event, Tokens) and not killed:
            os.kill(worker.pid, signal.SIGKILL)
            killed = True
        if isinstance(item.event, (Done, Failed)):
            ends[item.slot_id] = item.event
    assert isinstance(ends["killed"], Failed) and "SIGKILL" in ends["killed"].message and ends["killed"].hint
    assert isinstance(ends["after"], Done), "the next slot runs on a new worker"
    assert len(ids_of(run(worker, slot(tiny), ask(new_tokens=5)))) == 5, "and so does the next comparison"


def test_quality_is_measured_in_the_worker_and_dies_with_it_alone(worker, tiny):
    reference = slot(tiny)
    answer = tuple(ids_of(run(worker, reference)))
    found = list(worker.assess(slot(tiny, "x"), reference, ask(), answer, Stop()))[-1]
    assert (found.kl_nats, found.top1) == (0.0, 1.0)
    ends = []
    for event in worker.assess(slot(tiny, "x"), reference, ask(), answer * 100, Stop()):
        ends.append(event)
        if isinstance(event, Assessing) and worker.pid and len(ends) < 3:
            os.kill(worker.pid, signal.SIGKILL)
    assert isinstance(ends[-1], NoQuality) and "SIGKILL" in ends[-1].message
    assert isinstance(list(worker.assess(slot(tiny, "x"), reference, ask(), answer, Stop()))[-1], Quality)


def test_the_worker_says_what_its_machine_can_run(worker, tiny):
    found = {technique.name: technique for technique in worker.capabilities()}
    assert found["sdpa"].runs and found["bnb-nf4"].runs
    assert worker.group_sizes(tiny) == (32, 64, -1)


def test_a_worker_killed_while_idle_is_replaced_unnoticed(worker, tiny):
    assert isinstance(run(worker, slot(tiny))[-1], Done)
    process = psutil.Process(worker.pid)
    process.kill()
    process.wait()
    events = run(worker, slot(tiny))
    assert isinstance(events[-1], (Done, Failed))
    assert isinstance(run(worker, slot(tiny))[-1], Done)


def test_stop_reaches_the_worker_and_keeps_the_text(worker, tiny):
    stop, seen = Stop(), []
    for event in worker.run(slot(tiny), long(), stop):
        seen.append(event)
        if isinstance(event, Tokens):
            stop.set()
    assert seen[-1].reason == "stopped" and 0 < len(ids_of(seen)) < 4000


def test_it_tells_what_is_loaded_and_unloads_it(worker, tiny):
    assert worker.resident() == () and worker.machine() == ""
    run(worker, slot(tiny))
    assert [r.model for r in worker.resident()] == [tiny] and "torch" in worker.machine()
    worker.unload(tiny)
    assert worker.resident() == ()


def test_unloading_what_runs_is_refused(worker, tiny):
    stop = Stop()
    events = worker.run(slot(tiny), long(), stop)
    while not isinstance(next(events), Tokens):
        pass
    with pytest.raises(Refusal, match="running"):
        worker.unload(tiny)
    stop.set()
    assert list(events)[-1].reason in ("stopped", "length")


def test_closing_ends_the_process(tmp_path, tiny):
    worker = WorkerEngine(EngineOptions(str(tmp_path), offline=True))
    run(worker, slot(tiny))
    process = psutil.Process(worker.pid)
    worker.close()
    process.wait(timeout=30)
    assert not process.is_running()
    assert isinstance(run(worker, slot(tiny))[-1], Failed)


def test_the_worker_ends_with_the_web_process(tmp_path):
    """A web process that is killed leaves no worker holding the device."""
    code = (
        "import sys, time\n"
        "from playground.engines.options import EngineOptions\n"
        "from playground.engines.worker import WorkerEngine\n"
        f"e = WorkerEngine(EngineOptions({str(tmp_path)!r})); e._ready_worker(); print(e.pid, flush=True); time.sleep(600)"
    )
    web = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    process = psutil.Process(int(web.stdout.readline()))
    web.kill()
    web.wait()
    process.wait(timeout=60)


def test_a_whole_run_through_the_worker_brings_no_torch_into_the_web_process(tmp_path, tiny):
    """Answers are plain data: unpickling one must not import an engine."""
    code = (
        "import sys\n"
        "from playground.config import *\n"
        "from playground.engines.options import EngineOptions\n"
        "from playground.engines.worker import WorkerEngine\n"
        "from playground.engine import Stop\n"
        f"e = WorkerEngine(EngineOptions({str(tmp_path)!r}, offline=True))\n"
        f"s = SlotSpec('s', 's', ModelSpec({tiny.model!r}, dtype='float32'))\n"
        "last = list(e.run(s, Prompt('hi', Settings(new_tokens=3)), Stop()))[-1]\n"
        "assert e.resident(); e.unload(None); e.close()\n"
        "sys.exit(str(last) if type(last).__name__ != 'Done' else 'torch came in' if 'torch' in sys.modules else 0)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=300)


def test_runs_at_once_get_their_own_answers(worker, tiny):
    alone = {name: ids_of(run(worker, slot(tiny, name), ask(name))) for name in ("fox", "dog")}
    found = {}

    def race(name):
        found[name] = ids_of(run(worker, slot(tiny, name), ask(name)))

    threads = [threading.Thread(target=race, args=(name,)) for name in alone]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert found == alone
