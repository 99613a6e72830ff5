"""Chromium on the real page. Waits are for states; a timeout only bounds a failure."""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import sync_playwright

from playground.engines.scripted import ScriptedEngine
from tests.scripted_app import launch

PATIENCE_MS = 60_000
ENDED = "[...document.querySelectorAll('.slot')].every(s => ['done', 'failed', 'stopped'].includes(s.dataset.phase))"


@pytest.fixture(scope="session")
def chromium():
    path = shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "Chromium is not installed; see the README's test command"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens the page on a script, in a window of its own; closes everything afterwards."""
    closing = []

    def open_with(script, width=1280, dark=False, query="", recordings=None):
        serving = launch(ScriptedEngine(script), recordings or {})
        url, _ = serving.__enter__()
        closing.append(lambda: serving.__exit__(None, None, None))
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", locale="en-US"
        )
        closing.append(context.close)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.outside = []
        page.on("request", lambda r: page.outside.append(r.url) if not r.url.startswith((url, "data:", "blob:")) else None)
        with page.expect_response(lambda answer: "gradio_api/run/" in answer.url):  # the page's first answer
            page.goto(url + query)
        page.wait_for_selector(".slot")
        return page

    yield open_with
    for close in reversed(closing):
        close()


def compare(page):
    page.click("#compare")


def wait_until_ended(page):
    page.wait_for_function(f"document.querySelector('.slot[data-phase=idle]') === null && {ENDED}")


def pytest_addoption(parser):
    parser.addoption("--screenshots", metavar="DIR", default=None, help="write pictures of the page's main states there")
