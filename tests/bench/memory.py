"""What sharing weights saves: peak resident memory of the five default slots together over each alone,
and the same for a plain script that keeps one load per configuration.

    python -m tests.bench.memory

Every figure is the kernel's peak (VmHWM) of a fresh process that ran the slots once.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import mean

from playground.config import Prompt, Settings
from playground.engines.embedded import locate_builtin
from playground.engines.options import EngineOptions, default_cache_folder
from playground.engines.worker import WorkerEngine
from playground.events import Failed
from playground.presets import load_presets
from playground.scheduler import Scheduler

from .sides import PROMPT, ROOT, SLOTS

NAIVE = """
import sys
from playground.engines.quiet import quieten
from tests.bench import plain
quieten()
folder, ids, kept = sys.argv[1], plain.inputs(sys.argv[1]), []
for slot in plain.SLOTS:
    kept.append(plain.load(slot, folder))
    plain.generate(kept[-1], slot, ids, plain.NEW_TOKENS)
from tests.bench.memory import weights_bytes
print(sum(map(weights_bytes, kept)), *[line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')])
"""


def weights_bytes(model: object) -> int:
    """Bytes of one loaded model's tensors."""
    from playground.engines.memory import bytes_of

    return bytes_of(model)


def together(options: EngineOptions, slots: tuple[str, ...]) -> tuple[int, int]:
    """Peak RSS of a new worker that loads and runs these slots; and bytes of all weights, shared ones once."""
    engine = WorkerEngine(options)
    comparison = load_presets()["five-ways"].only(list(slots))
    prompt = Prompt(PROMPT, Settings(new_tokens=64, ignore_eos=True))
    highest = 0
    for item in Scheduler(engine).submit(comparison, prompt, "fair", "bench").events():
        if isinstance(item.event, Failed):
            raise SystemExit(item.event.message)
        if engine.pid:  # the kernel's peak restarts with every run, so it is read at every event
            highest = max(highest, _peak_rss(engine.pid))
    weights = sum(item.added_bytes for item in engine.resident())
    engine.close()
    return highest, weights


def _peak_rss(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    options = EngineOptions(default_cache_folder())
    folder = str(locate_builtin(options, lambda stage, fraction: None)[0])
    alone = {slot: together(options, (slot,)) for slot in SLOTS}
    for slot, (peak, weights) in alone.items():
        print(f"{slot:14s} alone: peak {peak / 1e6:6.0f} MB, weights {weights / 1e6:4.0f} MB")
    peak, weights = together(options, SLOTS)
    print(f"five together      : peak {peak / 1e6:6.0f} MB, weights {weights / 1e6:4.0f} MB")
    naive = subprocess.run([sys.executable, "-c", NAIVE, folder], cwd=ROOT, capture_output=True, text=True, check=True)
    naive_weights, naive_peak = (int(v) for v in naive.stdout.split()[-2:])
    print(f"five plain loads   : peak {naive_peak * 1024 / 1e6:6.0f} MB, weights {naive_weights / 1e6:4.0f} MB")
    single = mean(p for p, _ in alone.values())
    largest = max(w for _, w in alone.values())
    print(f"peak   : together / alone (mean of five) {peak / single:.2f}; plain loads / alone {naive_peak * 1024 / single:.2f}")
    print(f"weights: together / alone (largest)      {weights / largest:.2f}; plain loads / alone {naive_weights / largest:.2f}")


if __name__ == "__main__":
    main()
