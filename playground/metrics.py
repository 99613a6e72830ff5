"""One run's events -> its numbers. The definitions that the README prints are these.

t0 is `Started.t_ns`; t1, t2, … are the arrivals of the groups of new ids; n_i the ids in
group i; N their sum. What cannot be measured is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from .divergence import Parting
from .events import (
    Assessing,
    Compiled,
    Done,
    Event,
    Failed,
    Loading,
    Memory,
    NoQuality,
    Quality,
    Queued,
    Ready,
    Round,
    Spent,
    Started,
    Tokens,
    WarmedUp,
)

Phase = Literal["idle", "queued", "loading", "warming", "answering", "done", "stopped", "failed", "assessing"]

LIVE_WINDOW_NS = 2_000_000_000


@dataclass(frozen=True)
class RunMetrics:
    """The numbers of one slot's run. Units are in the names; None is 'not measurable'."""

    load_s: float | None = None
    warmup_s: float | None = None
    compile_s: float | None = None
    recompiled_s: float | None = None
    prompt_tokens: int | None = None
    reused_tokens: int | None = None
    prompt_key: int | None = None
    batch: int = 1
    all_tok_per_s: float | None = None
    new_tokens: int = 0
    visible_tokens: int = 0
    groups: int = 0
    ttft_s: float | None = None
    decode_tok_per_s: float | None = None
    tpot_s: float | None = None
    e2e_tok_per_s: float | None = None
    prefill_tok_per_s: float | None = None
    total_s: float | None = None
    prefill_s: float | None = None
    forward_s: float | None = None
    text_s: float | None = None
    draft_total_s: float | None = None
    steps_per_s: float | None = None
    read_bytes: int | None = None
    copy_bytes_per_s: float | None = None
    bandwidth_utilization: float | None = None
    other_cores: float | None = None
    cores: int | None = None
    itl_s: tuple[float, ...] | None = None
    timeline: tuple[tuple[float, int], ...] = ()
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    acceptance_rate: float | None = None
    mean_accepted_len: float | None = None
    acceptance_by_position: tuple[float, ...] | None = None
    accepted_by_round: tuple[int, ...] | None = None
    tokens_per_step: float | None = None
    draft_s: float | None = None
    verify_s: float | None = None
    weights_bytes: int | None = None
    drafter_bytes: int | None = None
    memory_counter: str | None = None
    peak_bytes: int | None = None
    reserved_bytes: int | None = None
    run_peak_bytes: int | None = None
    kv_bytes: int | None = None
    kv_predicted_bytes: int | None = None
    working_bytes: int | None = None
    dtype: str | None = None
    device: str | None = None
    source: str | None = None
    kernels: str = ""
    enabled_kernels: str = ""
    quantized_layers: int | None = None
    notes: tuple[str, ...] = ()
    kl_nats: float | None = None
    top1: float | None = None
    perplexity: float | None = None
    perplexity_by_text: tuple[tuple[str, float], ...] = ()
    quality_positions: int | None = None
    no_quality: str | None = None
    parting: Parting | None = None
    finish: str | None = None

    @property
    def held_bytes(self) -> int | None:
        """Everything that this slot would need alone: weights, drafter, cache. None before its weights are known."""
        return None if self.weights_bytes is None else self.weights_bytes + (self.drafter_bytes or 0) + (self.kv_bytes or 0)


def measure(events: Iterable[Event]) -> RunMetrics:
    """The numbers of a run, finished or not, from its events in order.

    `run_peak_bytes` is the run's own share of the peak: peak minus the reading with
    everything loaded.
    `working_bytes` is that share without the KV cache, at least 0.
    """
    events = tuple(events)
    parts = (_loading, _timing, _speculation, _spent, _memory, _quality)
    numbers = {name: value for part in parts for name, value in part(events).items()}
    return RunMetrics(**numbers, bandwidth_utilization=_bandwidth(numbers))


