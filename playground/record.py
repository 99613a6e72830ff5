"""python -m playground.record PRESET --out FILE: runs a comparison once, fairly, and keeps it for replay."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from .bench import DEFAULT_PROMPT
from .board import Board
from .checks import ConfigError
from .config import checked_prompt, checked_settings
from .engines.fleet import FleetEngine
from .engines.options import EngineOptions, default_cache_folder
from .engines.worker import WorkerEngine
from .presets import find_preset, load_presets
from .recording import record, save
from .runcard import now, this_machine
from .scheduler import Scheduler


def main() -> None:
    """Run it twice, so that the second run finds everything loaded, and keep the second."""
    parser = argparse.ArgumentParser(prog="python -m playground.record", description="Record a comparison for replay.")
    parser.add_argument("preset", help="a file name in presets/, such as five-ways")
    parser.add_argument("--out", type=Path, required=True, help="file to write")
    parser.add_argument("--prompt", default=DEFAULT_PROMPT)
    parser.add_argument("--new-tokens", type=int, help="ids every slot generates (as the preset says)")
    parser.add_argument("--cache", default=default_cache_folder(), help="folder for converted models (%(default)s)")
    parser.add_argument("--offline", action="store_true", help="never ask a hub or package index")
    flags = parser.parse_args()
    try:
        comparison = find_preset(load_presets(), flags.preset)
        asked = {"ignore_eos": True} | ({} if flags.new_tokens is None else {"new_tokens": flags.new_tokens})
        prompt = checked_prompt(flags.prompt, checked_settings(asked, comparison.settings))
    except ConfigError as error:
        raise SystemExit(f"record: {error}") from None
    engine = FleetEngine(lambda ranks: WorkerEngine(EngineOptions(flags.cache, offline=flags.offline), ranks))
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
