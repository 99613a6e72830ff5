"""One slot's run on this machine, as events. Runs in the process that owns the device."""

from __future__ import annotations

import copy
import logging
import queue
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

from ..capabilities import Technique
from ..checkup import Checkup
from ..config import ModelSpec, Prompt, SlotSpec
from ..events import (
    ENDINGS,
    Assessing,
    Done,
    Drafts,
    Event,
    Failed,
    FinishReason,
    Loading,
    Memory,
    NoQuality,
    Quality,
    Ready,
    Started,
    Tokens,
    WarmedUp,
)
from ..scheduler import Resident, Stop
from . import attention, caches, doctor, lean, quality, quantize, speculate
from .calibration import quality_texts
from .capabilities import capabilities
from .draft_head import DraftHead, fingerprint
from .memory import bytes_of, pick_device, release_memory
from .options import EngineOptions
from .prefix import kept as prefix_of
from .refusal import Refusal, Stopped
from .script import Facts, script
from .text import Codec, StopStrings, TextStream
from .weights import Card, Weights, WeightStore

log = logging.getLogger(__name__)

WARMUP_TOKENS = 2

Emit = Callable[[Event], None]


@dataclass(frozen=True)
class _Slot:
    """A slot ready to run: its modules and what they need.

    `tokenizers` are the target's and the drafter's, where those differ.
    """

    spec: SlotSpec
    weights: Weights
    module: Any
    drafter: Any | None
    card: Card
    tokenizers: tuple[Any, Any] | None = None
    head: DraftHead | None = None


