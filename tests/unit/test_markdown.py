"""Model text as Markdown runs nothing, loads nothing and loses nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.ui.markdown import markdown_html


@pytest.mark.parametrize("text", [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "![a](https://example.org/a.png)", "[x](javascript:alert(1))",
    "[x](data:text/html,<script>1</script>)", "<javascript:alert(1)>", "**b** <b onclick=x>", "[x](vbscript:x)", "```html\n<script>\n```",
])  # fmt: skip
def test_nothing_runs_and_nothing_is_fetched(text):
    html = markdown_html(text).lower()
    assert "<script" not in html and "<img" not in html and "onerror=alert" not in html.replace("&lt;", "") or "&lt;" in html
    assert 'href="javascript' not in html and 'href="data' not in html and 'href="vbscript' not in html and "<b " not in html


def test_formatting_and_dollar_signs_survive():
    html = markdown_html("**bold** costs $3 and $4\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n- one\n\n`x = 1`")
    for part in ("<strong>bold</strong>", "$3 and $4", "<table>", "<li>one</li>", "<code>x = 1</code>"):
        assert part in html


def test_links_open_elsewhere_and_tell_nothing():
    assert 'rel="noopener noreferrer nofollow" target="_blank"' in markdown_html("[x](https://example.org)")


@given(st.text())
def test_any_text_is_taken(text):
    html = markdown_html(text)
    assert "<script" not in html.lower() and "<img" not in html.lower()
