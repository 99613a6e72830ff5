"""ModelSpec -> weights: loaded once, shared by every module built on them, evicted when short.

A slot gets a module of its own: a deep copy of the loaded one in which every tensor, and
every quantization state, is the original. That takes about 20 ms and no memory, and lets
eager and SDPA slots run at the same time on one set of weights.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.pytorch_utils import Conv1D

from ..config import BUILTIN, Attention, ModelSpec, describe_model, ranks_of, spans
from ..engine import Resident
from ..quantization import QuantizationMethod
from . import gptq, placement, quantize, ranks
from .attention import implementation
from .calibration import read_calibration, samples
from .draft_head import SHIPPED, DraftHead, load_head
from .lean import Packs
from .memory import Device, bytes_of, pick_device, release_memory, returning_big_blocks, tensors_of
from .options import EngineOptions
from .prefix import Prefix
from .progress import Report, transformers_bars, unheard
from .refusal import Refusal
from .sources import Source, locate
from .text import Codec

log = logging.getLogger(__name__)

RESERVE_BYTES = 256_000_000
_PAGE_BYTES = 4096
_OLD_GPTQ_CONFIG = "quantize_config.json"


@dataclass(frozen=True)
class Card:
    """What is known of a model before its weights are read.

    `stored` names the quantization that the checkpoint itself came with, for people; empty for
    none. `stored_method` is the method that loads that kind, None for one that we do not know.
    """

    source: Source
    config: Any
    codec: Codec
    dtype: torch.dtype
    device: Device
    eos_ids: tuple[int, ...]
    stored: str = ""
    stored_method: QuantizationMethod | None = None

    @property
    def context(self) -> int | None:
        """The longest sequence in ids; None when the config does not say."""
        return getattr(self.config.get_text_config(), "max_position_embeddings", None)


@dataclass
class Weights:
    """Loaded weights: the pristine module (never run) and the modules of the slots.

    `quantized_layers` is None for weights that are not quantized; `notes` are for people; `read_from`
    is the checkpoint's folder, one made here for a model that was quantized; `heads_bytes` is what draft
    heads add to the weights.
    """

    spec: ModelSpec
    card: Card
    pristine: Any
    bytes: int
    added_bytes: int
    quantized_layers: int | None
    notes: tuple[str, ...]
    read_from: Path
    modules: dict[Hashable, Any] = field(default_factory=dict)
    heads: dict[Path, DraftHead] = field(default_factory=dict)
    heads_bytes: int = 0
    packs: Packs = field(default_factory=Packs)
    prefixes: dict[Hashable, Prefix] = field(default_factory=dict)
    users: int = 0

    @property
    def made_here(self) -> str:
        """The folder of a checkpoint that was quantized here; empty for others."""
        return "" if self.read_from == self.card.source.folder else str(self.read_from)

    @property
    def extra_bytes(self) -> int:
        """Bytes of what slots had made or kept beside the weights: draft heads, packed copies, caches of earlier turns."""
        return self.heads_bytes + self.packs.bytes + sum(prefix.bytes for prefix in self.prefixes.values())

    def draft_head(self, folder: Path, name: str) -> DraftHead:
        """The draft head in a folder, loaded once, on these weights' device and in their dtype. Raises Refusal."""
        if folder not in self.heads:
            head = load_head(folder, name).to(self.card.device.torch, self.card.dtype)
            self.heads[folder] = head.attach(self.pristine).pack()
            self.heads_bytes = bytes_of([self.pristine, *self.heads.values()]) - self.bytes
        return self.heads[folder]

    def module(self, owner: Hashable, attention: Attention, lean: bool = False) -> Any:
        """The owner's own module with its own config, sharing every tensor; lean ones share the packed copies too."""
        key = (owner, attention, lean)
        if key not in self.modules:
            module = _sharing_copy(self.pristine, attention)
            if lean:
                self.packs.apply(module)
            self.modules[key] = module
        return self.modules[key]