class LocalEngine:
    """Runs slots in this process. Satisfies scheduler.Engine."""

    def __init__(self, options: EngineOptions):
        quantize.hide_broken_torchao()
        attention.register()
        self._store = WeightStore(options)
        self._warming = threading.Lock()

    def run(self, slot: SlotSpec, prompt: Prompt, stop: Stop) -> Iterator[Event]:
        """The run's events; the model decodes in a thread of its own."""
        return _in_thread(lambda emit: self.execute(slot, prompt, stop, emit))

    def assess(
        self, slot: SlotSpec, reference: SlotSpec, prompt: Prompt, answer: tuple[int, ...], stop: Stop
    ) -> Iterator[Event]:
        """The assessment's events; the models run in a thread of their own."""
        return _in_thread(lambda emit: self.execute_assessment(slot, reference, prompt, answer, stop, emit))

    def execute(self, slot: SlotSpec, prompt: Prompt, stop: Stop, emit: Emit) -> None:
        """Run a slot in this thread. Emits exactly one Done or Failed, last, and never raises."""
        emit(_outcome(lambda: self._attempt(slot, prompt, stop, emit), Done("stopped"), Failed, slot.id))

    def execute_assessment(
        self, slot: SlotSpec, reference: SlotSpec, prompt: Prompt, answer: tuple[int, ...], stop: Stop, emit: Emit
    ) -> None:
        """Measure quality in this thread. Emits exactly one Quality or NoQuality, last, and never raises."""
        stopped = NoQuality("Stopped while quality was being measured.")
        emit(_outcome(lambda: self._assess(slot, reference, prompt, answer, stop, emit), stopped, NoQuality, slot.id))

    def _attempt(self, slot: SlotSpec, prompt: Prompt, stop: Stop, emit: Emit) -> Done:
        def report(stage: str, fraction: float | None) -> None:
            if stop.is_set():
                raise Stopped
            emit(Loading(stage, fraction))

        report("reading the tokenizer", None)
        card = self._store.card(slot.model, report)
        ids = card.codec.encode(prompt, prompt.history(slot.id))
        _check_length(ids.shape[1], prompt, card)
        drafter_spec = slot.decode.drafter
        drafter_card = self._store.card(drafter_spec, report) if drafter_spec else None
        _check_speculation(slot, card, drafter_card, prompt)
        if reason := attention.unavailable(slot.decode.attention, card.device):
            raise reason
        caches.check(slot.decode, card.config, card.device)
        if slot.decode.keep_prefix:
            caches.check_prefix(card.config)
        if slot.decode.lean:
            lean.check(card.dtype, card.device)
        head_name = slot.decode.draft_head
        head_folder = self._store.draft_head_folder(head_name, report) if head_name else None
        asked = time.perf_counter()
        with ExitStack() as stack:
            weights = stack.enter_context(self._store.use(slot.model, report, _run_bytes(slot, ids, prompt, card)))
            drafting = stack.enter_context(self._store.use(drafter_spec, report)) if drafter_spec else None
            ready = _Slot(
                slot,
                weights,
                weights.module(slot, slot.decode.attention, slot.decode.lean),
                drafting.module((slot, "drafter"), slot.decode.attention, slot.decode.lean) if drafting else None,
                card,
                _both_tokenizers(card, drafter_card) if slot.decode.speculation == "universal" else None,
                weights.draft_head(head_folder, head_name) if head_folder else None,
            )
            facts = _facts(ready, ids, prompt, drafting, head_folder)
            emit(_ready_event(ready, drafting, time.perf_counter() - asked, script(slot, prompt, facts)))
            return self._generate(ready, ids, prompt, stop, emit)

    def _assess(
        self, slot: SlotSpec, reference: SlotSpec, prompt: Prompt, answer: tuple[int, ...], stop: Stop, emit: Emit
    ) -> Quality:
        def report(_stage: str, _fraction: float | None) -> None:
            if stop.is_set():
                raise Stopped
            emit(Assessing())

        card, reference_card = self._store.card(slot.model, report), self._store.card(reference.model, report)
        _check_same_ids(card, reference_card)
        device = card.device.torch
        ids = reference_card.codec.encode(prompt, prompt.history(reference.id))
        start = ids.shape[1]
        ids = torch.cat([ids, torch.tensor([answer])], dim=1).to(device)
        texts = {
            name: torch.tensor([card.codec.plain_ids(text)[: card.context]], device=device)
            for name, text in quality_texts().items()
        }
        steps = 2 * _chunks(ids, start) + sum(_chunks(text, 1) for text in texts.values())
        done = 0

        def tick() -> None:
            nonlocal done
            if stop.is_set():
                raise Stopped
            emit(Assessing(done / steps))
            done += 1

        with self._store.use(reference.model, report) as theirs, self._store.use(slot.model, report) as ours:
            module = ours.module(slot, slot.decode.attention, slot.decode.lean)
            baseline = theirs.module(reference, reference.decode.attention, reference.decode.lean)
            kl_nats, top1 = quality.divergence(module, baseline, ids, start, tick)
            overall, by_text = quality.perplexities(module, texts, tick)
        return Quality(kl_nats, top1, len(answer), overall, tuple(by_text.items()))

    def _generate(self, slot: _Slot, ids: torch.Tensor, prompt: Prompt, stop: Stop, emit: Emit) -> Done:
        device = slot.card.device
        ids = ids.to(device.torch)
        release_memory()
        device.reset_peak()
        before = device.current_bytes()
        settings, reused, known = prompt.settings, 0, None
        prefix = slot.weights.prefixes.get(slot.spec)
        if prefix and prompt.history(slot.spec.id):
            reused = prefix.shared(tuple(ids[0].tolist()))
            known = prefix.cropped(reused)
        if not stop.is_set():
            self._warm_up(slot, ids, prompt, stop, emit, copy.deepcopy(known))
        if stop.is_set():
            return Done("stopped")
        torch.manual_seed(prompt.settings.seed)
        tap = _Tap(slot.card.codec, _eos_ids(slot.card, prompt), settings.new_tokens, stop, emit, settings.stops)
        started = device.now_ns()
        emit(Started(started, ids.shape[1], reused))
        cache, said = _call_generate(slot, ids, prompt, prompt.settings.new_tokens, tap, known)
        device.now_ns()
        emit(
            Memory(
                counter=device.counter,
                before_bytes=before,
                peak_bytes=device.peak_bytes(),
                reserved_bytes=device.peak_reserved_bytes(),
                kv_bytes=bytes_of(cache),
                kv_predicted_bytes=_predicted_kv(slot, cache, _room(slot.spec, ids, prompt)),
            )
        )
        if slot.spec.decode.keep_prefix:
            slot.weights.prefixes[slot.spec] = prefix_of(said, cache)
        if tap.rounds.drafts:
            emit(_drafts(tap.rounds.drafts, slot.card.codec))
        return Done(tap.reason(), tap.text.finish())

    def _warm_up(
        self, slot: _Slot, ids: torch.Tensor, prompt: Prompt, stop: Stop, emit: Emit, known: Any
    ) -> None:
        """A few untimed tokens of this very prompt, so that first-use costs stay out of the numbers.

        Before every run: kernels depend on the prompt's length, and another slot's run has
        cooled the caches. One at a time even in race mode: first use may build shared state.
        """
        watch = attention.KernelWatch()
        with self._warming, watch:
            started = slot.card.device.now_ns()
            few = min(WARMUP_TOKENS, prompt.settings.new_tokens)
            _call_generate(slot, ids, prompt, few, _Tap(slot.card.codec, (), few, stop, lambda event: None), known)
            ended = slot.card.device.now_ns()
        alone = slot.spec.decode.speculation in ("none", "prompt-lookup")  # else a drafter's calls are among them
        words = watch.words(slot.card.config.get_text_config().num_hidden_layers) if alone else ""
        emit(WarmedUp((ended - started) / 1e9, words, attention.enabled_kernels() if words else ""))

    def unload(self, model: ModelSpec | None) -> None:
        """Free weights and the modules built on them. Raises Refusal while they are in use."""
        self._store.unload(model)

    def resident(self) -> tuple[Resident, ...]:
        """Loaded weights, least recently used first."""
        return self._store.resident()

    def machine(self) -> str:
        """The device and the torch build, for people."""
        device = pick_device("auto")
        if device.is_cuda:
            return f"{torch.cuda.get_device_name(device.torch)}, torch {torch.__version__}"
        return f"CPU, {torch.get_num_threads()} threads, torch {torch.__version__}"

    def capabilities(self) -> tuple[Technique, ...]:
        """What the default device can run."""
        return capabilities(pick_device("auto"))

    def group_sizes(self, model: ModelSpec) -> tuple[int, ...] | None:
        """GPTQ group sizes for a model that is here already: nothing is fetched to answer this."""
        widths = self._store.input_widths(model)
        return quantize.group_sizes("gptq", widths) if widths else None

    def examine(self, model: ModelSpec) -> Checkup | None:
        """What a model's cache costs here and what would spoil it; None for a model that is not here."""
        found = self._store.look(model)
        return doctor.examine(*found) if found else None

    def close(self) -> None:
        """Free everything that is idle."""
        try:
            self._store.unload(None)
        except Refusal:
            log.warning("closing while a model runs")


