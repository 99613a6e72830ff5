"""Eight scripted columns at 200 tokens a second each, all at once: what the page costs the server and the browser.

    python -m tests.bench.page

Prints the server's CPU share (of one core), how many updates of the page a second arrived, and the longest block of the
browser's main thread. No model: the engine plays by the clock.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator

import psutil
from playwright.sync_api import sync_playwright

from playground.charts import CHARTS
from playground.config import Prompt, SlotSpec
from playground.engines.scripted import ScriptedEngine
from playground.events import Done, Event, Memory, Ready, Started, Tokens, WarmedUp
from tests.scripted_app import launch

COLUMNS, RATE, SECONDS = 8, 200, 15


def clocked(slot: SlotSpec, prompt: Prompt) -> Iterator[Event]:
    """An id every 5 ms of real time, told in batches as a worker's are."""
    yield Ready(0.1, 10**8, None, "bfloat16", "cpu", "scripted")
    yield WarmedUp(0.1)
    began = time.perf_counter_ns()
    yield Started(began, 20)
    for i in range(RATE * SECONDS):
        due = began + (i + 1) * 10**9 // RATE
        if i % (RATE // 5) == 0:
            time.sleep(max(0.0, (due - time.perf_counter_ns()) / 1e9))
        yield Tokens(due, (i,), "word " if i % 2 else "a ", 1)
    yield Memory("scripted", None, None, None, 10**6)
    yield Done("length")


def main() -> None:
    with launch(ScriptedEngine(clocked)) as (url, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1920, "height": 1080})
        page.goto(f"{url}?preset=caches")
        page.wait_for_selector("#compare:enabled")
        page.click("#editor button.label-wrap")
        while page.locator(".slot").count() < COLUMNS:
            before = page.locator(".slot").count()
            page.click("#edit-duplicate")
            page.wait_for_function(f"document.querySelectorAll('.slot').length > {before}")
        page.click("#mode input[value=race]")
        page.evaluate("""() => { window.blocks = []; window.changes = 0;
            new PerformanceObserver(list => list.getEntries().forEach(e => window.blocks.push(e.duration))).observe({type: 'longtask', buffered: false});
            let last = ''; setInterval(() => { const now = document.querySelector('.slot .answer')?.textContent.length; if (now !== last) { last = now; window.changes++; } }, 20); }""")
        page.click("#compare")
        page.wait_for_selector(".slot[data-phase=answering]")
        server, began, before = psutil.Process(), time.perf_counter(), sum(psutil.Process().cpu_times()[:2])
        page.wait_for_timeout(1000 * (SECONDS - 3))
        elapsed = time.perf_counter() - began
        cpu = (sum(server.cpu_times()[:2]) - before) / elapsed
        changes = page.evaluate("window.changes") / elapsed
        while_streaming = max(page.evaluate("window.blocks"), default=0)
        page.wait_for_function("[...document.querySelectorAll('.slot')].every(s => s.dataset.phase === 'done') && !document.querySelector('#charts.stale')")
        page.wait_for_function(f"document.querySelectorAll('#charts .js-plotly-plot').length === {len(CHARTS)}")
        longest = max(page.evaluate("window.blocks"), default=0)
        browser.close()
    print(f"server {cpu:.0%} of a core, {changes:.1f} updates a second; longest main-thread block {while_streaming:.0f} ms while streaming, "
          f"{longest:.0f} ms with the charts drawn at the end; threads {threading.active_count()}")  # fmt: skip


if __name__ == "__main__":
    main()
