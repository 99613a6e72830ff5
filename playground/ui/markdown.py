"""Model text as Markdown: no HTML of its own, no images, links that cannot run anything, dollar signs as they are."""

from __future__ import annotations

from typing import Any

from markdown_it import MarkdownIt


def markdown_html(text: str) -> str:
    """The text as HTML that is safe to show."""
    return _parser().render(text)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"]).disable("image")
    parser.add_render_rule("link_open", _link)
    return parser


def _link(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    """Opens elsewhere, and tells that place nothing of this page."""
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    tokens[index].attrSet("target", "_blank")
    return renderer.renderToken(tokens, index, options, env)
