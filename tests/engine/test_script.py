"""A column's script gives the slot's own ids, for every technique that runs here."""

import contextlib
import io

import pytest

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.events import Done, Ready
from playground.quantization import Quantization

from .conftest import ask, ids_of, make_head, make_model, make_tokenizer, run

PLAIN = {
    "no cache": {"cache": "none", "attention": "eager"},
    "eager": {"attention": "eager"},
    "sdpa": {},
    "sdpa-math": {"attention": "sdpa-math"},
    "static cache": {"cache": "static"},
    "fp8 cache": {"cache": "fp8"},
    "int4 cache": {"cache": "quanto-int4"},
    "prompt lookup": {"speculation": "prompt-lookup"},
    "static cache and prompt lookup": {"cache": "static", "speculation": "prompt-lookup"},
    "compiled": {"cache": "static", "compile": "default"},
    "early exit": {"speculation": "early-exit", "exit_layer": 1},
}
WEIGHTS = {
    "bnb-int8": Quantization("bnb-int8"),
    "bnb-nf4": Quantization("bnb-nf4"),
    "torchao-int8": Quantization("torchao-int8"),
    "torchao-int8-dynamic": Quantization("torchao-int8-dynamic"),
    "torchao-int8-static": Quantization("torchao-int8-static"),
    "torchao-int4": Quantization("torchao-int4", group_size=32),
}


def execute(source):
    """The ids that a script prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(source, "script", "exec"), {})
    return [int(i) for i in said.getvalue().splitlines()[0].strip("[]").split(",")]


def check(engine, slot, prompt):
    events = run(engine, slot, prompt)
    assert isinstance(events[-1], Done), events[-1]
    (ready,) = (e for e in events if isinstance(e, Ready))
    assert execute(ready.script) == ids_of(events), ready.script


@pytest.mark.parametrize("how", PLAIN)
def test_ways_of_decoding(engine, tiny, how):
    check(engine, SlotSpec("s", how, tiny, DecodeSpec(**PLAIN[how])), ask('fox "fox" \\ fox\n하늘', new_tokens=40))


@pytest.mark.parametrize("how", ["draft-model", "universal", "draft-head"])
def test_drafters(engine, tiny, other, tmp_path, how):
    stranger = ModelSpec(make_model(tmp_path / "s", tokenizer=make_tokenizer(300, corpus=["lorem ipsum fox"] * 9)), dtype="float32")
    companion = {
        "draft-model": {"drafter": other}, "universal": {"drafter": stranger},
        "draft-head": {"draft_head": make_head(tmp_path / "h", tiny)},
    }[how]
    check(engine, SlotSpec("s", "s", tiny, DecodeSpec(speculation=how, **companion)), ask(new_tokens=30))


@pytest.mark.parametrize("how", WEIGHTS)
def test_weights(engine, tmp_path, how):
    model = ModelSpec(make_model(tmp_path / "m", width=128), dtype="bfloat16", quantization=WEIGHTS[how])
    check(engine, SlotSpec("s", "s", model), ask(new_tokens=20))


@pytest.mark.parametrize("settings", [
    {"temperature": 0.8, "top_p": 0.9, "seed": 7}, {"chat_template": False}, {"system_prompt": "Be 'brief'."},
    {"ignore_eos": False}, {"stop_strings": "e\na"}, {"draft_len": 2, "temperature": 1.0}, {"batch": 2},
])  # fmt: skip
def test_settings(engine, tiny, settings):
    speculation = "prompt-lookup" if "draft_len" in settings else "none"
    check(engine, SlotSpec("s", "a name\nof two lines", tiny, DecodeSpec(speculation=speculation)), ask(**settings))
