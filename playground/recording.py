"""A finished fair comparison as it unfolded: what a replay plays. Plain data, and a file of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from .board import Board, Column
from .cards import read_card, write_card
from .checks import ConfigError
from .events import Done, Started, Tokens
from .runcard import Machine
from .verdicts import FINISHED

SCHEMA = 2
RECORDINGS_FOLDER = Path(__file__).resolve().parent.parent / "presets" / "recordings"


@dataclass(frozen=True)
class Step:
    """One group of ids as it arrived: seconds since the slot's own start, ids so far, and its text.

    The first `drafted_chars` characters of the text come from accepted drafts.
    """

    t_s: float
    ids: int
    text: str
    drafted_chars: int = 0


@dataclass(frozen=True)
class Track:
    """One slot's run. `place` is the slot's in the comparison, which has more of them where some did not finish.

    `speedup` over the reference is None where none may be given.
    """

    slot_id: str
    place: int
    name: str
    steps: tuple[Step, ...]
    ttft_s: float | None
    decode_tok_per_s: float | None
    memory_bytes: int | None
    speedup: float | None


@dataclass(frozen=True)
class Recording:
    """`made` is the local date and time; `machine` is what it was measured on."""

    schema: int
    made: str
    title: str
    title_ko: str
    prompt: str
    reference: str
    machine: Machine
    tracks: tuple[Track, ...]


def record(board: Board, prompt: str, machine: Machine, made: str) -> Recording | None:
    """The slots that finished; None for a race or a benchmark, and where nothing finished: only fair runs are replayed."""
    if board.mode != "fair":
        return None
    speedups = board.speedups()
    tracks = [
        _track(place, column, speedups[slot].value if slot in speedups else None)
        for place, (slot, column) in enumerate(board.columns.items())
        if column.run.finish in FINISHED and column.run.new_tokens
    ]
    if not tracks:
        return None
    what = board.comparison
    return Recording(SCHEMA, made, what.title, what.title_ko, prompt, what.reference, machine, tuple(tracks))


def _track(place: int, column: Column, speedup: float | None) -> Track:
    run, steps, ids = column.run, [], 0
    began = next(event.t_ns for event in column.events if isinstance(event, Started))
    for event in column.events:
        if isinstance(event, Tokens):
            ids += len(event.ids)
            steps.append(Step(round((event.t_ns - began) / 1e9, 4), ids, event.text, event.drafted_chars))
        elif isinstance(event, Done) and event.text:
            steps[-1] = dataclasses.replace(steps[-1], text=steps[-1].text + event.text)
    return Track(column.slot.id, place, column.slot.name, tuple(steps), run.ttft_s, run.decode_tok_per_s, run.held_bytes, speedup)


def save(recording: Recording, path: Path) -> None:
    """Write a recording; the file appears by one rename."""
    write_card(recording, path)


def load(path: Path) -> Recording:
    """A recording from a file, every part of it checked. Raises ConfigError naming what is wrong."""
    found = read_card(path, Recording, SCHEMA)
    for track in found.tracks:
        times = [step.t_s for step in track.steps]
        if not times or times != sorted(times) or times[0] < 0:
            raise ConfigError(f"{path.name}: {track.slot_id}", "has no steps, or steps that are not in the order of time.")
    return found


def load_recordings(folder: Path = RECORDINGS_FOLDER) -> dict[str, Recording]:
    """Every recording of a folder by file name. Raises ConfigError for one that cannot be read."""
    return {path.stem: load(path) for path in sorted(folder.glob("*.json"))}