class WeightStore:
    """All weights of one process. Thread-safe; a spec is loaded by one caller, others wait."""

    def __init__(self, options: EngineOptions):
        self._options = options
        self._cards: dict[ModelSpec, Card] = {}
        self._weights: dict[ModelSpec, Weights] = {}  # least recently used first
        self._lock = threading.RLock()

    def card(self, spec: ModelSpec, report: Report) -> Card:
        """Config and tokenizer of a model, without its weights. Raises Refusal."""
        with self._lock:
            if spec not in self._cards:
                self._cards[spec] = _read_card(spec, self._options, report)
            return self._cards[spec]

    def draft_head_folder(self, name: str, report: Report) -> Path:
        """Where a draft head lies: the shipped one, a local folder, or a hub repository. Raises Refusal."""
        return SHIPPED if name == BUILTIN else locate(name, None, self._options, report).folder

    def look(self, spec: ModelSpec) -> tuple[Card, int, Any | None] | None:
        """A model that is on this machine: its card, the bytes that loading it would take, and its module if loaded.

        None for a model that is not here: nothing is fetched.
        """
        try:
            with self._lock:
                if spec not in self._cards:
                    offline = dataclasses.replace(self._options, offline=True)
                    self._cards[spec] = _read_card(spec, offline, unheard)
                card, loaded = self._cards[spec], self._weights.get(spec)
        except Refusal:
            return None
        return card, 0 if loaded else _predicted_bytes(spec, card), loaded.pristine if loaded else None

    def input_widths(self, spec: ModelSpec) -> set[int] | None:
        """Input widths of a model's layers, if the model is on this machine; nothing is fetched."""
        try:
            source = locate(spec.model, spec.revision, dataclasses.replace(self._options, offline=True), unheard)
            return input_widths(AutoConfig.from_pretrained(source.folder, local_files_only=True))
        except (Refusal, OSError, ValueError):
            return None

    @contextmanager
    def use(self, spec: ModelSpec, report: Report, run_bytes: int = 0) -> Iterator[Weights]:
        """Weights that stay loaded inside the block. Loads them if need be, with room for `run_bytes` more.

        Raises Refusal, for want of room too, unless the options say to load anyway.
        """
        with self._lock:
            card = self.card(spec, report)
            if spec in self._weights:
                self._make_room(spec, card, 0, run_bytes)
                weights = self._weights.pop(spec)
            else:
                weights = self._load(spec, card, report, run_bytes)
            self._weights[spec] = weights
            weights.users += 1
        try:
            yield weights
        finally:
            with self._lock:
                weights.users -= 1

    def unload(self, spec: ModelSpec | None) -> None:
        """Free one spec's weights or, with None, all. Raises Refusal for weights in use."""
        with self._lock:
            chosen = [w for w in self._weights.values() if spec in (None, w.spec)]
            busy = [describe_model(w.spec) for w in chosen if w.users]
            for weights in chosen:
                if not weights.users:
                    self._drop(weights)
            release_memory(thorough=True)
        if busy:
            raise Refusal(f"unload: {', '.join(busy)} is running.", "Stop the comparison first.")

    def resident(self) -> tuple[Resident, ...]:
        """Loaded weights, least recently used first. Takes no lock: a page asks while a model loads."""
        return tuple(
            Resident(w.spec, w.bytes + w.extra_bytes, w.added_bytes + w.extra_bytes, len(w.modules), w.made_here)
            for w in list(self._weights.values())
        )

    def _load(self, spec: ModelSpec, card: Card, report: Report, run_bytes: int) -> Weights:
        _check_quantization(spec, card)
        self._make_room(spec, card, _predicted_bytes(spec, card), run_bytes)
        started = time.perf_counter()
        report("loading weights", None)
        with transformers_bars("loading weights", report), returning_big_blocks():
            folder = card.source.folder
            if spec.quantization.method == "gptq":
                dtype = str(card.dtype).removeprefix("torch.")
                folder = gptq.quantized_folder(card.source, spec, dtype, card.device.name, self._options, report)
            pristine, layers, notes = _load_pristine(spec, card, folder, report)
            for other in self._weights.values():
                if other.card.device.name == card.device.name and not (spans(spec.device) or spans(other.spec.device)):
                    _adopt_equal_tensors(pristine, other.pristine)
        release_memory()
        before = [w.pristine for w in self._weights.values()]
        added = bytes_of([*before, pristine]) - bytes_of(before)
        weights = Weights(spec, card, pristine, bytes_of(pristine), added, layers, notes, Path(folder))
        seconds = time.perf_counter() - started
        log.info("loaded %s: %.0f MB in %.1f s", describe_model(spec), weights.added_bytes / 1e6, seconds)
        return weights

    def _make_room(self, spec: ModelSpec, card: Card, weights_bytes: int, run_bytes: int) -> None:
        """Evict the least recently used idle weights until new ones and a run should fit. Raises Refusal when they do not."""
        needed = weights_bytes + run_bytes
        for weights in list(self._weights.values()):
            if self.room(card.device) >= needed:
                return
            if not weights.users and weights.spec != spec and weights.card.device.name == card.device.name:
                log.info("evicting %s to make room", describe_model(weights.spec))
                self._drop(weights)
                del weights
                release_memory(thorough=True)
        room = self.room(card.device)
        if room < needed and (refusal := self.too_little(spec, card.device, weights_bytes, run_bytes, room)):
            raise refusal

    def too_little(self, spec: ModelSpec, device: Device, weights_bytes: int, run_bytes: int, room: int) -> Refusal | None:
        """The refusal of a slot for want of memory; None where the options say to load anyway."""
        if self._options.load_anyway:
            return None
        parts = [f"{weights_bytes / 1e6:,.0f} MB of weights"] if weights_bytes else []
        parts += [f"{run_bytes / 1e6:,.0f} MB of KV cache and working memory"] if run_bytes else []
        return Refusal(
            f"memory: {describe_model(spec)} needs about {' and '.join(parts)}; {max(0, room) / 1e6:,.0f} MB can be had "
            f"on {device.name}, with everything idle unloaded.",
            "Ask for fewer tokens, choose a smaller or a quantized model, or start with --load-anyway.",
        )

    def predicted_bytes(self, spec: ModelSpec) -> int:
        """What loading a model that is on this machine would take."""
        return _predicted_bytes(spec, self.card(spec, unheard))

    def room(self, device: Device) -> int:
        """Bytes for weights and runs on a device, some kept back for everything else. Every rank must ask."""
        room = ranks.least(device.free_bytes()) - RESERVE_BYTES
        limit = self._options.memory_limit_bytes
        if limit is not None:
            room = min(room, limit - bytes_of([w.pristine for w in self._weights.values()]))
        return room

    def _drop(self, weights: Weights) -> None:
        """Cut every reference to the modules, so that nothing keeps the tensors alive."""
        self._weights.pop(weights.spec, None)
        weights.modules.clear()
        weights.heads.clear()
        weights.packs.clear()
        weights.prefixes.clear()
        weights.pristine = None


