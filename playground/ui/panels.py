"""Tables about the machine: what is loaded, and what can run."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..capabilities import Technique
from ..config import Comparison, describe_model
from ..engine import Resident
from ..forecast import Forecast
from .columns import megabytes
from .i18n import Words
from .slot_cell import slot_cell


def machine_line(machine: str, words: Words) -> str:
    """The device, in one line."""
    return f"<p>{escape(words('machine'))}: {escape(machine or words('machine_unknown'))}</p>"


def loaded_table(loaded: Sequence[Resident], words: Words) -> str:
    """A row for each set of loaded weights; below one that was quantized here, its folder."""
    if not loaded:
        return f"<p>{escape(words('models_none'))}</p>"
    head = "".join(f"<th>{escape(words(key))}</th>" for key in ("model", "bytes", "slots"))
    rows = []
    for item in loaded:
        folder = f"<br><code>{escape(item.folder)}</code>" if item.folder else ""
        rows.append(
            f"<tr><td>{escape(describe_model(item.model))}{folder}</td>"
            f"<td>{megabytes(item.bytes)} (+{megabytes(item.added_bytes)})</td><td>{item.modules}</td></tr>"
        )
    return f'<table class="facts"><tr>{head}</tr>{"".join(rows)}</table>'


def forecast_table(comparison: Comparison, found: Sequence[Forecast] | None, words: Words) -> str:
    """A row for each slot: what it needs beside what is free, what goes for it, and why it would be refused.

    None: the machine is busy.
    """
    if found is None:
        return f"<p>{escape(words('machine_busy'))}</p>"
    known = {item.slot_id: item for item in found}
    keys = ("slots", "weights", "drafter", "kv", "chart.working", "fit.needed", "fit.free", "fit.verdict")
    head = "".join(f"<th>{escape(words(key))}</th>" for key in keys)
    rows = []
    for place, slot in enumerate(comparison.slots):
        item = known.get(slot.id)
        cells = f'<td colspan="7">{escape(words("fit.not_here"))}</td>' if item is None else _forecast_cells(item, words)
        fits = "" if item is None else f' data-fits="{str(not item.problem).lower()}"'
        rows.append(f"<tr{fits}>{slot_cell(place, slot.name, 'row')}{cells}</tr>")
    return f'<table class="facts figures"><tr>{head}</tr>{"".join(rows)}</table>'


def _forecast_cells(item: Forecast, words: Words) -> str:
    amounts = (item.weights_bytes, item.drafter_bytes, item.kv_bytes, item.working_bytes, item.needed_bytes)
    verdict = [_verdict(item.problem, item.remedy, "fit.fits", words)]
    if item.evicts:
        verdict.append(escape(words("fit.evicts", ", ".join(item.evicts))))
    verdict += [f"⚠ {escape(words.said(warning))}" for warning in item.warnings]
    numbers = "".join(f"<td>{megabytes(amount)}</td>" for amount in amounts)
    free = f"{megabytes(item.free_bytes)}<br>{escape(item.device)}, {escape(item.dtype)}"
    return f"{numbers}<td>{free}</td><td>{'<br>'.join(verdict)}</td>"


def _verdict(reason: str, remedy: str, fine: str, words: Words) -> str:
    """A tick with the words behind the key `fine`, or why not and what to do."""
    return f"✗ {escape(words.said(reason))}<br><code>{escape(words.said(remedy))}</code>" if reason else f"✓ {escape(words(fine))}"


def capabilities_table(techniques: Sequence[Technique] | None, words: Words) -> str:
    """A row for each technique: runs here, or why not and what to do. None: the machine is busy."""
    if techniques is None:
        return f"<p>{escape(words('machine_busy'))}</p>"
    head = "".join(f"<th>{escape(words(key))}</th>" for key in ("technique", "runs_here"))
    rows = []
    for technique in techniques:
        kind = escape(words(f"choice.{technique.kind}"))
        verdict = _verdict(technique.reason, technique.remedy, "yes", words)
        rows.append(
            f'<tr data-runs="{str(technique.runs).lower()}"><td>{kind}: {escape(technique.name)}</td><td>{verdict}</td></tr>'
        )
    return f'<table class="facts"><tr>{head}</tr>{"".join(rows)}</table>'
