"""What happens in the form that changes columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gradio as gr

from .. import editing
from ..board import Board
from ..checks import ConfigError
from ..engine import EngineError
from .column_editor import filled, menus
from .desk import Desk, Updates, over
from .drawing import draw_error
from .i18n import Words
from .remembering import columns_to_keep


class EditorHandlers:
    """What changes a comparison's columns."""

    def __init__(self, desk: Desk):
        self._desk = desk

    def open_editor(self, values: Updates, request: gr.Request) -> Updates:
        """The chosen column's own values, and what of the menus does not run here."""
        editor, words = self._desk.parts.editor, Words(values[self._desk.parts.language])
        comparison = self._desk.chosen(values, request)
        updates = filled(editor, comparison, values[editor.column])
        try:
            found = self._desk.scheduler.when_idle(lambda engine: engine.capabilities())
        except EngineError:
            found = None
        return over(updates, menus(editor, found, words)) if found else updates

    def editor_of(self, what: str, box: Any = None) -> Callable[..., Updates]:
        """The handler of one kind of change, whose new value is in `box`."""

        def change(values: Updates, request: gr.Request) -> Updates:
            return self._edit(what, box, values, request)

        return change

    def _edit(self, what: str, box: Any, values: Updates, request: gr.Request) -> Updates:
        """One change of one column. What cannot be is said, and nothing changes."""
        parts, slot = self._desk.parts, values[self._desk.parts.editor.column]
        words, before, value = Words(values[parts.language]), self._desk.chosen(values, request), values.get(box)
        changes = {
            "duplicate": editing.duplicate, "remove": editing.remove, "refer": editing.refer_to,
            "left": partial(editing.move, by=-1), "right": partial(editing.move, by=1),
            "name": partial(editing.rename, name=value), "model": partial(editing.use_model, model=value),
            "drafter": partial(editing.use_drafter, drafter=value), "device": partial(editing.use_device, device=value),
            "exit_layer": partial(editing.use_exit_layer, layers=value),
            **{name: partial(editing.switch, choice=name, on=value) for name in editing.SWITCHES},
        }
        change = changes.get(what) or partial(editing.choose, choice=what, value=value)
        try:
            after = change(before, slot)
        except ConfigError as error:
            return filled(parts.editor, before, slot) | {parts.notice: draw_error(error, words)}
        if after == before:
            return {parts.notice: ""}
        self._desk.scheduler.stop_session(request.session_hash)
        board = Board(after)
        self._desk.turn_to(board, words, request, edited=after)
        added = [s.id for s in after.slots if s.id not in {b.id for b in before.slots}]
        shown = self._desk.other_columns(board, words) | filled(parts.editor, after, added[0] if added else slot)
        return shown | {parts.notice: "", parts.saved_columns: columns_to_keep(after)}
