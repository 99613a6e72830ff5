"""Quantization methods: what Transformers is told, and what is checked before loading.

To add one: its name in `config.QuantizationMethod` (and its options there), its entry in
`METHODS` here.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch

from ..quantization import GROUP_SIZES, WHOLE_COLUMN, Quantization, QuantizationMethod
from .memory import Device
from .packages import broken_package
from .progress import Report
from .refusal import Refusal

log = logging.getLogger(__name__)

INSTALL = "Run: pip install -r requirements.txt"
FP8_CAPABILITY = (8, 9)
# Left to itself torchao sets the compiler's options for the whole process, other slots included.
_KEEP_TO_YOURSELF = {"set_inductor_config": False}


@dataclass(frozen=True)
class Method:
    """`packages` must import. `config` builds what from_pretrained is told, None for methods that
    work on a plainly loaded or an already quantized model. `is_quantized` tells a quantized module.

    `width_multiple` is what a layer's input width must be a multiple of on a CPU; `loaded_share`
    is a guess, on the high side, of the loaded size over the unquantized one.
    """

    packages: tuple[str, ...]
    is_quantized: Callable[[torch.nn.Module], bool]
    loaded_share: float
    config: Callable[[Quantization, torch.dtype, Device], Any] | None = None
    width_multiple: int = 1
    takes_conv1d: bool = False
    needs_fp8: bool = False


def _of_class(name: str) -> Callable[[torch.nn.Module], bool]:
    return lambda module: any(base.__name__ == name for base in type(module).__mro__)


def _has_torchao_weight(module: torch.nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(module, torch.nn.Linear) and type(weight).__module__.startswith("torchao.")


def _int8(quantization: Quantization, _dtype: torch.dtype, _device: Device) -> Any:
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=quantization.threshold)


def _four_bits(quantization: Quantization, dtype: torch.dtype, _device: Device) -> Any:
    """The compute dtype follows the model's unless asked for: fp32 under bf16 weights crawls."""
    from transformers import BitsAndBytesConfig

    asked = quantization.compute_dtype
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=quantization.method.removeprefix("bnb-"),
        bnb_4bit_use_double_quant=quantization.double_quantization,
        bnb_4bit_compute_dtype=dtype if asked == "auto" else getattr(torch, asked),
    )


def _torchao(name: str) -> Callable[[Quantization, torch.dtype, Device], Any]:
    def config(_quantization: Quantization, _dtype: torch.dtype, _device: Device) -> Any:
        import torchao.quantization
        from transformers import TorchAoConfig

        return TorchAoConfig(getattr(torchao.quantization, name)(**_KEEP_TO_YOURSELF))

    return config


def _torchao_int4(quantization: Quantization, _dtype: torch.dtype, device: Device) -> Any:
    """Tile-packed for CUDA's tinygemm; on a CPU the prototype layout of torch's int4 kernel."""
    from transformers import TorchAoConfig

    if device.is_cuda:
        from torchao.quantization import Int4WeightOnlyConfig

        return TorchAoConfig(
            Int4WeightOnlyConfig(
                group_size=quantization.group_size, int4_packing_format="tile_packed_to_4d", **_KEEP_TO_YOURSELF
            )
        )
    from torchao.prototype.quantization.int4.inference_workflow import PrototypeInt4WeightOnlyConfig

    return TorchAoConfig(PrototypeInt4WeightOnlyConfig(group_size=quantization.group_size, **_KEEP_TO_YOURSELF))


METHODS: dict[QuantizationMethod, Method] = {
    "bnb-int8": Method(("bitsandbytes",), _of_class("Linear8bitLt"), 0.7, _int8, takes_conv1d=True),
    "bnb-nf4": Method(("bitsandbytes",), _of_class("Linear4bit"), 0.6, _four_bits, 64, takes_conv1d=True),
    "bnb-fp4": Method(("bitsandbytes",), _of_class("Linear4bit"), 0.6, _four_bits, 64, takes_conv1d=True),
    "gptq": Method(("optimum", "gptqmodel"), _of_class("BaseQuantLinear"), 1.0),
    "torchao-int8": Method(("torchao",), _has_torchao_weight, 0.7, _torchao("Int8WeightOnlyConfig")),
    "torchao-int8-dynamic": Method(
        ("torchao",), _has_torchao_weight, 0.7, _torchao("Int8DynamicActivationInt8WeightConfig")
    ),
    "torchao-int8-static": Method(("torchao",), _has_torchao_weight, 1.0),
    "torchao-int4": Method(("torchao",), _has_torchao_weight, 0.6, _torchao_int4),
    "torchao-fp8": Method(
        ("torchao",), _has_torchao_weight, 0.7, _torchao("Float8DynamicActivationFloat8WeightConfig"), needs_fp8=True
    ),
}

