"""The form that adds a GPTQ column: what it asks for, checked like everything from outside."""

import gradio as gr
import pytest

from playground.checks import ConfigError
from playground.config import differences
from playground.presets import load_presets
from playground.quantization import DEFAULT_CALIBRATION, Quantization
from playground.ui.gptq_form import SLOT_ID, group_choices, lay_out, with_gptq
from playground.ui.i18n import Words

PRESETS = load_presets()


@pytest.fixture(scope="module")
def form():
    with gr.Blocks():
        return lay_out(lambda component, **keys: None, Words("en"))


def values(form, add=True, bits=4, group_size=64, act_order=False, calibration=None):
    return dict(zip(form.components(), (add, bits, group_size, act_order, calibration)))


def test_without_the_tick_the_comparison_stays_as_it_is(form):
    for add in (False, None, 0, "yes"):
        assert with_gptq(PRESETS["five-ways"], form, values(form, add=add)) is PRESETS["five-ways"]


@pytest.mark.parametrize("preset", ["five-ways", "kv-cache", "speculation"])
def test_the_column_differs_from_a_plain_one_by_its_weights_alone(form, preset):
    slots = with_gptq(PRESETS[preset], form, values(form, bits=8, group_size=-1, act_order=True)).slots
    added = slots[-1]
    assert slots[:-1] == PRESETS[preset].slots and added.id == SLOT_ID
    assert added.model.quantization == Quantization("gptq", bits=8, group_size=-1, act_order=True)
    assert added.model.quantization.calibration == DEFAULT_CALIBRATION
    assert added.decode.cache != "none" and added.decode.speculation == "none"
    assert min(len(differences(slot, added)) for slot in slots[:-1]) == 1


def test_an_uploaded_text_is_what_calibrates(form, tmp_path):
    text = str(tmp_path / "mine.txt")
    added = with_gptq(PRESETS["kv-cache"], form, values(form, calibration=text)).slots[-1]
    assert added.model.quantization.calibration == text


@pytest.mark.parametrize(("field", "value"), [("bits", 5), ("bits", "4"), ("bits", None), ("group_size", 100), ("act_order", "on")])
def test_what_a_browser_should_not_send_is_refused_by_name(form, field, value):
    if value is None:  # an emptied menu: the method's default
        assert with_gptq(PRESETS["kv-cache"], form, values(form, bits=None)).slots[-1].model.quantization.bits == 4
        return
    with pytest.raises(ConfigError) as refused:
        with_gptq(PRESETS["kv-cache"], form, values(form, **{field: value}))
    assert refused.value.field == field


def test_sizes_are_named_for_people():
    assert group_choices((32, -1), Words("en")) == [("32", 32), ("whole column", -1)]
