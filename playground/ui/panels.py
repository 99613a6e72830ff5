"""Tables about the machine: what is loaded, and what can run."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..capabilities import Technique
from ..config import describe_model
from ..scheduler import Resident
from .columns import megabytes
from .i18n import Words


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


def capabilities_table(techniques: Sequence[Technique] | None, words: Words) -> str:
    """A row for each technique: runs here, or why not and what to do. None: the machine is busy."""
    if techniques is None:
        return f"<p>{escape(words('machine_busy'))}</p>"
    head = "".join(f"<th>{escape(words(key))}</th>" for key in ("technique", "runs_here"))
    rows = []
    for technique in techniques:
        kind = escape(words(f"choice.{technique.kind}"))
        verdict = f"✓ {escape(words('yes'))}"
        if not technique.runs:
            verdict = f"✗ {escape(technique.reason)}<br><code>{escape(technique.remedy)}</code>"
        rows.append(
            f'<tr data-runs="{str(technique.runs).lower()}"><td>{kind}: {escape(technique.name)}</td><td>{verdict}</td></tr>'
        )
    return f'<table class="facts"><tr>{head}</tr>{"".join(rows)}</table>'