def _bandwidth(numbers: dict) -> float | None:
    """Bytes that the target's steps after the first one read, over time, as a share of the device's copy rate.

    The cache counts with its mean size over the run. A drafter's own reading is left out.
    """
    read, rate, limit = (numbers.get(name) for name in ("read_bytes", "steps_per_s", "copy_bytes_per_s"))
    if not (read and rate and limit):
        return None
    prompt, new = numbers["prompt_tokens"], numbers["new_tokens"]
    kv = (numbers.get("kv_bytes") or 0) * (prompt + new / 2) / (prompt + new)
    return (read + kv) * rate / limit


def _loading(events: tuple[Event, ...]) -> dict:
    numbers: dict = {}
    started = False
    for event in events:
        match event:
            case Ready():
                numbers |= {
                    "load_s": event.load_s,
                    "weights_bytes": event.weights_bytes,
                    "drafter_bytes": event.drafter_bytes,
                    "dtype": event.dtype,
                    "device": event.device,
                    "source": event.source,
                    "quantized_layers": event.quantized_layers,
                    "notes": event.notes,
                    "read_bytes": event.read_bytes,
                    "copy_bytes_per_s": event.copy_bytes_per_s,
                }
            case WarmedUp():
                numbers |= {
                    "warmup_s": event.warmup_s,
                    "kernels": event.kernels,
                    "enabled_kernels": event.enabled_kernels,
                }
            case Compiled(seconds):
                name = "recompiled_s" if started else "compile_s"
                numbers[name] = numbers.get(name, 0.0) + seconds
            case Started():
                started = True
            case Done(reason):
                numbers["finish"] = reason
            case Failed():
                numbers["finish"] = "failed"
    return numbers


def _timing(events: tuple[Event, ...]) -> dict:
    start = next((e for e in events if isinstance(e, Started)), None)
    groups = [e for e in events if isinstance(e, Tokens) and e.ids]
    if start is None:
        return {}
    numbers: dict = {
        "prompt_tokens": start.prompt_tokens, "reused_tokens": start.reused_tokens, "prompt_key": start.prompt_key or None,
        "batch": start.batch,
    }
    if not groups:
        return numbers
    total = sum(len(g.ids) for g in groups)
    first, last = groups[0], groups[-1]
    ttft_s = (first.t_ns - start.t_ns) / 1e9
    rate = _per_s(total - len(first.ids), last.t_ns - first.t_ns)
    gaps = tuple((b.t_ns - a.t_ns) / 1e9 for a, b in zip(groups, groups[1:]))
    return numbers | {
        "new_tokens": total,
        "visible_tokens": sum(g.visible for g in groups),
        "groups": len(groups),
        "ttft_s": ttft_s,
        "decode_tok_per_s": rate,
        "all_tok_per_s": rate * start.batch if rate else None,
        "tpot_s": 1 / rate if rate else None,
        "e2e_tok_per_s": _per_s(total, last.t_ns - start.t_ns),
        "prefill_tok_per_s": _per_s(start.prompt_tokens - start.reused_tokens, first.t_ns - start.t_ns),
        "total_s": (last.t_ns - start.t_ns) / 1e9,
        "steps_per_s": _per_s(len(groups) - 1, last.t_ns - first.t_ns),
        "itl_s": gaps or None,
        "timeline": tuple(zip(((g.t_ns - start.t_ns) / 1e9 for g in groups), accumulate(len(g.ids) for g in groups))),
    }


def _per_s(count: int, elapsed_ns: int) -> float | None:
    return count / (elapsed_ns / 1e9) if count > 0 and elapsed_ns > 0 else None


