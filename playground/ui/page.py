"""Builds the page: what is where, and which handler answers which component."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import gradio as gr

from ..board import Board
from ..config import MAX_SLOTS, Comparison, Mode, Settings, bounds_of, choices_of
from ..recording import Recording
from ..scheduler import Scheduler
from . import benchmark_panel, column_editor, gptq_form, kv_panel, replay, sweep_panel
from .desk import Desk
from .drawing import draw_charts, draw_columns, draw_description, draw_heading
from .editor_handlers import EditorHandlers
from .examples import CARDS, EXAMPLES
from .handlers import Handlers
from .i18n import Language
from .numbers_table import numbers_table
from .panel_handlers import PanelHandlers
from .parts import Parts

_STEPS = {"temperature": 0.05, "top_p": 0.01, "draft_threshold": 0.05}
_TOGGLE_TINT = "on => { document.querySelector('#columns').classList.toggle('plain-drafts', !on); }"
_DIM = "(...values) => { document.dispatchEvent(new Event('playground-run')); document.body.classList.add('ran', 'live'); document.querySelector('#charts').classList.add('stale'); return values; }"
_UNDIM = "() => { document.querySelector('#charts').classList.remove('stale'); }"
_KEYS = Path(__file__).with_name("keys.js").read_text(encoding="utf-8")
_LANGUAGE_NAMES = {"en": "English", "ko": "한국어"}


def build_page(
    scheduler: Scheduler, presets: Mapping[str, Comparison], first_preset: str, recordings: Mapping[str, Recording] = MappingProxyType({})
) -> gr.Blocks:
    """The whole page, wired to a scheduler. Touches no device and starts nothing."""
    # Files that a visitor may download are kept for a day.
    with gr.Blocks(title="LLM Speed Playground", analytics_enabled=False, fill_width=True, delete_cache=(3600, 86400)) as page:
        parts = lay_out(presets, first_preset, recordings)
        _wire(page, Desk(scheduler, presets, first_preset, parts, recordings))
    return page


def lay_out(presets: Mapping[str, Comparison], first_preset: str, recordings: Mapping[str, Recording]) -> Parts:
    """The page's components, inside an open gr.Blocks; nothing answers yet."""
    parts = Parts()
    board = Board(presets[first_preset])
    _heading(parts)
    _question(parts, presets, first_preset)
    secret = "settings only, nothing secret"
    parts.saved = gr.BrowserState(None, storage_key="playground", secret=secret)
    parts.saved_columns = gr.BrowserState(None, storage_key="playground-columns", secret=secret)
    with gr.Row(elem_id="configure"):
        with gr.Column(min_width=200):
            _settings(parts, board.comparison.settings)
        with gr.Column(min_width=200):
            parts.editor = column_editor.lay_out(parts.say, board.comparison)
        with gr.Column(min_width=200):
            parts.gptq = gptq_form.lay_out(parts.say, parts.words)
    parts.notice = gr.HTML(elem_id="notice")
    parts.benchmark.progress = gr.HTML(elem_id="progress")
    parts.replay = replay.lay_out(parts.say, parts.words, recordings)
    _results(parts, board)
    parts.sweep = sweep_panel.lay_out(parts.say, parts.words)
    _models(parts)
    with gr.Accordion(open=False, elem_id="fit") as parts.fit:
        parts.forecast = gr.HTML(elem_id="forecast", min_height=60)
    parts.say(parts.fit, label="fit")
    parts.kv = kv_panel.lay_out(parts.say)
    with gr.Accordion(open=False, elem_id="capabilities") as parts.capabilities:
        parts.techniques = gr.HTML(elem_id="techniques", min_height=60)
    parts.say(parts.capabilities, label="capabilities")
    with gr.Accordion(open=False) as accordion:
        parts.say(accordion, label="definitions")
        parts.say(gr.Markdown(), value="definitions_text")
    return parts


def _heading(parts: Parts) -> None:
    with gr.Row(equal_height=True, elem_id="top"):
        parts.heading = gr.HTML(draw_heading(parts.words), elem_id="heading", min_width=360)
        parts.present = gr.Button(size="sm", elem_id="present", scale=0, min_width=160)
        parts.say(parts.present, value="present")
        parts.language = gr.Radio(
            [(_LANGUAGE_NAMES[code], code) for code in get_args(Language)],
            value="en", show_label=False, container=False, scale=0, min_width=240, elem_id="language",
        )
        parts.say(parts.language, label="language")


