"""Takes the README's screenshot: a finished comparison on the built-in model, in Chromium.

    python -m tests.browser.screenshot
"""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.bench.sides import app, serving

from .conftest import wait_until_ended

TARGET = Path(__file__).with_name("comparison.jpg")


def main() -> None:
    command, port = app()
    with serving(command, port) as (url, _, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light", locale="en-US")
        page.set_default_timeout(600_000)
        page.goto(url)
        page.wait_for_function("document.querySelectorAll('.slot').length === 5")
        page.wait_for_selector("#compare:enabled")  # the page's first answer sets the controls
        page.check("#quality input")
        for _ in range(2):  # the second comparison finds everything loaded
            page.click("#compare")
            page.wait_for_selector(".slot[data-phase=answering]")
            wait_until_ended(page)
            page.wait_for_function("!document.querySelector('#compare').disabled")
        page.mouse.move(0, 0)
        page.screenshot(path=TARGET, full_page=True, type="jpeg", quality=72)
        browser.close()


if __name__ == "__main__":
    main()
