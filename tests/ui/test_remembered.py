"""What a visitor chose is taken back as a whole, or not at all."""

import dataclasses

import gradio as gr
import pytest

from playground.presets import load_presets
from playground.ui.page import lay_out
from playground.ui.remembering import checked_choices

PRESETS = load_presets()
FIRST = next(iter(PRESETS))


@pytest.fixture(scope="module")
def parts():
    with gr.Blocks():
        return lay_out(PRESETS, FIRST, {})


def choices(**changed):
    settings = dataclasses.asdict(PRESETS[FIRST].settings)
    rest = {"language": "ko", "preset": FIRST, "mode": "race", "repeats": 3, "quality": True, "markdown": False, "prompt": "mine"}
    return settings | rest | changed


def test_all_of_it_comes_back(parts):
    assert checked_choices(choices(), PRESETS, parts) == choices()


@pytest.mark.parametrize("changed", [
    {"new_tokens": 0}, {"new_tokens": "many"}, {"preset": "gone"}, {"mode": "sprint"}, {"language": "xx"}, {"repeats": 0}, {"quality": 1},
    {"markdown": None}, {"prompt": 5}, {"unknown": 1},
])  # fmt: skip
def test_none_of_it_where_a_part_cannot_be(parts, changed):
    assert checked_choices(choices(**changed), PRESETS, parts) == {}


def test_none_of_what_an_older_version_left(parts):
    older = choices()
    del older["markdown"]
    assert checked_choices(older, PRESETS, parts) == {}
    assert checked_choices(None, PRESETS, parts) == checked_choices([], PRESETS, parts) == {}
