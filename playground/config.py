"""What a user can ask for, as plain data: models, ways of decoding, slots, comparisons.

Everything here is frozen, hashable and free of torch, so that it crosses the pipe to the
worker process, serves as a cache key, and is checked before any model sees it. The
`Literal` types and the `Bounds` in `Settings` are the one list of choices: the preset
reader, the page and the error messages all derive from them.
"""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from .checks import ConfigError, checked_bool, checked_choice, checked_text, shown
from .quantization import Dtype, Quantization

Attention = Literal[
    "eager", "sdpa", "sdpa-flash", "sdpa-efficient", "sdpa-cudnn", "sdpa-math",
    "flash_attention_2", "flash_attention_3", "flash_attention_4", "flex_attention",
]
Cache = Literal[
    "none", "dynamic", "static", "offloaded", "offloaded-static", "quanto-int4", "quanto-int2", "hqq-int4", "fp8",
]
Speculation = Literal["none", "prompt-lookup", "draft-model", "universal", "early-exit", "draft-head"]
Compile = Literal["none", "default", "reduce-overhead", "max-autotune"]
DraftSchedule = Literal["constant", "heuristic", "heuristic_transient"]
Mode = Literal["fair", "race", "benchmark"]
REPEATS = (3, 5, 10)  # runs a slot that the page offers for a benchmark
MOST_REPEATS = 100

CROPPABLE: tuple[Cache, ...] = ("dynamic", "static", "offloaded", "offloaded-static")  # what speculation can take back

MAX_SLOTS = 8
BUILTIN = "builtin"


FIRST_WORKER = "first"


MAX_RANKS = 16
_RANKS = re.compile(r"tensor:([0-9]{1,2})")


def ranks_of(device: str) -> int:
    """How many processes hold a slot's weights: "tensor:2" splits every layer over two; else 1."""
    found = _RANKS.fullmatch(device)
    return int(found[1]) if found else 1


def spans(device: str) -> bool:
    """Whether a slot takes several devices: "tensor:2", or layers spread as in "cuda:0+cuda:1"."""
    return "+" in device or ranks_of(device) > 1


def worker_of(device: str) -> str:
    """Slots of one worker share its process. The CPU and the first GPU share one: a GPU needs the CPU to be fed.

    Layers spread over devices are driven from the first worker; each number of ranks has a group of processes.
    """
    shared = device in ("auto", "cpu", "cuda", "cuda:0") or "+" in device
    return FIRST_WORKER if shared else device


@dataclass(frozen=True)
class ModelSpec:
    """The choices that force a reload of weights. Equal specs share one copy of the tensors.

    `device` is "auto", "cpu", "cuda:1"; "cuda:0+cuda:1" spreads layers over devices (a CPU may be the last);
    "tensor:2" splits every layer over two GPUs, or two processes on a CPU.
    """

    model: str
    revision: str | None = None
    dtype: Dtype = "auto"
    quantization: Quantization = Quantization()
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.device.startswith("tensor") and not 2 <= ranks_of(self.device) <= MAX_RANKS:
            raise ConfigError("device", f'got {self.device!r}; tensor parallel is "tensor:2" to "tensor:{MAX_RANKS}".')
        if spans(self.device) and not self.quantization.is_none:
            raise ConfigError("device", f"{self.device} spreads unquantized weights only; got {self.quantization}.")


@dataclass(frozen=True)
class DecodeSpec:
    """The choices that leave the weights alone.

    `drafter` is set for the speculations that draft with another model: "draft-model", which
    needs the target's own tokenizer, and "universal", which takes any. `exit_layer` is set for
    "early-exit": how many of the target's own layers draft. `draft_head` is set for "draft-head":
    a folder or hub id with a head that was trained for the target, or "builtin". `lean` packs linear
    weights for the CPU once. `compile` is torch.compile's mode for the steps after the prompt.
    `keep_prefix` keeps the KV cache for the next turn of a conversation.
    """

    attention: Attention = "sdpa"
    cache: Cache = "dynamic"
    speculation: Speculation = "none"
    drafter: ModelSpec | None = None
    exit_layer: int | None = None
    draft_head: str | None = None
    lean: bool = False
    compile: Compile = "none"
    keep_prefix: bool = False

    def without_speculation(self) -> DecodeSpec:
        """The same way of decoding, an id at a time."""
        return dataclasses.replace(self, speculation="none", drafter=None, exit_layer=None, draft_head=None)


# What each kind of speculation needs beside the target; each companion goes with no other kind.
_COMPANIONS = {"drafter": ("draft-model", "universal"), "exit_layer": ("early-exit",), "draft_head": ("draft-head",)}