def _in_thread(work: Callable[[Emit], None]) -> Iterator[Event]:
    """The events that `work` emits from a thread, to the one that ends it."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    threading.Thread(target=work, args=(events.put,), daemon=True).start()
    while True:
        event = events.get()
        yield event
        if isinstance(event, ENDINGS):
            return


def _outcome(work: Callable[[], Event], stopped: Event, failed: Callable[[str, str], Event], slot_id: str) -> Event:
    """What `work` returns, or the event that says why it could not."""
    try:
        return work()
    except Stopped:
        return stopped
    except Refusal as refusal:
        return failed(refusal.message, refusal.hint)
    except torch.OutOfMemoryError as error:
        return failed(
            f"Out of memory on the device: {str(error).splitlines()[0]}",
            "Ask for fewer tokens, unload other models, or use a quantized slot.",
        )
    except Exception as error:
        # As text: a handler that kept the traceback would keep its frames, and the model in them.
        log.error("slot %s failed\n%s", slot_id, traceback.format_exc())
        return failed(f"{type(error).__name__}: {error}", "The log of the worker has the details.")


def _check_same_ids(card: Card, reference: Card) -> None:
    """Distributions over ids can be compared only where the ids mean the same."""
    sizes = [_vocabulary_size(c) for c in (card, reference)]
    if sizes[0] != sizes[1] or card.codec.vocabulary() != reference.codec.vocabulary():
        raise Refusal(
            "quality: this slot's vocabulary differs from the reference slot's, so their distributions cannot be compared.",
            "Choose a reference slot of the same model family.",
        )


def _chunks(ids: torch.Tensor, start: int) -> int:
    return 1 + -(-(ids.shape[1] - 1 - start) // quality.CHUNK_TOKENS)


def _facts(slot: _Slot, ids: torch.Tensor, prompt: Prompt, drafting: Weights | None, head: Path | None) -> Facts:
    card = slot.card
    return Facts(
        folder=str(slot.weights.read_from),
        dtype=str(card.dtype).removeprefix("torch."),
        device=card.device.name,
        eos_ids=card.eos_ids,
        pad_id=card.eos_ids[0] if card.eos_ids else 0,
        config=card.config,
        positions=_room(slot.spec, ids, prompt),
        drafter_folder=str(drafting.read_from) if drafting else "",
        drafter_dtype=str(drafting.card.dtype).removeprefix("torch.") if drafting else "",
        head_folder=str(head) if head else "",
    )


def _ready_event(slot: _Slot, drafting: Weights | None, load_s: float, source: str) -> Ready:
    return Ready(
        load_s=load_s,
        weights_bytes=slot.weights.bytes + (slot.weights.packs.bytes if slot.spec.decode.lean else 0),
        drafter_bytes=_drafter_bytes(slot, drafting),
        dtype=str(slot.card.dtype).removeprefix("torch."),
        device=slot.card.device.name,
        source=slot.card.source.origin,
        quantized_layers=slot.weights.quantized_layers,
        notes=slot.weights.notes + _head_notes(slot),
        script=source,
    )


def _drafter_bytes(slot: _Slot, drafting: Weights | None) -> int | None:
    """What drafting adds to the target's weights; None where nothing but text drafts."""
    if slot.head is not None:
        return slot.weights.heads_bytes
    return None if drafting is None else 0 if drafting is slot.weights else drafting.bytes


