"""A Column -> its HTML. Everything that is not ours is escaped: model text is shown as typed."""

from __future__ import annotations

from html import escape

from ..board import Board, Column
from ..charts import slot_colour
from ..metrics import RunMetrics
from ..verdicts import Speedup
from .i18n import Words
from .markdown import markdown_html
from .verdict_html import differences_html, parting_row, why_slower_html

DASH = "–"


def column_html(board: Board, column: Column, words: Words, speedup: Speedup | None, markdown: bool = False) -> str:
    """One slot's column: name, difference, status, answer, numbers. `speedup` None: the reference.

    With `markdown` the answer is shown formatted.
    """
    place = board.comparison.slots.index(column.slot)
    phase = column.phase
    parts = [
        _header(board, column, words),
        _status(board, column, words),
        _answer(column, words, markdown),
        _failure(column, words),
        _numbers(board, column, words, speedup),
        differences_html(board, column, words),
        _script(column, words),
    ]
    return (
        f'<article class="slot" data-slot="{escape(column.slot.id)}" data-phase="{phase}" '
        f'style="--slot: {slot_colour(place)}">{"".join(parts)}</article>'
    )


def _header(board: Board, column: Column, words: Words) -> str:
    before, changes = board.differences(column.slot)
    if before is None:
        note = words("starts")
    elif not changes:
        note = words("same", before.name)
    else:
        changed = ", ".join(f"{words('choice.' + name)} {was} → {now}" for name, was, now in changes)
        note = f"{words('versus', before.name)}: {changed}"
    if _is_reference(board, column):
        note = f"{words('reference')} · {note}"
    name = escape(column.slot.name)
    enlarge = escape(words("focus"))
    button = f'<button type="button" class="focus" title="{enlarge}" aria-label="{enlarge}">⤢</button>'
    return f'<header><h3 title="{name}">{name}{button}</h3><p class="difference">{escape(note)}</p></header>'


def _is_reference(board: Board, column: Column) -> bool:
    return column.slot.id == board.comparison.reference


def _status(board: Board, column: Column, words: Words) -> str:
    phase = column.phase
    text = words(f"phase.{phase}", "") if phase == "loading" else words(f"phase.{phase}")
    bar = live = ""
    if phase == "queued" and column.ahead:
        text = words("phase.queued_behind", column.ahead)
    if phase == "loading" and column.loading:
        text = words("phase.loading", words.said(column.loading.stage))
        bar = _progress(column.loading.fraction)
    if phase == "done":
        text = f"{text} · {words('finish.' + str(column.run.finish))}"
    if phase == "answering":
        rate = column.live_tok_per_s
        live = f'<b class="live">{f"{rate:.1f}" if rate else DASH} tok/s</b>'
        bar = _progress(min(1.0, column.run.new_tokens / board.limit)) if board.limit else ""
    if column.repetition and phase not in ("done", "failed", "stopped"):
        key = "phase.again" if column.repetition.again else "phase.repeat"
        text = f"{text} · {words(key, column.repetition.number, column.repetition.of)}"
    contended = ""
    if board.mode == "race" and phase in ("answering", "done", "stopped"):
        contended = f'<span class="badge warn" title="{escape(words("contended_why"))}">{escape(words("contended"))}</span>'
    return f'<p class="status"><span class="dot"></span><span role="status">{escape(text)}</span>{contended}{live}</p><div class="bar">{bar}</div>'


def _progress(fraction: float | None) -> str:
    return "<progress></progress>" if fraction is None else f'<progress value="{fraction:.3f}" max="1"></progress>'


def _answer(column: Column, words: Words, markdown: bool) -> str:
    if markdown:
        return f'<div class="answer" tabindex="0"><div class="text markdown">{markdown_html(column.text)}</div></div>'
    # The outer box is laid out in reverse, which keeps the end of a growing answer in view.
    text = escape(column.text) if column.slot.decode.speculation == "none" else _tinted(column, words)
    return f'<div class="answer" tabindex="0"><div class="text">{text}</div></div>'


