"""What a browser brings back is taken as a whole or not at all."""

import json

import pytest

from playground.config import Comparison, DecodeSpec, ModelSpec, SlotSpec
from playground.editing import duplicate
from playground.quantization import Quantization
from playground.ui.remembering import checked_columns, columns_to_keep

SLOTS = (
    SlotSpec("a", "A", ModelSpec("builtin", quantization=Quantization("gptq", bits=4, group_size=64))),
    SlotSpec("b", "B", ModelSpec("builtin"), DecodeSpec(speculation="draft-model", drafter=ModelSpec("builtin"))),
)
PRESET = Comparison("c", "C", SLOTS, "a", title_ko="씨")
EDITED = duplicate(PRESET, "b")


def kept():
    return json.loads(json.dumps(columns_to_keep(EDITED)))


def test_edited_columns_come_back_as_they_were_and_the_rest_is_the_presets():
    assert checked_columns(kept(), PRESET) == EDITED
    older = kept() | {"title": "an old title"}
    assert checked_columns(older, PRESET).title == "C"


@pytest.mark.parametrize("change", [
    lambda d: d.update(id="another"), lambda d: d.update(slots=[]), lambda d: d["slots"][0].update(extra=1), lambda d: d.update(reference="zzz"),
    lambda d: d["slots"][0]["model"].update(dtype="float7"), lambda d: d["slots"][1]["decode"].update(cache="none"), lambda d: d.pop("slots"),
])  # fmt: skip
def test_what_cannot_be_any_more_is_forgotten(change):
    data = kept()
    change(data)
    assert checked_columns(data, PRESET) is None


@pytest.mark.parametrize("data", [None, 5, "text", [], {}, {"id": "c"}])
def test_nonsense_is_forgotten(data):
    assert checked_columns(data, PRESET) is None
