"""One slot's run on this machine, as events. Runs in the process that owns the device."""

from __future__ import annotations

import copy
import logging
import queue
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..capabilities import Technique
from ..checkup import Checkup
from ..config import ModelSpec, Prompt, SlotSpec
from ..divergence import parting
from ..engine import Resident, Stop
from ..events import (
    ENDINGS,
    Assessing,
    Compiled,
    Done,
    Drafts,
    Event,
    Failed,
    Loading,
    Memory,
    NoQuality,
    Quality,
    Ready,
    Spent,
    Started,
    WarmedUp,
)
from ..forecast import Forecast
from . import attention, compiling, doctor, forecasting, quality, quantize, ranks
from .admission import admit, check_same_ids
from .calibration import quality_texts
from .capabilities import capabilities
from .decoding import Emit, Forwards, ReadySlot, Tap, cache_room, call_generate, eos_ids, predicted_kv, run_bytes
from .draft_head import fingerprint
from .memory import Device, HostLoad, bytes_of, pick_device, release_memory
from .options import EngineOptions
from .prefix import kept as prefix_of
from .refusal import Refusal, Stopped
from .script import Facts, script
from .text import Codec
from .weights import Card, Weights, WeightStore

log = logging.getLogger(__name__)

WARMUP_TOKENS = 2
_COMPILING_TOKENS = 3  # one of the prompt, two of the step that is compiled: torch may look twice