# What Transformers calls a checkpoint's own quantization -> the method here that loads the same kind.
_STORED: dict[str, QuantizationMethod] = {"gptq": "gptq", "torchao": "torchao-int8"}


def unavailable(method: QuantizationMethod, device: Device) -> Refusal | None:
    """Why a method cannot run on this device, None when it can. Imports its packages."""
    for package in METHODS[method].packages:
        broken = broken_package(package)
        if broken:
            return Refusal(f"quantization: {method} needs {package}, which does not import here ({broken}).", INSTALL)
    if METHODS[method].needs_fp8:
        return _no_fp8(method, device)
    return None


def hide_broken_torchao() -> None:
    """Make a torchao that does not import look absent, before a model is loaded.

    Transformers imports it whenever it is installed, and no model at all would load.
    """
    if find_spec("torchao") and (reason := broken_package("torchao")):
        log.error("torchao does not import and is left out: %s", reason)
        sys.modules["torchao"] = None  # what the import system takes for absent


def _no_fp8(method: QuantizationMethod, device: Device) -> Refusal | None:
    wanted = ".".join(map(str, FP8_CAPABILITY))
    if not device.is_cuda:
        return Refusal(
            f"quantization: {method} needs an NVIDIA GPU of compute capability {wanted} or newer; this slot is on the {device.name}.",
            "Use torchao-int8 or bnb-int8 here.",
        )
    found = torch.cuda.get_device_capability(device.torch)
    if found < FP8_CAPABILITY:
        return Refusal(
            f"quantization: {method} needs compute capability {wanted}; this GPU has {found[0]}.{found[1]}.",
            "Use torchao-int8 or bnb-int8 here.",
        )
    return None


def check(quantization: Quantization, widths: Iterable[int], device: Device) -> None:
    """Raise Refusal for what is known to fail before anything is loaded.

    `widths` are the input widths of the layers that would be quantized, none for a model without any.
    """
    reason = unavailable(quantization.method, device)
    if reason:
        raise reason
    widths = sorted(set(widths))
    if not widths:
        raise Refusal(
            f"quantization: {quantization.method} finds no layer to quantize in this model.",
            "Layers must be nn.Linear (for bitsandbytes also GPT-2's Conv1D); choose another model or method.",
        )
    _check_multiples(quantization, widths, device)
    _check_groups(quantization, widths)


def _check_multiples(quantization: Quantization, widths: list[int], device: Device) -> None:
    multiple = METHODS[quantization.method].width_multiple
    bad = [w for w in widths if w % multiple]
    if bad and not device.is_cuda:
        raise Refusal(
            f"quantization: {quantization.method} on a CPU needs layer widths that are multiples of "
            f"{multiple}; this model has {', '.join(map(str, bad))}.",
            "Use bnb-int8, or run this slot on a GPU.",
        )


def _check_groups(quantization: Quantization, widths: list[int]) -> None:
    size = quantization.group_size
    if size is None or size == WHOLE_COLUMN:
        return
    bad = [w for w in widths if w % size]
    if bad:
        offered = group_sizes(quantization.method, widths)
        raise Refusal(
            f"quantization: group_size {size} does not divide this model's layer width"
            f"{'s' if len(bad) > 1 else ''} {', '.join(map(str, bad))}.",
            f"Sizes that do: {', '.join(map(str, offered)) or 'none'}.",
        )


def group_sizes(method: QuantizationMethod, widths: Iterable[int]) -> tuple[int, ...]:
    """The group sizes that divide every width, and for GPTQ the whole column."""
    widths = tuple(widths)
    sizes = tuple(size for size in GROUP_SIZES if all(w % size == 0 for w in widths))
    return sizes + ((WHOLE_COLUMN,) if method == "gptq" else ())


def config_for(quantization: Quantization, dtype: torch.dtype, device: Device) -> Any:
    """Transformers' quantization config for a method that quantizes while loading, else None."""
    method = METHODS.get(quantization.method)
    return method.config(quantization, dtype, device) if method and method.config else None


def stored_options(config: Any) -> dict[str, Any]:
    """A checkpoint's own quantization config; {} if it has none."""
    stored = getattr(config, "quantization_config", None) or {}
    return stored if isinstance(stored, dict) else stored.to_dict()


