"""Plain Transformers: what a user would write by hand for each slot. No code of the playground but its model's place.

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


def generate(model, slot: str, ids, new_tokens: int) -> Stamps:
    """One bare call of generate, end of sequence ignored so that lengths are equal."""
    stamps = Stamps()
    model.generation_config.eos_token_id = None
    extra = {"prompt_lookup_num_tokens": 5} if slot == "prompt-lookup" else {}
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