@dataclass(frozen=True)
class SlotSpec:
    """One column: a model and a way of decoding with it."""

    id: str
    name: str
    model: ModelSpec
    decode: DecodeSpec = DecodeSpec()

    def __post_init__(self) -> None:
        if self.decode.speculation != "none" and self.decode.cache not in CROPPABLE:
            named = "no KV cache" if self.decode.cache == "none" else f"a {self.decode.cache} cache, which cannot be cropped"
            raise ConfigError(
                f"slot {self.id}",
                f"speculation checks several ids at once and takes back what it rejects; it cannot with {named}. "
                f'Set cache to one of {", ".join(CROPPABLE)}, or speculation = "none".',
            )
        if self.decode.keep_prefix and (self.decode.cache != "dynamic" or self.decode.speculation != "none"):
            raise ConfigError(
                f"slot {self.id}",
                'keep_prefix goes with cache = "dynamic" and speculation = "none": Transformers begins an assisted or a '
                "static run with an empty cache.",
            )
        if self.decode.compile != "none":
            self._check_compile()
        if spans(self.model.device):
            self._check_spanning()
        for companion, kinds in _COMPANIONS.items():
            if (self.decode.speculation in kinds) != (getattr(self.decode, companion) is not None):
                named = " or ".join(f'"{kind}"' for kind in kinds)
                raise ConfigError(
                    f"slot {self.id}", f"speculation = {named} and {companion} go together; give both or neither."
                )

    def _check_compile(self) -> None:
        decode = self.decode
        if decode.cache != "static" or decode.speculation != "none" or decode.lean:
            raise ConfigError(
                f"slot {self.id}",
                'compile goes with cache = "static", speculation = "none" and without lean: torch compiles for fixed shapes, '
                "and a packed layer is opaque to it.",
            )
        if spans(self.model.device):
            raise ConfigError(f"slot {self.id}", f"compile goes with one device; got {self.model.device!r}.")

    def _check_spanning(self) -> None:
        decode = self.decode
        if decode.lean or decode.cache not in ("none", "dynamic") or decode.speculation not in ("none", "prompt-lookup"):
            raise ConfigError(
                f"slot {self.id}",
                f'a slot over several devices ({self.model.device}) goes with cache = "dynamic" or "none", without lean, '
                'and with speculation = "none" or "prompt-lookup".',
            )


def differences(before: SlotSpec, slot: SlotSpec) -> tuple[tuple[str, str, str], ...]:
    """The choices in which `slot` departs from `before`: (choice, value before, value now)."""
    return tuple(
        (name, was, now)
        for (name, was), (_, now) in zip(_choices(before), _choices(slot))
        if was != now
    )


def _choices(slot: SlotSpec) -> list[tuple[str, str]]:
    drafter = slot.decode.drafter
    pairs = [(f.name, str(getattr(slot.model, f.name))) for f in dataclasses.fields(ModelSpec)]
    pairs += [
        (f.name, "true" if (value := getattr(slot.decode, f.name)) is True else str(value or "none"))
        for f in dataclasses.fields(DecodeSpec)
        if f.name != "drafter"
    ]
    pairs.append(("drafter", describe_model(drafter) if drafter else "none"))
    return pairs


def describe_model(spec: ModelSpec) -> str:
    """One line for people: the model and whatever is not its default."""
    extras = [spec.revision, *(v for v in (spec.dtype, str(spec.quantization)) if v not in ("auto", "none"))]
    return " ".join([spec.model, *(e for e in extras if e)])


@dataclass(frozen=True)
class Bounds:
    """The allowed range of a number, ends included."""

    low: float
    high: float


def _one_of(default: str, choices: Any) -> Any:
    return field(default=default, metadata={"choices": get_args(choices)})


def _bounded(default: float, low: float, high: float) -> Any:
    return field(default=default, metadata={"bounds": Bounds(low, high)})