def _head_notes(slot: _Slot) -> tuple[str, ...]:
    if slot.head is None or slot.head.config.fingerprint == fingerprint(slot.weights.pristine):
        return ()
    return (f"the draft head was trained on other weights ({slot.head.config.target}); drafts may be accepted less often",)


def _check_length(prompt_tokens: int, prompt: Prompt, card: Card) -> None:
    wanted = prompt.settings.new_tokens
    if prompt_tokens == 0:
        raise Refusal("prompt: the tokenizer makes no token of it.", "Type some text.")
    if card.context and prompt_tokens + wanted > card.context:
        raise Refusal(
            f"new_tokens: {prompt_tokens:,} prompt tokens and {wanted:,} new tokens are "
            f"{prompt_tokens + wanted:,}; this model's context is {card.context:,}.",
            f"Ask for at most {max(0, card.context - prompt_tokens):,} new tokens, or shorten the prompt.",
        )


def _vocabulary_size(card: Card) -> int:
    """How many ids a model scores."""
    return card.config.get_text_config().vocab_size


def _both_tokenizers(target: Card, drafter: Card) -> tuple[Any, Any]:
    """Copies of both tokenizers for one run: generate encodes and decodes with them meanwhile."""
    return target.codec.copy_of_tokenizer(), drafter.codec.copy_of_tokenizer()


