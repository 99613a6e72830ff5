"""Where a run's time went, and why a slot is slower than its reference, in its own figures."""

from __future__ import annotations

from dataclasses import dataclass

from .breakeven import break_even
from .config import SlotSpec
from .metrics import RunMetrics

PARTS = ("prefill", "draft", "verify", "decode", "text", "host")

# A part or a share below this is not worth a sentence.
_TELLING = 0.15


@dataclass(frozen=True)
class Part:
    """A share of the run's time from its start to its last id."""

    name: str
    seconds: float
    share: float


def breakdown(run: RunMetrics) -> tuple[Part, ...]:
    """The parts of a run in the order of PARTS; they add up to the whole. Empty for a run without an id.

    Where forwards cannot be timed (a GPU, compiled code), the prefill is the time to the first token and what is not
    drafting or text counts as decode, or verify.
    """
    if not run.total_s:
        return ()
    step = "verify" if run.rounds else "decode"
    draft, text = run.draft_total_s or 0.0, run.text_s or 0.0
    if run.prefill_s is None or run.forward_s is None:
        seconds = {"prefill": run.ttft_s, "draft": draft, "text": text}
        seconds[step] = max(0.0, run.total_s - sum(seconds.values()))
    else:
        seconds = {"prefill": run.prefill_s, "draft": draft, step: run.forward_s, "text": text}
        seconds["host"] = max(0.0, run.total_s - sum(seconds.values()))
    whole = sum(seconds.values())
    return tuple(Part(name, seconds[name], seconds[name] / whole) for name in PARTS if seconds.get(name))


def why_slower(slot: SlotSpec, base_slot: SlotSpec, run: RunMetrics, base: RunMetrics) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Reasons from a slot's own figures, the most telling first: (key behind "slower.", arguments).

    For a slot whose decode rate is under its reference's; empty for others, and where nothing is known.
    """
    if not (run.decode_tok_per_s and base.decode_tok_per_s and run.decode_tok_per_s < base.decode_tok_per_s):
        return ()
    found: list[tuple[str, tuple[str, ...]]] = []
    if slot.decode.cache == "none" and base_slot.decode.cache != "none":
        found.append(("no_cache", (str((run.prompt_tokens or 0) + run.new_tokens),)))
    if run.dtype == "float16" and run.device == "cpu":
        found.append(("half_on_cpu", ()))
    if run.rounds and (even := break_even(run, base)) is not None and even.yielded < even.cost:
        rate = "–" if run.acceptance_rate is None else f"{run.acceptance_rate:.0%}"
        found.append(("low_acceptance", (rate, f"{even.yielded:.2f}", f"{even.cost:.2f}")))
    found += _unpacking(run, base)
    if "math" in run.kernels and "math" not in base.kernels:
        found.append(("math_kernel", ()))
    if slot.decode.attention == "eager" and base_slot.decode.attention != "eager":
        found.append(("eager", ()))
    if slot.decode.cache not in ("none", base_slot.decode.cache) and slot.decode.cache not in ("dynamic", "static"):
        found.append(("packed_cache", (slot.decode.cache,)))
    host = next((part.share for part in breakdown(run) if part.name == "host"), 0.0)
    base_host = next((part.share for part in breakdown(base) if part.name == "host"), 0.0)
    if host > _TELLING and host > base_host:
        found.append(("host", (f"{host:.0%}", f"{base_host:.0%}")))
    return tuple(found)


def _unpacking(run: RunMetrics, base: RunMetrics) -> list[tuple[str, tuple[str, ...]]]:
    """A slot that reads less a step and yet takes longer pays for turning what it read into numbers."""
    if not (run.read_bytes and base.read_bytes and run.quantized_layers and run.steps_per_s and base.steps_per_s):
        return []
    if run.read_bytes >= base.read_bytes or run.steps_per_s >= base.steps_per_s:
        return []
    return [("unpacking", (
        f"{run.read_bytes / 1e6:,.0f}", f"{base.read_bytes / 1e6:,.0f}", f"{1e3 / run.steps_per_s:.0f}", f"{1e3 / base.steps_per_s:.0f}",
    ))]