def _question(parts: Parts, presets: Mapping[str, Comparison], first_preset: str) -> None:
    with gr.Row(elem_id="cards"):
        for card in CARDS:
            button = gr.Button(size="sm", interactive=False, elem_id=card.key.replace(".", "-"), min_width=180)
            parts.cards.append(button)
            parts.say(button, value=card.key)
    with gr.Row(elem_id="choose"):
        parts.preset = gr.Dropdown([(p.title, p.id) for p in presets.values()], value=first_preset, elem_id="preset", scale=2, min_width=260)
        parts.mode = gr.Radio(list(get_args(Mode)), value="fair", elem_id="mode", scale=3, min_width=340)
        benchmark_panel.lay_out_control(parts.benchmark, parts.say)
        parts.say(parts.preset, label="preset")
        parts.say(parts.mode, label="mode", info="mode_info")
    parts.description = gr.HTML(draw_description(presets[first_preset], parts.words), elem_id="description")
    with gr.Row(elem_id="ask"):
        with gr.Column(scale=3, min_width=420):
            parts.prompt = gr.Textbox(lines=3, max_lines=8, elem_id="prompt", value=next(e.text for e in EXAMPLES if not e.repeats))
            parts.say(parts.prompt, label="prompt", placeholder="prompt_hint")
        with gr.Column(scale=2, min_width=320):
            parts.examples = gr.Dataset(
                components=[parts.prompt],
                samples=[[example.text] for example in EXAMPLES],
                sample_labels=[example.label for example in EXAMPLES],
                elem_id="examples",
            )
            parts.say(parts.examples, label="examples")
    with gr.Row(elem_id="go"):
        # Off until the page's first answer: that one draws an idle board, and could arrive after a run's first updates.
        parts.compare = gr.Button(variant="primary", interactive=False, elem_id="compare", scale=4)
        parts.follow_up = gr.Button(interactive=False, elem_id="follow-up", scale=1)
        parts.stop = gr.Button(variant="stop", elem_id="stop", interactive=False, scale=1)
        parts.say(parts.compare, value="compare")
        parts.say(parts.follow_up, value="follow_up")
        parts.say(parts.stop, value="stop")
    with gr.Row(elem_id="toggles"):
        for name, on in (("quality", presets[first_preset].quality), ("tint", True), ("markdown", False)):
            box = gr.Checkbox(on, elem_id=name, min_width=220, container=False)
            setattr(parts, name, box)
            parts.say(box, label=name)


def _settings(parts: Parts, values: Settings) -> None:
    """One control a field of Settings, of the kind that its type asks for."""
    with gr.Accordion(open=False, elem_id="settings") as accordion:
        parts.say(accordion, label="settings")
        with gr.Row():
            for field in dataclasses.fields(Settings):
                control = _control(field.name, getattr(values, field.name))
                parts.settings[field.name] = control
                parts.say(control, label=field.name)


def _control(name: str, value: Any) -> gr.components.Component:
    if isinstance(value, bool):
        return gr.Checkbox(value=value, elem_id=name, min_width=160)
    if choices_of(name):
        return gr.Dropdown(list(choices_of(name)), value=value, elem_id=name, min_width=200)
    if isinstance(value, str):
        return gr.Textbox(value=value, elem_id=name, lines=2 if name == "stop_strings" else 1, min_width=320)
    limits = bounds_of(name)
    if name == "seed":
        return gr.Number(value=value, precision=0, elem_id=name, min_width=120)
    return gr.Slider(
        limits.low, limits.high, value=value, step=_STEPS.get(name, 1), elem_id=name, min_width=200
    )


def _results(parts: Parts, board: Board) -> None:
    drawn = list(draw_columns(board, parts.words).values())
    with gr.Row(elem_id="columns"):
        for html in (*drawn, *[""] * (MAX_SLOTS - len(drawn))):
            parts.columns.append(gr.HTML(html, visible=bool(html), elem_classes="column"))
    parts.summary = gr.HTML(elem_id="summary")
    benchmark_panel.lay_out_result(parts.benchmark, parts.say)
    with gr.Row(elem_id="charts"):
        for name, figure in draw_charts(board, parts.words).items():
            parts.charts[name] = gr.Plot(figure, show_label=False, elem_id=f"chart-{name}")
    with gr.Accordion(open=False, elem_id="numbers-table") as accordion:
        parts.table = gr.HTML(numbers_table(board, parts.words), elem_id="table")
    parts.say(accordion, label="table")


def _models(parts: Parts) -> None:
    with gr.Accordion(open=False, elem_id="models") as parts.models:
        parts.say(parts.models, label="models")
        parts.machine = gr.HTML(elem_id="machine")
        parts.loaded = gr.HTML(elem_id="loaded")
        with gr.Row():
            parts.chosen_model = gr.Dropdown([], elem_id="chosen-model", scale=3)
            parts.unload = gr.Button(elem_id="unload", scale=1)
            parts.unload_all = gr.Button(elem_id="unload-all", scale=1)
            parts.refresh = gr.Button(elem_id="refresh", scale=1)
        parts.say(parts.chosen_model, label="model")
        parts.say(parts.unload, value="unload")
        parts.say(parts.unload_all, value="unload_all")
        parts.say(parts.refresh, value="refresh")


