"""Quantization methods: what Transformers is told, and what is checked before loading.

To add one: its name in `config.Quantization`, its entry in `_METHODS` here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..config import Quantization
from .refusal import Refusal


@dataclass(frozen=True)
class Method:
    """`config` builds Transformers' quantization config for a model of that dtype.

    `width_multiple` is what a layer's input width must be a multiple of on a CPU; `layers`
    names the classes that a quantized module has, to count them.
    """

    config: Callable[[torch.dtype], Any]
    layers: tuple[str, ...]
    width_multiple: int = 1


def _int8(_dtype: torch.dtype) -> Any:
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(load_in_8bit=True)


def _nf4(dtype: torch.dtype) -> Any:
    """Double quantization; the compute dtype follows the model's, or fp32 makes it crawl."""
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )


_METHODS: dict[Quantization, Method] = {
    "bnb-int8": Method(_int8, ("Linear8bitLt",)),
    "bnb-nf4": Method(_nf4, ("Linear4bit",), width_multiple=64),
}


def config_for(quantization: Quantization, dtype: torch.dtype, widths: set[int], on_cpu: bool) -> Any:
    """Transformers' quantization config for a method.

    `widths` are the input widths of the model's linear layers. Raises Refusal when the
    method cannot do one of them here, or its package does not import.
    """
    _check_package(quantization)
    method = _METHODS[quantization]
    bad = sorted(w for w in widths if w % method.width_multiple)
    if on_cpu and bad:
        raise Refusal(
            f"quantization: {quantization} on a CPU needs layer widths that are multiples of "
            f"{method.width_multiple}; this model has {', '.join(map(str, bad))}.",
            "Use bnb-int8, or run this slot on a GPU.",
        )
    return method.config(dtype)


def _check_package(quantization: Quantization) -> None:
    try:
        import bitsandbytes  # noqa: F401
    except Exception as error:  # a broken native library raises anything
        raise Refusal(
            f"quantization: {quantization} needs bitsandbytes, which does not import here ({error}).",
            "Run: pip install -r requirements.txt",
        ) from error


def check_quantized(model: torch.nn.Module, quantization: Quantization) -> None:
    """Raise Refusal when loading left nothing quantized."""
    if not count_quantized(model, quantization):
        raise Refusal(
            f"quantization: {quantization} found no layer to quantize in {type(model).__name__}.",
            "Models whose layers are Conv1D (GPT-2) are not supported; choose another model or no quantization.",
        )


def count_quantized(model: torch.nn.Module, quantization: Quantization) -> int:
    """How many modules carry the method's quantized class."""
    return sum(type(m).__name__ in _METHODS[quantization].layers for m in model.modules())


def settle(model: torch.nn.Module) -> None:
    """Bring a freshly quantized model into the form in which it can be shared.

    bitsandbytes moves int8 state out of the weight at the first forward; a second module
    sharing that weight would find it gone, so the move is made now.
    """
    for module in model.modules():
        if type(module).__name__ == "Linear8bitLt" and module.weight.CB is not None:
            module.init_8bit_state()
