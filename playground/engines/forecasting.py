"""Goes through a comparison's slots as the store will, without loading: needs, evictions, refusals, warnings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..config import ModelSpec, Prompt, SlotSpec, describe_model
from ..forecast import Forecast
from .admission import admit
from .decoding import kv_bytes, working_bytes
from .progress import unheard
from .quantize import slow_here
from .refusal import Refusal
from .weights import Card, WeightStore


@dataclass
class _Loaded:
    """Weights as they will be when a slot's turn comes."""

    device: str
    bytes: int


def forecast(store: WeightStore, slots: tuple[SlotSpec, ...], prompt: Prompt) -> tuple[Forecast, ...]:
    """One for every slot whose models are on this machine; the others are left out, since nothing is fetched to answer."""
    loaded = {item.model: _Loaded(store.card(item.model, unheard).device.name, item.added_bytes) for item in store.resident()}
    freed: dict[str, int] = {}  # by what the slots before have loaded and evicted, a device
    found = []
    for slot in slots:
        looked = store.look(slot.model)
        drafter = store.look(slot.decode.drafter) if slot.decode.drafter else None
        if looked is None or (slot.decode.drafter and drafter is None):
            continue
        found.append(_one(store, slot, prompt, looked[0], drafter[0] if drafter else None, loaded, freed))
    return tuple(found)


def _one(
    store: WeightStore, slot: SlotSpec, prompt: Prompt, card: Card, drafter: Card | None,
    loaded: dict[ModelSpec, _Loaded], freed: dict[str, int],
) -> Forecast:
    device, name = card.device, card.device.name
    ids = card.codec.encode(prompt, prompt.history(slot.id))
    new = {spec: 0 if spec in loaded else store.predicted_bytes(spec) for spec in (slot.model, slot.decode.drafter) if spec}
    kv, working = kv_bytes(slot, ids, prompt, card), working_bytes(slot, card, ids.shape[1], prompt.settings.batch)
    needed = sum(new.values()) + kv + working
    free = store.room(device) + freed.get(name, 0)
    evicts: list[str] = []
    for spec in [s for s, item in loaded.items() if item.device == name and s not in new]:
        if free >= needed:
            break
        gone = loaded.pop(spec)
        evicts.append(describe_model(spec))
        free += gone.bytes
        freed[name] = freed.get(name, 0) + gone.bytes
    problem = _problem(slot, prompt, ids, card, drafter)
    if not problem and free < needed:
        problem = store.too_little(slot.model, device, sum(new.values()), kv + working, free)
    if not problem:
        for spec, size in new.items():
            freed[name] = freed.get(name, 0) - size
            loaded[spec] = _Loaded(name, loaded.pop(spec).bytes if spec in loaded else size)
    warned = slow_here(slot.model.quantization.method, slot.model.quantization.bits, card.dtype, device)
    return Forecast(
        slot.id, name, str(card.dtype).removeprefix("torch."), new[slot.model],
        new.get(slot.decode.drafter, 0) if slot.decode.drafter != slot.model else 0, kv, working, max(0, free),
        tuple(evicts), (warned,) if warned else (), *((problem.message, problem.hint) if problem else ()),
    )


def _problem(slot: SlotSpec, prompt: Prompt, ids: Any, card: Card, drafter: Card | None) -> Refusal | None:
    try:
        admit(slot, prompt, ids.shape[1], card, drafter)
    except Refusal as refusal:
        return refusal
    return None