def _speculation(events: tuple[Event, ...]) -> dict:
    rounds = [e for e in events if isinstance(e, Round)]
    if not rounds:
        return {}
    drafted = sum(r.drafted for r in rounds)
    accepted = sum(r.accepted for r in rounds)
    longest = max(r.drafted for r in rounds)
    by_position = tuple(
        sum(r.accepted > p for r in rounds) / sum(r.drafted > p for r in rounds) for p in range(longest)
    )
    return {
        "rounds": len(rounds),
        "drafted": drafted,
        "accepted": accepted,
        "acceptance_rate": accepted / drafted if drafted else None,
        "mean_accepted_len": 1 + accepted / len(rounds),
        "acceptance_by_position": by_position or None,
        "accepted_by_round": tuple(r.accepted for r in rounds),
        "tokens_per_step": sum(len(e.ids) for e in events if isinstance(e, Tokens)) / len(rounds),
        "draft_total_s": _total([r.draft_s for r in rounds if r.draft_s is not None]),
        "draft_s": _mean([r.draft_s for r in rounds if r.draft_s is not None and r.drafted]),
        "verify_s": _mean([r.verify_s for r in rounds if r.verify_s is not None]),
    }


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _total(values: list[float]) -> float | None:
    return sum(values) if values else None


def _spent(events: tuple[Event, ...]) -> dict:
    spent = next((e for e in events if isinstance(e, Spent)), None)
    return vars(spent) if spent is not None else {}


def _memory(events: tuple[Event, ...]) -> dict:
    reading = next((e for e in events if isinstance(e, Memory)), None)
    if reading is None:
        return {}
    own = working = None
    if reading.peak_bytes is not None and reading.before_bytes is not None:
        own = max(0, reading.peak_bytes - reading.before_bytes)
        working = max(0, own - (reading.kv_bytes or 0))
    return {
        "memory_counter": reading.counter,
        "peak_bytes": reading.peak_bytes,
        "reserved_bytes": reading.reserved_bytes,
        "run_peak_bytes": own,
        "kv_bytes": reading.kv_bytes,
        "kv_predicted_bytes": reading.kv_predicted_bytes,
        "working_bytes": working,
    }


def _quality(events: tuple[Event, ...]) -> dict:
    match next((e for e in reversed(events) if isinstance(e, (Quality, NoQuality))), None):
        case Quality() as found:
            return {
                "kl_nats": found.kl_nats,
                "top1": found.top1,
                "perplexity": found.perplexity,
                "perplexity_by_text": found.perplexity_by_text,
                "quality_positions": found.positions,
                "parting": found.parting,
            }
        case NoQuality(message, hint):
            return {"no_quality": f"{message} {hint}".strip()}
    return {}


def live_tok_per_s(events: Iterable[Event]) -> float | None:
    """Decode rate over the last two seconds of a run in progress; None before the second group.

    For the running display only: the final number is `RunMetrics.decode_tok_per_s`.
    """
    groups = [e for e in events if isinstance(e, Tokens) and e.ids]
    if len(groups) < 2:
        return None
    since = groups[-1].t_ns - LIVE_WINDOW_NS
    recent = [g for g in groups if g.t_ns >= since]
    if len(recent) < 2:
        recent = groups[-2:]
    return _per_s(sum(len(g.ids) for g in recent[1:]), recent[-1].t_ns - recent[0].t_ns)


def text_of(events: Iterable[Event]) -> str:
    """The answer so far: the texts of the events, joined."""
    return "".join(e.text for e in events if isinstance(e, (Tokens, Done)))


def phase_of(events: Iterable[Event]) -> Phase:
    """Where a run stands, from its events so far."""
    phase: Phase = "idle"
    ended: Phase = "done"
    for event in events:
        match event:
            case Assessing():
                ended, phase = (phase if phase != "assessing" else ended), "assessing"
            case Quality() | NoQuality():
                phase = ended if phase == "assessing" else phase
            case Queued():
                phase = "queued"
            case Loading():
                phase = "loading"
            case Ready() | Compiled():
                phase = phase if phase == "answering" else "warming"
            case Started() | Tokens():
                phase = "answering"
            case Done("stopped"):
                phase = "stopped"
            case Done():
                phase = "done"
            case Failed():
                phase = "failed"
    return phase


def summary(run: RunMetrics) -> str:
    """One line for a log."""
    rate = f"{run.decode_tok_per_s:.1f} tok/s" if run.decode_tok_per_s else "no rate"
    ttft = f"TTFT {run.ttft_s:.3f} s" if run.ttft_s is not None else "no token"
    return f"{run.finish}, {run.new_tokens} tokens, {ttft}, {rate}"
