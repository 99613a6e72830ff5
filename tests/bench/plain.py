"""Plain Transformers: what a user would write by hand for each slot. No code of the playground but
its model's place and the draft head, which has no plain form.

Run as a script it loads and runs each configuration in turn, as such a script would.
"""

from __future__ import annotations

import time

from transformers.utils import logging

from .sides import PROMPT, SLOTS

NEW_TOKENS = 64


def load(slot: str, folder: str):
    """A model for one slot, loaded on its own."""
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    logging.disable_progress_bar()
    options = {"attn_implementation": "eager" if slot in ("baseline", "kv-cache") else "sdpa", "dtype": torch.bfloat16}
    if slot == "bnb-nf4":
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
    return AutoModelForCausalLM.from_pretrained(folder, **options)


def inputs(folder: str):
    """The prompt's ids by the model's own template."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    turns = [{"role": "user", "content": PROMPT}]
    return tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=True, return_tensors="pt")


class Stamps:
    """A streamer that only notes when ids arrive."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.counts: list[int] = []

    def put(self, value) -> None:
        self.times.append(time.perf_counter())
        self.counts.append(value.numel())

    def end(self) -> None:
        pass

    def decode_tok_per_s(self) -> float:
        """Ids after the first group over the time from the first group to the last; entry 0 is the prompt."""
        return sum(self.counts[2:]) / (self.times[-1] - self.times[1])


def draft_with_head(model) -> None:
    """Let generate draft with the head that ships, as the slot's own script does."""
    from transformers import GenerationConfig

    from playground.engines.draft_head import SHIPPED, load_head
    from playground.engines.head_candidates import HeadCandidates

    head = load_head(SHIPPED, "builtin").attach(model).pack()
    limits = GenerationConfig(
        num_assistant_tokens=5, num_assistant_tokens_schedule="constant", assistant_confidence_threshold=0.0
    )
    model._get_candidate_generator = lambda *, generation_config, logits_processor, **_: HeadCandidates(
        head, limits, generation_config, logits_processor
    )


def generate(model, slot: str, ids, new_tokens: int) -> Stamps:
    """One bare call of generate, end of sequence ignored so that lengths are equal."""
    stamps = Stamps()
    model.generation_config.eos_token_id = None
    extra = {}
    if slot == "draft-head":
        draft_with_head(model)
        extra["use_mtp"] = True
    model.generate(
        **ids, max_new_tokens=new_tokens, do_sample=False, use_cache=slot != "baseline", pad_token_id=0,
        streamer=stamps, **extra,
    )
    return stamps


def main(folder: str) -> None:
    """Each configuration in turn: load, run, forget."""
    ids = inputs(folder)
    for slot in SLOTS:
        model = load(slot, folder)
        rate = generate(model, slot, ids, NEW_TOKENS).decode_tok_per_s()
        print(f"{slot} {rate:.1f} tok/s", flush=True)
        del model


if __name__ == "__main__":
    import sys

    main(sys.argv[1])
