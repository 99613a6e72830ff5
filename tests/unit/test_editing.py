"""Columns are changed one thing at a time, and what cannot be is refused with the reason."""

import pytest

from playground.checks import ConfigError
from playground.config import MAX_SLOTS, Comparison, ModelSpec, SlotSpec
from playground.editing import (
    CHOICES,
    choose,
    duplicate,
    move,
    refer_to,
    remove,
    rename,
    switch,
    use_device,
    use_drafter,
    use_exit_layer,
    use_model,
    value_of,
)

SLOTS = tuple(SlotSpec(i, i.upper(), ModelSpec("builtin")) for i in "abc")
BASE = Comparison("c", "C", SLOTS, "a")


def ids(comparison):
    return [slot.id for slot in comparison.slots]


def slot(comparison, name):
    return next(s for s in comparison.slots if s.id == name)


def test_a_copy_stands_beside_its_column_under_a_name_of_its_own():
    twice = duplicate(duplicate(BASE, "b"), "b")
    assert ids(twice) == ["a", "b", "b-3", "b-2", "c"] and len({s.name for s in twice.slots}) == 5
    named = Comparison("c", "C", (SlotSpec("a", "A", ModelSpec("m")), SlotSpec("x", "A 2", ModelSpec("m"))), "a")
    assert [s.name for s in duplicate(named, "a").slots] == ["A", "A 3", "A 2"], "a name that another column has is not taken"
    full = BASE
    while len(full.slots) < MAX_SLOTS:
        full = duplicate(full, "a")
    with pytest.raises(ConfigError, match="the most"):
        duplicate(full, "a")


def test_removing_leaves_two_and_a_reference():
    less = remove(BASE, "a")
    assert ids(less) == ["b", "c"] and less.reference == "b"
    assert remove(BASE, "b").reference == "a"
    with pytest.raises(ConfigError, match="fewest"):
        remove(less, "b")


@pytest.mark.parametrize(("name", "by", "order"), [("a", 1, "bac"), ("c", -1, "acb"), ("a", -1, "abc"), ("c", 9, "abc")])
def test_moving_stops_at_the_edge(name, by, order):
    assert "".join(ids(move(BASE, name, by))) == order


def test_names_are_one_line_of_bounded_length():
    assert slot(rename(BASE, "b", "  Fast \n one "), "b").name == "Fast one"
    for name in ("", "   ", "x" * 41, 5):
        with pytest.raises(ConfigError):
            rename(BASE, "b", name)


def test_the_reference_and_the_model_can_be_changed():
    assert refer_to(BASE, "c").reference == "c"
    assert slot(use_model(BASE, "b", " org/model "), "b").model.model == "org/model"
    with pytest.raises(ConfigError):
        use_model(BASE, "b", " ")


@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_can_be_made_and_nothing_else_changes(choice):
    value = {"quantization": "gptq", "dtype": "float32", "attention": "eager", "cache": "fp8", "speculation": "draft-head", "compile": "default"}[choice]
    changed = choose(BASE, "b", choice, value)
    assert value_of(slot(changed, "b"), choice) == value
    assert slot(changed, "a") == slot(BASE, "a") and changed.reference == "a"


@pytest.mark.parametrize("value", ["prompt-lookup", "draft-model", "universal", "early-exit", "draft-head", "none"])
def test_every_speculation_comes_with_what_it_needs_and_goes_without_what_it_does_not(value):
    for before in ("draft-model", "early-exit", "none"):
        assert value_of(slot(choose(choose(BASE, "b", "speculation", before), "b", "speculation", value), "b"), "speculation") == value


def test_compile_brings_its_static_cache_and_what_clashes_is_said():
    compiled = choose(BASE, "b", "compile", "default")
    assert slot(compiled, "b").decode.cache == "static"
    with pytest.raises(ConfigError, match="compile goes with"):
        choose(compiled, "b", "cache", "dynamic")
    with pytest.raises(ConfigError, match="cannot"):
        choose(choose(BASE, "b", "cache", "none"), "b", "speculation", "prompt-lookup")


@pytest.mark.parametrize("call", [
    lambda: choose(BASE, "b", "cache", "huge"), lambda: choose(BASE, "b", "colour", "red"), lambda: duplicate(BASE, "zzz"),
    lambda: move(BASE, None, 1), lambda: choose(BASE, "b", "attention", 7),
])  # fmt: skip
def test_what_is_not_there_is_refused(call):
    with pytest.raises(ConfigError):
        call()


def test_a_drafter_is_chosen_where_one_drafts():
    drafting = choose(BASE, "b", "speculation", "draft-model")
    assert slot(use_drafter(drafting, "b", " org/small "), "b").decode.drafter.model == "org/small"
    assert use_drafter(drafting, "b", "  ") == drafting
    with pytest.raises(ConfigError, match="draft-model"):
        use_drafter(BASE, "b", "org/small")


def test_the_exit_layer_is_set_where_a_column_drafts_with_its_own_layers():
    drafting = choose(BASE, "b", "speculation", "early-exit")
    assert slot(use_exit_layer(drafting, "b", 12), "b").decode.exit_layer == 12 and use_exit_layer(drafting, "b", None) == drafting
    for wrong in (0, -1, 1.5, "x", True):
        with pytest.raises(ConfigError, match="exit_layer"):
            use_exit_layer(drafting, "b", wrong)
    with pytest.raises(ConfigError, match="early-exit"):
        use_exit_layer(BASE, "b", 12)


def test_switches_and_the_device():
    assert slot(switch(BASE, "b", "lean", True), "b").decode.lean and slot(switch(BASE, "b", "keep_prefix", True), "b").decode.keep_prefix
    assert slot(use_device(BASE, "b", " tensor:2 "), "b").model.device == "tensor:2" and slot(use_device(BASE, "b", ""), "b").model.device == "auto"
    with pytest.raises(ConfigError, match="keep_prefix goes with"):
        switch(choose(BASE, "b", "cache", "static"), "b", "keep_prefix", True)
    for call in (lambda: switch(BASE, "b", "lean", 1), lambda: switch(BASE, "b", "cache", True), lambda: use_device(BASE, "b", "tensor:99")):
        with pytest.raises(ConfigError):
            call()