def stored_method(config: Any) -> tuple[QuantizationMethod | None, str]:
    """The method that loads a checkpoint's own quantization and its name for people; (None, "") if it has none."""
    values = stored_options(config)
    if not values:
        return None, ""
    name = str(getattr(values.get("quant_method"), "value", values.get("quant_method") or "unknown"))
    if name == "bitsandbytes":
        method = "bnb-int8" if values.get("load_in_8bit") else "bnb-nf4"
        return method, f"bitsandbytes {'int8' if method == 'bnb-int8' else values.get('bnb_4bit_quant_type', '4-bit')}"
    details = [f"{values['bits']}-bit"] if "bits" in values else []
    details += [f"g{values['group_size']}"] if "group_size" in values else []
    return _STORED.get(name), " ".join([name, *details])


def slow_here(method: QuantizationMethod | None, bits: int | None, dtype: torch.dtype, device: Device) -> str:
    """A warning about what this device does badly; empty when there is nothing to say."""
    if device.is_cuda:
        return ""
    if dtype == torch.float16:
        return "float16 is about ten times slower than bfloat16 on a CPU"
    if method == "gptq" and dtype == torch.float32:
        return "GPTQ in float32 is about seven times slower than in bfloat16 on a CPU"
    if method == "gptq" and bits not in (None, 4):
        return f"GPTQ has a fast CPU kernel for 4 bits only; {bits} bits run about ten times slower"
    return ""


@torch.no_grad()
def make_static_int8(model: torch.nn.Module, pieces: list[list[int]], report: Report) -> None:
    """Quantize a model's linear layers, the head excepted, to int8 weights and int8 activations.

    Each layer's activation scale is fixed by the largest input magnitude over the calibration
    pieces (lists of ids). In place; `report` hears the progress.
    """
    from torchao.quantization import Int8StaticActivationInt8WeightConfig, PerRow, PerTensor, quantize_

    head = model.get_output_embeddings()
    layers = [m for m in model.modules() if isinstance(m, torch.nn.Linear) and m is not head]
    largest: dict[torch.nn.Module, torch.Tensor] = {}

    def observe(layer: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        magnitude = inputs[0].abs().amax()
        largest[layer] = torch.maximum(largest.get(layer, magnitude), magnitude)

    hooks = [layer.register_forward_pre_hook(observe) for layer in layers]
    try:
        for i, ids in enumerate(pieces):
            report("calibrating int8 activations", i / len(pieces))
            model(input_ids=torch.tensor([ids], device=model.device), use_cache=False, logits_to_keep=1)
    finally:
        for hook in hooks:
            hook.remove()
    for layer, magnitude in largest.items():
        scale = (magnitude / 127).clamp(min=torch.finfo(torch.float32).eps).reshape(1, 1, 1)
        config = Int8StaticActivationInt8WeightConfig(
            act_quant_scale=scale, granularity=[PerTensor(), PerRow()], **_KEEP_TO_YOURSELF
        )
        quantize_(layer, config)


def count_quantized(model: torch.nn.Module, method: QuantizationMethod) -> int:
    """How many modules the method quantized."""
    return sum(METHODS[method].is_quantized(m) for m in model.modules())


def check_quantized(model: torch.nn.Module, method: QuantizationMethod) -> int:
    """How many modules are quantized. Raises Refusal when none is."""
    count = count_quantized(model, method)
    if not count:
        raise Refusal(
            f"quantization: {method} found no layer to quantize in {type(model).__name__}.",
            "Choose another model or no quantization.",
        )
    return count


@torch.no_grad()
def settle(model: torch.nn.Module, dtype: torch.dtype) -> None:
    """Bring a freshly quantized model into the form in which it can be shared.

    Some layers change at their first forward: bitsandbytes moves int8 state out of the weight
    and packs 4-bit weights for the CPU, GPTQ kernels repack theirs. A second module sharing those tensors would find them gone or
    repack them again, so it is done now. Kernels that GPTQModel compiled belong to the original
    module, whose copies would go on calling them, need a C++ compiler, and are no faster on a CPU.
    """
    for module in model.modules():
        if type(module).__name__ == "Linear8bitLt" and module.weight.CB is not None:
            module.init_8bit_state()
        elif METHODS["gptq"].is_quantized(module) or METHODS["bnb-nf4"].is_quantized(module):
            vars(module).pop("dequantize_weight", None)  # the class's own is there again
            device = next(iter((*module.buffers(), *module.parameters()))).device
            module(torch.zeros(1, module.in_features, dtype=dtype, device=device))
