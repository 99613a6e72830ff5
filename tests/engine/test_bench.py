"""The benchmark command on a tiny model."""

import subprocess
import sys
from pathlib import Path

from playground.runcard import load

from .conftest import make_model

ROOT = Path(__file__).resolve().parents[2]


def bench(*flags):
    return subprocess.run(
        [sys.executable, "-m", "playground.bench", *flags], cwd=ROOT, capture_output=True, text=True, timeout=280
    )


def test_a_benchmark_runs_writes_its_card_and_compares_with_itself(tmp_path):
    model, out = make_model(tmp_path / "m"), tmp_path / "card.json"
    flags = ["kv-cache", "--model", model, "--repeat", "2", "--new-tokens", "4", "--cache", str(tmp_path), "--offline"]
    done = bench(*flags, "--json", str(out), "--markdown")
    assert done.returncode == 0, done.stderr
    assert "Noise floor" in done.stdout and "| KV cache |" in done.stdout
    card = load(out)
    assert [len(s.runs) for s in card.outcome.series] == [2, 2] and len(card.outcome.twin.runs) == 2
    assert all(run.new_tokens == 4 for series in card.outcome.series for run in series.runs)
    assert card.outcome.order == "interleaved" and "threads" in card.machine.device
    same = bench("--against", str(out), str(out))
    assert same.returncode == 0 and "1.00×" in same.stdout


def test_a_slot_that_fails_and_a_wrong_request_have_their_own_status(tmp_path):
    failed = bench("kv-cache", "--model", str(tmp_path / "none"), "--repeat", "1", "--cache", str(tmp_path), "--offline")
    assert failed.returncode == 1 and "failed: model:" in failed.stdout
    wrong = bench("no-such-preset")
    assert wrong.returncode == 2 and "preset" in wrong.stderr and "five-ways" in wrong.stderr
