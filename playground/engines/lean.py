"""Lean decoding on a CPU: the same arithmetic with linear weights laid out once as oneDNN wants them.

Two thirds of a decode step in bf16 on a CPU are matrix products of one row, and a quarter to a third of their
time goes into bringing the weights into oneDNN's own blocked layout, again at every call (tests/bench/step.py).
Packed once they are only read. The packed copy takes as much memory again as the linear layers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .memory import Device
from .refusal import Refusal


def possible(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether weights can be packed: bfloat16, on a CPU that computes in it."""
    return device.type == "cpu" and dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def check(dtype: torch.dtype, device: Device) -> None:
    """Raise Refusal where packing does not apply."""
    if device.is_cuda:
        raise Refusal(
            f"lean: it packs weights for a CPU; this slot is on {device.name}.",
            'Leave lean out; on a GPU, cache = "static" is what saves host time.',
        )
    if not possible(dtype, device.torch):
        raise Refusal(
            f"lean: it packs bfloat16 weights on CPUs that compute in it; this slot's are {str(dtype).removeprefix('torch.')}.",
            'Set dtype = "bfloat16" on a CPU with AVX-512, or leave lean out.',
        )


@torch.no_grad()
def packed(weight: torch.Tensor) -> torch.Tensor:
    """A copy of (out, in) weights in oneDNN's own layout; opaque to everything but `product`."""
    return torch.ops.mkldnn._reorder_linear_weight(weight.detach().clone(), 1)


def product(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """(..., in) times packed weights, plus the bias: (..., out)."""
    return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")


class PackedLinear(nn.Module):
    """A linear layer whose product reads the packed copy. `weight` stays the shared one, for whoever asks, or is let go."""

    def __init__(self, linear: nn.Linear, packed: torch.Tensor, keep_weight: bool = True):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight if keep_weight else None, linear.bias
        self.packed = packed

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(..., in) -> (..., out)."""
        return product(rows, self.packed, self.bias)


def pack_alone(module: Any) -> None:
    """Replace the plain linear layers of a module that shares them with nobody; only the packed copies stay."""
    for parent, name, linear in _plain_linears(module):
        setattr(parent, name, PackedLinear(linear, packed(linear.weight), keep_weight=False))


def _plain_linears(module: Any) -> list[tuple[Any, str, nn.Linear]]:
    """Every plain bfloat16 linear layer, with its parent and its name there."""
    return [
        (parent, name, child)
        for parent in module.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear and type(child.weight) is nn.Parameter and child.weight.dtype == torch.bfloat16
    ]


class Packs:
    """Packed copies of the linear weights of one model, shared by all its lean slots."""

    def __init__(self) -> None:
        self._packed: dict[int, torch.Tensor] = {}

    def apply(self, module: Any) -> None:
        """Replace the plain linear layers of a slot's own module, the output embedding included."""
        for parent, name, linear in _plain_linears(module):
            setattr(parent, name, PackedLinear(linear, self._pack(linear.weight)))

    def _pack(self, weight: nn.Parameter) -> torch.Tensor:
        key = weight.data_ptr()
        if key not in self._packed:
            self._packed[key] = packed(weight)
        return self._packed[key]

    @property
    def bytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in self._packed.values())

    def clear(self) -> None:
        self._packed.clear()
