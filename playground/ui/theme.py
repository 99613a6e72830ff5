"""How the page looks, in light and in dark. System fonts only: nothing is fetched from elsewhere."""

from __future__ import annotations

import gradio as gr

_FONTS = ("system-ui", "-apple-system", "Segoe UI", "Noto Sans", "Noto Sans CJK KR", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Noto Sans Mono", "monospace")


def theme() -> gr.themes.Base:
    """A plain theme with system fonts."""
    return gr.themes.Default(font=list(_FONTS), font_mono=list(_MONO), primary_hue="blue", radius_size="sm")


CSS = """
:root { --quiet: #57606a; }
.dark { --quiet: #a3adba; }
.gradio-container, .gradio-container main { max-width: 1880px !important; margin: 0 auto !important; }
@media (max-width: 800px) { .js-plotly-plot .gtitle { font-size: 10.5px !important; } }
#heading h1 { margin: 0; font-size: 1.5rem; }
#heading p { margin: 0.1rem 0 0; color: var(--quiet); }
#notice:not(:has(.notice)) { display: none; }
#language .wrap { flex-wrap: nowrap; }
#description p { margin: 0; color: var(--quiet); }
.gradio-container .info, .gradio-container .info-text, .gradio-container [data-testid="block-info"] + * { color: var(--quiet); }
#notice .notice { border-left: 4px solid #d55e00; padding: 0.5rem 0.8rem; background: var(--background-fill-secondary); }
#columns { display: grid !important; grid-template-columns: repeat(auto-fit, minmax(min(100%, 215px), 1fr)); gap: 10px; align-items: stretch; }
@media (max-width: 1600px) {
  #columns:has(> :nth-child(6)) { grid-template-columns: repeat(3, minmax(0, 1fr)); }
  #columns:has(> :nth-child(7)) { grid-template-columns: repeat(4, minmax(0, 1fr)); }
}
@media (max-width: 800px) { #columns:has(> :nth-child(6)) { grid-template-columns: minmax(0, 1fr); } }
#columns > * { min-width: 0 !important; width: auto !important; max-width: none; }
#columns > *, #columns .html-container, #columns .prose { height: 100%; }
#progress:not(:has(.benchmark-progress)), #benchmark:not(:has(.benchmark)) { display: none; }
.benchmark-progress { display: flex; align-items: center; gap: 12px; font-variant-numeric: tabular-nums; }
.benchmark-progress progress { flex: 1; height: 8px; accent-color: #0072b2; }
#benchmark { overflow-x: auto; }
#benchmark p { margin: 0 0 4px; font-size: 0.85rem; color: var(--quiet); }
#summary:not(:has(.summary)) { display: none; }
#summary .summary { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 220px), 1fr)); gap: 10px; }
#summary .summary > div { display: flex; flex-direction: column; gap: 2px; padding: 8px 12px; border-left: 4px solid var(--slot); border-radius: 4px;
  background: var(--background-fill-secondary); color: var(--body-text-color); font-variant-numeric: tabular-nums; }
#summary .summary span { font-size: 0.85rem; color: var(--quiet); }
#summary .summary b { font-size: 1.1rem; color: var(--body-text-color); overflow-wrap: anywhere; }
#charts { display: grid !important; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 10px; align-items: start; }
@media (max-width: 800px) { #charts { grid-template-columns: minmax(0, 1fr); } }
#sweep-charts { display: grid !important; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 10px; align-items: start; }
#sweep-charts > * { min-width: 0 !important; }
@media (max-width: 800px) { #sweep-charts { grid-template-columns: minmax(0, 1fr); } }
#sweep-progress:not(:has(.benchmark-progress)) { display: none; }
#charts.stale { opacity: 0.25; }
#charts > #chart-timeline { grid-column: 1 / -1; }
#charts > * { min-width: 0 !important; }

.slot { display: flex; flex-direction: column; gap: 6px; height: 100%; box-sizing: border-box; padding: 10px 12px;
  border: 1px solid var(--border-color-primary); border-top: 4px solid var(--slot); border-radius: 6px;
  background: var(--background-fill-primary); color: var(--body-text-color); }
.slot h3 { margin: 0; font-size: 1.05rem; line-height: 1.3; color: var(--body-text-color); }
.slot .difference { margin: 2px 0 0; min-height: 3.75em; font-size: 0.8rem; line-height: 1.25; color: var(--quiet); overflow-wrap: anywhere; }
.slot h3 { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; position: relative; padding-right: 1.6em; }
.slot .focus { position: absolute; right: 0; top: 0; padding: 0 4px; border: 0; border-radius: 4px; background: none; color: var(--quiet); font-size: 1rem; line-height: 1.3; cursor: pointer; }
.slot .focus:hover, .slot .focus:focus-visible { background: var(--background-fill-secondary); color: var(--body-text-color); }
#columns.has-focus { grid-template-columns: minmax(0, 1fr) !important; }
#columns.has-focus > :not(.focused) { display: none; }
#columns.has-focus .slot .answer { height: 26rem; }
#columns.has-focus .slot .answer .text { font-size: 1.1rem; }
.slot .answer .markdown { white-space: normal; }
.slot .answer .markdown pre { overflow-x: auto; white-space: pre; }
.slot .answer .markdown :first-child { margin-top: 0; }
#toggles { gap: 8px 24px; }
#configure { display: grid !important; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 10px; }
#configure > * { min-width: 0 !important; }
#configure > :has(button.label-wrap.open) { grid-column: 1 / -1; }
@media (max-width: 800px) {
  #heading, #toggles > * { min-width: 100% !important; }
  #configure { grid-template-columns: minmax(0, 1fr); }
}
.slot .badge { margin-left: 6px; padding: 1px 6px; border-radius: 9px; font-size: 0.7rem; font-weight: 500; vertical-align: 2px;
  background: var(--background-fill-secondary); border: 1px solid var(--border-color-primary); color: var(--body-text-color); }
.slot .badge.warn { border-color: #d55e00; }
.slot .status { display: flex; align-items: center; gap: 6px; margin: 0; min-height: 2em; font-size: 0.85rem; }
.slot .status .live { margin-left: auto; font-size: 1.15rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.slot .dot { flex: none; width: 9px; height: 9px; border-radius: 50%; background: #8a8a8a; }
.slot[data-phase="loading"] .dot, .slot[data-phase="warming"] .dot, .slot[data-phase="assessing"] .dot { background: #e69f00; }
.slot[data-phase="answering"] .dot { background: #0072b2; }
.slot[data-phase="done"] .dot { background: #009e73; }
.slot[data-phase="failed"] .dot { background: #d55e00; }
.slot[data-phase="stopped"] .dot { background: transparent; border: 2px solid #8a8a8a; box-sizing: border-box; }
.slot progress { width: 100%; height: 6px; accent-color: var(--slot); }
.slot .answer { display: flex; flex-direction: column-reverse; flex: none; box-sizing: border-box; height: 15rem; overflow-y: auto; padding: 8px;
  border-radius: 4px; background: var(--background-fill-secondary); }
.slot .answer .text { margin-bottom: auto !important; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.92rem; line-height: 1.45; }
.slot .differences summary, .slot .script summary { cursor: pointer; font-size: 0.85rem; color: var(--quiet); }
.slot .differences .text { max-height: 15rem; margin: 6px 0 0; padding: 8px; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.85rem;
  line-height: 1.4; border-radius: 4px; background: var(--background-fill-secondary); color: var(--body-text-color); }
.slot .differences ins { text-decoration: underline 2px #009e73; background: color-mix(in srgb, #009e73 20%, transparent); color: inherit; }
.slot .differences del { text-decoration: line-through 2px #d55e00; background: color-mix(in srgb, #d55e00 18%, transparent); color: inherit; }
.slot .note b { font-weight: 650; color: var(--body-text-color); }
.slot .script pre { max-height: 22rem; margin: 6px 0 0; padding: 8px; overflow: auto; font-size: 0.75rem; line-height: 1.4; white-space: pre; border-radius: 4px;
  background: var(--background-fill-secondary); color: var(--body-text-color); }
.slot .drafted { background: color-mix(in srgb, #56b4e9 28%, transparent); text-decoration: underline dotted; text-underline-offset: 3px; border-radius: 2px; }
#columns.plain-drafts .slot .drafted { background: none; text-decoration: none; }
.slot .failure { padding: 8px; border-left: 3px solid #d55e00; background: var(--background-fill-secondary); font-size: 0.85rem; overflow-wrap: anywhere; }
.slot .failure p { margin: 4px 0 0; }
.slot .numbers { margin: 0; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
.slot .numbers > div { display: flex; justify-content: space-between; gap: 8px; padding: 2px 0; border-bottom: 1px solid var(--border-color-primary); }
.slot .numbers dt { margin: 0; color: var(--quiet); font-weight: 400; }
.slot .numbers dd { margin: 0; text-align: right; overflow-wrap: anywhere; }
.slot .numbers .main dd { white-space: nowrap; }
.slot .numbers .why dt { text-decoration: underline dotted; text-underline-offset: 3px; cursor: help; }
.slot .numbers .main dd { font-size: 1.05rem; font-weight: 650; }
.slot .numbers .slower dd { color: #c2410c; }
.dark .slot .numbers .slower dd { color: #fb923c; }
.slot .note { margin: 0; font-size: 0.78rem; line-height: 1.3; color: var(--quiet); overflow-wrap: anywhere; }
.slot .source { margin: 0; font-size: 0.72rem; color: var(--quiet); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }

#recording input, .gradio-container footer button, .gradio-container footer a { color: var(--body-text-color) !important; }
.replay { display: flex; flex-direction: column; gap: 8px; padding: 10px 12px; color: var(--body-text-color); }
.replay[hidden] { display: none; }
.replay-head { display: flex; gap: 12px; align-items: baseline; flex-wrap: wrap; }
.replay-title { font-size: 1.05rem; }
.replay-prompt { color: var(--quiet); overflow-wrap: anywhere; display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow: hidden; }
.replay-controls { display: flex; gap: 12px; align-items: center; flex-wrap: wrap; font-variant-numeric: tabular-nums; }
.replay-controls button, .replay-controls select { padding: 4px 12px; border: 1px solid var(--border-color-primary); border-radius: 6px;
  background: var(--background-fill-secondary); color: var(--body-text-color); font: inherit; min-width: 5em; }
.replay-controls .replay-play { background: #0060a0; border-color: #0060a0; color: #fff; font-weight: 600; }
.replay-scrub { flex: 1; min-width: 120px; accent-color: #0072b2; }
.replay-columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 180px), 1fr)); gap: 10px; }
.replay-column { display: flex; flex-direction: column; gap: 2px; min-width: 0; padding: 6px 10px; border: 1px solid var(--border-color-primary); border-top: 4px solid var(--slot);
  border-radius: 6px; background: var(--background-fill-primary); }
.replay-column h3 { margin: 0; font-size: 0.95rem; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; color: var(--body-text-color); }
.replay-rate { margin: 0; font-size: 1.35rem; font-weight: 700; font-variant-numeric: tabular-nums; }
.replay-status { margin: 0; font-size: 0.8rem; color: var(--quiet); font-variant-numeric: tabular-nums; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.replay-column progress { width: 100%; height: 5px; accent-color: var(--slot); }
.replay-answer { display: flex; flex-direction: column-reverse; height: 7.5rem; overflow-y: auto; font-size: 0.85rem; line-height: 1.4; }
.replay-answer .text { margin-bottom: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.replay-answer .drafted { background: color-mix(in srgb, #56b4e9 28%, transparent); }
.replay-race { width: 100%; height: 110px; border-left: 1px solid var(--border-color-primary); border-bottom: 1px solid var(--border-color-primary); }
.replay-race polyline { fill: none; stroke-width: 2.5; vector-effect: non-scaling-stroke; }
.replay-machine { margin: 0; font-size: 0.75rem; color: var(--quiet); }
body.presentation { overflow: hidden; }
body.presentation #replay { position: fixed; inset: 0; z-index: 1000; overflow: auto; background: var(--body-background-fill); border-radius: 0; }
body.presentation #recording { display: none; }
body.presentation .replay { min-height: 94vh; font-size: 1.3rem; }
body.presentation .replay-title { font-size: 2rem; }
body.presentation .replay-prompt { font-size: 1.3rem; }
body.presentation .replay-column h3 { font-size: 1.4rem; }
body.presentation .replay-rate { font-size: 2.6rem; }
body.presentation .replay-status { font-size: 1.1rem; }
body.presentation .replay-answer { flex: 1; height: 34vh; font-size: 1.25rem; }
body.presentation .replay-race { height: 24vh; }
.js-plotly-plot text { fill: var(--body-text-color) !important; font-family: var(--font) !important; }
.js-plotly-plot .hovertext text { fill: #fff !important; }
.js-plotly-plot .bars .point text { fill: var(--body-text-color) !important; }
.js-plotly-plot .gridlayer path { stroke: var(--border-color-primary) !important; }
.js-plotly-plot .zerolinelayer path { stroke: var(--body-text-color-subdued) !important; }
.js-plotly-plot .modebar { display: none; }
.facts.figures td { font-variant-numeric: tabular-nums; }
.facts { width: 100%; border-collapse: collapse; }
.facts td, .facts th { vertical-align: top; text-align: left; padding: 4px 8px; border-bottom: 1px solid var(--border-color-primary); }
"""