def _tinted(column: Column, words: Words) -> str:
    """The answer with the accepted drafts marked, each with its round on hover."""
    rounds, drafts = column.rounds, column.drafts
    spans = []
    for text, number in column.pieces:
        if number is None:
            spans.append(escape(text))
            continue
        why = words("round_count", number + 1, rounds[number].accepted, rounds[number].drafted)
        if drafts and drafts.rejected[number]:
            why += " · " + words("round_lost", drafts.rejected[number])
        spans.append(f'<span class="drafted" title="{escape(why)}">{escape(text)}</span>')
    return "".join(spans)


def _failure(column: Column, words: Words) -> str:
    failure = column.failure
    if failure is None:
        return '<div class="failure" hidden></div>'
    hint = f"<p>{escape(words.said(failure.hint))}</p>" if failure.hint else ""
    return f'<div class="failure" role="alert"><strong>{escape(words.said(failure.message))}</strong>{hint}</div>'


def _numbers(board: Board, column: Column, words: Words, speedup: Speedup | None) -> str:
    run = column.run
    rows = [
        _speedup_row(board, column, words, speedup),
        _row(words("decode"), _number(run.decode_tok_per_s, "{:.1f} tok/s"), _of_runs(column, words), main=True),
        _row(words("ttft"), seconds(run.ttft_s), _of_runs(column, words), main=True),
        _row(words("e2e"), _number(run.e2e_tok_per_s, "{:.1f} tok/s")),
        _row(words("tokens"), _tokens(run), words("tokens_visible", run.visible_tokens, run.new_tokens)),
        _row(words("peak"), megabytes(run.peak_bytes), _peak_why(run, words)),
        _row(words("weights"), megabytes(run.weights_bytes), _shared(board, column, words)),
        _row(words("kv"), megabytes(run.kv_bytes), words("kv_why", megabytes(run.kv_predicted_bytes))),
        _row(words("load"), seconds(run.load_s), words("load_why", seconds(run.warmup_s))),
    ]
    if run.batch > 1:
        rows.insert(2, _row(words("all_rate"), _number(run.all_tok_per_s, "{:.1f} tok/s"), words("all_rate_why", run.batch), main=True))
    if run.compile_s is not None:
        rows.append(_row(words("compile"), seconds(run.compile_s), words("compile_why")))
    if column.slot.decode.keep_prefix and run.prompt_tokens:
        rows.append(_row(words("reused"), f"{run.reused_tokens:,} / {run.prompt_tokens:,}"))
    if run.kernels:
        rows.append(_row(words("kernels"), run.kernels, words("kernels_why", run.enabled_kernels)))
    if run.quantized_layers is not None:
        rows.append(_row(words("quantized_layers"), f"{run.quantized_layers:,}"))
    if run.drafter_bytes is not None:
        rows.insert(7, _row(words("drafter"), megabytes(run.drafter_bytes)))
    if column.slot.decode.speculation != "none":
        why = words("acceptance_why", run.accepted, run.drafted, run.rounds)
        rows.append(_row(words("acceptance"), _number(run.acceptance_rate, "{:.0%}"), why))
        rows.append(_row(words("accepted_len"), _number(run.mean_accepted_len, "{:.2f}"), words("accepted_len_why")))
        rows.append(_row(words("draft_time"), seconds(run.draft_s), words("draft_time_why")))
        rows.append(_row(words("verify_time"), seconds(run.verify_s), words("verify_time_why")))
        even = board.break_even(column.slot) if column.ended else None
        if even is not None:
            why = words("round_cost_why", seconds(even.round_s), seconds(even.step_s), f"{even.cost:.2f}")
            value = words("round_cost_value", f"{even.cost:.2f}", f"{even.yielded:.2f}")
            rows.append(_row(words("round_cost"), value, why))
        gain = board.gain(column.slot)
        if gain is not None:
            plain = board.plain_slot(column.slot)
            why = words("speedup_of", plain.name)
            if gain.reason and column.ended:
                why = words(f"why.{gain.reason}", *gain.details)
            rows.insert(1, _row(words("gain"), _number(gain.value, "{:.2f}×"), why, main=True, slower=(gain.value or 1) < 1))
    if run.bandwidth_utilization is not None and column.ended:
        why = words("bandwidth_why", f"{run.copy_bytes_per_s / 1e9:.0f}")
        rows.append(_row(words("bandwidth"), f"{run.bandwidth_utilization:.0%}", why))
    if parted := parting_row(board, column, words):
        rows.append(_row(*parted))
    rows += _quality(run, words)
    notes = [words.said(note) for note in run.notes]
    if run.recompiled_s:
        notes.append(words("recompiled", seconds(run.recompiled_s)))
    if column.slot.decode.speculation != "none":
        notes.append(words(f"pays.{column.slot.decode.speculation}"))
    source = why_slower_html(board, column, words) if column.ended else ""
    source += "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
    if run.source:
        where = f"{words('source')} {words.said(run.source)} · {run.dtype} · {run.device}"
        source += f'<p class="source" title="{escape(where)}">{escape(where)}</p>'
    return f'<dl class="numbers">{"".join(rows)}</dl>{source}'


