"""What this machine can run, and the reason and the remedy where it cannot."""

from __future__ import annotations

from typing import get_args

from ..capabilities import Technique
from ..config import Attention, Cache, Compile, Speculation
from . import attention, caches, compiling, quantize
from .memory import Device
from .refusal import Refusal


def capabilities(device: Device) -> tuple[Technique, ...]:
    """Every technique on a device. Imports the optional packages, which takes seconds the first time."""
    plain = [Technique("speculation", name) for name in get_args(Speculation) if name != "none"]
    asked = [("cache", name, caches.unavailable(name, device)) for name in get_args(Cache)]
    asked += [("attention", name, attention.unavailable(name, device)) for name in get_args(Attention)]
    asked += [("compile", name, compiling.unavailable(device)) for name in get_args(Compile) if name != "none"]
    asked += [("quantization", name, quantize.unavailable(name, device)) for name in quantize.METHODS]
    return (*plain, *(Technique(kind, name, *_words(refusal)) for kind, name, refusal in asked))


def _words(refusal: Refusal | None) -> tuple[str, ...]:
    return (refusal.message, refusal.hint) if refusal else ()