@dataclass(frozen=True)
class Settings:
    """How every slot of a comparison generates. Temperature 0 is greedy.

    `batch` copies of the prompt are answered at once; the first one is shown.
    `draft_len` is k. Where a model drafts, `draft_schedule` says whether k stays ("constant") or
    follows the last round's success, and `draft_threshold` ends a draft at the first id that the
    drafter holds less likely than that (0: never). `stop_strings` are texts, one a line: the id that
    completes one of them is the last.
    """

    new_tokens: int = _bounded(96, 1, 4096)
    temperature: float = _bounded(0.0, 0.0, 5.0)
    top_p: float = _bounded(1.0, 0.01, 1.0)
    seed: int = _bounded(0, 0, 2**31 - 1)
    batch: int = _bounded(1, 1, 64)
    draft_len: int = _bounded(5, 1, 32)
    draft_schedule: DraftSchedule = _one_of("constant", DraftSchedule)
    draft_threshold: float = _bounded(0.0, 0.0, 1.0)
    system_prompt: str = ""
    chat_template: bool = True
    ignore_eos: bool = False
    stop_strings: str = ""

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings, each once."""
        return tuple(dict.fromkeys(line for line in self.stop_strings.splitlines() if line))


def bounds_of(name: str) -> Bounds:
    """The allowed range of a numeric field of `Settings`."""
    return next(f for f in dataclasses.fields(Settings) if f.name == name).metadata["bounds"]


def choices_of(name: str) -> tuple[str, ...]:
    """What a field of `Settings` can be, for a field that is one of a few words; else empty."""
    return next(f for f in dataclasses.fields(Settings) if f.name == name).metadata.get("choices", ())


def checked_settings(given: Any, base: Settings = Settings()) -> Settings:
    """`base` with the given fields replaced, every value checked.

    Takes what a browser, a URL or an API client sent; raises ConfigError naming the field.
    """
    if not isinstance(given, dict):
        raise ConfigError("settings", f"got {shown(given)}; give an object of settings.")
    known = {f.name: f for f in dataclasses.fields(Settings)}
    values = {}
    for name, value in given.items():
        if name not in known:
            raise ConfigError(
                "settings", f"unknown setting {shown(name)}; allowed: {', '.join(known)}."
            )
        values[name] = _checked(name, value, getattr(Settings(), name))
    return dataclasses.replace(base, **values)


def _checked(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, bool):
        return checked_bool(name, value)
    if choices_of(name):
        return checked_choice(name, value, choices_of(name))
    if isinstance(default, str):
        return checked_text(name, value)
    limits = bounds_of(name)
    whole = isinstance(default, int)
    kind = "a whole number" if whole else "a number"
    allowed = f"give {kind} from {limits.low:g} to {limits.high:.10g}."
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(name, f"got {shown(value)}; {allowed}")
    # Compared before any conversion: an int too large for a float must not raise elsewhere.
    if value != value or not limits.low <= value <= limits.high:
        raise ConfigError(name, f"got {shown(value)}; {allowed}")
    if whole and not (isinstance(value, int) or math.floor(value) == value):
        raise ConfigError(name, f"got {shown(value)}; {allowed}")
    return int(value) if whole else float(value)


# What was said before: (user, answer), oldest first.
History = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Prompt:
    """What every slot is asked: the user's text and how to generate.

    `histories` holds what each slot, by id, was asked and answered in earlier turns.
    """

    text: str
    settings: Settings = Settings()
    histories: tuple[tuple[str, History], ...] = ()

    def history(self, slot_id: str) -> History:
        """The earlier turns of one slot."""
        return dict(self.histories).get(slot_id, ())

    def follow_up(self, text: str, settings: Settings, answers: dict[str, str]) -> Prompt:
        """The next turn: this one, with each slot's own answer to it, becomes history."""
        histories = tuple((slot, (*self.history(slot), (self.text, answer))) for slot, answer in answers.items())
        return Prompt(text, settings, histories)


def checked_prompt(text: Any, settings: Settings) -> Prompt:
    """A prompt with something in it, else ConfigError."""
    if not checked_text("prompt", text).strip():
        raise ConfigError("prompt", "is empty; type a question or pick an example.")
    return Prompt(text, settings)


@dataclass(frozen=True)
class Comparison:
    """Slots that answer the same prompt, and the slot that speed-ups and quality refer to.

    `quality` is whether quality is measured after the answers unless someone asks otherwise.
    """

    id: str
    title: str
    slots: tuple[SlotSpec, ...]
    reference: str
    description: str = ""
    title_ko: str = ""
    description_ko: str = ""
    settings: Settings = Settings()
    quality: bool = False

    def __post_init__(self) -> None:
        ids = [slot.id for slot in self.slots]
        if not 1 <= len(ids) <= MAX_SLOTS:
            raise ConfigError("slots", f"got {len(ids)}; a comparison has 1 to {MAX_SLOTS} slots.")
        repeated = {i for i in ids if ids.count(i) > 1}
        if repeated:
            raise ConfigError("slots", f"ids must differ; repeated: {', '.join(sorted(repeated))}.")
        if self.reference not in ids:
            raise ConfigError("reference", f"got {self.reference!r}; allowed: {', '.join(ids)}.")

    def with_model(self, model: str) -> Comparison:
        """The same comparison on another model, for slots and drafters that name the first slot's.

        The draft head that ships was trained for the built-in model, so such a slot drafts by prompt lookup instead.
        """
        replaced = self.slots[0].model.model

        def swap(spec: ModelSpec) -> ModelSpec:
            if spec.model != replaced:
                return spec
            return dataclasses.replace(spec, model=model, revision=None)

        def swap_slot(slot: SlotSpec) -> SlotSpec:
            drafter = slot.decode.drafter
            decode = dataclasses.replace(slot.decode, drafter=swap(drafter)) if drafter else slot.decode
            name = slot.name
            if decode.draft_head == BUILTIN and model != BUILTIN:
                decode, name = dataclasses.replace(decode, speculation="prompt-lookup", draft_head=None), "Prompt lookup"
            return dataclasses.replace(slot, name=name, model=swap(slot.model), decode=decode)

        return dataclasses.replace(self, slots=tuple(map(swap_slot, self.slots)))

    def only(self, slot_ids: Any) -> Comparison:
        """The comparison restricted to some slots, in their order; unknown ids raise ConfigError."""
        ids = [slot.id for slot in self.slots]
        if not isinstance(slot_ids, (list, tuple)) or not slot_ids:
            raise ConfigError("slots", f"got {shown(slot_ids)}; give a list of: {', '.join(ids)}.")
        for wanted in slot_ids:
            checked_choice("slots", wanted, ids)
        kept = tuple(slot for slot in self.slots if slot.id in slot_ids)
        reference = self.reference if self.reference in slot_ids else kept[0].id
        return dataclasses.replace(self, slots=kept, reference=reference)
