"""What an engine says while it runs one slot.

Frozen, picklable and small. `t_ns` is the clock of the process that owns the device
(`time.perf_counter_ns`), so differences between events of one run are exact; it says
nothing across processes. Every run ends in exactly one Done or Failed; where quality is asked
for, an assessment follows that ends in exactly one Quality or NoQuality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .divergence import Parting

FinishReason = Literal["length", "eos", "stop_string", "stopped"]


@dataclass(frozen=True)
class Queued:
    """Waiting for its turn. `position` counts comparisons ahead; 0 waits for this comparison's own slots."""

    position: int


@dataclass(frozen=True)
class Repetition:
    """A benchmark's next run of this slot begins: `number` of `of`, run `done` of `total` in all.

    `again` marks the reference slot's runs under another name, which show the noise. `left_s` is a guess.
    """

    number: int
    of: int
    done: int
    total: int
    left_s: float | None
    again: bool = False


@dataclass(frozen=True)
class Loading:
    """Before the weights are ready. `fraction` is None when the length of the stage is unknown."""

    stage: str
    fraction: float | None = None


@dataclass(frozen=True)
class Ready:
    """Weights are in place. Bytes count shared storage once and quantization state too.

    `load_s` is what this slot waited for them, near 0 where another had loaded them;
    `read_bytes` of them are read for every new id, None where that depends on the id (mixtures of experts);
    `copy_bytes_per_s` is the device's measured copy rate, bytes read and written together, None where unknown.
    `source` says where they came from; `drafter_bytes` is 0 for a drafter that is its target.
    `quantized_layers` counts the layers that really are, None without quantization; `notes`
    say what a user should know of these weights. `script` is the slot as Python source.
    """

    load_s: float
    weights_bytes: int
    drafter_bytes: int | None
    dtype: str
    device: str
    source: str
    quantized_layers: int | None = None
    notes: tuple[str, ...] = ()
    script: str = ""
    read_bytes: int | None = None
    copy_bytes_per_s: float | None = None


@dataclass(frozen=True)
class Compiled:
    """torch has compiled, which took so long. Before the start it is set-up; after it, a part of the run's own time."""

    compile_s: float


@dataclass(frozen=True)
class WarmedUp:
    """An untimed run of a few tokens on this prompt's shape has ended.

    `kernels` says which SDPA kernels torch chose in it, `enabled_kernels` among which; empty without SDPA.
    """

    warmup_s: float
    kernels: str = ""
    enabled_kernels: str = ""


@dataclass(frozen=True)
class Started:
    """t0: inputs on the device, device synchronised, generation is about to begin.

    `reused_tokens` of the prompt are in the KV cache already, from an earlier turn. Equal `prompt_key` means equal
    ids; 0 is unknown. `batch` such prompts are answered at once.
    """

    t_ns: int
    prompt_tokens: int
    reused_tokens: int = 0
    prompt_key: int = 0
    batch: int = 1


@dataclass(frozen=True)
class Tokens:
    """A group of new ids from one step (one round under speculation), and the text now final.

    `visible` is how many of the ids are not special tokens. `text` holds only whole
    characters; it may be empty, and may finish a character begun by earlier ids. Its first
    `drafted_chars` characters come from accepted drafts.
    """

    t_ns: int
    ids: tuple[int, ...]
    text: str
    visible: int
    drafted_chars: int = 0


@dataclass(frozen=True)
class Round:
    """One step of the target under speculation: ids drafted and, of those, accepted.

    Ids drafted after an end of sequence are not counted. A step without a draft has drafted = 0.
    `draft_s` is the time the draft took; `verify_s` from then to the arrival of the step's ids.
    """

    drafted: int
    accepted: int
    draft_s: float | None = None
    verify_s: float | None = None


@dataclass(frozen=True)
class Spent:
    """Where a run's time went, as far as it can be told apart here; None where it cannot.

    `prefill_s` is the target's first forward, `forward_s` all its later ones, `text_s` turning ids into text and
    passing them on. `other_cores` of the `cores` were kept busy by other processes meanwhile.
    """

    prefill_s: float | None
    forward_s: float | None
    text_s: float
    other_cores: float | None
    cores: int


@dataclass(frozen=True)
class Memory:
    """Readings around one run, of the counter called `counter`. None: not measurable here.

    `before_bytes` is the reading with everything loaded, before the warm-up; `peak_bytes` the
    highest since (warm-up included: what it needs, the run needs); `reserved_bytes` what a
    caching allocator held at its peak; `kv_bytes` the cache's tensors at the end (0 without a
    cache) and `kv_predicted_bytes` what the formula says of as many positions.
    """

    counter: str
    before_bytes: int | None
    peak_bytes: int | None
    reserved_bytes: int | None
    kv_bytes: int | None
    kv_predicted_bytes: int | None = None


@dataclass(frozen=True)
class Drafts:
    """After the answer: what each round drafted and lost, as text, in the order of the rounds.

    Sent once at the end, because turning ids into text takes time that no round should pay.
    """

    accepted: tuple[str, ...]
    rejected: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """The run ended as it should. `text` is what the last ids add when no more follow."""

    reason: FinishReason
    text: str = ""


@dataclass(frozen=True)
class Failed:
    """The run ended badly: what happened, and what the user can do about it."""

    message: str
    hint: str = ""


@dataclass(frozen=True)
class Assessing:
    """After a slot's answer: its quality is being measured. `fraction` of that work done, None while unknown."""

    fraction: float | None = None


@dataclass(frozen=True)
class Quality:
    """How a slot's weights compare with the reference slot's, and by themselves.

    `kl_nats` is the mean KL divergence of the next-token distributions from the reference's and
    `top1` the share of equal most likely ids, both over the `positions` ids of the reference's
    own answer. `parting` is where the two answers part, None where they are equal. `perplexity` is over the texts that ship, `perplexity_by_text` over each alone.
    """

    kl_nats: float
    top1: float
    positions: int
    perplexity: float
    perplexity_by_text: tuple[tuple[str, float], ...]
    parting: Parting | None = None


@dataclass(frozen=True)
class NoQuality:
    """Quality was asked for and could not be measured: why."""

    message: str
    hint: str = ""


Event = (
    Queued | Repetition | Loading | Ready | Compiled | WarmedUp | Started | Tokens | Round | Spent | Memory | Drafts | Done | Failed | Assessing | Quality | NoQuality
)

ENDINGS = (Done, Failed, Quality, NoQuality)  # the last event of a run or of an assessment


@dataclass(frozen=True)
class SlotEvent:
    """An event and the slot of the comparison that it belongs to."""

    slot_id: str
    event: Event