def _read_card(spec: ModelSpec, options: EngineOptions, report: Report) -> Card:
    placement.check(spec.device)
    source = locate(spec.model, spec.revision, options, report)
    device = pick_device(spec.device)
    try:
        config = AutoConfig.from_pretrained(source.folder, local_files_only=True, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(source.folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise Refusal(
            f"model: {spec.model} cannot be read: {error}", "Give a causal language model that Transformers knows."
        ) from error
    _read_old_gptq_config(config, source.folder)
    method, name = quantize.stored_method(config)
    if name and not spec.quantization.is_none:
        raise Refusal(
            f"quantization: {spec.model} is stored as {name} and cannot be quantized again to {spec.quantization}.",
            'Leave quantization at "none" to run it as it is stored, or give the unquantized model.',
        )
    dtype = dtype_for(config, device) if spec.dtype == "auto" else getattr(torch, spec.dtype)
    return Card(source, config, Codec(tokenizer), dtype, device, _eos_ids(source.folder, tokenizer), name, method)


def _read_old_gptq_config(config: Any, folder: Path) -> None:
    """Early AutoGPTQ wrote the quantization beside config.json only, where Transformers does not look."""
    path = folder / _OLD_GPTQ_CONFIG
    if getattr(config, "quantization_config", None) is None and path.is_file():
        config.quantization_config = {**json.loads(path.read_text(encoding="utf-8")), "quant_method": "gptq"}


def dtype_for(config: Any, device: Device) -> torch.dtype:
    """What "auto" means: the checkpoint's dtype, but never float16 on a CPU, where it crawls."""
    stored = getattr(config, "dtype", None) or torch.bfloat16
    stored = getattr(torch, stored) if isinstance(stored, str) else stored
    if stored == torch.float16 and not device.is_cuda:
        return torch.bfloat16
    return stored


def _eos_ids(folder: Path, tokenizer: Any) -> tuple[int, ...]:
    try:
        eos = GenerationConfig.from_pretrained(folder, local_files_only=True).eos_token_id
    except OSError:
        eos = None
    if eos is None:
        eos = tokenizer.eos_token_id
    return tuple(eos) if isinstance(eos, (list, tuple)) else (() if eos is None else (eos,))


def _predicted_bytes(spec: ModelSpec, card: Card) -> int:
    whole = card.source.stored_bytes // ranks_of(spec.device)
    return int(whole * (1.0 if spec.quantization.is_none else quantize.METHODS[spec.quantization.method].loaded_share))


def _method(spec: ModelSpec, card: Card) -> QuantizationMethod | None:
    """The method that was asked for, else the one that the checkpoint is stored in."""
    return card.stored_method if spec.quantization.is_none else spec.quantization.method


def _check_quantization(spec: ModelSpec, card: Card) -> None:
    """Raise Refusal for what is known not to work, before anything is evicted, made or loaded for it."""
    if not spec.quantization.is_none:
        quantize.check(spec.quantization, input_widths(card.config, spec.quantization.method), card.device)
    elif card.stored_method and (reason := quantize.unavailable(card.stored_method, card.device)):
        raise reason


def _load_pristine(
    spec: ModelSpec, card: Card, folder: Path, report: Report
) -> tuple[Any, int | None, tuple[str, ...]]:
    """The module loaded from a folder, how many of its layers are quantized, and notes for people. Raises Refusal."""
    quantization, method = spec.quantization, _method(spec, card)
    bits = quantization.bits or quantize.stored_options(card.config).get("bits")
    notes = [card.stored and f"stored as {card.stored}", quantize.slow_here(method, bits, card.dtype, card.device)]
    notes.append(placement.describe(spec.device))
    notes.append(gptq.describe_record(gptq.read_record(folder)))
    report("loading weights", None)
    config = None if quantization.method == "gptq" else copy.deepcopy(card.config)  # None: as the folder has it
    model = _from_pretrained(spec, card, folder, config)
    if quantization.method == "torchao-int8-static":
        text = read_calibration(quantization.calibration).text
        quantize.make_static_int8(model, samples(card.codec.plain_ids(text)), report)
    notes.append(placement.offloaded(model))
    placement.trim(model)
    layers = quantize.check_quantized(model, method) if method else None
    model.eval()
    if method:
        quantize.settle(model, card.dtype)
    _bring_in(model, quantized=method is not None)
    return model, layers, tuple(filter(None, notes))


def _from_pretrained(spec: ModelSpec, card: Card, folder: Path, config: Any) -> Any:
    """Read a checkpoint, quantizing on the way where the method does that. `config` None: as the folder has it."""
    options = placement.options_for(spec.device, card.config, card.device)
    quantizing = quantize.config_for(spec.quantization, card.dtype, card.device)
    if quantizing is not None:  # given as None it would hide the checkpoint's own
        options["quantization_config"] = quantizing
    if config is not None:
        options["config"] = config
    try:
        model, found = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=card.dtype,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
            **options,
        )
    except torch.OutOfMemoryError as error:
        raise Refusal(f"model: {card.device.name} has too little memory for {describe_model(spec)}.",
                      "Unload other models, or choose a quantized slot.") from error
    except ImportError as error:
        raise Refusal(f"model: {spec.model} needs a package that is missing: {error}", quantize.INSTALL) from error
    except (OSError, ValueError) as error:
        raise Refusal(f"model: {spec.model} cannot be loaded: {error}",
                      "The folder needs safetensors of a causal language model.") from error
    if found["missing_keys"]:
        missing = sorted(found["missing_keys"])
        raise Refusal(f"model: the checkpoint of {spec.model} lacks {len(missing)} tensors, such as {missing[0]}.",
                      "Transformers would fill them with random numbers; give a complete checkpoint.")
    return model


def _bring_in(model: torch.nn.Module, quantized: bool) -> None:
    """Have every CPU tensor in memory before the first run, or its numbers would include the disk.

    Tensors are mapped from the checkpoint file. Read as they are, their pages are touched; after
    quantization the few that stayed are copied, since one of them keeps the whole file resident.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        if type(tensor) in (torch.nn.Parameter, torch.Tensor) and tensor.device.type == "cpu":
            if quantized:
                tensor.data = tensor.data.clone()
            else:
                tensor.detach().flatten()[:: _PAGE_BYTES // tensor.element_size()].sum()


def _adopt_equal_tensors(model: Any, other: Any) -> None:
    """Take over from other weights on the same device what both left unquantized and equal.

    For the built-in model in NF4 that is half of its bytes: the embedding. Compared by content,
    since a GPTQ checkpoint made here lies in a folder of its own.
    """
    theirs = dict(other.named_parameters())
    for name, tensor in model.named_parameters():
        match = theirs.get(name)
        plain = type(tensor) is type(match) is torch.nn.Parameter
        if plain and (tensor.shape, tensor.dtype) == (match.shape, match.dtype) and torch.equal(tensor, match):
            tensor.data = match.data


def input_widths(config: Any, method: QuantizationMethod = "gptq") -> set[int]:
    """Input widths of the layers that a method would quantize, from a model built without memory."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(copy.deepcopy(config))
    head = model.get_output_embeddings()
    layers = [m for m in model.modules() if m is not head]
    widths = {m.in_features for m in layers if isinstance(m, torch.nn.Linear)}
    if quantize.METHODS[method].takes_conv1d:
        widths |= {m.weight.shape[0] for m in layers if isinstance(m, Conv1D)}
    return widths


def _sharing_copy(pristine: Any, attention: Attention) -> Any:
    kept = {id(t): t for t in (*tensors_of(pristine), *pristine.parameters())}
    module = copy.deepcopy(pristine, kept)
    module.set_attn_implementation(implementation(attention))
    module.generation_config = GenerationConfig()  # a checkpoint's sampling defaults stay out of it
    return module