def _drafts(drafts: list[tuple[tuple[int, ...], int]], codec: Codec) -> Drafts:
    return Drafts(
        tuple(codec.decode(ids[:accepted]) for ids, accepted in drafts),
        tuple(codec.decode(ids[accepted:]) for ids, accepted in drafts),
    )


def _check_speculation(slot: SlotSpec, card: Card, drafter: Card | None, prompt: Prompt) -> None:
    """Raise Refusal for what this pair of models, or this model, cannot do."""
    if slot.decode.speculation == "early-exit":
        speculate.check_exit_layer(slot.decode.exit_layer, card.config.get_text_config().num_hidden_layers)
    if slot.decode.speculation == "draft-model":
        _check_drafter(card, drafter)
    if slot.decode.speculation == "universal" and prompt.settings.temperature > 0:
        # UniversalSpeculativeDecodingGenerator cuts the drafter's head in one order of ids and spreads its scores in
        # another; measured, the answer follows the drafter's distribution instead of the target's.
        raise Refusal(
            "temperature: with a drafter of another tokenizer, Transformers 5.24 does not sample from the target's distribution.",
            "Set the temperature to 0, or choose a drafter with the target's tokenizer.",
        )
    if slot.decode.speculation == "universal" and _vocabulary_size(card) == _vocabulary_size(drafter):
        raise Refusal(
            f"drafter: it scores {_vocabulary_size(drafter):,} ids like the target, and Transformers tells tokenizers apart by that.",
            'With the target\'s own tokenizer use speculation = "draft-model"; else choose a drafter of another size.',
        )


def _check_drafter(target: Card, drafter: Card) -> None:
    speculate.check_vocabularies(target.codec, drafter.codec)
    sizes = [_vocabulary_size(card) for card in (target, drafter)]
    if sizes[0] != sizes[1]:
        raise Refusal(
            f"drafter: it scores {sizes[1]:,} ids, the target {sizes[0]:,}.",
            "Choose a drafter whose embedding has the target's size.",
        )


def _run_bytes(slot: SlotSpec, ids: torch.Tensor, prompt: Prompt, card: Card) -> int:
    """What a run is predicted to need beside weights: the KV cache at its longest."""
    return caches.predicted_bytes(slot.decode, card.config, _room(slot, ids, prompt), card.dtype) or 0


def _room(slot: SlotSpec, ids: torch.Tensor, prompt: Prompt) -> int:
    return caches.room(slot.decode, ids.shape[1] + prompt.settings.new_tokens, prompt.settings.draft_len)


def _predicted_kv(slot: _Slot, cache: Any, room: int) -> int | None:
    """What the formula says of the cache as it is now; a static one has all its room from the start."""
    decode = slot.spec.decode
    length = room if "static" in decode.cache else cache.get_seq_length() if cache is not None else 0
    return caches.predicted_bytes(decode, slot.card.config, int(length), slot.card.dtype)


def _eos_ids(card: Card, prompt: Prompt) -> tuple[int, ...]:
    return () if prompt.settings.ignore_eos else card.eos_ids


