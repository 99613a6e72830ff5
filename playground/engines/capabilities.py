"""What this machine can run, and the reason and the remedy where it cannot."""

from __future__ import annotations

from typing import get_args

from ..capabilities import Technique
from ..config import Attention, Cache, Speculation
from . import quantize
from .memory import Device


def capabilities(device: Device) -> tuple[Technique, ...]:
    """Every technique on a device. Imports the optional packages, which takes seconds the first time."""
    plain = [
        Technique(kind, name)
        for kind, names in (("cache", Cache), ("attention", Attention), ("speculation", Speculation))
        for name in get_args(names)
        if kind != "speculation" or name != "none"
    ]
    quantized = []
    for method in quantize.METHODS:
        refusal = quantize.unavailable(method, device)
        quantized.append(
            Technique("quantization", method, refusal.message, refusal.hint) if refusal else Technique("quantization", method)
        )
    return (*plain, *quantized)
