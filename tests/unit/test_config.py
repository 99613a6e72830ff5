"""What comes from outside is checked, and the message names the field, the value and the range."""

import math

import pytest

from playground.checks import MAX_PROMPT_CHARS, ConfigError
from playground.config import (
    Comparison,
    DecodeSpec,
    ModelSpec,
    Settings,
    SlotSpec,
    checked_prompt,
    checked_settings,
    differences,
)
from playground.quantization import Quantization

MODEL = ModelSpec("m")


@pytest.mark.parametrize("name", ["new_tokens", "temperature", "top_p", "seed", "draft_len"])
@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, None, "1", "", -1, 10**400, 1e308, True, [], {}], ids=repr
)
def test_bad_numbers_are_refused_by_name(name, value):
    with pytest.raises(ConfigError) as refused:
        checked_settings({name: value})
    assert refused.value.field == name and name in str(refused.value)
    assert "give" in str(refused.value), "the message says what is allowed"


@pytest.mark.parametrize(("name", "value"), [("new_tokens", 1.5), ("seed", 0.1), ("draft_len", 0), ("top_p", 0)])
def test_fractions_and_ends_of_ranges(name, value):
    with pytest.raises(ConfigError):
        checked_settings({name: value})


@pytest.mark.parametrize(("name", "value"), [("chat_template", "yes"), ("ignore_eos", 1), ("system_prompt", 3)])
def test_wrong_types_are_refused(name, value):
    with pytest.raises(ConfigError) as refused:
        checked_settings({name: value})
    assert refused.value.field == name


def test_good_settings_keep_what_was_not_given():
    base = Settings(seed=7)
    assert checked_settings({"new_tokens": 32.0, "temperature": 1}, base) == Settings(seed=7, new_tokens=32, temperature=1.0)
    assert isinstance(checked_settings({"new_tokens": 32.0}).new_tokens, int)


def test_unknown_settings_list_the_known_ones():
    with pytest.raises(ConfigError, match="max_tokens.*new_tokens"):
        checked_settings({"max_tokens": 5})
    with pytest.raises(ConfigError, match="settings"):
        checked_settings([1])


@pytest.mark.parametrize("text", ["", "  \n\t", None, 5, "x" * (MAX_PROMPT_CHARS + 1), "\ud800"])
def test_bad_prompts_are_refused(text):
    with pytest.raises(ConfigError) as refused:
        checked_prompt(text, Settings())
    assert refused.value.field == "prompt"


def test_speculation_without_a_cache_is_refused():
    with pytest.raises(ConfigError, match="KV cache"):
        SlotSpec("s", "s", MODEL, DecodeSpec(cache="none", speculation="prompt-lookup"))


@pytest.mark.parametrize(
    "decode",
    [{"speculation": "draft-model"}, {"speculation": "universal"}, {"drafter": MODEL}, {"speculation": "early-exit"},
     {"exit_layer": 3}, {"speculation": "prompt-lookup", "exit_layer": 3}, {"speculation": "early-exit", "exit_layer": 3, "drafter": MODEL}],
)
def test_a_speculation_and_what_it_drafts_with_go_together(decode):
    with pytest.raises(ConfigError, match="go together"):
        SlotSpec("s", "s", MODEL, DecodeSpec(**decode))


def comparison(*ids, reference="a"):
    return Comparison("c", "C", tuple(SlotSpec(i, i, MODEL) for i in ids), reference)


def test_comparisons_need_distinct_slots_and_a_known_reference():
    for bad in (lambda: comparison("a", "a"), lambda: comparison("b"), lambda: comparison(*"abcdefghi")):
        with pytest.raises(ConfigError):
            bad()


def test_only_some_slots():
    assert [s.id for s in comparison("a", "b", "c").only(["c", "b"]).slots] == ["b", "c"]
    assert comparison("a", "b").only(["b"]).reference == "b"
    for bad in (["d"], [], "a", [1]):
        with pytest.raises(ConfigError, match="slots"):
            comparison("a", "b").only(bad)


def test_differences_name_the_choices():
    plain = SlotSpec("a", "A", MODEL, DecodeSpec(cache="none"))
    cached = SlotSpec("b", "B", MODEL, DecodeSpec(cache="dynamic"))
    assert differences(plain, cached) == (("cache", "none", "dynamic"),)
    assert differences(plain, plain) == ()


def test_another_model_replaces_the_presets_own_and_its_self_drafter():
    drafted = DecodeSpec(speculation="draft-model", drafter=ModelSpec("m", quantization=Quantization("bnb-nf4")))
    other = DecodeSpec(speculation="draft-model", drafter=ModelSpec("small"))
    slots = (SlotSpec("a", "A", MODEL, drafted), SlotSpec("b", "B", MODEL, other))
    swapped = Comparison("c", "C", slots, "a").with_model("big")
    assert [s.model.model for s in swapped.slots] == ["big", "big"]
    assert swapped.slots[0].decode.drafter == ModelSpec("big", quantization=Quantization("bnb-nf4"))
    assert swapped.slots[1].decode.drafter == ModelSpec("small")


def test_the_head_that_ships_stays_with_the_model_it_was_trained_for():
    decode = DecodeSpec(speculation="draft-head", draft_head="builtin")
    own = Comparison("c", "C", (SlotSpec("h", "Draft head", ModelSpec("builtin"), decode),), "h")
    (swapped,) = own.with_model("big").slots
    assert (swapped.decode, swapped.name) == (DecodeSpec(speculation="prompt-lookup"), "Prompt lookup")
    assert own.with_model("builtin") == own


@pytest.mark.parametrize(("device", "word"), [("tensor:1", "tensor:2"), ("tensor:99", "tensor:16"), ("tensor", "tensor:2")])
def test_a_number_of_ranks_that_cannot_be_is_refused(device, word):
    with pytest.raises(ConfigError, match=word):
        ModelSpec("m", device=device)


@pytest.mark.parametrize("decode", [
    {"cache": "dynamic"}, {"cache": "static", "lean": True}, {"cache": "static", "speculation": "prompt-lookup"},
])  # fmt: skip
def test_compile_goes_with_a_static_cache_alone(decode):
    SlotSpec("s", "s", ModelSpec("m"), DecodeSpec(cache="static", compile="default"))
    with pytest.raises(ConfigError, match="compile goes with"):
        SlotSpec("s", "s", ModelSpec("m"), DecodeSpec(compile="default", **decode))
    with pytest.raises(ConfigError, match="one device"):
        SlotSpec("s", "s", ModelSpec("m", device="tensor:2"), DecodeSpec(cache="static", compile="default"))


@pytest.mark.parametrize("device", ["tensor:2", "cuda:0+cuda:1"])
def test_what_does_not_go_with_several_devices_is_refused(device):
    SlotSpec("s", "s", ModelSpec("m", device=device), DecodeSpec(speculation="prompt-lookup"))
    for decode in ({"lean": True}, {"cache": "static"}, {"speculation": "early-exit", "exit_layer": 1}):
        with pytest.raises(ConfigError, match="several devices"):
            SlotSpec("s", "s", ModelSpec("m", device=device), DecodeSpec(**decode))
    with pytest.raises(ConfigError, match="unquantized"):
        ModelSpec("m", device=device, quantization=Quantization("bnb-nf4"))
