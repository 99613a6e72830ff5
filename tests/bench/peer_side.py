"""The peer's half of tests/bench/peer.py, run by the Python of a venv of its own: optimum-benchmark, and bare generate.

For every line on standard input it measures once and prints one line of JSON.
"""

import contextlib
import json
import logging
import sys
import time

logging.disable(logging.WARNING)

import torch  # noqa: E402
import transformers  # noqa: E402
from optimum_benchmark import Benchmark, BenchmarkConfig, InferenceConfig, InlineConfig, PyTorchConfig  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402


class Stamps:
    """When ids arrive; the first entry is the prompt."""

    def __init__(self):
        self.times = []

    def put(self, value):
        self.times.append(time.perf_counter())

    def end(self):
        pass


def bare(model, ids, new_tokens):
    """Seconds to the first id and ids a second after it, of a plain call."""
    model.generation_config.eos_token_id = None
    options = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "do_sample": False, "pad_token_id": 0}
    model.generate(max_new_tokens=2, **options)  # every side is warmed up right before it is measured
    stamps, began = Stamps(), time.perf_counter()
    model.generate(max_new_tokens=new_tokens, streamer=stamps, **options)
    return {"ttft_s": stamps.times[1] - began, "decode_tok_per_s": (new_tokens - 1) / (stamps.times[-1] - stamps.times[1])}


def peer(folder, prompt_tokens, new_tokens):
    """What optimum-benchmark says of the same model and lengths: one warm-up, one measured call of each kind."""
    config = BenchmarkConfig(
        name="peer",
        launcher=InlineConfig(),
        scenario=InferenceConfig(
            latency=True, memory=False, iterations=1, duration=0, warmup_runs=1,
            input_shapes={"batch_size": 1, "sequence_length": prompt_tokens},
            generate_kwargs={"max_new_tokens": new_tokens, "min_new_tokens": new_tokens, "do_sample": False},
        ),
        backend=PyTorchConfig(
            model=folder, device="cpu", torch_dtype="bfloat16", attn_implementation="sdpa", task="text-generation", library="transformers",
        ),
    )
    report = Benchmark.launch(config)
    return {"ttft_s": report.prefill.latency.mean, "decode_tok_per_s": report.decode.throughput.value}


def main(folder, prompt_tokens, new_tokens):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, attn_implementation="sdpa").eval()
    ids = torch.arange(100, 100 + prompt_tokens)[None]
    bare(model, ids, 4)
    print(json.dumps({"transformers": transformers.__version__, "torch": torch.__version__}), flush=True)
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):
            if line.strip() == "peer":
                found = peer(folder, prompt_tokens, new_tokens)
            else:
                with torch.inference_mode(line.strip() == "inference mode"):
                    found = bare(model, ids, new_tokens)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