def _wire(page: gr.Blocks, desk: Desk) -> None:
    parts, handlers, panels = desk.parts, Handlers(desk), PanelHandlers(desk)
    private = {"api_visibility": "private", "show_progress": "hidden"}
    # Answered at once, outside the queue. Gradio closes a page's event stream after the last queued
    # event and can lose one that begins at that moment; so only the comparison itself is queued.
    quick = private | {"queue": False}
    asked = {parts.prompt, parts.preset, parts.mode, parts.markdown, parts.benchmark.repeats, parts.quality, parts.language, *parts.settings.values(), *parts.gptq.components()}
    everything = parts.all()
    page.load(handlers.open_page, [parts.saved, parts.saved_columns], everything, **quick)
    _keep(parts)
    page.unload(handlers.close_page)
    parts.language.input(handlers.speak, parts.language, everything, **quick)
    parts.preset.input(handlers.choose_preset, {parts.preset, parts.language}, everything, **quick)
    column = {parts.preset, parts.language, *parts.gptq.components()}
    file = parts.gptq.calibration
    gr.on(
        [*(c.input for c in parts.gptq.components() if c is not file), file.upload, file.clear],
        handlers.choose_gptq, column, everything, **quick, trigger_mode="always_last",  # a second click counts
    )
    parts.gptq.accordion.expand(panels.offer_group_sizes, column, parts.gptq.group_size, **quick | {"show_progress": "minimal"})
    parts.capabilities.expand(
        panels.show_capabilities, parts.language, parts.techniques, **quick | {"show_progress": "full"}
    )
    parts.fit.expand(panels.foresee, asked, parts.forecast, **quick | {"show_progress": "full"})
    looked = {parts.preset, parts.language, parts.kv.batch, parts.kv.positions}
    parts.kv.accordion.expand(panels.examine, looked, parts.kv.result, **quick | {"show_progress": "full"})
    gr.on(
        [parts.kv.batch.change, parts.kv.positions.change], panels.plan, looked, parts.kv.result,
        **quick, trigger_mode="always_last",
    )
    parts.examples.click(handlers.take_example, parts.examples, parts.prompt, **quick)
    runs = {"inputs": asked, "outputs": parts.drawn_by_a_run(), "concurrency_limit": None, "trigger_mode": "once", "js": _DIM, **private}
    compared = gr.on([parts.compare.click, parts.prompt.submit], handlers.press_compare, **runs)
    followed = parts.follow_up.click(handlers.press_follow_up, **runs)
    carded = [
        button.click(handlers.card_taker(card), parts.language, everything, **quick).then(handlers.press_compare, **runs)
        for card, button in zip(CARDS, parts.cards)
    ]
    for run in (compared, followed, *carded):
        run.then(None, None, None, js=_UNDIM, api_visibility="private")
        run.then(handlers.settle, None, parts.drawn_by_a_run(), **quick)
    parts.sweep.variable.input(panels.choose_sweep, parts.sweep.variable, parts.sweep.values, **quick)
    parts.sweep.run.click(
        panels.press_sweep, asked | {parts.sweep.variable, parts.sweep.values}, everything, concurrency_limit=None, trigger_mode="once", **private
    )
    parts.replay.chosen.input(panels.choose_recording, {parts.replay.chosen, parts.language}, parts.replay.player, **quick)
    page.load(None, None, None, js=_KEYS)
    parts.stop.click(handlers.stop, None, None, **quick)
    parts.markdown.input(handlers.show_markdown, {parts.markdown, parts.language}, parts.columns, **quick)
    _wire_editor(parts, EditorHandlers(desk), everything, quick)
    parts.tint.change(None, parts.tint, None, js=_TOGGLE_TINT, api_visibility="private")
    panel = [parts.machine, parts.loaded, parts.chosen_model, parts.notice]
    gr.on(
        [parts.refresh.click, parts.models.expand], panels.show_models, parts.language, panel, **quick
    )
    parts.unload.click(panels.unload, {parts.chosen_model, parts.language}, panel, **quick)
    parts.unload_all.click(panels.unload_all, parts.language, panel, **quick)
    gr.api(handlers.compare_api, api_name="compare", concurrency_limit=None)


def _wire_editor(parts: Parts, handlers: EditorHandlers, everything: list[Any], quick: dict[str, Any]) -> None:
    editor, context = parts.editor, {parts.preset, parts.language, parts.editor.column}
    # The first time, the worker imports what it is asked about, which takes seconds.
    looking = quick | {"show_progress": "full", "show_progress_on": editor.reasons}
    gr.on([editor.accordion.expand, editor.column.input], handlers.open_editor, context, editor.components(), **looking)
    for name, button in editor.buttons.items():
        button.click(handlers.editor_of(name), context, everything, **quick)
    typed = {"name": editor.name, "model": editor.model, "drafter": editor.drafter, "device": editor.device, "exit_layer": editor.exit_layer}
    for name, box in typed.items():
        gr.on([box.submit, box.blur], handlers.editor_of(name, box), context | {box}, everything, **quick)
    for name, menu in {**editor.choices, **editor.switches}.items():
        menu.input(handlers.editor_of(name, menu), context | {menu}, everything, **quick)


def _keep(parts: Parts) -> None:
    """What was chosen stays in the browser, and is there again after a reload."""
    kept = parts.kept()
    names = ", ".join(f"'{name}'" for name in kept)
    script = f"(...values) => Object.fromEntries([{names}].map((name, place) => [name, values[place]]))"
    gr.on([c.change for c in kept.values()], None, list(kept.values()), parts.saved, js=script, api_visibility="private", show_progress="hidden")
