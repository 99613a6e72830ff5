"""Where a model's weights go: one device, layers spread over several, or every layer split over ranks."""

from __future__ import annotations

from typing import Any

import torch
from transformers.distributed.configuration_utils import DistributedConfig

from ..config import ranks_of
from .memory import Device
from .refusal import Refusal

_FREE_SHARE = 0.9  # of a GPU's free memory that spread weights may take; the rest is for the run


def check(device: str) -> None:
    """Raise Refusal for a device that is not here."""
    ranks, gpus = ranks_of(device), torch.cuda.device_count()
    if ranks > 1:
        if 0 < gpus < ranks:
            raise Refusal(f"device: {device} needs {ranks} GPUs; this machine has {gpus}.", "Ask for fewer ranks.")
        return
    parts = device.split("+")
    here = ["cpu", *(f"cuda:{i}" for i in range(gpus))]
    for part in parts:
        named = "cuda:0" if part == "cuda" else part
        if named not in here and device != "auto":
            raise Refusal(f"device: {part} is not on this machine.", f"Give one of: auto, {', '.join(here)}.")
    if "cpu" in parts[:-1] or len(set(parts)) < len(parts):
        raise Refusal(f"device: {device} names a device twice, or the CPU before a GPU.", 'Such as "cuda:0+cuda:1+cpu".')


def options_for(device: str, config: Any, first: Device) -> dict[str, Any]:
    """What from_pretrained needs to place a model. Raises Refusal for a model that cannot be split so."""
    if (ranks := ranks_of(device)) > 1:
        check_plan(config, ranks)
        return {"distributed_config": DistributedConfig(tp_size=ranks)}
    if "+" in device:
        return {"device_map": "auto", "max_memory": _shares(device)}
    return {"device_map": {"": first.name}} if first.is_cuda else {}


def check_plan(config: Any, ranks: int) -> None:
    """Raise Refusal for a model without a plan for tensor parallel, or whose heads do not divide."""
    text = config.get_text_config()
    if not getattr(text, "base_model_tp_plan", None):
        raise Refusal(
            f"device: Transformers has no tensor-parallel plan for {text.model_type}.", 'Spread its layers: "cuda:0+cuda:1".'
        )
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    if heads % ranks or text.num_attention_heads % ranks:
        fitting = [n for n in range(2, heads + 1) if heads % n == 0 and text.num_attention_heads % n == 0]
        named = f"Numbers that do: {', '.join(map(str, fitting))}." if fitting else 'Spread its layers: "cuda:0+cuda:1".'
        raise Refusal(f"device: {ranks} ranks do not divide this model's {heads} key-value heads.", named)


def _shares(device: str) -> dict[int | str, int]:
    """Bytes that each of several devices may take; a device that is not named takes nothing."""
    shares: dict[int | str, int] = {}
    for part in device.split("+"):
        free = Device(part).free_bytes()
        shares["cpu" if part == "cpu" else torch.device(part).index or 0] = int(free * _FREE_SHARE)
    return shares


def trim(model: Any) -> None:
    """Let go of what a rank's shards do not use: Transformers cuts them as views of the whole tensors, and keeps those."""
    for parameter in model.parameters():
        local = getattr(parameter, "_local_tensor", None)
        if local is not None and local.untyped_storage().nbytes() > local.numel() * local.element_size():
            parameter._local_tensor = local.clone()


def describe(device: str) -> str:
    """A note on how a slot's weights lie; empty for one device."""
    if (ranks := ranks_of(device)) > 1:
        where = "GPUs" if torch.cuda.is_available() else "processes on the CPU"
        return f"tensor parallel: every layer split over {ranks} {where}"
    return f"layers spread over {device.replace('+', ', ')}" if "+" in device else ""


def offloaded(model: Any) -> str:
    """A note when parts of a model were left outside its GPUs; empty otherwise."""
    placed = list((getattr(model, "hf_device_map", None) or {}).values())
    outside = sum(str(where) in ("cpu", "disk") for where in placed)
    if not outside or len({str(where) for where in placed}) == 1:
        return ""
    return f"offloaded: {outside} of {len(placed)} parts lie on the CPU or the disk and are fetched at every step"
