"""The numbers behind the charts as one table, for screen readers and for copying."""

from __future__ import annotations

from html import escape

from ..board import Board
from .columns import DASH
from .i18n import Words
from .slot_cell import slot_cell

# Field of RunMetrics, the key of its words, how it is written.
_ROWS = (
    ("ttft_s", "table.ttft", "{:.4f}"), ("decode_tok_per_s", "table.decode", "{:.2f}"), ("e2e_tok_per_s", "table.e2e", "{:.2f}"),
    ("prefill_tok_per_s", "table.prefill", "{:.1f}"), ("prompt_tokens", "table.prompt", "{:,}"), ("new_tokens", "table.new", "{:,}"),
    ("weights_bytes", "table.weights", "{:,}"), ("drafter_bytes", "table.drafter", "{:,}"), ("kv_bytes", "table.kv", "{:,}"),
    ("peak_bytes", "table.peak", "{:,.0f}"), ("acceptance_rate", "acceptance", "{:.1%}"), ("mean_accepted_len", "accepted_len", "{:.3f}"),
    ("bandwidth_utilization", "bandwidth", "{:.1%}"), ("load_s", "table.load", "{:.3f}"), ("warmup_s", "table.warmup", "{:.3f}"),
    ("compile_s", "table.compile", "{:.2f}"), ("kl_nats", "kl", "{:.5f}"), ("top1", "top1", "{:.2%}"), ("perplexity", "perplexity", "{:.4f}"),
)


def numbers_table(board: Board, words: Words) -> str:
    """A row a number that at least one slot has, a column a slot; a dash where it could not be measured."""
    slots = board.comparison.slots
    head = "".join(slot_cell(place, slot.name, "col") for place, slot in enumerate(slots))
    rows = []
    for field, key, form in _ROWS:
        values = [getattr(board.columns[slot.id].run, field) for slot in slots]
        if any(values):
            cells = "".join(f"<td>{DASH if value is None else form.format(value)}</td>" for value in values)
            rows.append(f'<tr><th scope="row">{escape(words(key))}</th>{cells}</tr>')
    if not rows:
        return f"<p>{escape(words('chart.not_yet'))}</p>"
    return f'<table class="facts figures"><tr><td></td>{head}</tr>{"".join(rows)}</table>'
