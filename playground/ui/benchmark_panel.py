"""A benchmark on the page: how far it is, and its table once it has ended, with what a file of it needs."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from ..board import Board
from ..config import REPEATS
from ..events import Repetition
from ..protocol import Outcome, Series
from ..report import DASH, gaps, number, report, spread
from ..runcard import Machine, RunCard, save
from .columns import megabytes, seconds
from .i18n import Words
from .slot_cell import slot_cell


@dataclass
class BenchmarkPanel:
    """Created inside the page's layout."""

    repeats: gr.Radio = None
    progress: gr.HTML = None
    result: gr.HTML = None
    card: gr.DownloadButton = None
    markdown: gr.DownloadButton = None


def lay_out_control(panel: BenchmarkPanel, say: Any) -> None:
    """How often a benchmark runs each slot."""
    panel.repeats = gr.Radio(list(REPEATS), value=REPEATS[1], elem_id="repeats", min_width=250)
    say(panel.repeats, label="repeats")


def lay_out_result(panel: BenchmarkPanel, say: Any) -> None:
    """The table and its files, empty until a benchmark has ended."""
    panel.result = gr.HTML(elem_id="benchmark")
    with gr.Row(elem_id="benchmark-files"):
        panel.card = gr.DownloadButton(visible=False, elem_id="card", size="sm")
        panel.markdown = gr.DownloadButton(visible=False, elem_id="markdown", size="sm")
    say(panel.card, label="benchmark.card")
    say(panel.markdown, label="benchmark.markdown")


def progress_html(board: Board, words: Words) -> str:
    """A bar with the runs so far and the time that is left; empty when no benchmark runs."""
    found = board.repetition
    if found is None:
        return ""
    return progress_bar(found.done / found.total, runs_so_far(found, words))


def runs_so_far(found: Repetition, words: Words) -> str:
    """Which run of how many is under way, and about how long all of them will still take."""
    text = words("benchmark.progress", found.done + 1, found.total)
    if found.left_s is None:
        return text
    return f"{text} · " + words("benchmark.left", seconds(found.left_s) if found.left_s < 90 else f"{found.left_s / 60:.0f} min")


def progress_bar(fraction: float, text: str) -> str:
    """A bar and what it says, for screen readers too."""
    return f'<div class="benchmark-progress" role="status"><progress value="{fraction:.3f}"></progress><span>{escape(text)}</span></div>'


def result_html(board: Board, machine: Machine | None, words: Words) -> str:
    """The table: medians and spreads of every slot, what they stand against, and how it was measured."""
    outcome = board.outcome
    if outcome is None:
        return ""
    keys = ("slots", "speedup", "decode", "ttft", "benchmark.gaps", "benchmark.variation", "acceptance", "peak", "benchmark.runs")
    head = "".join(f"<th>{escape(words(key))}</th>" for key in keys)
    rows = "".join(_row(place, outcome, series, words) for place, series in enumerate(outcome.series))
    notes = "".join(f"<p>{escape(note)}</p>" for note in _notes(outcome, machine, words))
    return f'<div class="benchmark">{notes}<table class="facts figures"><tr>{head}</tr>{rows}</table></div>'


def _row(place: int, outcome: Outcome, series: Series, words: Words) -> str:
    name = slot_cell(place, series.slot.name, "row")
    if series.failure:
        return f'<tr>{name}<td colspan="8">{escape(words.said(series.failure))}</td></tr>'
    cells = [
        _verdict(outcome, series, words),
        spread(series, "decode_tok_per_s", "{:.2f}"),
        spread(series, "ttft_s", "{:.3f}"),
        gaps(series),
        number(series.variation("decode_tok_per_s"), "{:.1%}"),
        number(series.median("acceptance_rate"), "{:.0%}"),
        megabytes(int(peak)) if (peak := series.median("peak_bytes")) else DASH,
        ", ".join(f"{value:.1f}" for value in series.values("decode_tok_per_s")) or DASH,
    ]
    return f"<tr>{name}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _verdict(outcome: Outcome, series: Series, words: Words) -> str:
    if series is outcome.reference:
        return words("reference")
    verdict = outcome.verdict(series)
    return words(f"why.{verdict.reason}", *verdict.details) if verdict.reason else f"{verdict.value:.2f}×"


def _notes(outcome: Outcome, machine: Machine | None, words: Words) -> list[str]:
    floor = outcome.noise_floor("decode_tok_per_s")
    notes = [words("benchmark.how", outcome.repeats, outcome.prompt.settings.new_tokens)]
    notes.append(words("benchmark.noise", number(floor, "{:.1%}")))
    if outcome.order == "blocked":
        notes.append(words("benchmark.blocked"))
    if outcome.stopped:
        notes.append(words("benchmark.stopped"))
    if machine is not None and machine.busy:
        notes.append(words("benchmark.busy", f"{machine.load:.1f}", machine.cores))
    return notes


def write_files(card: RunCard, below: Path) -> tuple[str, str]:
    """The card as JSON and as Markdown, in a folder of their own below the given one; returns both paths."""
    folder = Path(tempfile.mkdtemp(dir=below))
    stem = f"{card.outcome.comparison.id}-{card.made[:16].replace(':', '')}"
    save(card, folder / f"{stem}.json")
    (folder / f"{stem}.md").write_text(report(card), encoding="utf-8")
    return str(folder / f"{stem}.json"), str(folder / f"{stem}.md")
