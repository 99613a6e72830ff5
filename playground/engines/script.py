"""A slot as a script: plain Transformers that gives the same ids, for a reader who wants to see what was run.

What has no plain form (a draft head, static int8) imports this repository and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..config import History, ModelSpec, Prompt, SlotSpec, ranks_of
from ..quantization import Quantization
from .attention import held_to
from .decoding import generate_options
from .speculate import drafter_options

_REPOSITORY = "# Run it in this repository's folder: what follows has no plain Transformers form."


@dataclass(frozen=True)
class Facts:
    """What a slot found out while it loaded: folders, dtypes, the device, ids that end a sequence, the cache's room."""

    folder: str
    dtype: str
    device: str
    eos_ids: tuple[int, ...]
    config: Any
    positions: int
    drafter_folder: str = ""
    drafter_dtype: str = ""
    head_folder: str = ""


def script(slot: SlotSpec, prompt: Prompt, facts: Facts) -> str:
    """The source text. It prints the new ids and their text."""
    decode, settings = slot.decode, prompt.settings
    imports = {"import torch", "from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig"}
    model = _model("model", facts.folder, facts.dtype, facts.device, decode, slot.model, imports)
    setup, arguments = _speculation(slot, prompt, facts, imports)
    if decode.lean:
        imports.add("from playground.engines.lean import Packs")
        setup.append("Packs().apply(model)")
    options = _options(slot, prompt, facts)
    if decode.compile != "none":
        imports.add("from transformers import CompileConfig")
        options["compile_config"] = f'CompileConfig(mode="{decode.compile}")'
        if facts.device == "cpu":
            setup.append("config.compile_config._compile_all_devices = True  # Transformers compiles on GPUs only, unless asked")
    call = [f"    {name}={value}," for name, value in options.items()]
    if prompt.settings.stops and "tokenizer=" not in arguments:
        arguments += ", tokenizer=tokenizer"
    generate = f"output = model.generate(**inputs, generation_config=config{arguments})"
    kernel = held_to(decode.attention)
    if kernel:
        imports.add("from torch.nn.attention import SDPBackend, sdpa_kernel")
        generate = f"with sdpa_kernel(SDPBackend.{kernel}):\n    {generate}"
    seed = [f"torch.manual_seed({settings.seed})"] if settings.temperature > 0 else []
    body = [
        f'tokenizer = AutoTokenizer.from_pretrained({facts.folder!r})',
        *model,
        "model.generation_config = GenerationConfig()  # a checkpoint's own defaults would fill what is None below",
        *_inputs(prompt, prompt.history(slot.id)),
        *_batch(settings.batch),
        "config = GenerationConfig(",
        *call,
        ")",
        *setup,
        *seed,
        generate,
        'new = output[0, inputs["input_ids"].shape[1] :].tolist()',
        "print(new)",
        "print(tokenizer.decode(new, skip_special_tokens=True))",
    ]
    started = ranks_of(slot.model.device)
    how = [f"# Start it with: torchrun --nproc-per-node {started} SCRIPT"] if started > 1 else []
    return "\n".join([f"# {_one_line(slot.name)}", *how, *_sorted(imports), "", *body]) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _sorted(imports: set[str]) -> list[str]:
    """Plain imports first, then the others; those of this repository last, after a word on them."""
    own = sorted(line for line in imports if "playground" in line)
    plain = sorted(imports - set(own), key=lambda line: (line.startswith("from"), line))
    return plain + ([_REPOSITORY, *own] if own else [])


def _model(
    name: str, folder: str, dtype: str, device: str, decode: Any, spec: ModelSpec, imports: set[str]
) -> list[str]:
    quantization, where = spec.quantization, spec.device
    how = "sdpa" if held_to(decode.attention) else decode.attention
    options = [f"dtype=torch.{dtype}", f'attn_implementation="{how}"']
    if config := _quantization(quantization, dtype, device, imports):
        options.append(f"quantization_config={config}")
    options += _placement(where, device, imports)
    lines = [f"{name} = AutoModelForCausalLM.from_pretrained(", f"    {folder!r},", *(f"    {o}," for o in options), ").eval()"]
    if quantization.method == "torchao-int8-static":
        imports.add("from playground.engines.calibration import read_calibration, samples")
        imports.add("from playground.engines.quantize import make_static_int8")
        lines += [
            f"text = read_calibration({quantization.calibration!r}).text",
            f'make_static_int8({name}, samples(tokenizer(text)["input_ids"]), lambda stage, fraction: None)',
        ]
    return lines


def _placement(where: str, device: str, imports: set[str]) -> list[str]:
    """What from_pretrained is told of devices; `device` is where inputs go."""
    if (ranks := ranks_of(where)) > 1:
        imports.add("from transformers.distributed.configuration_utils import DistributedConfig")
        return [f"distributed_config=DistributedConfig(tp_size={ranks})"]
    if "+" in where:
        places = ", ".join('"cpu"' if part == "cpu" else part.partition(":")[2] or "0" for part in where.split("+"))
        return ['device_map="auto"', f"max_memory={{place: torch.cuda.mem_get_info(0)[0] for place in ({places})}}"]
    return [] if device == "cpu" else [f'device_map="{device}"']


