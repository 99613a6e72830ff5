"""Changes to a comparison's columns, each giving a new comparison. All raise ConfigError for what cannot be."""

from __future__ import annotations

import dataclasses
from typing import Any

from .checks import ConfigError, checked_bool, checked_choice, checked_count, checked_text
from .config import MAX_SLOTS, Attention, Cache, Comparison, Compile, ModelSpec, SlotSpec, Speculation
from .quantization import Dtype, Quantization, QuantizationMethod

MOST_NAME_CHARS = 40
FEWEST_SLOTS = 2
# What a menu may change of a slot, and what it may be.
CHOICES: dict[str, Any] = {
    "quantization": QuantizationMethod, "dtype": Dtype, "attention": Attention, "cache": Cache, "speculation": Speculation, "compile": Compile,
}
SWITCHES = ("lean", "keep_prefix")  # what is either on or off
_DEFAULT_GROUP, _USUAL_EXIT, _MOST_LAYERS = 64, 24, 1000


def duplicate(comparison: Comparison, slot_id: str) -> Comparison:
    """A copy of a column beside it, under an id and a name of its own."""
    place, slot = _found(comparison, slot_id)
    if len(comparison.slots) >= MAX_SLOTS:
        raise ConfigError("columns", f"there are {MAX_SLOTS}, the most there can be; remove one first.")
    ids, names = {s.id for s in comparison.slots}, {s.name for s in comparison.slots}
    number = next(n for n in range(2, 2 * MAX_SLOTS) if f"{slot_id}-{n}" not in ids and f"{slot.name} {n}" not in names)
    copy = dataclasses.replace(slot, id=f"{slot_id}-{number}", name=f"{slot.name} {number}")
    slots = (*comparison.slots[: place + 1], copy, *comparison.slots[place + 1 :])
    return dataclasses.replace(comparison, slots=slots)


def remove(comparison: Comparison, slot_id: str) -> Comparison:
    """Without a column; the first one becomes the reference if that was it."""
    _, slot = _found(comparison, slot_id)
    if len(comparison.slots) <= FEWEST_SLOTS:
        raise ConfigError("columns", f"there are {FEWEST_SLOTS}, the fewest that compare anything.")
    slots = tuple(s for s in comparison.slots if s is not slot)
    reference = slots[0].id if slot_id == comparison.reference else comparison.reference
    return dataclasses.replace(comparison, slots=slots, reference=reference)


def move(comparison: Comparison, slot_id: str, by: int) -> Comparison:
    """A column so many places to the right (negative: left); at the edge it stays."""
    place, slot = _found(comparison, slot_id)
    slots = [s for s in comparison.slots if s is not slot]
    slots.insert(max(0, min(len(slots), place + by)), slot)
    return dataclasses.replace(comparison, slots=tuple(slots))


def rename(comparison: Comparison, slot_id: str, name: Any) -> Comparison:
    """A column under another name."""
    text = " ".join(checked_text("name", name).split())
    if not 1 <= len(text) <= MOST_NAME_CHARS:
        raise ConfigError("name", f"has {len(text)} characters; give 1 to {MOST_NAME_CHARS}.")
    return _with(comparison, slot_id, lambda slot: dataclasses.replace(slot, name=text))


def refer_to(comparison: Comparison, slot_id: str) -> Comparison:
    """The same columns with another reference."""
    _found(comparison, slot_id)
    return dataclasses.replace(comparison, reference=slot_id)


def choose(comparison: Comparison, slot_id: str, choice: str, value: Any) -> Comparison:
    """One choice of a column changed. What needs a companion gets the usual one; what its own would clash with is named."""
    checked_choice("choice", choice, tuple(CHOICES))
    checked_choice(choice, value, CHOICES[choice])
    return _with(comparison, slot_id, lambda slot: _chosen(slot, choice, value))


def use_model(comparison: Comparison, slot_id: str, model: Any) -> Comparison:
    """A column on another model: "builtin", a hub id or a folder."""
    text = checked_text("model", model).strip()
    if not text:
        raise ConfigError("model", 'is empty; give "builtin", a hub id or a folder.')
    return _running(comparison, slot_id, model=text, revision=None)


