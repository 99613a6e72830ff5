"""The kinds of KV cache: how Transformers is asked for each, where one cannot work, and how large it gets."""

from __future__ import annotations

import math
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..checkup import KvShape
from ..config import Cache, DecodeSpec
from .compiling import ROOM, has_compiler
from .memory import Device
from .packages import broken_package
from .refusal import Refusal

GROUP = 64  # values that share a scale in a cache quantized in groups, where the heads' width allows it
RESIDUAL_LENGTH = 128  # newest positions that such a cache keeps unquantized


@dataclass(frozen=True)
class CacheKind:
    """`implementation` is what generate calls it; `backend` and `bits` are those of a quantized one."""

    implementation: str | None
    backend: str = ""
    bits: int = 0
    package: str = ""
    needs_gpu: bool = False


KINDS: dict[Cache, CacheKind] = {
    "none": CacheKind(None),
    "dynamic": CacheKind("dynamic"),
    "static": CacheKind("static"),
    "offloaded": CacheKind("offloaded", needs_gpu=True),
    "offloaded-static": CacheKind("offloaded_static", needs_gpu=True),
    "quanto-int4": CacheKind("quantized", "quanto", 4, package="optimum-quanto"),
    "quanto-int2": CacheKind("quantized", "quanto", 2, package="optimum-quanto"),
    "hqq-int4": CacheKind("quantized", "hqq", 4, package="hqq"),
    "fp8": CacheKind("quantized", "fp8", 8),
}

_IMPORTS = {"optimum-quanto": "optimum.quanto", "hqq": "hqq"}


def room(decode: DecodeSpec, length: int, draft_len: int) -> int:
    """Positions for which a static cache is allocated: the longest sequence, and what a round may draft beyond it."""
    if decode.compile != "none":
        return -(-length // ROOM) * ROOM
    return length + (draft_len if decode.speculation != "none" else 0)


def options_for(decode: DecodeSpec, config: Any, positions: int) -> dict[str, Any]:
    """What generate's config needs for this cache; `positions` is what `room` says."""
    kind = KINDS[decode.cache]
    if kind.implementation is None:
        return {"use_cache": False}
    options: dict[str, Any] = {"use_cache": True, "disable_compile": decode.compile == "none"}
    if decode.cache != "dynamic":
        options["cache_implementation"] = kind.implementation
    if "static" in decode.cache:
        options["max_cache_len"] = positions
    if kind.backend in ("quanto", "hqq"):
        options["cache_config"] = {
            "backend": kind.backend, "nbits": kind.bits, "q_group_size": _group(config), "residual_length": RESIDUAL_LENGTH,
        }
    elif kind.backend:
        options["cache_config"] = {"backend": kind.backend}
    return options


def unavailable(cache: Cache, device: Device) -> Refusal | None:
    """Why a kind of cache does not run on a device, and what to do; None where it does."""
    kind = KINDS[cache]
    if kind.needs_gpu and not device.is_cuda:
        return Refusal(
            f"cache: {cache} moves keys and values between a GPU and the CPU's memory; this slot runs on the CPU.",
            'Use cache = "dynamic", or a GPU.',
        )
    if kind.package and (broken := broken_package(_IMPORTS[kind.package])):
        return Refusal(f"cache: {cache} needs the package {kind.package}: {broken}", f"pip install {kind.package}")
    if kind.backend == "quanto" and not _can_compile():
        return Refusal(
            f"cache: {cache} compiles its unpacking kernel at the first use, and there is no C++ compiler (or no ninja) here.",
            "On Debian: apt-get install g++; pip install ninja. Or use the fp8 cache, which needs none.",
        )
    return None


def _can_compile() -> bool:
    """Whether torch finds a C++ compiler and ninja, which pip puts beside this Python rather than on the path."""
    own, path = str(Path(sys.executable).parent), os.environ.get("PATH", "")
    if own not in path.split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join(filter(None, (path, own)))
    return has_compiler() and shutil.which("ninja") is not None


def check(decode: DecodeSpec, config: Any, device: Device) -> None:
    """Raise Refusal for a cache that this device or this model cannot have."""
    if reason := unavailable(decode.cache, device):
        raise reason
    shape = shape_of(config, torch.float32)
    other = {kind for kind in getattr(config.get_text_config(), "layer_types", None) or () if kind != "full_attention"}
    if shape is not None and any(shape.windows):
        other.add("sliding_attention")
    if KINDS[decode.cache].backend and other:
        raise Refusal(
            f"cache: {decode.cache} holds full attention only; this model has {', '.join(sorted(other))}.",
            'Use cache = "dynamic", which keeps no more than the window where a model has one.',
        )


def check_prefix(config: Any) -> None:
    """Raise Refusal for a model whose cache of earlier turns cannot be cut back to what the next turn shares."""
    shape = shape_of(config, torch.float32)
    if shape is None or any(shape.windows):
        raise Refusal(
            "keep_prefix: this model's cache forgets what has left its window, so an earlier turn cannot be cut back.",
            "Leave keep_prefix out for this model.",
        )


def predicted_bytes(decode: DecodeSpec, config: Any, length: int, dtype: torch.dtype, batch: int = 1) -> int | None:
    """Bytes of keys and values after `length` positions; None for a model without plain attention heads.

    Quantized in groups, the newest `RESIDUAL_LENGTH` may still be unquantized, and each group has a scale and a
    zero point in the model's dtype; the value given is the one with none left.
    """
    shape, kind = shape_of(config, dtype), KINDS[decode.cache]
    if decode.cache == "none" or shape is None:
        return 0 if decode.cache == "none" else None
    if kind.backend in ("quanto", "hqq"):
        return math.ceil(shape.values(length, batch) * (kind.bits / 8 + 2 * dtype.itemsize / _group(config)))
    return shape.values(length, batch) if kind.backend else shape.bytes(length, batch)


def shape_of(config: Any, dtype: torch.dtype) -> KvShape | None:
    """What a model's cache is made of, from its config; None for one without plain attention heads."""
    text = config.get_text_config()
    if not getattr(text, "num_attention_heads", None) or not getattr(text, "hidden_size", None):
        return None
    window = getattr(text, "sliding_window", None)
    types = getattr(text, "layer_types", None)
    if types is None:
        slides = bool(window) and getattr(text, "use_sliding_window", True)
        types = ["sliding_attention" if slides else "full_attention"] * text.num_hidden_layers
    windows = tuple(window if kind == "sliding_attention" else None for kind in types)
    return KvShape(windows, _kv_width(config), dtype.itemsize)


def _kv_width(config: Any) -> int:
    """Keys of one position in one layer: kv heads × head width."""
    text = config.get_text_config()
    return (getattr(text, "num_key_value_heads", None) or text.num_attention_heads) * head_width(config)


def head_width(config: Any) -> int:
    """Numbers in one head's key."""
    text = config.get_text_config()
    return getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads


def _group(config: Any) -> int:
    return math.gcd(GROUP, _kv_width(config))
