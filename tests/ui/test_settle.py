"""A click during a run's last moments counts, although the run's updates may arrive after its answer."""

from types import SimpleNamespace

import gradio as gr
import pytest

from playground.board import Board
from playground.engines.scripted import ScriptedEngine, spoken
from playground.events import SlotEvent
from playground.presets import load_presets
from playground.scheduler import Scheduler
from playground.ui.desk import Desk, View
from playground.ui.handlers import Handlers
from playground.ui.i18n import Words
from playground.ui.page import lay_out

VISITOR = SimpleNamespace(session_hash="visitor")


@pytest.fixture
def desk():
    presets = load_presets()
    first = next(iter(presets))
    with gr.Blocks():
        parts = lay_out(presets, first, {})
    return Desk(Scheduler(ScriptedEngine(lambda slot, prompt: [])), presets, first, parts, {})


def finished(desk, drawn, **manner):
    board = Board(desk.presets["kv-cache"])
    board.absorb(SlotEvent(slot.id, event) for slot in board.comparison.slots for event in spoken("**loud**"))
    desk.views["visitor"] = View(board, drawn=drawn, **manner)
    return Handlers(desk)


def test_what_was_asked_for_meanwhile_is_drawn_once(desk):
    handlers = finished(desk, ("en", False), words=Words("ko"), markdown=True)
    column = handlers.settle(VISITOR)[desk.parts.columns[0]]
    assert "<strong>loud</strong>" in column and "디코드" in column
    assert list(handlers.settle(VISITOR)) == [desk.parts.notice]


def test_nothing_is_drawn_again_when_nothing_was_asked_for(desk):
    for drawn in (None, ("en", False)):
        assert list(finished(desk, drawn, words=Words("en")).settle(VISITOR)) == [desk.parts.notice]
    desk.views.clear()
    assert list(Handlers(desk).settle(VISITOR)) == [desk.parts.notice]
