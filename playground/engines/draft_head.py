"""A draft head: one small layer that reads the target's own hidden states and guesses its next ids.

Its input at a position is the target's hidden states there, from a few depths, and the embedding of the
id that follows; its output stands for the last hidden state at the next position, is scored by rows of the
target's own output embedding, and is fed back in the hidden states' place to draft further. Embeddings stay the
target's tensors, so a saved head holds only the layer.

Sources: EAGLE (Li et al., 2024, arXiv:2401.15077) for drafting from the target's features; EAGLE-3
(Li et al., 2025, arXiv:2503.01840) for hidden states of several depths and training over fed-back steps; FR-Spec (Zhao et al.,
2025, arXiv:2502.14856) for scoring only the ids that occur often.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import DynamicCache, LlamaConfig, LlamaModel

from . import lean
from .refusal import Refusal

WEIGHTS, CONFIG, CARD = "draft_head.safetensors", "config.json", "README.md"
SHIPPED = Path(__file__).parent / "draft_heads" / "SmolLM2-135M-Instruct"

_IDS = "ids"
_FORMAT = "playground-draft-head"
_FINGERPRINT_ROWS = 64


@dataclass(frozen=True)
class HeadConfig:
    """Shape of a draft head. `vocab_size` and `hidden_size` are the target's; `scored_ids` ids are scored.

    `target` and `fingerprint` say what it was trained for. `taps` are the target's hidden states that it
    reads, as Transformers counts them: 0 is the embedding, i comes out of layer i, -1 is what the
    output embedding reads.
    """

    target: str
    fingerprint: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    scored_ids: int
    taps: tuple[int, ...]
    rope_theta: float = 10_000.0
    context: int = 8192


class DraftHead(nn.Module):
    """The layer, the ids it scores, and, once attached, the target's embeddings."""

    def __init__(self, config: HeadConfig, ids: torch.Tensor):
        """`ids`: the target's ids that are scored, ascending, shape (scored ids,)."""
        super().__init__()
        width = config.hidden_size
        self.config = config
        self.embedding_norm = nn.RMSNorm(width, eps=1e-6)
        self.hidden_norm = nn.RMSNorm(width, eps=1e-6)
        self.tap_norms = nn.ModuleList(nn.RMSNorm(width, eps=1e-6) for _ in config.taps)
        self.mix = nn.Linear(len(config.taps) * width, width, bias=False)
        self.join = nn.Linear(2 * width, width, bias=False)
        self.body = LlamaModel(_body_config(config))
        self.body.embed_tokens = None  # the target's are used
        self.register_buffer(_IDS, ids.to(torch.int32))
        self._embed: tuple[Any, ...] = ()
        self._rows: torch.Tensor | None = None
        self._packed_rows: torch.Tensor | None = None
        self._bias: torch.Tensor | None = None

    def attach(self, target: Any) -> DraftHead:
        """Take over the target's embeddings and, of its output embedding, the scored rows. Raises Refusal."""
        embed, head = target.get_input_embeddings(), target.get_output_embeddings()
        weight = getattr(head, "weight", None)
        if type(weight) not in (torch.Tensor, nn.Parameter) or not weight.is_floating_point():
            raise Refusal(
                "draft_head: this target's output embedding is quantized, and a draft head takes rows of it.",
                "Choose a quantization that leaves the output embedding as it is, such as bnb-nf4 or gptq.",
            )
        found = weight.shape[1], weight.shape[0]
        if found != (self.config.hidden_size, self.config.vocab_size):
            raise Refusal(
                f"draft_head: it was made for {self.config.target} (width {self.config.hidden_size:,}, "
                f"{self.config.vocab_size:,} ids); this target has width {found[0]:,} and {found[1]:,} ids.",
                "Make one for this model with python -m playground.distill, or choose another speculation.",
            )
        ids = self.ids.long().to(weight.device)
        self._embed = (embed,)  # in a tuple, or it would become a part of the head
        self._rows = weight.detach()[ids]
        self._bias = None if head.bias is None else head.bias.detach()[ids]
        return self

    def pack(self) -> DraftHead:
        """Lay the weights out for the CPU: a head has no one to share them with, and drafting is all about small products."""
        if lean.possible(self._rows.dtype, self._rows.device):
            lean.pack_alone(self)
            self._packed_rows, self._rows = lean.packed(self._rows), None
        return self

    @property
    def rows(self) -> torch.Tensor | None:
        """The scored rows of the target's output embedding, shape (scored ids, hidden size); None once packed."""
        return self._rows

    def read(self, states: torch.Tensor) -> torch.Tensor:
        """The target's hidden states at the taps, one after the other in the last dimension, as one: (..., hidden size)."""
        parts = states.split(self.config.hidden_size, dim=-1)
        return self.mix(torch.cat([norm(part) for norm, part in zip(self.tap_norms, parts)], dim=-1))

    def forward(
        self,
        hidden: torch.Tensor,
        ids: torch.Tensor,
        positions: torch.Tensor,
        cache: DynamicCache,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Stand-ins for what the target's output embedding reads at the next positions.

        `hidden` (batch, length, hidden size), from `read` or an earlier output, at some positions, the `ids` (batch, length) that follow them, and
        the positions themselves; `mask` (batch, 1, length, cached + length) is added to attention scores, None for
        causal. Returns (batch, length, hidden size).
        """
        embedded = self._embed[0](ids).to(hidden.dtype)
        joined = self.join(torch.cat([self.embedding_norm(embedded), self.hidden_norm(hidden)], dim=-1))
        output = self.body(
            inputs_embeds=joined, position_ids=positions, attention_mask=mask, cache=cache, use_cache=True
        )
        return output.last_hidden_state

    def scores(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits of the scored ids, shape (..., scored ids)."""
        if self._packed_rows is not None:
            return lean.product(hidden, self._packed_rows, self._bias)
        return nn.functional.linear(hidden, self._rows, self._bias)

    def new_cache(self) -> DynamicCache:
        return DynamicCache(config=self.body.config)

    def save(self, folder: Path) -> None:
        """Write the layer in bf16 and its config; the target's tensors are left out."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: (t if name == _IDS else t.to(torch.bfloat16)).contiguous() for name, t in self.state_dict().items()}
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
        config = {"format": _FORMAT, **dataclasses.asdict(self.config)}
        (folder / CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def load_head(folder: Path, name: str) -> DraftHead:
    """A saved head, not attached yet, in bf16. Raises Refusal for a folder that holds none."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if config.pop("format", None) != _FORMAT:
            raise ValueError(f"its {CONFIG} does not describe a draft head")
        tensors = load_file(folder / WEIGHTS)
        head = DraftHead(HeadConfig(**{**config, "taps": tuple(config["taps"])}), tensors[_IDS])
        head.load_state_dict(tensors, assign=True)
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise Refusal(
            f"draft_head: {name} holds no draft head: {error}",
            'Give "builtin", or a folder that python -m playground.distill made.',
        ) from error
    return head.eval().requires_grad_(False)


def fingerprint(target: Any) -> str:
    """A short hash of some rows of the target's input embedding: other for another model or a fine-tuned one."""
    weight = target.get_input_embeddings().weight.detach()
    rows = weight[:: max(1, len(weight) // _FINGERPRINT_ROWS)][:_FINGERPRINT_ROWS]
    return hashlib.sha256(rows.float().cpu().numpy().tobytes()).hexdigest()[:16]


def _body_config(config: HeadConfig) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=1,
        bos_token_id=None,
        eos_token_id=None,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.hidden_size // config.heads,
        max_position_embeddings=config.context,
        rope_theta=config.rope_theta,
        attn_implementation="sdpa",
    )
