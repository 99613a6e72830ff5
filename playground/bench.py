"""python -m playground.bench PRESET: the benchmark protocol without a page.

Exit status: 0 done, 1 a slot failed, 2 the request was wrong, 130 stopped (what is complete is written).
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sys
from pathlib import Path
from typing import Any

from .checks import ConfigError
from .config import MOST_REPEATS, Comparison, Prompt, checked_prompt, checked_settings
from .engine import Stop
from .engines.fleet import worker_fleet
from .engines.options import EngineOptions, default_cache_folder
from .presets import find_preset, load_presets
from .protocol import Step, benchmark
from .report import against, report
from .runcard import Machine, card_of, load, now, save, this_machine
from .sweep import VARIABLES, Sweep, Swept, checked_values, sweep

DEFAULT_PROMPT = "Why is the sky blue? Explain it to a ten-year-old."


def main() -> None:
    """Run it, or compare two earlier runs."""
    flags = _flags()
    try:
        status = _against(flags.against) if flags.against else _bench(flags)
    except ConfigError as error:
        print(f"bench: {error}", file=sys.stderr)
        status = 2
    raise SystemExit(status)


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m playground.bench", description="Benchmark the slots of a preset.")
    parser.add_argument("preset", nargs="?", help="a file name in presets/, such as five-ways")
    add_request_flags(parser)
    parser.add_argument("--repeat", type=int, default=5, help="runs a slot (%(default)s)")
    parser.add_argument("--sweep", metavar="SETTING=VALUES", help=f"a benchmark at each value, such as new_tokens=16,64; one of {', '.join(VARIABLES)}")
    parser.add_argument("--slots", help="ids to run, separated by commas (all)")
    parser.add_argument("--model", help="hub id or folder that replaces the preset's model")
    parser.add_argument("--json", type=Path, help="file to write the run card to")
    parser.add_argument("--markdown", action="store_true", help="print the table even with --json")
    parser.add_argument("--against", nargs=2, type=Path, metavar="CARD", help="compare two run cards instead")
    return parser.parse_args()


def add_request_flags(parser: argparse.ArgumentParser) -> None:
    """What every command that runs a comparison asks for: the prompt, its length, and where models are."""
    parser.add_argument("--prompt", default=DEFAULT_PROMPT)
    parser.add_argument("--new-tokens", type=int, help="ids every slot generates (as the preset says)")
    parser.add_argument("--cache", default=default_cache_folder(), help="folder for converted models (%(default)s)")
    parser.add_argument("--offline", action="store_true", help="never ask a hub or package index")


def asked_prompt(flags: argparse.Namespace, comparison: Comparison, **settings: Any) -> Prompt:
    """The prompt of those flags, with these settings over the comparison's own. Raises ConfigError."""
    length = {} if flags.new_tokens is None else {"new_tokens": flags.new_tokens}
    return checked_prompt(flags.prompt, checked_settings(settings | length, comparison.settings))


def _against(paths: list[Path]) -> int:
    print(against(load(paths[0]), load(paths[1])), end="")
    return 0


def _bench(flags: argparse.Namespace) -> int:
    if not 1 <= flags.repeat <= MOST_REPEATS:
        raise ConfigError("--repeat", f"got {flags.repeat}; give a number from 1 to {MOST_REPEATS}.")
    comparison = find_preset(load_presets(), flags.preset)
    if flags.slots:
        comparison = comparison.only(flags.slots.split(","))
    if flags.model:
        comparison = comparison.with_model(flags.model)
    prompt = asked_prompt(flags, comparison)
    swept = _sweep(flags.sweep) if flags.sweep else None
    stop = Stop()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    engine = worker_fleet(EngineOptions(flags.cache, offline=flags.offline))
    made, before = now(), this_machine("")
    try:
        if swept:
            found = sweep(engine, comparison, prompt, *swept, flags.repeat, stop, lambda value, step: _say(step, f"{swept[0]} = {value}, "))
        else:
            outcome = benchmark(engine, comparison, prompt, flags.repeat, stop, _say)
        machine = dataclasses.replace(before, device=engine.machine())
    finally:
        engine.close()
    print("\r\033[K", end="", file=sys.stderr)
    if swept:
        return _tell_sweep(found, len(swept[1]), machine, made, flags)
    card = card_of(outcome, machine, made)
    if flags.json:
        save(card, flags.json)
    if flags.markdown or not flags.json:
        print(report(card), end="")
    if outcome.stopped:
        return 130
    return 1 if any(series.failure for series in (*outcome.series, outcome.twin)) else 0


def _sweep(given: str) -> tuple[Swept, tuple[int, ...]]:
    variable, _, values = given.partition("=")
    return checked_values(variable, values)


def _tell_sweep(found: Sweep, wanted: int, machine: Machine, made: str, flags: argparse.Namespace) -> int:
    """A card a value beside the file that was named, and the tables one after another."""
    for point in found.points:
        card = card_of(point.outcome, machine, made)
        if flags.json:
            save(card, flags.json.with_name(f"{flags.json.stem}-{found.variable}-{point.value}{flags.json.suffix}"))
        if flags.markdown or not flags.json:
            print(f"# {found.variable} = {point.value}\n\n{report(card)}")
    if len(found.points) < wanted:
        return 130
    return 1 if any(series.failure for point in found.points for series in point.outcome.series) else 0


def _say(step: Step, where: str = "") -> None:
    left = "" if step.left_s is None else f", about {step.left_s / 60:.0f} min left" if step.left_s > 90 else f", about {step.left_s:.0f} s left"
    print(f"\r\033[K{where}{step.done + 1} of {step.total}: {step.slot.name}{left}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
