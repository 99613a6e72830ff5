"""The panel about a model's KV cache: what it would cost here, and what would spoil it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from ..checkup import Checkup, Finding
from .columns import DASH, megabytes, seconds
from .i18n import Words

MAX_BATCH = 64
MAX_POSITIONS = 131_072


@dataclass
class KvPanel:
    """Created inside the page's layout."""

    accordion: gr.Accordion = None
    batch: gr.Slider = None
    positions: gr.Slider = None
    result: gr.HTML = None


def lay_out(say: Any) -> KvPanel:
    """The panel, closed. `say` lets a component's texts follow the language."""
    panel = KvPanel()
    with gr.Accordion(open=False, elem_id="kv-panel") as panel.accordion:
        with gr.Row():
            panel.batch = gr.Slider(1, MAX_BATCH, value=1, step=1, elem_id="kv-batch", min_width=200)
            panel.positions = gr.Slider(256, MAX_POSITIONS, value=2048, step=256, elem_id="kv-positions", min_width=200)
        panel.result = gr.HTML(elem_id="kv-result", min_height=80)
    say(panel.accordion, label="kv_panel")
    say(panel.batch, label="kv_batch")
    say(panel.positions, label="kv_positions")
    return panel


def checkup_html(found: Checkup | None, batch: int, positions: int, prefill_tok_per_s: float | None, words: Words) -> str:
    """Two tables: costs and findings. `prefill_tok_per_s` is that of the last run, None without one."""
    if found is None:
        return f"<p>{escape(words('kv_unknown'))}</p>"
    resend = seconds(positions / prefill_tok_per_s) if prefill_tok_per_s else DASH
    rows = _costs(found, batch, positions, words) + [("✓", words("doctor.resend", f"{positions:,}", resend), "")]
    rows += [_row(finding, words) for finding in found.findings]
    cells = "".join(
        f'<tr data-ok="{str(mark == "✓").lower()}"><td>{mark}</td><td>{escape(text)}'
        f"{f'<br><code>{escape(remedy)}</code>' if remedy else ''}</td></tr>"
        for mark, text, remedy in rows
    )
    return f'<p>{escape(found.model)} · {escape(found.device)}</p><table class="facts">{cells}</table>'


def _costs(found: Checkup, batch: int, positions: int, words: Words) -> list[tuple[str, str, str]]:
    shape = found.shape
    if shape is None:
        return []
    needed, longest = shape.bytes(positions, batch), shape.longest(found.room_bytes, batch)
    fits = needed <= found.room_bytes
    end = words("kv_no_end") if longest is None else words("kv_end", f"{longest:,}")
    text = words("kv_cost", f"{batch:,}", f"{positions:,}", megabytes(needed), megabytes(found.room_bytes))
    return [("✓" if fits else "✗", f"{text} {end}", "" if fits else words("kv_too_much"))]


def _row(finding: Finding, words: Words) -> tuple[str, str, str]:
    text = words(f"doctor.{finding.name}", *finding.facts)
    return ("✓", text, "") if finding.ok else ("✗", text, words(f"doctor.{finding.name}.remedy"))
