"""Looks at a model, without loading it, for what silently disables or spoils its KV cache."""

from __future__ import annotations

from typing import Any

from transformers import GenerationConfig

from ..checkup import Checkup, Finding, KvShape
from . import attention
from .caches import head_width, shape_of
from .weights import Card


def examine(card: Card, weights_bytes: int, loaded: Any | None) -> Checkup:
    """`weights_bytes` is what loading would take, 0 once `loaded`, the module, is there."""
    room = max(0, card.device.free_bytes() - weights_bytes)
    shape = shape_of(card.config, card.dtype)
    own = _generation(card)
    findings = [_use_cache(card, own), _implementation(own), _training(card, loaded), *_windows(shape), _kernel(card)]
    if shape is not None and card.context:
        findings.append(_context(shape, card.context, room))
    return Checkup(card.source.origin, card.device.name, shape, card.context, room, tuple(findings))


def _generation(card: Card) -> GenerationConfig:
    try:
        return GenerationConfig.from_pretrained(card.source.folder, local_files_only=True)
    except OSError:
        return GenerationConfig()


def _use_cache(card: Card, own: GenerationConfig) -> Finding:
    """A fine-tune that was trained with the cache off often keeps the switch in its config."""
    off = [
        name
        for name, config in (("config.json", card.config.get_text_config()), ("generation_config.json", own))
        if getattr(config, "use_cache", True) is False
    ]
    return Finding("use_cache", not off, (f"off ({', '.join(off)})" if off else "on",))


def _implementation(own: GenerationConfig) -> Finding:
    asked = own.cache_implementation
    return Finding("implementation", asked in (None, "dynamic"), (str(asked or "dynamic"),))


def _training(card: Card, loaded: Any | None) -> Finding:
    """In training mode gradient checkpointing turns the cache off."""
    checkpointing = bool(getattr(card.config, "gradient_checkpointing", False))
    training = loaded is not None and loaded.training
    checkpointing |= bool(getattr(loaded, "is_gradient_checkpointing", False))
    facts = ("training" if training else "evaluation", "on" if checkpointing else "off")
    return Finding("training", not (training or checkpointing), facts)


def _windows(shape: KvShape | None) -> list[Finding]:
    windows = sorted({w for w in shape.windows if w is not None}) if shape else []
    if not windows:
        return []
    layers = sum(w is not None for w in shape.windows)
    return [Finding("windows", True, (f"{layers} of {len(shape.windows)}", ", ".join(f"{w:,}" for w in windows)))]


def _kernel(card: Card) -> Finding:
    """The SDPA kernel that torch chooses for one new position of this model's heads and dtype; math is the fallback."""
    text = card.config.get_text_config()
    heads = getattr(text, "num_attention_heads", None)
    if not heads:
        return Finding("no_heads", True)
    found = attention.kernel_at_a_step(heads, head_width(card.config), card.dtype, card.device)
    return Finding("kernel", found != "math", (found, str(card.dtype).removeprefix("torch.")))


def _context(shape: KvShape, context: int, room: int) -> Finding:
    needed = shape.bytes(context)
    return Finding("context", needed <= room, (f"{context:,}", f"{needed / 1e6:,.0f}", f"{room / 1e6:,.0f}"))
