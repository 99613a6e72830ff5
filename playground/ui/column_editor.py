"""The panel that changes a comparison's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, get_args

import gradio as gr

from ..capabilities import Technique
from ..config import Comparison, SlotSpec
from ..editing import CHOICES, SWITCHES, value_of
from .i18n import Words

BUTTONS = ("duplicate", "remove", "left", "right", "refer")


@dataclass
class ColumnEditor:
    """Created inside the page's layout."""

    accordion: gr.Accordion = None
    column: gr.Dropdown = None
    name: gr.Textbox = None
    model: gr.Textbox = None
    drafter: gr.Textbox = None
    device: gr.Textbox = None
    exit_layer: gr.Number = None
    choices: dict[str, gr.Dropdown] = field(default_factory=dict)
    switches: dict[str, gr.Checkbox] = field(default_factory=dict)
    buttons: dict[str, gr.Button] = field(default_factory=dict)
    reasons: gr.HTML = None

    def components(self) -> list[Any]:
        typed = [self.name, self.model, self.drafter, self.device, self.exit_layer]
        return [self.accordion, self.column, *typed, *self.choices.values(), *self.switches.values(), *self.buttons.values(), self.reasons]


def lay_out(say: Any, comparison: Comparison) -> ColumnEditor:
    """The panel, closed, on the first column."""
    editor, slot = ColumnEditor(), comparison.slots[0]
    with gr.Accordion(open=False, elem_id="editor") as editor.accordion:
        with gr.Row():
            editor.column = gr.Dropdown(_columns(comparison), value=slot.id, elem_id="edit-column", min_width=200)
            editor.name = gr.Textbox(slot.name, elem_id="edit-name", min_width=180, max_lines=1)
            editor.model = gr.Textbox(slot.model.model, elem_id="edit-model", min_width=220, max_lines=1)
            editor.drafter = gr.Textbox(_drafter(slot), elem_id="edit-drafter", min_width=220, max_lines=1)
        with gr.Row():
            for choice, kinds in CHOICES.items():
                editor.choices[choice] = gr.Dropdown(
                    list(get_args(kinds)), value=value_of(slot, choice), elem_id=f"edit-{choice}", min_width=150
                )
                say(editor.choices[choice], label=f"choice.{choice}")
        with gr.Row():
            editor.device = gr.Textbox(slot.model.device, elem_id="edit-device", min_width=220, max_lines=1)
            editor.exit_layer = gr.Number(slot.decode.exit_layer, precision=0, elem_id="edit-exit_layer", min_width=180)
            for name in SWITCHES:
                editor.switches[name] = gr.Checkbox(getattr(slot.decode, name), elem_id=f"edit-{name}", min_width=180)
                say(editor.switches[name], label=f"choice.{name}", info=f"edit.{name}_info")
        with gr.Row():
            for name in BUTTONS:
                editor.buttons[name] = gr.Button(elem_id=f"edit-{name}", size="sm", min_width=120)
                say(editor.buttons[name], value=f"edit.{name}")
        editor.reasons = gr.HTML(elem_id="edit-reasons", min_height=40)
    say(editor.accordion, label="editor")
    say(editor.column, label="edit.column")
    say(editor.name, label="edit.name")
    say(editor.model, label="model", info="edit.model_info")
    say(editor.drafter, label="edit.drafter", info="edit.drafter_info")
    say(editor.device, label="choice.device", info="edit.device_info")
    say(editor.exit_layer, label="choice.exit_layer", info="edit.exit_layer_info")
    return editor


def filled(editor: ColumnEditor, comparison: Comparison, slot_id: str | None) -> dict[Any, Any]:
    """The panel's values for one column; the first one where that is gone."""
    slot = next((s for s in comparison.slots if s.id == slot_id), comparison.slots[0])
    values: dict[Any, Any] = {editor.choices[choice]: value_of(slot, choice) for choice in CHOICES}
    values |= {editor.switches[name]: getattr(slot.decode, name) for name in SWITCHES}
    return values | {
        editor.column: gr.update(choices=_columns(comparison), value=slot.id), editor.name: slot.name, editor.model: slot.model.model,
        editor.drafter: _drafter(slot), editor.device: slot.model.device, editor.exit_layer: slot.decode.exit_layer,
    }


def menus(editor: ColumnEditor, found: Sequence[Technique], words: Words) -> dict[Any, Any]:
    """Menus that mark what does not run here, and beneath them why not."""
    missing = {(t.kind, t.name): t for t in found if not t.runs and t.kind in CHOICES}

    def label(choice: str, name: str) -> str:
        return words("edit.not_here", name) if (choice, name) in missing else name

    updates: dict[Any, Any] = {
        editor.choices[choice]: gr.update(choices=[(label(choice, name), name) for name in get_args(kinds)])
        for choice, kinds in CHOICES.items()
    }
    return updates | {editor.reasons: _reasons(list(missing.values()), words)}


def _reasons(missing: Sequence[Technique], words: Words) -> str:
    if not missing:
        return ""
    lines = [
        f"<li>{escape(words(f'choice.{t.kind}'))} <b>{escape(t.name)}</b>: {escape(words.said(t.reason))} <code>{escape(words.said(t.remedy))}</code></li>"
        for t in missing
    ]
    return f'<details><summary>{escape(words("edit.why_not"))}</summary><ul>{"".join(lines)}</ul></details>'


def _drafter(slot: SlotSpec) -> str:
    return slot.decode.drafter.model if slot.decode.drafter else ""


def _columns(comparison: Comparison) -> list[tuple[str, str]]:
    return [(slot.name, slot.id) for slot in comparison.slots]
