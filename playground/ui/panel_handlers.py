"""What happens in the page's panels: questions about the machine and its models, sweeps, recordings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from ..board import Board
from ..checks import ConfigError
from ..config import describe_model
from ..engine import EngineError
from ..presets import find_preset
from ..sweep import Point, Sweep, checked_values, varied
from .desk import Desk, Updates, View
from .drawing import draw_error
from .gptq_form import group_choices
from .handlers import REFRESH_S
from .i18n import Language, Words
from .kv_panel import checkup_html
from .panels import capabilities_table, forecast_table
from .replay import OWN, payload
from .sweep_panel import progress_html as sweep_progress
from .sweep_panel import usual_values


class PanelHandlers:
    """What the panels ask: the machine, the cache, the memory, sweeps and recordings."""

    def __init__(self, desk: Desk):
        self._desk = desk

    def offer_group_sizes(self, values: Updates) -> Updates:
        """Only the group sizes that divide every layer of the comparison's model, where that is known."""
        parts, words = self._desk.parts, Words(values[self._desk.parts.language])
        comparison = find_preset(self._desk.presets, values[parts.preset])
        model = next(slot.model for slot in comparison.slots if slot.id == comparison.reference)
        try:
            sizes = self._desk.scheduler.when_idle(lambda engine: engine.group_sizes(model))
        except EngineError:
            sizes = None
        if sizes is None:
            return {parts.gptq.group_size: gr.skip()}
        chosen = values[parts.gptq.group_size]
        kept = chosen if chosen in sizes else max(sizes)
        return {parts.gptq.group_size: gr.update(choices=group_choices(sizes, words), value=kept)}

    def show_capabilities(self, language: Language) -> str:
        """What this machine can run; the first time its packages are imported, which takes seconds."""
        words = Words(language)
        try:
            found = self._desk.scheduler.when_idle(lambda engine: engine.capabilities())
        except EngineError as error:
            return draw_error(error, words)
        return capabilities_table(found, words)

    def foresee(self, values: Updates, request: gr.Request) -> str:
        """What each slot of the chosen comparison will need for this prompt, before anything is loaded."""
        words = Words(values[self._desk.parts.language])
        try:
            asked = self._desk.asked_on_page(values, request)
            found = self._desk.scheduler.when_idle(lambda engine: engine.forecast(asked.comparison.slots, asked.prompt))
        except (ConfigError, EngineError) as error:
            return draw_error(error, words)
        return forecast_table(asked.comparison, found, words)

    def examine(self, values: Updates, request: gr.Request) -> str:
        """The reference slot's model, looked at: what its cache costs here and what would spoil it."""
        words = Words(values[self._desk.parts.language])
        comparison = find_preset(self._desk.presets, values[self._desk.parts.preset])
        model = next(slot.model for slot in comparison.slots if slot.id == comparison.reference)
        view = self._desk.views.setdefault(request.session_hash, View(Board(comparison), words))
        try:
            found = self._desk.scheduler.when_idle(lambda engine: (engine.examine(model),))
        except EngineError as error:
            return draw_error(error, words)
        if found is None:
            return f"<p>{words('machine_busy')}</p>"
        (view.checkup,) = found
        return self.plan(values, request)

    def plan(self, values: Updates, request: gr.Request) -> str:
        """The same for other sliders: nothing is asked again."""
        parts, view = self._desk.parts, self._desk.views.get(request.session_hash)
        words = Words(values[parts.language])
        if view is None:
            return ""
        rates = [column.run.prefill_tok_per_s for column in view.board.columns.values()]
        rate = next((r for r in rates if r), None)
        return checkup_html(view.checkup, int(values[parts.kv.batch]), int(values[parts.kv.positions]), rate, words)

    def choose_recording(self, values: Updates, request: gr.Request) -> Any:
        """One of the recordings that ship, or this session's last, played at once."""
        words, wanted = Words(values[self._desk.parts.language]), values[self._desk.parts.replay.chosen]
        view = self._desk.views.get(request.session_hash)
        found = view.own if view is not None and wanted == OWN else self._desk.recordings.get(wanted)
        if view is not None:
            view.recording = found
        return payload(found, words, True) if found else {}

    def choose_sweep(self, variable: str) -> str:
        """Values to start from, for another setting to vary."""
        return usual_values(variable)

    def press_sweep(self, values: Updates, request: gr.Request) -> Iterator[Updates]:
        """A benchmark at each value of one setting; the charts fill as values are complete."""
        parts, panel = self._desk.parts, self._desk.parts.sweep
        words = Words(values[parts.language])
        try:
            asked = self._desk.asked_on_page(values, request)
            variable, wanted = checked_values(values[panel.variable], values[panel.values])
        except ConfigError as error:
            yield {parts.notice: draw_error(error, words)}
            return
        self._desk.scheduler.stop_session(request.session_hash)
        off, points = gr.update(interactive=False), []
        yield {parts.compare: off, parts.follow_up: off, panel.run: off, parts.stop: gr.update(interactive=True), parts.notice: ""}
        for place, value in enumerate(wanted):
            prompt, at = varied(asked.prompt, variable, value), (place, len(wanted))
            job = self._desk.scheduler.submit(
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
        on = gr.update(interactive=True)
        view = self._desk.views.setdefault(request.session_hash, View(Board(asked.comparison), words))
        view.sweep = Sweep(variable, tuple(points))
        yield self._desk.sweep(view) | {
            parts.compare: on, parts.follow_up: on, panel.run: on, parts.stop: off, panel.progress: "",
        }

    def show_models(self, language: Language) -> Updates:
        """The panel of loaded models, as it is now."""
        return self._desk.panel(Words(language))

    def unload(self, values: Updates) -> Updates:
        """Unload the chosen model's weights."""
        wanted = values[self._desk.parts.chosen_model]
        chosen = [r.model for r in self._desk.scheduler.engine.resident() if describe_model(r.model) == wanted]
        return self._unload(chosen, Words(values[self._desk.parts.language]))

    def unload_all(self, language: Language) -> Updates:
        """Unload everything that is not running."""
        return self._unload([None], Words(language))

    def _unload(self, models: list[Any], words: Words) -> Updates:
        problem = ""
        try:
            for model in models:
                self._desk.scheduler.engine.unload(model)
        except EngineError as error:
            problem = draw_error(error, words)
        return self._desk.panel(words) | {self._desk.parts.notice: problem}
