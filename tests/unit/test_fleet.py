"""Slots go to their device's engine, and everything reaches all engines that were made."""

from playground.config import ModelSpec, Prompt, SlotSpec, worker_of
from playground.engine import Resident, Stop
from playground.engines.fleet import FleetEngine
from playground.engines.scripted import ScriptedEngine, spoken


class Remembering(ScriptedEngine):
    def __init__(self):
        super().__init__(lambda slot, prompt: spoken("ok"))
        self.unloaded, self.closed = [], False

    def unload(self, model):
        self.unloaded.append(model)

    def resident(self):
        return tuple(Resident(ModelSpec(slot), 1, 1, 1) for slot in self.ran)

    def close(self):
        self.closed = True


def fleet():
    made = []

    def make(ranks):
        assert ranks == 1
        made.append(Remembering())
        return made[-1]

    return FleetEngine(make), made


def slot(device):
    return SlotSpec(device, device, ModelSpec("m", device=device))


def test_the_cpu_and_the_first_gpu_share_a_worker_and_every_other_gpu_has_its_own():
    assert len({worker_of(d) for d in ("auto", "cpu", "cuda", "cuda:0")}) == 1
    assert len({worker_of(d) for d in ("auto", "cuda:1", "cuda:2")}) == 3


def test_each_worker_has_an_engine_made_when_first_needed():
    engine, made = fleet()
    assert len(made) == 1
    for device in ("auto", "cuda:1", "cpu", "cuda:1", "cuda:2"):
        assert list(engine.run(slot(device), Prompt("x"), Stop()))
    assert [e.ran for e in made] == [["auto", "cpu"], ["cuda:1", "cuda:1"], ["cuda:2"]]
    assert len(engine.resident()) == 5


def test_unloading_one_goes_to_its_engine_and_all_to_all_and_closing_too():
    engine, made = fleet()
    list(engine.run(slot("cuda:1"), Prompt("x"), Stop()))
    engine.unload(ModelSpec("m", device="cuda:1"))
    engine.unload(None)
    assert [e.unloaded for e in made] == [[None], [ModelSpec("m", device="cuda:1"), None]]
    engine.close()
    assert all(e.closed for e in made)


def test_a_tensor_parallel_slot_gets_an_engine_of_as_many_processes_and_spread_layers_the_first():
    asked = []

    def make(ranks):
        asked.append(ranks)
        return Remembering()

    engine = FleetEngine(make)
    for device in ("tensor:2", "cuda:0+cuda:1", "tensor:2", "tensor:4"):
        list(engine.run(slot(device), Prompt("x"), Stop()))
    assert asked == [1, 2, 4]
