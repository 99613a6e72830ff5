"""What happens when someone opens the page and runs a comparison: from component values to a job, from events to updates."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from ..board import Board
from ..checks import ConfigError
from ..config import Comparison
from ..presets import find_preset
from ..recording import record
from ..runcard import card_of, now, this_machine
from ..scheduler import Job
from .asking import Asked, checked_request
from .benchmark_panel import progress_html
from .column_editor import filled
from .desk import Desk, Updates, View, over
from .drawing import draw_description, draw_error, draw_notice
from .examples import Card
from .gptq_form import with_gptq
from .i18n import Language, Words, pick_language
from .remembering import checked_choices, checked_columns

REFRESH_S = 0.33
WAITING_S = 1.5  # somebody else's model runs: those in line look less often


class Handlers:
    """What opens, runs and stops a comparison."""

    def __init__(self, desk: Desk):
        self._desk = desk

    def open_page(self, saved: Any, columns: Any, request: gr.Request) -> Updates:
        """Language and preset from the address, else as this browser remembers them, then an empty board."""
        saved = checked_choices(saved, self._desk.presets, self._desk.parts)
        language = request.query_params.get("lang") or saved.get("language")
        words = Words(pick_language(language, request.headers.get("accept-language")))
        wanted = request.query_params.get("preset") or saved.get("preset") or self._desk.first_preset
        problem = ""
        try:
            comparison = find_preset(self._desk.presets, wanted)
        except ConfigError as error:
            comparison, problem = self._desk.presets[self._desk.first_preset], draw_error(error, words)
        edited = checked_columns(columns, comparison)
        board = Board(edited or comparison)
        view = self._desk.views[request.session_hash] = View(
            board, words, recording=next(iter(self._desk.recordings.values()), None), edited=edited
        )
        draw = self._desk.redraw if edited is None and comparison.id == self._desk.first_preset else self._desk.other_columns
        updates = self._desk.texts(words) | self._desk.preset_updates(comparison, words) | draw(board, words)
        updates |= self._desk.panel(words) | (self._desk.replay(view) | self._desk.sweep(view) if words.language != "en" else {})
        updates[self._desk.parts.preset] = self._desk.preset_choices(words, comparison.id)
        updates[self._desk.parts.notice] = problem
        values = {self._desk.parts.language: words.language} | filled(self._desk.parts.editor, board.comparison, None)
        if saved.get("preset") == comparison.id:
            kept = self._desk.parts.kept()
            values |= {kept[name]: value for name, value in saved.items() if name not in ("language", "preset")}
            view.markdown = saved.get("markdown") is True
        ready = (self._desk.parts.compare, *self._desk.parts.cards)
        return over(updates, values | dict.fromkeys(ready, gr.update(interactive=True)))

    def close_page(self, request: gr.Request) -> None:
        """The tab is closed: what it runs or waits for ends, and its board is forgotten."""
        self._desk.scheduler.stop_session(request.session_hash)
        self._desk.views.pop(request.session_hash, None)

    def speak(self, language: Language, request: gr.Request) -> Updates:
        """Everything on the page in another language, the last results included."""
        words = Words(language)
        board = Board(self._desk.presets[self._desk.first_preset])
        view = self._desk.views.setdefault(request.session_hash, View(board, words))
        view.words, board = words, view.board
        updates = self._desk.texts(words) | self._desk.redraw(board, words, markdown=view.markdown) | self._desk.panel(words)
        updates |= self._desk.replay(view) | self._desk.sweep(view)
        for panel, found in self._desk.parts.asked_panels().items():  # they ask anew when they are opened
            updates = over(updates, {panel: gr.update(open=False), found: ""})
        updates[self._desk.parts.preset] = self._desk.preset_choices(words, board.comparison.id)
        updates[self._desk.parts.description] = draw_description(board.comparison, words)
        return updates

    def choose_preset(self, values: Updates, request: gr.Request) -> Updates:
        """Empty columns and the preset's settings; a running comparison is stopped."""
        words = Words(values[self._desk.parts.language])
        return self._show(find_preset(self._desk.presets, values[self._desk.parts.preset]), words, request)

    def _show(self, comparison: Comparison, words: Words, request: gr.Request) -> Updates:
        """A preset as it is, nothing added and nothing run; whatever this session runs is stopped."""
        self._desk.scheduler.stop_session(request.session_hash)
        board, parts = Board(comparison), self._desk.parts
        self._desk.turn_to(board, words, request)
        updates = self._desk.preset_updates(comparison, words) | self._desk.other_columns(board, words)
        return updates | {parts.gptq.add: False, parts.saved_columns: {}} | filled(parts.editor, comparison, None)

    def choose_gptq(self, values: Updates, request: gr.Request) -> Updates:
        """Columns with or without the form's own; a running comparison is stopped."""
        parts, words = self._desk.parts, Words(values[self._desk.parts.language])
        self._desk.scheduler.stop_session(request.session_hash)
        try:
            comparison = with_gptq(self._desk.chosen(values, request), parts.gptq, values)
        except ConfigError as error:
            return {parts.notice: draw_error(error, words)}
        board = Board(comparison)
        self._desk.turn_to(board, words, request, edited=self._desk.edited(request))
        return self._desk.other_columns(board, words) | {parts.notice: ""}

    def take_example(self, sample: list[str]) -> str:
        return sample[0]

    def card_taker(self, card: Card) -> Callable[..., Updates]:
        """The handler of one first question."""

        def take(language: Language, request: gr.Request) -> Updates:
            return self._take_card(card, language, request)

        return take

    def _take_card(self, card: Card, language: Language, request: gr.Request) -> Updates:
        """Its comparison and prompt, ready to run."""
        words, parts = Words(language), self._desk.parts
        updates = self._show(find_preset(self._desk.presets, card.preset), words, request)
        return updates | {parts.prompt: card.prompt, parts.mode: "fair", parts.preset: self._desk.preset_choices(words, card.preset)}

    def show_markdown(self, values: Updates, request: gr.Request) -> Updates:
        """The answers as Markdown or as typed."""
        view = self._desk.views.get(request.session_hash)
        if view is None:
            return {self._desk.parts.columns[0]: gr.skip()}
        view.markdown = values[self._desk.parts.markdown] is True
        return self._desk.columns(view.board, view.words, markdown=view.markdown)

    def stop(self, request: gr.Request) -> None:
        """End this session's comparison; the columns keep what was streamed."""
        self._desk.scheduler.stop_session(request.session_hash)

    def press_compare(self, values: Updates, request: gr.Request) -> Iterator[Updates]:
        """One click on Compare: check, submit, then redraw what changes until all slots end."""
        parts = self._desk.parts
        words = Words(values[parts.language])
        try:
            asked = self._desk.asked_on_page(values, request)
        except ConfigError as error:
            yield {parts.notice: draw_error(error, words)}
            return
        yield from self._run(asked, words, request)

    def press_follow_up(self, values: Updates, request: gr.Request) -> Iterator[Updates]:
        """The next turn of the conversation: every slot goes on from its own answer."""
        parts = self._desk.parts
        words, view = Words(values[parts.language]), self._desk.views.get(request.session_hash)
        if view is None or view.prompt is None or not view.board.answered:
            yield {parts.notice: draw_notice(words("follow_up_first"))}
            return
        board = view.board
        try:
            asked = self._desk.asked_of(board.comparison, values)
        except ConfigError as error:
            yield {parts.notice: draw_error(error, words)}
            return
        answers = {slot: column.text for slot, column in board.columns.items() if column.text}
        prompt = view.prompt.follow_up(asked.prompt.text, asked.prompt.settings, answers)
        yield from self._run(dataclasses.replace(asked, prompt=prompt), words, request)

    def _run(self, asked: Asked, words: Words, request: gr.Request) -> Iterator[Updates]:
        """Submit, then redraw what changes until all slots end."""
        parts = self._desk.parts
        self._desk.scheduler.stop_session(request.session_hash)
        board = Board(asked.comparison, asked.mode, asked.prompt.settings.new_tokens)
        view = self._desk.turn_to(board, words, request, asked.prompt, self._desk.edited(request))
        machine, made = this_machine(""), now()
        job = asked.submit_to(self._desk.scheduler, request.session_hash)
        off = gr.update(interactive=False)
        try:
            running = {parts.compare: off, parts.follow_up: off, parts.stop: gr.update(interactive=True)}
            # Charts stay, dimmed by the page, until all have answered: drawn now they would cost the first slot its TTFT.
            yield running | {parts.notice: "", parts.summary: ""} | self._desk.no_benchmark() | self._desk.columns(view.board, view.words, markdown=view.markdown)
            while not job.ended:
                for changes in self._absorb(job, view):
                    yield changes if self._desk.views.get(request.session_hash) is view else {parts.notice: gr.skip()}
        finally:
            job.stop()
        on = gr.update(interactive=True)
        idle = {parts.compare: on, parts.follow_up: on, parts.stop: gr.update(interactive=False)}
        if self._desk.views.get(request.session_hash) is view:
            machine = dataclasses.replace(machine, device=self._desk.scheduler.engine.machine())
            if (recorded := record(view.board, asked.prompt.text, machine, made)) is not None:
                view.recording = view.own = recorded
                idle |= self._desk.replay(view)
            if job.outcome is not None:
                view.board.conclude(job.outcome)
                idle |= self._desk.files(card_of(job.outcome, machine, made), view.words)
            view.drawn = view.manner
            # Everything once more: a page may drop an update that another follows closely.
            idle |= self._desk.panel(view.words) | self._desk.redraw(view.board, view.words, machine, view.markdown)
        yield idle

    def settle(self, request: gr.Request) -> Updates:
        """Once a page has taken in all of a run's updates: everything anew if it was asked for otherwise meanwhile.

        The answer to such a click comes by another way and may have been overtaken by the run's last updates.
        """
        view = self._desk.views.get(request.session_hash)
        if view is None or view.drawn in (None, view.manner):
            return {self._desk.parts.notice: gr.skip()}
        view.drawn = view.manner
        return self._desk.redraw(view.board, view.words, markdown=view.markdown)

    def _absorb(self, job: Job, view: View) -> Iterator[Updates]:
        """Take a moment's events in. Columns are redrawn when they change, charts once all slots have answered.

        Drawing charts keeps page and browser busy for most of a second. Done when one slot ends, that would fall into the
        next one's time to first token; done for all charts at once, a browser would stand still for as long.
        """
        board = view.board
        settled = board.settled()
        changed = board.absorb(job.gather(WAITING_S if board.waiting else REFRESH_S))
        if board.answered and board.settled() != settled:
            drawn = self._desk.redraw(board, view.words, markdown=view.markdown)
            charts = {chart: drawn.pop(chart) for chart in self._desk.parts.charts.values()}
            yield drawn
            for chart, figure in charts.items():
                yield {chart: figure}
            return
        drawn = self._desk.columns(board, view.words, changed, view.markdown)
        if board.mode == "benchmark":
            drawn[self._desk.parts.benchmark.progress] = progress_html(board, view.words)
        # Also without a change: only when something is yielded can Gradio see that the page has gone.
        yield drawn or {self._desk.parts.notice: gr.skip()}

    def compare_api(
        self,
        preset: str,
        prompt: str,
        settings: dict = {},  # noqa: B006
        mode: str = "fair",
        slots: list | None = None,
        quality: bool | None = None,
        repeats: int = 5,
    ) -> Iterator[dict]:
        """Run a comparison and stream it: each update is the whole state as plain JSON.

        preset: id of a preset, such as "five-ways". prompt: text. settings: any of new_tokens,
        temperature, top_p, seed, batch, draft_len, draft_schedule, draft_threshold, system_prompt, chat_template,
        ignore_eos, stop_strings; what is left out follows the preset. mode: "fair", "race" or "benchmark". slots: ids to run; all when left out.
        quality: measure KL divergence, top-1 agreement and perplexity after the answers; as the
        preset says when left out. repeats: how often a benchmark runs each slot, 1 to 100.
        Yields {"preset", "mode", "reference", "benchmark", "slots": {id: {"name", "phase", "queue_position",
        "text", "error", "hint", "metrics", "speedup", "speedup_reason"}}}; a metric that cannot be
        measured is null. Refused input is an error that names the field.
        """
        try:
            asked = checked_request(find_preset(self._desk.presets, preset), prompt, settings, mode, quality, repeats, slots)
        except ConfigError as error:
            raise gr.Error(str(error), print_exception=False) from None
        job = asked.submit_to(self._desk.scheduler, f"api-{time.monotonic_ns()}")
        board = Board(asked.comparison, asked.mode)
        try:
            while not job.ended:
                # Also yields when nothing changed: only then can Gradio see that the client has gone.
                board.absorb(job.gather(WAITING_S if board.waiting else REFRESH_S))
                if job.ended:
                    board.conclude(job.outcome)
                yield board.as_json()
        finally:
            job.stop()
