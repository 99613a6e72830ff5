"""How the page looks, in light and in dark. System fonts only: nothing is fetched from elsewhere."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Noto Sans", "Noto Sans CJK KR", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Noto Sans Mono", "monospace")


def theme() -> gr.themes.Base:
    """A plain theme with system fonts."""
    return gr.themes.Default(font=list(_FONTS), font_mono=list(_MONO), primary_hue="blue", radius_size="sm")


CSS = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
