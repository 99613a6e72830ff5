"""What happens when someone uses the page: from component values to a job, from events to updates."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import gradio as gr

from ..board import Board
from ..checks import ConfigError, checked_bool, checked_choice, checked_count
from ..checkup import Checkup
from ..config import MOST_REPEATS, REPEATS, Comparison, Mode, Prompt, checked_prompt, checked_settings, describe_model
from ..engine import EngineError
from ..presets import find_preset
from ..runcard import Machine, RunCard, now, this_machine
from ..scheduler import Job, Scheduler
from ..sweep import Point, Sweep, checked_values, varied
from .benchmark_panel import card_for, progress_html, result_html, write_files
from .drawing import draw_charts, draw_columns, draw_description, draw_heading, draw_notice
from .gptq_form import group_choices, with_gptq
from .i18n import Language, Words, pick_language
from .kv_panel import checkup_html
from .panels import capabilities_table, forecast_table, loaded_table, machine_line
from .parts import Parts
from .summary import summary_html
from .sweep_panel import draw as draw_sweep
from .sweep_panel import progress_html as sweep_progress
from .sweep_panel import usual_values, variable_choices

REFRESH_S = 0.33
Updates = dict[Any, Any]


@dataclass
class _View:
    """What a session looks at. A run draws on its own view only: another one means that the page moved on."""

    board: Board
    words: Words
    prompt: Prompt | None = None
    checkup: Checkup | None = None
    card: RunCard | None = None


@dataclass(frozen=True)
class _Asked:
    """A checked request for a comparison."""

    comparison: Comparison
    prompt: Prompt
    mode: Mode
    quality: bool
    repeats: int

    def submit_to(self, scheduler: Scheduler, session: str) -> Job:
        return scheduler.submit(self.comparison, self.prompt, self.mode, session, self.quality, self.repeats)


def _asked(
    comparison: Comparison, text: Any, settings: Any, mode: Any, quality: Any, repeats: Any, slots: Any = None
) -> _Asked:
    """What was asked for, every part of it checked. Raises ConfigError naming the field."""
    prompt = checked_prompt(text, checked_settings(settings, comparison.settings))
    repeats = REPEATS[1] if repeats is None else checked_count("repeats", repeats, MOST_REPEATS)
    wants_quality = comparison.quality if quality is None else checked_bool("quality", quality)
    if slots is not None:
        comparison = comparison.only(slots)
    return _Asked(comparison, prompt, checked_choice("mode", mode, Mode), wants_quality, repeats)


class Handlers:
    """The page's callbacks. Keeps what each session looks at, so that a change of language redraws it."""

    def __init__(
        self, scheduler: Scheduler, presets: Mapping[str, Comparison], first_preset: str, parts: Parts
    ):
        self._scheduler = scheduler
        self._presets = presets
        self._first_preset = first_preset
        self._parts = parts
        self._views: dict[str, _View] = {}

    def open_page(self, request: gr.Request) -> Updates:
        """Language and preset from the address, then an empty board."""
        words = Words(pick_language(request.query_params.get("lang"), request.headers.get("accept-language")))
        wanted = request.query_params.get("preset") or self._first_preset
        problem = ""
        try:
            comparison = find_preset(self._presets, wanted)
        except ConfigError as error:
            comparison, problem = self._presets[self._first_preset], draw_notice(str(error))
        board = Board(comparison)
        self._views[request.session_hash] = _View(board, words)
        draw = self._redraw if comparison.id == self._first_preset else self._other_columns
        updates = self._texts(words) | self._preset_updates(comparison, words) | draw(board, words)
        updates |= self._panel(words)
        updates[self._parts.preset] = self._preset_choices(words, comparison.id)
        updates[self._parts.language] = words.language
        updates[self._parts.notice] = problem
        updates[self._parts.compare] = gr.update(value=words("compare"), interactive=True)
        return updates

    def close_page(self, request: gr.Request) -> None:
        """The tab is closed: what it runs or waits for ends, and its board is forgotten."""
        self._scheduler.stop_session(request.session_hash)
        self._views.pop(request.session_hash, None)

    def speak(self, language: Language, request: gr.Request) -> Updates:
        """Everything on the page in another language, the last results included."""
        words = Words(language)
        board = Board(self._presets[self._first_preset])
        view = self._views.setdefault(request.session_hash, _View(board, words))
        view.words, board = words, view.board
        updates = self._texts(words) | self._redraw(board, words) | self._panel(words)
        updates[self._parts.preset] = self._preset_choices(words, board.comparison.id)
        updates[self._parts.description] = draw_description(board.comparison, words)
        return updates

    def choose_preset(self, values: Updates, request: gr.Request) -> Updates:
        """Empty columns and the preset's settings; a running comparison is stopped."""
        self._scheduler.stop_session(request.session_hash)
        words = Words(values[self._parts.language])
        comparison = find_preset(self._presets, values[self._parts.preset])
        board = Board(comparison)
        self._views[request.session_hash] = _View(board, words)
        updates = self._preset_updates(comparison, words) | self._other_columns(board, words)
        return updates | {self._parts.gptq.add: False}

    def choose_gptq(self, values: Updates, request: gr.Request) -> Updates:
        """Columns with or without the form's own; a running comparison is stopped."""
        parts, words = self._parts, Words(values[self._parts.language])
        self._scheduler.stop_session(request.session_hash)
        try:
            comparison = with_gptq(find_preset(self._presets, values[parts.preset]), parts.gptq, values)
        except ConfigError as error:
            return {parts.notice: draw_notice(str(error))}
        board = Board(comparison)
        self._views[request.session_hash] = _View(board, words)
        return self._other_columns(board, words) | {parts.notice: ""}

    def offer_group_sizes(self, values: Updates) -> Updates:
        """Only the group sizes that divide every layer of the comparison's model, where that is known."""
        parts, words = self._parts, Words(values[self._parts.language])
        comparison = find_preset(self._presets, values[parts.preset])
        model = next(slot.model for slot in comparison.slots if slot.id == comparison.reference)
        try:
            sizes = self._scheduler.when_idle(lambda engine: engine.group_sizes(model))
        except EngineError:
            sizes = None
        if sizes is None:
            return {parts.gptq.group_size: gr.skip()}
        chosen = values[parts.gptq.group_size]
        kept = chosen if chosen in sizes else max(sizes)
        return {parts.gptq.group_size: gr.update(choices=group_choices(sizes, words), value=kept)}

    def show_capabilities(self, language: Language) -> str:
        """What this machine can run; the first time its packages are imported, which takes seconds."""
        try:
            found = self._scheduler.when_idle(lambda engine: engine.capabilities())
        except EngineError as error:
            return draw_notice(str(error))
        return capabilities_table(found, Words(language))

    def foresee(self, values: Updates) -> str:
        """What each slot of the chosen comparison will need for this prompt, before anything is loaded."""
        words = Words(values[self._parts.language])
        try:
            asked = self._asked_on_page(values)
            found = self._scheduler.when_idle(lambda engine: engine.forecast(asked.comparison.slots, asked.prompt))
        except (ConfigError, EngineError) as error:
            return draw_notice(str(error))
        return forecast_table(asked.comparison, found, words)

    def examine(self, values: Updates, request: gr.Request) -> str:
        """The reference slot's model, looked at: what its cache costs here and what would spoil it."""
        words = Words(values[self._parts.language])
        comparison = find_preset(self._presets, values[self._parts.preset])
        model = next(slot.model for slot in comparison.slots if slot.id == comparison.reference)
        view = self._views.setdefault(request.session_hash, _View(Board(comparison), words))
        try:
            found = self._scheduler.when_idle(lambda engine: (engine.examine(model),))
        except EngineError as error:
            return draw_notice(str(error))
        if found is None:
            return f"<p>{words('machine_busy')}</p>"
        (view.checkup,) = found
        return self.plan(values, request)

    def plan(self, values: Updates, request: gr.Request) -> str:
        """The same for other sliders: nothing is asked again."""
        parts, view = self._parts, self._views.get(request.session_hash)
        words = Words(values[parts.language])
        if view is None:
            return ""
        rates = [column.run.prefill_tok_per_s for column in view.board.columns.values()]
        rate = next((r for r in rates if r), None)
        return checkup_html(view.checkup, int(values[parts.kv.batch]), int(values[parts.kv.positions]), rate, words)

    def take_example(self, sample: list[str]) -> str:
        return sample[0]

    def stop(self, request: gr.Request) -> None:
        """End this session's comparison; the columns keep what was streamed."""
        self._scheduler.stop_session(request.session_hash)

    def press_compare(self, values: Updates, request: gr.Request) -> Iterator[Updates]:
        """One click on Compare: check, submit, then redraw what changes until all slots end."""
        parts = self._parts
        words = Words(values[parts.language])
        try:
            asked = self._asked_on_page(values)
        except ConfigError as error:
            yield {parts.notice: draw_notice(str(error))}
            return
        yield from self._run(asked, words, request)

    def _asked_on_page(self, values: Updates) -> _Asked:
        """The comparison that the page's controls ask for. Raises ConfigError naming the field."""
        parts = self._parts
        settings = {name: values[control] for name, control in parts.settings.items()}
        comparison = find_preset(self._presets, values[parts.preset])
        asked = _asked(comparison, values[parts.prompt], settings, values[parts.mode], values[parts.quality], values[parts.benchmark.repeats])
        return dataclasses.replace(asked, comparison=with_gptq(asked.comparison, parts.gptq, values))

    def press_follow_up(self, values: Updates, request: gr.Request) -> Iterator[Updates]:
        """The next turn of the conversation: every slot goes on from its own answer."""
        parts = self._parts
        words, view = Words(values[parts.language]), self._views.get(request.session_hash)
        if view is None or view.prompt is None or not view.board.answered:
            yield {parts.notice: draw_notice(words("follow_up_first"))}
            return
        board = view.board
        try:
            settings = {name: values[control] for name, control in parts.settings.items()}
            asked = _asked(
                board.comparison, values[parts.prompt], settings, values[parts.mode], values[parts.quality],
                values[parts.benchmark.repeats],
            )
        except ConfigError as error:
            yield {parts.notice: draw_notice(str(error))}
            return
        answers = {slot: column.text for slot, column in board.columns.items() if column.text}
        prompt = view.prompt.follow_up(asked.prompt.text, asked.prompt.settings, answers)
        yield from self._run(dataclasses.replace(asked, prompt=prompt), words, request)

    def _run(self, asked: _Asked, words: Words, request: gr.Request) -> Iterator[Updates]:
        """Submit, then redraw what changes until all slots end."""
        parts = self._parts
        self._scheduler.stop_session(request.session_hash)
        view = _View(Board(asked.comparison, asked.mode), words, asked.prompt)
        self._views[request.session_hash] = view
        machine, made = (this_machine(""), now()) if asked.mode == "benchmark" else (None, "")
        job = asked.submit_to(self._scheduler, request.session_hash)
        off = gr.update(interactive=False)
        try:
            running = {parts.compare: off, parts.follow_up: off, parts.stop: gr.update(interactive=True)}
            # Charts stay, dimmed by the page, until all have answered: drawn now they would cost the first slot its TTFT.
            yield running | {parts.notice: "", parts.summary: ""} | self._no_benchmark() | self._columns(view.board, view.words)
            while not job.ended:
                changes = self._absorb(job, view)
                yield changes if self._views.get(request.session_hash) is view else {parts.notice: gr.skip()}
        finally:
            job.stop()
        on = gr.update(interactive=True)
        idle = {parts.compare: on, parts.follow_up: on, parts.stop: gr.update(interactive=False)}
        if self._views.get(request.session_hash) is view:
            if job.outcome is not None:
                view.board.conclude(job.outcome)
                view.card = card_for(job.outcome, machine, self._scheduler.engine.machine(), made)
                idle |= self._files(view)
            # Everything once more: a page may drop an update that another follows closely.
            idle |= self._panel(view.words) | self._redraw(view.board, view.words, machine)
        yield idle

    def choose_sweep(self, variable: str) -> str:
        """Values to start from, for another setting to vary."""
        return usual_values(variable)

    def press_sweep(self, values: Updates, request: gr.Request) -> Iterator[Updates]:
        """A benchmark at each value of one setting; the charts fill as values are complete."""
        parts, panel = self._parts, self._parts.sweep
        words = Words(values[parts.language])
        try:
            asked = self._asked_on_page(values)
            variable, wanted = checked_values(values[panel.variable], values[panel.values])
        except ConfigError as error:
            yield {parts.notice: draw_notice(str(error))}
            return
        self._scheduler.stop_session(request.session_hash)
        off, points = gr.update(interactive=False), []
        yield {parts.compare: off, parts.follow_up: off, panel.run: off, parts.stop: gr.update(interactive=True), parts.notice: ""}
        try:
            for place, value in enumerate(wanted):
                prompt, at = varied(asked.prompt, variable, value), (place, len(wanted))
                job = self._scheduler.submit(
                    asked.comparison, prompt, "benchmark", request.session_hash, repeats=asked.repeats
                )
                try:
                    board = Board(asked.comparison, "benchmark")
                    while not job.ended:
                        board.absorb(job.gather(REFRESH_S))
                        yield {panel.progress: sweep_progress(variable, value, at, board.repetition, words)}
                finally:
                    job.stop()
                if job.outcome is None or job.outcome.stopped:
                    break
                points.append(Point(value, job.outcome))
        finally:
            on = gr.update(interactive=True)
            drawn = draw_sweep(Sweep(variable, tuple(points)), words)
            done = {panel.charts[name]: figure for name, figure in drawn.items()}
            done |= {parts.compare: on, parts.follow_up: on, panel.run: on, parts.stop: off, panel.progress: ""}
        yield done

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
            asked = _asked(find_preset(self._presets, preset), prompt, settings, mode, quality, repeats, slots)
        except ConfigError as error:
            raise gr.Error(str(error), print_exception=False) from None
        job = asked.submit_to(self._scheduler, f"api-{time.monotonic_ns()}")
        board = Board(asked.comparison, asked.mode)
        try:
            while not job.ended:
                # Also yields when nothing changed: only then can Gradio see that the client has gone.
                board.absorb(job.gather(REFRESH_S))
                if job.ended:
                    board.conclude(job.outcome)
                yield board.as_json()
        finally:
            job.stop()

    def show_models(self, language: Language) -> Updates:
        """The panel of loaded models, as it is now."""
        return self._panel(Words(language))

    def unload(self, values: Updates) -> Updates:
        """Unload the chosen model's weights."""
        wanted = values[self._parts.chosen_model]
        chosen = [r.model for r in self._scheduler.engine.resident() if describe_model(r.model) == wanted]
        return self._unload(chosen, Words(values[self._parts.language]))

    def unload_all(self, language: Language) -> Updates:
        """Unload everything that is not running."""
        return self._unload([None], Words(language))

    def _unload(self, models: list[Any], words: Words) -> Updates:
        problem = ""
        try:
            for model in models:
                self._scheduler.engine.unload(model)
        except EngineError as error:
            problem = draw_notice(str(error))
        return self._panel(words) | {self._parts.notice: problem}

    def _no_benchmark(self) -> Updates:
        panel = self._parts.benchmark
        hidden = gr.update(visible=False)
        return {panel.progress: "", panel.result: "", panel.card: hidden, panel.markdown: hidden}

    def _files(self, view: _View) -> Updates:
        """A finished benchmark's card, to be taken home."""
        panel, (card, markdown) = self._parts.benchmark, write_files(view.card)
        return {
            panel.card: gr.update(value=card, visible=True, label=view.words("benchmark.card")),
            panel.markdown: gr.update(value=markdown, visible=True, label=view.words("benchmark.markdown")),
        }

    def _absorb(self, job: Job, view: _View) -> Updates:
        """Take a moment's events in. Columns are redrawn when they change, charts once all slots have answered.

        Drawing charts keeps page and browser busy for a third of a second. Done when one slot ends,
        that would fall into the next one's time to first token.
        """
        board = view.board
        settled = board.settled()
        changed = board.absorb(job.gather(REFRESH_S))
        if board.answered and board.settled() != settled:
            return self._redraw(board, view.words)
        if board.mode == "benchmark":
            return self._columns(board, view.words, changed) | {self._parts.benchmark.progress: progress_html(board, view.words)}
        # Also without a change: only when something is yielded can Gradio see that the page has gone.
        return self._columns(board, view.words, changed) or {self._parts.notice: gr.skip()}

    def _texts(self, words: Words) -> Updates:
        updates = {c: gr.update(**properties) for c, properties in self._parts.texts(words).items()}
        modes = [(words(mode), mode) for mode in get_args(Mode)]
        updates[self._parts.mode] = gr.update(
            label=words("mode"), info=words("mode_info"), choices=modes
        )
        updates[self._parts.sweep.variable] = gr.update(label=words("sweep.variable"), choices=variable_choices(words))
        updates[self._parts.heading] = draw_heading(words)
        return updates

    def _preset_choices(self, words: Words, chosen: str) -> Any:
        titles = [(words.pick(p.title, p.title_ko), p.id) for p in self._presets.values()]
        return gr.update(choices=titles, value=chosen, label=words("preset"))

    def _preset_updates(self, comparison: Comparison, words: Words) -> Updates:
        updates: Updates = {
            control: gr.update(value=getattr(comparison.settings, name), label=words(name))
            for name, control in self._parts.settings.items()
        }
        updates[self._parts.description] = draw_description(comparison, words)
        updates[self._parts.quality] = gr.update(
            value=comparison.quality, label=words("quality"), info=words("quality_info")
        )
        updates[self._parts.notice] = ""
        return updates

    def _redraw(self, board: Board, words: Words, machine: Machine | None = None) -> Updates:
        """All columns, the summary, a benchmark's table and all charts."""
        charts = {self._parts.charts[name]: figure for name, figure in draw_charts(board, words).items()}
        panel = self._parts.benchmark
        bench = {panel.progress: progress_html(board, words), panel.result: result_html(board, machine, words)}
        return self._columns(board, words) | {self._parts.summary: summary_html(board, words)} | bench | charts

    def _columns(self, board: Board, words: Words, only: set[str] | None = None) -> Updates:
        drawn = draw_columns(board, words, only)
        return {part: drawn[slot] for part, slot in zip(self._parts.columns, board.columns) if slot in drawn}

    def _other_columns(self, board: Board, words: Words) -> Updates:
        """As many columns as the comparison has slots, drawn; and all charts.

        Visibility is sent only when the comparison changes: Gradio mounts a newly visible
        component late, and would then show what it was first given over what came since.
        """
        drawn = self._redraw(board, words)
        columns = {part: drawn.get(part, "") for part in self._parts.columns}
        return drawn | self._no_benchmark() | {part: gr.update(value=html, visible=bool(html)) for part, html in columns.items()}

    def _panel(self, words: Words) -> Updates:
        loaded = self._scheduler.engine.resident()
        names = [describe_model(item.model) for item in loaded]
        return {
            self._parts.machine: machine_line(self._scheduler.engine.machine(), words),
            self._parts.loaded: loaded_table(loaded, words),
            self._parts.chosen_model: gr.update(label=words("model"), choices=names, value=names[0] if names else None),
        }
