"""python -m playground.record PRESET --out FILE: runs a comparison fairly and keeps it for replay."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from .bench import add_request_flags, asked_prompt
from .board import Board
from .checks import ConfigError
from .engines.fleet import worker_fleet
from .engines.options import EngineOptions
from .presets import find_preset, load_presets
from .recording import record, save
from .runcard import now, this_machine
from .scheduler import Scheduler


def main() -> None:
    """Run it twice, so that the second run finds everything loaded, and keep the second."""
    parser = argparse.ArgumentParser(prog="python -m playground.record", description="Record a comparison for replay.")
    parser.add_argument("preset", help="a file name in presets/, such as five-ways")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    add_request_flags(parser)
    flags = parser.parse_args()
    try:
        comparison = find_preset(load_presets(), flags.preset)
        prompt = asked_prompt(flags, comparison, ignore_eos=True)
    except ConfigError as error:
        raise SystemExit(f"record: {error}") from None
    engine = worker_fleet(EngineOptions(flags.cache, offline=flags.offline))
    made, machine = now(), this_machine("")
    try:
        for _ in range(2):
            board = Board(comparison)
            board.absorb(Scheduler(engine).submit(comparison, prompt, "fair", "record").events())
        found = record(board, prompt.text, dataclasses.replace(machine, device=engine.machine()), made)
    finally:
        engine.close()
    if found is None or len(found.tracks) < len(comparison.slots):
        raise SystemExit("record: not every slot finished; nothing is written.")
    save(found, flags.out)
    print(f"{flags.out}: {', '.join(track.name for track in found.tracks)}", file=sys.stderr)


if __name__ == "__main__":
    main()
