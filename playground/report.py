"""Run cards as Markdown: one benchmark, or two side by side."""

from __future__ import annotations

import dataclasses

from .config import Settings, differences
from .protocol import Outcome, Series
from .runcard import RunCard
from .verdicts import REASONS

DASH = "–"


def report(card: RunCard) -> str:
    """A benchmark's table, the noise it stands against, and the machine."""
    outcome, machine = card.outcome, card.machine
    lines = [
        f"## {outcome.comparison.title}",
        "",
        f"{outcome.repeats} runs a slot, {outcome.order}, {outcome.prompt.settings.new_tokens} new tokens, greedy, end of "
        f"sequence ignored. Median ± median absolute deviation; ratios against {outcome.reference.slot.name}.",
        "",
        "| slot | decode tok/s | over the reference | TTFT, s | p50 / p90 / p99 gap, ms | variation | acceptance | peak MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_row(outcome, series) for series in outcome.series),
        "",
        *_notes(card),
        "",
        f"{machine.device}; {machine.processor}, {machine.cores} cores, {machine.memory_bytes / 1e9:.0f} GB; {machine.system}; "
        f"Python {machine.python}; {', '.join(f'{n} {v}' for n, v in machine.libraries)}; {card.made}.",
    ]
    return "\n".join(lines) + "\n"


def against(ours: RunCard, theirs: RunCard) -> str:
    """Two cards, slot by slot: decode rate and TTFT of the first over the second.

    Withheld where the two were not asked for the same, or a slot is not the same in both.
    """
    unequal = unequal_requests(ours, theirs)
    if unequal:
        asked = [_difference(*found) for found in unequal]
        return "\n".join(["No ratios: the two runs were not asked for the same.", "", *asked]) + "\n"
    lines = ["| slot | decode rate, first over second | TTFT, first over second |", "| --- | --- | --- |"]
    others = {series.slot.id: series for series in theirs.outcome.series}
    changed = {s.slot.id for s in ours.outcome.series if s.slot.id in others and differences(others[s.slot.id].slot, s.slot)}
    for series in ours.outcome.series:
        other = others.get(series.slot.id) if series.slot.id not in changed else None
        lines.append(f"| {_cell(series.slot.name)} | {_over(series, other, 'decode_tok_per_s')} | {_over(series, other, 'ttft_s')} |")
    lines += [f"- {slot}: another slot in the two cards, not compared" for slot in sorted(changed)]
    lines += ["", *(_difference(name, a, b) for name, a, b in _machines(ours, theirs) if a != b)]
    return "\n".join(lines).rstrip() + "\n"


def unequal_requests(ours: RunCard, theirs: RunCard) -> list[tuple[str, str, str]]:
    """What the two runs were asked for differently: the prompt, and every setting that decides what a slot does."""
    a, b = ours.outcome.prompt, theirs.outcome.prompt
    pairs = [("prompt", a.text, b.text), ("history", str(a.histories), str(b.histories))]
    pairs += [(f.name, str(getattr(a.settings, f.name)), str(getattr(b.settings, f.name))) for f in dataclasses.fields(Settings)]
    return [(name, one, other) for name, one, other in pairs if one != other]


def _row(outcome: Outcome, series: Series) -> str:
    if series.failure:
        return f"| {_cell(series.slot.name)} | failed: {_cell(series.failure)} | | | | | | |"
    peak = series.median("peak_bytes")
    cells = [
        _cell(series.slot.name),
        spread(series, "decode_tok_per_s", "{:.1f}"),
        _verdict(outcome, series),
        spread(series, "ttft_s", "{:.3f}"),
        gaps(series),
        number(series.variation("decode_tok_per_s"), "{:.1%}"),
        number(series.median("acceptance_rate"), "{:.0%}"),
        number(peak and peak / 1e6, "{:,.0f}"),
    ]
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Text that stays inside its cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _verdict(outcome: Outcome, series: Series) -> str:
    if series is outcome.reference:
        return "reference"
    verdict = outcome.verdict(series)
    return REASONS[verdict.reason].format(*verdict.details) if verdict.reason else f"{verdict.value:.2f}×"


def _notes(card: RunCard) -> list[str]:
    outcome = card.outcome
    floor = outcome.noise_floor("decode_tok_per_s")
    notes = [f"Noise floor: the reference against itself differed by up to {number(floor, '{:.1%}')}."]
    if outcome.order == "blocked":
        notes.append("The weights of all slots do not fit together, so each slot's runs followed one another.")
    if card.machine.busy:
        notes.append(f"The machine was busy when this began (load {card.machine.load:.1f} on {card.machine.cores} cores).")
    if outcome.stopped:
        notes.append("Stopped before the end; the complete runs are shown.")
    return notes


def spread(series: Series, metric: str, form: str) -> str:
    """A metric's median and median absolute deviation; a dash where it was not measured."""
    middle, deviation = series.median(metric), series.mad(metric)
    return DASH if middle is None else f"{form.format(middle)} ± {form.format(deviation)}"


def gaps(series: Series) -> str:
    """p50, p90 and p99 of the gaps between steps, in milliseconds; a dash without any."""
    found = series.gaps()
    return " / ".join(f"{1e3 * found[p]:.0f}" for p in ("p50", "p90", "p99")) if found else DASH


def number(value: float | None, form: str) -> str:
    """A number as a cell shows it; a dash for None."""
    return DASH if value is None else form.format(value)


def _over(ours: Series, theirs: Series | None, metric: str) -> str:
    a, b = ours.median(metric), theirs.median(metric) if theirs else None
    return DASH if a is None or not b else f"{a / b:.2f}×"


def _machines(ours: RunCard, theirs: RunCard) -> list[tuple[str, str, str]]:
    def facts(card: RunCard) -> dict[str, str]:
        machine = card.machine
        return {"machine": f"{machine.device}, {machine.processor}", **dict(machine.libraries)}

    a, b = facts(ours), facts(theirs)
    return [(name, a.get(name, DASH), b.get(name, DASH)) for name in dict.fromkeys([*a, *b])]


def _difference(name: str, ours: str, theirs: str) -> str:
    return f"- {name}: {ours} / {theirs}"
