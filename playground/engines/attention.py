"""Attention kernels: which of them a device runs, how SDPA is held to one, and which one really ran.

`sdpa` lets torch choose among its kernels by shape, dtype, mask and device. `sdpa-flash` and its
kin allow one of them only. What was chosen is found by asking torch with the very arguments of
a warm-up call, not by guessing.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.utils import is_flash_attn_2_available, is_flash_attn_3_available
from transformers.utils.import_utils import is_flash_attn_4_available

from ..config import Attention
from .memory import Device
from .refusal import Refusal

_KERNELS = {
    "sdpa-flash": SDPBackend.FLASH_ATTENTION,
    "sdpa-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION,
    "sdpa-math": SDPBackend.MATH,
}
_NAMES = {
    SDPBackend.FLASH_ATTENTION.value: "flash",
    SDPBackend.EFFICIENT_ATTENTION.value: "memory-efficient",
    SDPBackend.CUDNN_ATTENTION.value: "cuDNN",
    SDPBackend.MATH.value: "math",
}
# FlashAttention 2 and 4 are imported under one name, so Transformers tells them apart by what is installed.
_FLASH = {
    "flash_attention_2": ("flash-attn", is_flash_attn_2_available),
    "flash_attention_3": ("flash-attn-3", is_flash_attn_3_available),
    "flash_attention_4": ("flash-attn-4", is_flash_attn_4_available),
}
# torch keeps which kernels are allowed for the whole process; a race runs slots in several threads.
_restricting = threading.Lock()


def unavailable(attention: Attention, device: Device) -> Refusal | None:
    """Why an attention kernel does not run on a device, and what to do; None where it does."""
    hint = 'Use attention = "sdpa", which picks the best kernel that runs here.'
    if attention in ("sdpa-efficient", "sdpa-cudnn") and not device.is_cuda:
        return Refusal(f"attention: torch has no {attention.removeprefix('sdpa-')} kernel for a CPU.", hint)
    if attention == "flex_attention" and not device.is_cuda:
        return Refusal("attention: flex_attention is compiled for a GPU; on a CPU torch has no fast one.", hint)
    if attention in _FLASH:
        package, is_available = _FLASH[attention]
        if not device.is_cuda:
            return Refusal(f"attention: {attention} needs an NVIDIA GPU; this slot is on the {device.name}.", hint)
        if not is_available():
            return Refusal(f"attention: {attention} needs the package {package}, which is not installed.", hint)
    return None


def register() -> None:
    """Make the restricted SDPA kernels known to Transformers."""
    for name, backend in _KERNELS.items():
        AttentionInterface.register(implementation(name), _restricted(name, backend))
        AttentionMaskInterface.register(implementation(name), sdpa_mask)


def implementation(attention: Attention) -> str:
    """What Transformers calls it. It takes any name with "flash" in it for a FlashAttention package."""
    return f"sdpa_kernel_{_KERNELS[attention].value}" if attention in _KERNELS else attention


def held_to(attention: Attention) -> str:
    """torch's name for the only SDPA kernel that a slot may use; empty where it may use any."""
    return _KERNELS[attention].name if attention in _KERNELS else ""


def _restricted(name: str, backend: SDPBackend) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        with _restricting, sdpa_kernel(backend):
            try:
                return sdpa_attention_forward(*args, **kwargs)
            except RuntimeError as error:
                if "No available kernel" not in str(error) and "No viable backend" not in str(error):
                    raise
                raise Refusal(
                    f"attention: {name} cannot take this model's heads, dtype or mask.",
                    'Use attention = "sdpa", which picks a kernel that can.',
                ) from error

    return forward


class KernelWatch(TorchFunctionMode):
    """Inside the block, notes which SDPA kernel torch chooses at each call. Only for untimed runs: it hears every function."""

    def __init__(self) -> None:
        super().__init__()
        self._chosen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is scaled_dot_product_attention:
            bound = _SDPA.bind(*args, **(kwargs or {}))
            bound.apply_defaults()
            given = bound.arguments
            positional = [given[name] for name in ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")]
            chosen = int(torch._fused_sdp_choice(*positional, scale=given["scale"], enable_gqa=given["enable_gqa"]))
            self._chosen.append(_NAMES.get(chosen, f"kernel {chosen}"))
        return func(*args, **(kwargs or {}))

    def words(self, layers: int) -> str:
        """The kernels of the first forward, over the prompt, and of the later ones; empty when SDPA was not called.

        `layers` is how many calls one forward makes.
        """
        prompt, steps = (sorted(set(part)) for part in (self._chosen[:layers], self._chosen[layers:]))
        if not prompt or steps in ([], prompt):
            return " and ".join(prompt)
        return f"{' and '.join(prompt)} (prompt), {' and '.join(steps)} (steps)"


def kernel_at_a_step(heads: int, width: int, dtype: torch.dtype, device: Device) -> str:
    """The SDPA kernel that torch chooses for one new position that sees a few cached ones."""
    query = torch.zeros(1, heads, 1, width, dtype=dtype, device=device.torch)
    cached = torch.zeros(1, heads, 16, width, dtype=dtype, device=device.torch)
    return _NAMES.get(int(torch._fused_sdp_choice(query, cached, cached)), "unknown")


def enabled_kernels() -> str:
    """SDPA kernels that torch may choose in this process, by their flags."""
    flags = torch.backends.cuda
    found = {
        "flash": flags.flash_sdp_enabled(), "memory-efficient": flags.mem_efficient_sdp_enabled(),
        "cuDNN": flags.cudnn_sdp_enabled(), "math": flags.math_sdp_enabled(),
    }
    return ", ".join(name for name, on in found.items() if on)


def _sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """The signature of scaled_dot_product_attention, which torch does not tell."""


_SDPA = inspect.signature(_sdpa)