def _call_generate(
    slot: _Slot, ids: torch.Tensor, prompt: Prompt, new_tokens: int, tap: _Tap, known: Any = None
) -> tuple[Any, tuple[int, ...]]:
    """Run generate; returns its KV cache, None without one, and all ids. `known` is a cache that holds the first ones."""
    options = speculate.options_for(slot.spec.decode, prompt.settings)
    options |= caches.options_for(slot.spec.decode, slot.card.config, _room(slot.spec, ids, prompt))
    config = _generation_config(slot.card, prompt, new_tokens, options)
    with ExitStack() as stack:
        extra: dict[str, Any] = {} if known is None else {"cache": known}
        drafter = slot.module if slot.spec.decode.speculation == "early-exit" else slot.drafter
        if drafter is not None:
            drafter.generation_config = speculate.drafter_config(prompt.settings)
        if slot.drafter is not None:
            extra["assistant_model"] = slot.drafter
        if slot.tokenizers is not None:
            extra["tokenizer"], extra["assistant_tokenizer"] = slot.tokenizers
        if slot.spec.decode.speculation != "none":
            make = speculate.drafts_of(slot.head, prompt.settings) if slot.head is not None else None
            stack.enter_context(tap.rounds.watching(slot.module, make))
        output = slot.module.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            generation_config=config,
            streamer=tap,
            stopping_criteria=StoppingCriteriaList([tap.stopper]),
            **extra,
        )
    return output.cache, tuple(output.sequences[0].tolist())


def _generation_config(
    card: Card, prompt: Prompt, new_tokens: int, options: dict[str, Any]
) -> GenerationConfig:
    """Everything set here, so that a checkpoint's own generation defaults change nothing."""
    settings = prompt.settings
    sampling = settings.temperature > 0
    drawn = {"temperature": settings.temperature, "top_p": settings.top_p, "top_k": 0} if sampling else {}
    eos = list(_eos_ids(card, prompt)) or None
    return GenerationConfig(
        max_new_tokens=new_tokens,
        do_sample=sampling,
        eos_token_id=eos,
        pad_token_id=card.eos_ids[0] if card.eos_ids else 0,
        return_dict_in_generate=True,
        **drawn,
        **options,
    )


class _Stopper(StoppingCriteria):
    """Ends generation at the first step after a stop, or at a stop string."""

    def __init__(self, stop: Stop, strings: StopStrings):
        self._stop = stop
        self._strings = strings

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        ended = self._stop.is_set() or self._strings.found
        return torch.full((input_ids.shape[0],), ended, dtype=torch.bool, device=input_ids.device)


class _Tap(BaseStreamer):
    """Hears the ids of every step from the model's own loop, stamps them and passes them on."""

    def __init__(
        self, codec: Codec, eos_ids: tuple[int, ...], new_tokens: int, stop: Stop, emit: Emit, stops: tuple[str, ...] = ()
    ):
        self.text = TextStream(codec)
        self.rounds = speculate.RoundCounter(eos_ids)
        self._strings = StopStrings(codec, stops)
        self.stopper = _Stopper(stop, self._strings)
        self._codec = codec
        self._eos_ids = eos_ids
        self._stop = stop
        self._emit = emit
        self._prompt_seen = False
        self._last_id: int | None = None
        self._missing = new_tokens

    def put(self, value: torch.Tensor) -> None:
        """Ids of one step, already on the CPU; the first call brings the prompt and is skipped."""
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        if self._strings.found:
            return  # a step that was under way when the stop string was seen
        arrived = time.perf_counter_ns()
        ids = self._strings.keep(tuple(value.reshape(-1).tolist()))
        self._last_id = ids[-1]
        self._missing -= len(ids)
        settled = self.rounds.settle(ids, arrived, cut=self._strings.found)
        if settled is None:
            self._emit(Tokens(arrived, ids, self.text.feed(ids), self._codec.visible(ids)))
            return
        self._emit(settled)
        drafted = self.text.feed(ids[: settled.accepted]) if settled.accepted else ""
        text = drafted + self.text.feed(ids[settled.accepted :])
        self._emit(Tokens(arrived, ids, text, self._codec.visible(ids), len(drafted)))

    def end(self) -> None:
        """Nothing to flush: the run's Done carries what is left of the text."""

    def reason(self) -> FinishReason:
        """Why generation ended, asked after it did."""
        if self._last_id in self._eos_ids:
            return "eos"
        if self._strings.found:
            return "stop_string"
        return "stopped" if self._stop.is_set() and self._missing > 0 else "length"