def _quantization(quantization: Quantization, dtype: str, device: str, imports: set[str]) -> str:
    """The config with which a plain checkpoint is quantized while it loads; empty when nothing is to be done."""
    method = quantization.method
    if method.startswith("bnb-"):
        imports.add("from transformers import BitsAndBytesConfig")
        if method == "bnb-int8":
            return f"BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold={quantization.threshold})"
        compute = dtype if quantization.compute_dtype == "auto" else quantization.compute_dtype
        return (
            f'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="{method.removeprefix("bnb-")}", '
            f"bnb_4bit_use_double_quant={quantization.double_quantization}, bnb_4bit_compute_dtype=torch.{compute})"
        )
    if method == "torchao-int4":
        imports.add("from transformers import TorchAoConfig")
        if device == "cpu":
            imports.add("from torchao.prototype.quantization.int4.inference_workflow import PrototypeInt4WeightOnlyConfig")
            return f"TorchAoConfig(PrototypeInt4WeightOnlyConfig(group_size={quantization.group_size}))"
        imports.add("from torchao.quantization import Int4WeightOnlyConfig")
        packing = 'int4_packing_format="tile_packed_to_4d"'
        return f"TorchAoConfig(Int4WeightOnlyConfig(group_size={quantization.group_size}, {packing}))"
    name = {
        "torchao-int8": "Int8WeightOnlyConfig",
        "torchao-int8-dynamic": "Int8DynamicActivationInt8WeightConfig",
        "torchao-fp8": "Float8DynamicActivationFloat8WeightConfig",
    }.get(method)
    if name is None:
        return ""
    imports.add("from transformers import TorchAoConfig")
    imports.add(f"from torchao.quantization import {name}")
    return f"TorchAoConfig({name}())"


def _inputs(prompt: Prompt, history: History) -> list[str]:
    settings = prompt.settings
    if not settings.chat_template:
        text = "".join(part for turn in history for part in turn) + prompt.text
        return [f'inputs = tokenizer({text!r}, return_tensors="pt").to(model.device)']
    system = [{"role": "system", "content": settings.system_prompt}] if settings.system_prompt else []
    earlier = [{"role": r, "content": c} for turn in history for r, c in zip(("user", "assistant"), turn)]
    lines = [f"    {turn!r}," for turn in (*system, *earlier, {"role": "user", "content": prompt.text})]
    return [
        "messages = [",
        *lines,
        "]",
        "inputs = tokenizer.apply_chat_template(",
        '    messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"',
        ").to(model.device)",
    ]


def _batch(batch: int) -> list[str]:
    return [f"inputs = {{name: value.repeat({batch}, 1) for name, value in inputs.items()}}"] if batch > 1 else []


def _options(slot: SlotSpec, prompt: Prompt, facts: Facts) -> dict[str, str]:
    settings = prompt.settings
    values = generate_options(
        slot.decode, settings, settings.new_tokens, facts.eos_ids, facts.config, facts.positions
    )
    if settings.stops:
        values["stop_strings"] = list(settings.stops)
    return {name: repr(value) for name, value in values.items()}


def _speculation(slot: SlotSpec, prompt: Prompt, facts: Facts, imports: set[str]) -> tuple[list[str], str]:
    """Lines that set a drafter up, and what generate is given beside the config."""
    decode, settings = slot.decode, prompt.settings
    limits = [f"{name}={value!r}" for name, value in drafter_options(settings).items()]
    indented = [f"    {limit}," for limit in limits]
    match decode.speculation:
        case "early-exit":
            return ["model.generation_config = GenerationConfig(", *indented, ")"], ""
        case "draft-model" | "universal":
            lines = _model(
                "drafter", facts.drafter_folder, facts.drafter_dtype, facts.device, decode, decode.drafter, imports
            )
            lines += ["drafter.generation_config = GenerationConfig(", *indented, ")"]
            if decode.speculation == "draft-model":
                return lines, ", assistant_model=drafter"
            lines.append(f"drafter_tokenizer = AutoTokenizer.from_pretrained({facts.drafter_folder!r})")
            return lines, ", assistant_model=drafter, tokenizer=tokenizer, assistant_tokenizer=drafter_tokenizer"
        case "draft-head":
            imports |= {
                "from pathlib import Path",
                "from playground.engines.draft_head import load_head",
                "from playground.engines.head_candidates import HeadCandidates",
            }
            return [
                f'head = load_head(Path({facts.head_folder!r}), "head").to(model.device, model.dtype).attach(model)',
                f"limits = GenerationConfig({', '.join(limits)})",
                "model._get_candidate_generator = lambda *, generation_config, logits_processor, **_: HeadCandidates(",
                "    head, limits, generation_config, logits_processor",
                ")",
            ], ""
    return [], ""