class LocalEngine:
    """Runs slots in this process. Satisfies scheduler.Engine."""

    def __init__(self, options: EngineOptions):
        attention.register()
        compiling.keep_on_disk(options.cache_folder)
        self._store = WeightStore(options)
        self._warming = threading.Lock()
        self._copy_rates: dict[str, float | None] = {}

    def run(self, slot: SlotSpec, prompt: Prompt, stop: Stop) -> Iterator[Event]:
        """The run's events; the model decodes in a thread of its own."""
        return _in_thread(lambda emit: self.execute(slot, prompt, stop, emit))

    def assess(
        self, slot: SlotSpec, reference: SlotSpec, prompt: Prompt, answer: tuple[int, ...], stop: Stop, own: tuple[int, ...] = ()
    ) -> Iterator[Event]:
        """The assessment's events; the models run in a thread of their own."""
        return _in_thread(lambda emit: self.execute_assessment(slot, reference, prompt, answer, own, stop, emit))

    def execute(self, slot: SlotSpec, prompt: Prompt, stop: Stop, emit: Emit) -> None:
        """Run a slot in this thread. Emits exactly one Done or Failed, last, and never raises."""
        emit(_outcome(lambda: self._attempt(slot, prompt, stop, emit), Done("stopped"), Failed, slot.id))

    def execute_assessment(
        self, slot: SlotSpec, reference: SlotSpec, prompt: Prompt, answer: tuple[int, ...], own: tuple[int, ...],
        stop: Stop, emit: Emit,
    ) -> None:
        """Measure quality in this thread. Emits exactly one Quality or NoQuality, last, and never raises."""
        stopped = NoQuality("Stopped while quality was being measured.")
        work = partial(self._assess, slot, reference, prompt, answer, own, stop, emit)
        emit(_outcome(work, stopped, NoQuality, slot.id))

    def _attempt(self, slot: SlotSpec, prompt: Prompt, stop: Stop, emit: Emit) -> Done:
        def report(stage: str, fraction: float | None) -> None:
            if stop.is_set() and ranks.alone():  # ranks stop at the next step that they share
                raise Stopped
            emit(Loading(stage, fraction))

        report("reading the tokenizer", None)
        card = self._store.card(slot.model, report)
        ids = card.codec.encode(prompt, prompt.history(slot.id))
        drafter_spec = slot.decode.drafter
        drafter_card = self._store.card(drafter_spec, report) if drafter_spec else None
        admit(slot, prompt, ids.shape[1], card, drafter_card)
        head_name = slot.decode.draft_head
        head_folder = self._store.draft_head_folder(head_name, report) if head_name else None
        asked = time.perf_counter()
        with ExitStack() as stack:
            weights = stack.enter_context(self._store.use(slot.model, report, run_bytes(slot, ids, prompt, card)))
            drafting = stack.enter_context(self._store.use(drafter_spec, report)) if drafter_spec else None
            ready = ReadySlot(
                slot,
                weights,
                weights.module(slot, slot.decode.attention, slot.decode.lean),
                drafting.module((slot, "drafter"), slot.decode.attention, slot.decode.lean) if drafting else None,
                card,
                _both_tokenizers(card, drafter_card) if slot.decode.speculation == "universal" else None,
                weights.draft_head(head_folder, head_name) if head_folder else None,
            )
            facts = _facts(ready, ids, prompt, drafting, head_folder)
            load_s, source = time.perf_counter() - asked, script(slot, prompt, facts)
            emit(_ready_event(ready, drafting, load_s, source, self._copy_rate(card.device)))
            return self._generate(ready, ids, prompt, stop, emit)

    def _assess(
        self, slot: SlotSpec, reference: SlotSpec, prompt: Prompt, answer: tuple[int, ...], own: tuple[int, ...],
        stop: Stop, emit: Emit,
    ) -> Quality:
        def report(_stage: str, _fraction: float | None) -> None:
            if stop.is_set() and ranks.alone():
                raise Stopped
            emit(Assessing())

        card, reference_card = self._store.card(slot.model, report), self._store.card(reference.model, report)
        check_same_ids(card, reference_card)
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
            if ranks.agreed(stop.is_set()):
                raise Stopped
            emit(Assessing(done / steps))
            done += 1

        with self._store.use(reference.model, report) as theirs, self._store.use(slot.model, report) as ours:
            module = ours.module(slot, slot.decode.attention, slot.decode.lean)
            baseline = theirs.module(reference, reference.decode.attention, reference.decode.lean)
            kl_nats, top1 = quality.divergence(module, baseline, ids, start, tick)
            overall, by_text = quality.perplexities(module, texts, tick)
            parted = parting(answer, own) if own else None
            if parted is not None:
                parted = quality.weigh(parted, module, baseline, ids[:, : start + parted.index], card.codec)
        return Quality(kl_nats, top1, len(answer), overall, tuple(by_text.items()), parted)

    def _generate(self, slot: ReadySlot, ids: torch.Tensor, prompt: Prompt, stop: Stop, emit: Emit) -> Done:
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
        if not ranks.agreed(stop.is_set()):
            if slot.spec.decode.compile != "none":
                self._compile(slot, ids, prompt, stop, emit)
            self._warm_up(slot, ids, prompt, stop, emit, copy.deepcopy(known))
        if ranks.agreed(stop.is_set()):
            return Done("stopped")
        torch.manual_seed(prompt.settings.seed)
        tap = Tap(slot.card.codec, eos_ids(slot.card, prompt), settings.new_tokens, stop, emit, settings.stops, settings.batch)
        started = device.now_ns()
        emit(Started(started, ids.shape[1], reused, zlib.crc32(ids.cpu().numpy().tobytes()) or 1, settings.batch))
        load = HostLoad()
        with compiling.CompileClock() as compiled, Forwards(slot, lambda: tap.rounds.drafting) as forwards:
            cache, said = call_generate(slot, ids, prompt, prompt.settings.new_tokens, tap, known)
        device.now_ns()
        if compiled.seconds:
            emit(Compiled(compiled.seconds))
        emit(Spent(*forwards.seconds, tap.spent_ns / 1e9, load.other_cores(), load.cores))
        emit(
            Memory(
                counter=device.counter,
                before_bytes=before,
                peak_bytes=device.peak_bytes(),
                reserved_bytes=device.peak_reserved_bytes(),
                kv_bytes=ranks.total(bytes_of(cache)),
                kv_predicted_bytes=predicted_kv(slot, cache, cache_room(slot.spec, ids, prompt), settings.batch),
            )
        )
        if slot.spec.decode.keep_prefix:
            slot.weights.prefixes[slot.spec] = prefix_of(said, cache)
        if tap.rounds.drafts:
            emit(_drafts(tap.rounds.drafts, slot.card.codec))
        return Done(tap.reason(), tap.text.finish())

    def _compile(self, slot: ReadySlot, ids: torch.Tensor, prompt: Prompt, stop: Stop, emit: Emit) -> None:
        """A few untimed tokens in which torch compiles the step after the prompt, or finds it compiled.

        Raises Stopped at a stop, Refusal when it takes too long or nothing is compiled.
        """
        def tick(seconds: float) -> None:
            emit(Loading(f"torch.compile: {seconds:.0f} s, at most {compiling.LIMIT_S} s", seconds / compiling.LIMIT_S))

        with self._warming, compiling.interruptible(stop, tick), compiling.CompileClock() as compiled:
            few = _untimed(slot, ids, prompt, _COMPILING_TOKENS, stop)
        if few > 1:
            compiling.check_compiled(slot.module)
        emit(Compiled(compiled.seconds))

    def _warm_up(
        self, slot: ReadySlot, ids: torch.Tensor, prompt: Prompt, stop: Stop, emit: Emit, known: Any
    ) -> None:
        """A few untimed tokens of this very prompt, so that first-use costs stay out of the numbers.

        Before every run: kernels depend on the prompt's length, and another slot's run has
        cooled the caches. One at a time even in race mode: first use may build shared state.
        """
        watch = attention.KernelWatch()
        # torch compiles anew for a mode like the watch, so compiled slots go without it.
        watched = watch if slot.spec.decode.compile == "none" else nullcontext()
        with self._warming, watched:
            started = slot.card.device.now_ns()
            _untimed(slot, ids, prompt, WARMUP_TOKENS, stop, known)
            ended = slot.card.device.now_ns()
        alone = slot.spec.decode.speculation in ("none", "prompt-lookup")  # else a drafter's calls are among them
        words = watch.words(slot.card.config.get_text_config().num_hidden_layers) if alone else ""
        emit(WarmedUp((ended - started) / 1e9, words, attention.enabled_kernels() if words else ""))

    def _copy_rate(self, device: Device) -> float | None:
        """The device's copy rate, measured once."""
        if device.name not in self._copy_rates:
            with self._warming:
                self._copy_rates[device.name] = device.copy_bytes_per_s()
        return self._copy_rates[device.name]

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

    def forecast(self, slots: tuple[SlotSpec, ...], prompt: Prompt) -> tuple[Forecast, ...]:
        """What each slot will need, in this order; slots whose models are not here are left out."""
        return forecasting.forecast(self._store, slots, prompt)

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
        ranks.abandon()
        return failed(
            f"Out of memory on the device: {str(error).splitlines()[0]}",
            "Ask for fewer tokens, unload other models, or use a quantized slot.",
        )
    except Exception as error:
        # As text: a handler that kept the traceback would keep its frames, and the model in them.
        log.error("slot %s failed\n%s", slot_id, traceback.format_exc())
        ranks.abandon()
        return failed(f"{type(error).__name__}: {error}", "The log of the worker has the details.")