def _script(column: Column, words: Words) -> str:
    """The slot as source, once nothing redraws the column: a redraw would fold it up again."""
    if not (column.ended and column.script):
        return ""
    return f'<details class="script"><summary>{escape(words("script"))}</summary><pre tabindex="0">{escape(column.script)}</pre></details>'


def _quality(run: RunMetrics, words: Words) -> list[str]:
    """Three rows once quality is measured, one with the reason where it could not be, else none."""
    if run.no_quality:
        return [_row(words("no_quality"), DASH, words.said(run.no_quality))]
    if run.perplexity is None:
        return []
    by_text = ", ".join(f"{words('text.' + name)} {value:.3g}" for name, value in run.perplexity_by_text)
    return [
        _row(words("kl"), f"{run.kl_nats:.3g}", words("kl_why", run.quality_positions), main=True),
        _row(words("top1"), f"{run.top1:.1%}", words("top1_why", run.quality_positions), main=True),
        _row(words("perplexity"), f"{run.perplexity:.4g}", by_text, main=True),
    ]


def _speedup_row(board: Board, column: Column, words: Words, speedup: Speedup | None) -> str:
    reference = next(s.name for s in board.comparison.slots if s.id == board.comparison.reference)
    label = words("speedup")
    if speedup is None:
        return _row(label, words("reference"), main=True)
    why = words("speedup_of", reference)
    if speedup.reason and column.ended:
        why = words(f"why.{speedup.reason}", *speedup.details)
    return _row(label, _number(speedup.value, "{:.2f}×"), why, main=True, slower=(speedup.value or 1) < 1)


def _row(label: str, value: str, why: str = "", main: bool = False, slower: bool = False) -> str:
    kinds = " ".join(kind for kind, on in (("main", main), ("slower", slower), ("why", bool(why))) if on)
    return f'<div class="{kinds}" title="{escape(why)}"><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>'


def _of_runs(column: Column, words: Words) -> str:
    return words("benchmark.median", len(column.series.runs)) if column.series else ""


def _number(value: float | None, form: str) -> str:
    return DASH if value is None else form.format(value)


def seconds(value: float | None) -> str:
    """A duration in the unit that reads best; a dash for None."""
    if value is None:
        return DASH
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


def megabytes(value: int | None) -> str:
    """Bytes in MB or GB (powers of ten); a dash for None."""
    if value is None:
        return DASH
    if value == 0:
        return "0 MB"
    if value >= 1e9:
        return f"{value / 1e9:.2f} GB"
    return f"{value / 1e6:.1f} MB" if value < 100e6 else f"{value / 1e6:.0f} MB"


def _tokens(run: RunMetrics) -> str:
    return DASH if run.prompt_tokens is None else f"{run.prompt_tokens:,} → {run.new_tokens:,}"


def _peak_why(run: RunMetrics, words: Words) -> str:
    if run.memory_counter is None:
        return ""
    return words("peak_why", run.memory_counter, megabytes(run.run_peak_bytes))


def _shared(board: Board, column: Column, words: Words) -> str:
    sharers = board.sharers(column.slot)
    return words("weights_shared", sharers) if sharers > 1 else ""
