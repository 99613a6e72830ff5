"""Starts the playground: flags -> engine -> page -> launch."""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from playground.checks import ConfigError
from playground.engines.fleet import FleetEngine, worker_fleet
from playground.engines.options import EngineOptions, default_cache_folder
from playground.engines.quiet import quieten, set_up_logging
from playground.presets import DEFAULT_PRESET, find_preset, load_presets
from playground.recording import load_recordings
from playground.scheduler import Scheduler
from playground.ui.page import build_page
from playground.ui.theme import CSS, theme


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare ways of running a language model, side by side.")
    parser.add_argument("--preset", default=DEFAULT_PRESET, help="comparison to open with (a file name in presets/)")
    parser.add_argument("--model", help="hub id or folder that replaces the presets' model")
    parser.add_argument("--builtin", metavar="FOLDER", help="a local copy of the built-in model")
    parser.add_argument("--cache", default=default_cache_folder(), help="folder for converted models (%(default)s)")
    parser.add_argument("--memory-limit-gb", type=float, help="most that all weights together may take")
    parser.add_argument("--load-anyway", action="store_true", help="load what is predicted not to fit into memory")
    parser.add_argument("--offline", action="store_true", help="never ask a hub or package index")
    parser.add_argument("--in-process", action="store_true", help="no worker process (for hosts that forbid one)")
    parser.add_argument("--host", default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=int(os.environ.get("GRADIO_SERVER_PORT", "7860")))
    return parser.parse_args()


def main() -> None:
    flags = _flags()
    set_up_logging()
    try:
        presets = load_presets()
        first = find_preset(presets, flags.preset).id
        if flags.model:
            presets = {name: comparison.with_model(flags.model) for name, comparison in presets.items()}
    except ConfigError as error:
        raise SystemExit(f"app.py: {error}") from None
    limit = None if flags.memory_limit_gb is None else int(flags.memory_limit_gb * 1e9)
    options = EngineOptions(flags.cache, flags.builtin, limit, flags.offline, flags.load_anyway)
    engine = _engine(options, flags.in_process)
    page = build_page(Scheduler(engine), presets, first, load_recordings())
    page.queue(default_concurrency_limit=None, max_size=256)
    # Gradio looks for work a thousand times a second, 7 % of a core; on a CPU the models want that.
    page._queue.sleep_when_free = page._queue.progress_update_sleep_when_free = 0.05
    page.launch(
        server_name=flags.host, server_port=flags.port, theme=theme(), css=CSS, ssr_mode=False,
        max_threads=200, prevent_thread_lock=True, footer_links=["api"], run_history=False,
    )
    if isinstance(engine, FleetEngine):
        engine.start()
    try:
        page.block_thread()
    finally:
        engine.close()


def _engine(options: EngineOptions, in_process: bool):
    if not in_process:
        return worker_fleet(options)
    quieten()
    from playground.engines.quantize import hide_broken_torchao

    hide_broken_torchao()
    from playground.engines.local import LocalEngine

    return LocalEngine(options)


if __name__ == "__main__":
    main()