def _untimed(slot: ReadySlot, ids: torch.Tensor, prompt: Prompt, most: int, stop: Stop, known: Any = None) -> int:
    """Generate at most so many ids that nobody hears; returns how many were asked for."""
    few = min(most, prompt.settings.new_tokens)
    call_generate(slot, ids, prompt, few, Tap(slot.card.codec, (), few, stop, lambda event: None), known)
    return few


def _chunks(ids: torch.Tensor, start: int) -> int:
    return 1 + -(-(ids.shape[1] - 1 - start) // quality.CHUNK_TOKENS)


def _facts(slot: ReadySlot, ids: torch.Tensor, prompt: Prompt, drafting: Weights | None, head: Path | None) -> Facts:
    card = slot.card
    return Facts(
        folder=str(slot.weights.read_from),
        dtype=str(card.dtype).removeprefix("torch."),
        device=card.device.name,
        eos_ids=card.eos_ids,
        config=card.config,
        positions=cache_room(slot.spec, ids, prompt),
        drafter_folder=str(drafting.read_from) if drafting else "",
        drafter_dtype=str(drafting.card.dtype).removeprefix("torch.") if drafting else "",
        head_folder=str(head) if head else "",
    )


def _ready_event(
    slot: ReadySlot, drafting: Weights | None, load_s: float, source: str, copy_bytes_per_s: float | None
) -> Ready:
    return Ready(
        load_s=load_s,
        weights_bytes=ranks.total(slot.weights.bytes) + (slot.weights.packs.bytes if slot.spec.decode.lean else 0),
        drafter_bytes=_drafter_bytes(slot, drafting),
        dtype=str(slot.card.dtype).removeprefix("torch."),
        device=slot.card.device.name,
        source=slot.card.source.origin,
        quantized_layers=slot.weights.quantized_layers,
        notes=slot.weights.notes + _head_notes(slot),
        script=source,
        read_bytes=ranks.total(_read_bytes(slot)),
        copy_bytes_per_s=copy_bytes_per_s,
    )


def _read_bytes(slot: ReadySlot) -> int | None:
    """Weights that every new id reads: all but an input embedding of its own; None for a mixture of experts."""
    text = slot.card.config.get_text_config()
    if getattr(text, "num_experts", None) or getattr(text, "num_local_experts", None):
        return None
    table, head = slot.weights.pristine.get_input_embeddings(), slot.weights.pristine.get_output_embeddings()
    tied = head is None or bytes_of([table, head]) < bytes_of([table]) + bytes_of([head])
    return slot.weights.bytes - (0 if tied else bytes_of([table]))


def _drafter_bytes(slot: ReadySlot, drafting: Weights | None) -> int | None:
    """What drafting adds to the target's weights; None where nothing but text drafts."""
    if slot.head is not None:
        return slot.weights.heads_bytes
    return None if drafting is None else 0 if drafting is slot.weights else drafting.bytes


def _head_notes(slot: ReadySlot) -> tuple[str, ...]:
    if slot.head is None or slot.head.config.fingerprint == fingerprint(slot.weights.pristine):
        return ()
    return (f"the draft head was trained on other weights ({slot.head.config.target}); drafts may be accepted less often",)


def _both_tokenizers(target: Card, drafter: Card) -> tuple[Any, Any]:
    """Copies of both tokenizers for one run: generate encodes and decodes with them meanwhile."""
    return target.codec.copy_of_tokenizer(), drafter.codec.copy_of_tokenizer()


def _drafts(drafts: list[tuple[tuple[int, ...], int]], codec: Codec) -> Drafts:
    return Drafts(
        tuple(codec.decode(ids[:accepted]) for ids, accepted in drafts),
        tuple(codec.decode(ids[accepted:]) for ids, accepted in drafts),
    )