def use_drafter(comparison: Comparison, slot_id: str, drafter: Any) -> Comparison:
    """A column that drafts with another model. An empty name changes nothing, since the technique needs one."""
    text = checked_text("drafter", drafter).strip()
    _, slot = _found(comparison, slot_id)
    if not text:
        return comparison
    if slot.decode.drafter is None:
        raise ConfigError("drafter", f'{slot.name} drafts with no other model; set speculation to "draft-model" or "universal" first.')
    model = dataclasses.replace(slot.decode.drafter, model=text, revision=None)
    return _decoding(comparison, slot_id, drafter=model)


def switch(comparison: Comparison, slot_id: str, choice: str, on: Any) -> Comparison:
    """One of a column's switches turned on or off."""
    checked_choice("choice", choice, SWITCHES)
    checked_bool(choice, on)
    return _decoding(comparison, slot_id, **{choice: on})


def use_device(comparison: Comparison, slot_id: str, device: Any) -> Comparison:
    """A column on another device, or over several; empty is "auto". Whether it is there is known when the column runs."""
    text = checked_text("device", device).strip() or "auto"
    return _running(comparison, slot_id, device=text)


def use_exit_layer(comparison: Comparison, slot_id: str, layers: Any) -> Comparison:
    """How many of the model's first layers draft, for a column that drafts so. Nothing given changes nothing."""
    _, slot = _found(comparison, slot_id)
    if layers is None:
        return comparison
    number = checked_count("exit_layer", layers, _MOST_LAYERS)
    if slot.decode.exit_layer is None:
        raise ConfigError("exit_layer", f'{slot.name} does not draft with its own layers; set speculation to "early-exit" first.')
    return _decoding(comparison, slot_id, exit_layer=number)


def value_of(slot: SlotSpec, choice: str) -> str:
    """What a slot's choice is now."""
    if choice == "quantization":
        return slot.model.quantization.method
    return getattr(slot.model if choice == "dtype" else slot.decode, choice)


def _chosen(slot: SlotSpec, choice: str, value: str) -> SlotSpec:
    if choice == "quantization":
        return dataclasses.replace(slot, model=dataclasses.replace(slot.model, quantization=_usual(value)))
    if choice == "dtype":
        return dataclasses.replace(slot, model=dataclasses.replace(slot.model, dtype=value))
    alone = choice == "speculation" or (choice == "compile" and value != "none")
    decode = slot.decode.without_speculation() if alone else slot.decode
    return dataclasses.replace(slot, decode=dataclasses.replace(decode, **{choice: value}, **_companion(slot.model, choice, value)))


def _usual(method: str) -> Quantization:
    """A method with the options that the presets use."""
    if method == "gptq":
        return Quantization("gptq", bits=4, group_size=_DEFAULT_GROUP)
    return Quantization(method, group_size=_DEFAULT_GROUP) if method == "torchao-int4" else Quantization(method)


def _companion(model: ModelSpec, choice: str, value: str) -> dict[str, Any]:
    if choice == "compile" and value != "none":
        return {"cache": "static", "lean": False}
    if choice != "speculation":
        return {}
    match value:
        case "draft-head":
            return {"draft_head": "builtin"}
        case "early-exit":
            return {"exit_layer": _USUAL_EXIT}
        case "draft-model" | "universal":
            return {"drafter": dataclasses.replace(model, quantization=_usual("torchao-int4"))}
    return {}


def _running(comparison: Comparison, slot_id: str, **changes: Any) -> Comparison:
    return _with(comparison, slot_id, lambda slot: dataclasses.replace(slot, model=dataclasses.replace(slot.model, **changes)))


def _decoding(comparison: Comparison, slot_id: str, **changes: Any) -> Comparison:
    return _with(comparison, slot_id, lambda slot: dataclasses.replace(slot, decode=dataclasses.replace(slot.decode, **changes)))


def _with(comparison: Comparison, slot_id: str, change: Any) -> Comparison:
    place, slot = _found(comparison, slot_id)
    slots = list(comparison.slots)
    slots[place] = change(slot)
    return dataclasses.replace(comparison, slots=tuple(slots))


def _found(comparison: Comparison, slot_id: Any) -> tuple[int, SlotSpec]:
    ids = [slot.id for slot in comparison.slots]
    checked_choice("column", slot_id, ids)
    return ids.index(slot_id), comparison.slots[ids.index(slot_id)]
