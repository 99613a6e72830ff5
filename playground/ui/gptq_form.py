"""The form that adds a GPTQ column to a comparison: its components, and what they ask for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from ..config import Comparison, SlotSpec
from ..quantization import BITS, DEFAULT_CALIBRATION, GROUP_SIZES, WHOLE_COLUMN, Quantization
from .i18n import Words

SLOT_ID = "gptq-here"
_DEFAULT_GROUP = 64


@dataclass
class GptqForm:
    """Created inside the page's layout; its components are also where its values come from."""

    accordion: gr.Accordion = None
    add: gr.Checkbox = None
    bits: gr.Dropdown = None
    group_size: gr.Dropdown = None
    act_order: gr.Checkbox = None
    calibration: gr.File = None

    def components(self) -> list[Any]:
        return [self.add, self.bits, self.group_size, self.act_order, self.calibration]


def lay_out(say: Any, words: Words) -> GptqForm:
    """The form, closed. `say` lets a component's texts follow the language."""
    form = GptqForm()
    with gr.Accordion(open=False, elem_id="gptq-form") as form.accordion:
        say(gr.Markdown(), value="gptq_text")
        with gr.Row():
            form.add = gr.Checkbox(False, elem_id="gptq-add", min_width=220)
            form.bits = gr.Dropdown(list(BITS), value=4, elem_id="gptq-bits", min_width=120)
            form.group_size = gr.Dropdown(
                group_choices((*GROUP_SIZES, WHOLE_COLUMN), words), value=_DEFAULT_GROUP, elem_id="gptq-group", min_width=160
            )
            form.act_order = gr.Checkbox(False, elem_id="gptq-act-order", min_width=160)
            form.calibration = gr.File(
                file_types=["text"], type="filepath", height=140, elem_id="gptq-calibration", min_width=260
            )
    say(form.accordion, label="gptq_form")
    say(form.add, label="gptq_add")
    say(form.bits, label="gptq_bits")
    say(form.group_size, label="gptq_group", info="gptq_group_info")
    say(form.act_order, label="gptq_act_order")
    say(form.calibration, label="gptq_calibration")
    return form


def group_choices(sizes: tuple[int, ...], words: Words) -> list[tuple[str, int]]:
    """Sizes as a menu shows them."""
    return [(words("gptq_whole_column") if size == WHOLE_COLUMN else str(size), size) for size in sizes]


def with_gptq(comparison: Comparison, form: GptqForm, values: Mapping[Any, Any]) -> Comparison:
    """The comparison with the form's column added if it is asked for. Raises ConfigError.

    The column is like the last plain one (unquantized, with a cache, without speculation; else
    the reference), so that it differs by one choice from a column that shows what it changes.
    """
    if values[form.add] is not True:
        return comparison
    quantization = Quantization(
        "gptq",
        bits=values[form.bits],
        group_size=values[form.group_size],
        act_order=values[form.act_order],
        calibration=values[form.calibration] or DEFAULT_CALIBRATION,
    )
    base = _plain_slot(comparison)
    model = dataclasses.replace(base.model, quantization=quantization)
    added = SlotSpec(SLOT_ID, f"GPTQ {quantization.bits}-bit", model, base.decode)
    return dataclasses.replace(comparison, slots=(*comparison.slots, added))


def _plain_slot(comparison: Comparison) -> SlotSpec:
    plain = [
        slot
        for slot in comparison.slots
        if slot.model.quantization.is_none and slot.decode.cache != "none" and slot.decode.speculation == "none"
    ]
    return plain[-1] if plain else next(slot for slot in comparison.slots if slot.id == comparison.reference)
