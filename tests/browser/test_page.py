"""The page as people see it."""

import itertools
import re
from functools import partial
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from playground.board import Board
from playground.config import Comparison, ModelSpec, SlotSpec
from playground.engines.scripted import Hold, spoken
from playground.events import Drafts, Failed, Round, SlotEvent, Started, Tokens
from playground.recording import record
from playground.runcard import load, this_machine
from playground.ui.i18n import Words, keys
from tests.scripted_app import HOSTILE, Conversation, echo, troubled

from .conftest import compare, wait_until_ended

CHARTS = ("ttft", "decode", "memory", "acceptance")


def texts(page):
    return page.eval_on_selector_all(".slot .answer .text", "all => all.map(e => e.textContent)")


def phases(page):
    return page.eval_on_selector_all(".slot", "all => all.map(e => e.dataset.phase)")


def bars(page, chart):
    return page.locator(f"#chart-{chart} .bars .point path").count()


def test_a_newcomer_presses_compare_and_sees_five_answers_and_four_charts(open_page):
    talk = Conversation()
    page = open_page(talk)
    assert phases(page) == ["idle"] * 5
    compare(page)
    page.wait_for_function("document.querySelector('.slot[data-phase=answering] .text')?.textContent.length > 5")
    half = texts(page)[0]
    assert page.locator("#charts.stale").count() == 1, "charts of before are dimmed while a comparison runs"
    assert re.search(r"\d tok/s", page.locator(".slot[data-phase=answering] .live").inner_text()), "live rate"
    assert phases(page)[1:] == ["queued"] * 4, "the others wait, visibly"
    talk.hold.gate.set()
    wait_until_ended(page)
    assert texts(page)[0].startswith(half) and len(texts(page)[0]) > len(half), "the column grew"
    assert phases(page) == ["done"] * 5
    page.wait_for_function("document.querySelectorAll('#chart-acceptance .bars .point path').length > 0")
    for chart in ("ttft", "decode"):
        assert bars(page, chart) == 5
    page.wait_for_function("!document.querySelector('#charts.stale')")
    assert page.locator("#chart-memory .trace.bars").count() == 4
    for chart in CHARTS:
        assert "is better" in page.locator(f"#chart-{chart} .gtitle").text_content()
    assert page.locator("#summary").is_hidden(), "all the same by the script's clock: nobody wins"
    assert page.outside == [], "the page asks nobody else for anything"


def test_stop_stops_and_keeps_what_was_streamed(open_page):
    page = open_page(Conversation())
    compare(page)
    page.wait_for_function("document.querySelector('.slot[data-phase=answering] .text')?.textContent.length > 5")
    kept = texts(page)[0]
    page.click("#stop")
    wait_until_ended(page)
    assert phases(page) == ["stopped"] * 5 and texts(page)[0] == kept
    page.wait_for_function("!document.querySelector('#compare').disabled")


def test_closing_the_tab_stops_the_run(open_page):
    """The engine is free again for the next person: their comparison runs instead of waiting for ever."""
    talk = Conversation()
    page = open_page(talk)
    compare(page)
    page.wait_for_selector(".slot[data-phase=answering]")
    other = page.context.new_page()
    other.goto(page.url)
    other.click("#compare")
    other.wait_for_function("document.body.textContent.includes('comparison(s) ahead')", timeout=60_000)
    page.close()
    other.wait_for_selector(".slot[data-phase=answering]", timeout=60_000)


def test_compare_can_be_pressed_once_the_pages_first_answer_is_here(open_page):
    """That answer draws an idle board; were it to come after a run's first updates, a waiting run would look idle."""
    page = open_page(echo)
    slow, held = page.context.new_page(), []
    slow.route("**/gradio_api/run/**", lambda route: held.append(route))
    with slow.expect_request("**/gradio_api/run/**"):
        slow.goto(page.url)
    slow.wait_for_selector(".slot")
    assert slow.is_disabled("#compare")
    held[0].continue_()
    compare(slow)
    wait_until_ended(slow)
    assert phases(slow) == ["done"] * 5


def test_an_error_shows_in_its_column_and_nowhere_else(open_page):
    page = open_page(troubled)
    compare(page)
    wait_until_ended(page)
    assert phases(page) == ["done", "failed", "done", "done", "done"]
    failed = page.locator(".slot").nth(1)
    assert "on fire" in failed.inner_text() and "another device" in failed.inner_text()
    assert "a few words" in failed.inner_text(), "what was streamed stays"
    assert page.locator(".failure:visible").count() == 1


def test_model_text_is_shown_as_typed_and_never_runs(open_page):
    page = open_page(troubled)
    compare(page)
    wait_until_ended(page)
    assert texts(page)[2] == HOSTILE
    assert page.evaluate("window.hacked") is None
    assert page.locator(".slot img").count() == 0


@pytest.mark.parametrize("width", [1280, 1920])
def test_no_horizontal_scroll_and_nothing_sticks_out(open_page, width):
    page = open_page(troubled, width=width)
    compare(page)
    wait_until_ended(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.eval_on_selector_all(".slot", "all => all.map(e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right, e.scrollWidth - e.clientWidth])")
    assert all(left >= 0 and right <= width and over <= 0 for left, right, over in boxes), boxes
    assert all(a[1] <= b[0] for a, b in zip(boxes, boxes[1:])), "columns stand side by side"


def contrast(page, selector):
    """WCAG contrast of an element's text (or fill) on the nearest opaque background."""
    return page.evaluate(
        """selector => {
        const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
        const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
        const element = document.querySelector(selector);
        const style = getComputedStyle(element);
        const ink = parse(element instanceof SVGElement ? style.fill : style.color);
        let at = element, paper = null;
        while (at && !paper) {
            const c = parse(getComputedStyle(at).backgroundColor);
            if (c.length === 3 || c[3] === 1) paper = c;
            at = at.parentElement;
        }
        const [a, b] = [light(ink), light(paper || [255, 255, 255])].sort((x, y) => y - x);
        return (a + .05) / (b + .05);
    }""",
        selector,
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_is_readable_in_both_modes(open_page, dark):
    page = open_page(troubled, dark=dark)
    compare(page)
    wait_until_ended(page)
    page.wait_for_selector("#chart-decode .gtitle")
    assert page.evaluate("document.body.classList.contains('dark') || document.documentElement.classList.contains('dark')") == dark
    for selector in (".slot h3", ".slot .difference", ".slot .answer .text", ".slot .numbers dt", ".slot .numbers dd",
                     ".slot .failure", "#chart-decode .gtitle", "#chart-decode .ytick text", "#heading p"):
        assert contrast(page, selector) >= 4.5, selector


def test_bad_input_is_refused_with_the_fields_name_and_nothing_is_lost(open_page):
    page = open_page(echo)
    page.fill("#prompt textarea", "   ")
    compare(page)
    page.wait_for_selector("#notice .notice")
    assert "prompt" in page.locator("#notice").inner_text()
    assert page.input_value("#prompt textarea") == "   " and phases(page) == ["idle"] * 5
    page.fill("#prompt textarea", "now with words")
    compare(page)
    wait_until_ended(page)
    assert texts(page)[0] == "baseline heard now with words" and page.locator("#notice .notice").count() == 0


def test_a_preset_comes_by_address_and_by_menu(open_page):
    page = open_page(echo, query="?preset=kv-cache")
    page.wait_for_function("document.querySelectorAll('.slot').length === 2")
    page.click("#preset input")
    page.click("text=Speculative decoding")
    page.wait_for_function("document.querySelectorAll('.slot').length === 5")


def test_an_unknown_preset_in_the_address_is_named(open_page):
    page = open_page(echo, query="?preset=nope")
    page.wait_for_selector("#notice .notice")
    assert "nope" in page.locator("#notice").inner_text() and "five-ways" in page.locator("#notice").inner_text()
    assert page.locator(".slot").count() == 5


def test_language_changes_everything_results_included(open_page):
    page = open_page(echo)
    compare(page)
    wait_until_ended(page)
    page.click("#language label:has-text('한국어')")
    page.wait_for_function("document.querySelector('#compare').textContent.includes('비교')")
    page.wait_for_function("document.querySelector('.slot .numbers').textContent.includes('속도비')")
    assert texts(page)[0].startswith("baseline heard"), "the answers stay"
    page.wait_for_function("document.querySelector('#chart-decode .gtitle').textContent.includes('좋음')")


VISIBLE_TEXTS = """() => {
  const own = 'textarea, code, script, style, .slot h3, .replay-columns', found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim(), parent = walk.currentNode.parentElement;
    if (text && !parent.closest(own) && parent.checkVisibility()) found.push(text);
  }
  return found;
}"""


def english_only():
    """Patterns of the words that are others in Korean."""
    for key in keys():
        english = Words("en")(key, *["BLANK"] * 9)
        if english != Words("ko")(key, *["BLANK"] * 9) and re.search("[a-z]{3}", english.replace("BLANK", "")):
            yield key, re.compile(".+".join(map(re.escape, english.split("BLANK"))))


@pytest.mark.parametrize("switched", [False, True], ids=["by address", "by switching"])
def test_no_english_is_left_on_the_korean_page(open_page, switched):
    page = open_page(troubled, query="" if switched else "?lang=ko", recordings=recordings())
    compare(page)
    wait_until_ended(page)
    page.wait_for_function("!document.querySelector('#charts.stale')")
    page.click("#sweep button.label-wrap")
    page.fill("#sweep-values textarea, #sweep-values input", "8")
    page.click("#repeats label:has-text('3')")
    page.click("#sweep-run")
    page.wait_for_selector("#sweep-charts .gtitle")
    if switched:
        page.click("#capabilities button.label-wrap")
        page.wait_for_selector("#techniques table")
        page.click("#language label:has-text('한국어')")
        page.wait_for_function("document.querySelector('#compare').innerText === '비교'")
        page.wait_for_selector("#capabilities button.label-wrap:not(.open)")
    page.evaluate("document.querySelectorAll('button.label-wrap:not(.open)').forEach(button => button.click())")
    page.wait_for_selector("#techniques table")
    page.wait_for_selector("#forecast table")
    names = {"English", *page.eval_on_selector_all(".slot h3", "all => all.map(h => h.title)")}
    shown = set(page.evaluate(VISIBLE_TEXTS)) - names
    assert not {(key, text) for key, english in english_only() for text in shown if english.fullmatch(text)}
    assert "짧은 이야기" in page.locator("#examples").inner_text()


def test_an_example_fills_the_prompt(open_page):
    page = open_page(echo)
    page.click("#examples button:has-text('Repeat notes')")
    page.wait_for_function("document.querySelector('#prompt textarea').value.startsWith('Repeat the following')")


def test_charts_are_redrawn_when_a_number_changes_not_for_every_token(open_page):
    def slow(slot, prompt):
        yield Started(0, 1)
        for i in range(200):
            yield Tokens((i + 1) * 10**8, (1,), "x", 1)
        yield from echo(slot, prompt)[-2:]

    page = open_page(slow)
    page.wait_for_selector("#chart-timeline .main-svg")
    assert page.locator("#chart-decode").is_hidden(), "nothing to show yet, and no room for it"
    page.evaluate(
        "window.redraws = 0; new MutationObserver(() => window.redraws++)"
        ".observe(document.querySelector('#chart-decode'), {childList: true, subtree: true})"
    )
    compare(page)
    wait_until_ended(page)
    page.wait_for_function("document.querySelectorAll('#chart-decode .bars .point path').length === 5")
    assert page.evaluate("window.redraws") < 200, "1,000 tokens in all"


def test_a_long_answer_scrolls_inside_its_column(open_page):
    def long(slot, prompt):
        return [*echo(slot, prompt)[:2], Tokens(2 * 10**9, tuple(range(9)), "line\n" * 500 + "w" * 3000, 9), *echo(slot, prompt)[-1:]]

    page = open_page(long)
    compare(page)
    wait_until_ended(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.evaluate("document.querySelector('.slot').getBoundingClientRect().height") < 1200


def test_quality_fills_rows_and_a_dot_a_slot(open_page):
    page = open_page(echo)
    assert page.locator("#chart-quality .points .point").count() == 0
    page.check("#quality input")
    compare(page)
    page.wait_for_function("document.querySelectorAll('#chart-quality .scatterlayer .point').length === 5")
    assert phases(page) == ["done"] * 5
    numbers = page.locator(".slot").nth(1).locator(".numbers").inner_text()
    assert "KL divergence" in numbers and "100.0%" in numbers and "Perplexity" in numbers


def test_a_preset_about_quantization_asks_for_quality_by_itself(open_page):
    page = open_page(echo, query="?preset=quantization")
    page.wait_for_function("document.querySelector('#quality input').checked")
    page.click("#preset input")
    page.click("text=Speculative decoding")
    page.wait_for_function("!document.querySelector('#quality input').checked")


def test_the_gptq_form_adds_a_column_and_takes_it_away_again(open_page):
    page = open_page(echo)
    page.click("#gptq-form > button, #gptq-form button.label-wrap")
    page.check("#gptq-add input")
    page.wait_for_function("document.querySelectorAll('.slot').length === 6")
    added = page.locator(".slot").nth(5)
    assert "gptq 4-bit g64" in added.inner_text() and page.evaluate("document.documentElement.scrollWidth") <= 1280
    compare(page)
    wait_until_ended(page)
    assert texts(page)[5].startswith("gptq-here heard")
    page.uncheck("#gptq-add input")
    page.wait_for_function("document.querySelectorAll('.slot').length === 5")


def test_what_the_machine_cannot_run_is_listed_with_the_reason_and_the_remedy(open_page):
    page = open_page(echo)
    page.click("#capabilities button.label-wrap")
    page.wait_for_selector("#techniques table")
    assert page.locator("#techniques tr[data-runs=true]").count() == 1
    refused = page.locator("#techniques tr[data-runs=false]").inner_text()
    assert "torchao-fp8" in refused and "needs a GPU" in refused and "Use torchao-int8." in refused


def test_what_slots_will_need_is_said_before_anything_runs(open_page):
    page = open_page(echo)
    page.click("#fit button.label-wrap")
    page.wait_for_selector("#forecast tr[data-fits]")
    rows = page.locator("#forecast tr[data-fits]")
    assert rows.count() == 5 and phases(page) == ["idle"] * 5
    assert "unloads another model" in rows.nth(0).inner_text() and "float16 is slow here" in rows.nth(0).inner_text()
    assert rows.nth(1).get_attribute("data-fits") == "false" and "Ask for fewer tokens." in rows.nth(1).inner_text()


def test_a_benchmark_shows_its_progress_then_medians_noise_and_files(open_page, tmp_path):
    hold = Hold()

    def script(slot, prompt):
        yield from [hold] if slot.id == "on" else []
        yield from spoken("hello", gap_s=0.1 if slot.decode.cache == "none" else 0.05)

    page = open_page(script, query="?preset=kv-cache")
    page.click("#mode input[value=benchmark]")
    page.click("#repeats label:has-text('3')")
    compare(page)
    page.wait_for_selector("#progress progress")
    page.wait_for_function("document.querySelector('#progress').innerText.includes('Run 2 of 9')")
    assert "run 1 of 3" in page.locator(".slot[data-slot=on] .status").inner_text()
    hold.gate.set()
    page.wait_for_selector("#benchmark table")
    rows = page.locator("#benchmark tr").all_inner_texts()
    assert len(rows) == 3 and "2.00×" in rows[2] and "20.0, 20.0, 20.0" in rows[2]
    assert "Noise floor" in page.locator("#benchmark").inner_text() and page.locator("#progress progress").count() == 0
    assert "2.00×" in page.locator(".slot[data-slot=on] .numbers").inner_text()
    with page.expect_download() as taken:
        page.locator("a#card, #card a, #card").first.click()
    taken.value.save_as(tmp_path / "card.json")
    assert [len(series.runs) for series in load(tmp_path / "card.json").outcome.series] == [3, 3]


def test_a_sweep_draws_a_line_a_slot_and_refuses_values_that_cannot_be(open_page):
    page = open_page(echo, query="?preset=kv-cache")
    page.click("#repeats label:has-text('3')")
    page.click("#sweep button.label-wrap")
    page.fill("#sweep-values textarea, #sweep-values input", "0, 8")
    page.click("#sweep-run")
    page.wait_for_selector("#notice .notice")
    assert "prompt_tokens" in page.locator("#notice").inner_text()
    page.fill("#sweep-values textarea, #sweep-values input", "8, 16")
    page.click("#sweep-run")
    page.wait_for_selector("#sweep-all_tok_per_s .scatterlayer .trace", state="attached")
    # A line a slot, and a band each.
    assert page.locator("#sweep-all_tok_per_s .scatterlayer .trace").count() == 4
    page.wait_for_function("!document.querySelector('#compare').disabled && !document.querySelector('#sweep-progress progress')")
    assert phases(page) == ["idle"] * 2, "the columns are left alone"


def test_a_follow_up_goes_on_from_every_columns_own_answer(open_page):
    page = open_page(lambda slot, prompt: spoken(f"{slot.id} {prompt.text} after {prompt.history(slot.id)}"))
    assert page.locator("#follow-up").is_disabled()
    page.fill("#prompt textarea", "one")
    compare(page)
    wait_until_ended(page)
    page.wait_for_function("!document.querySelector('#follow-up').disabled")
    page.fill("#prompt textarea", "two")
    page.click("#follow-up")
    page.wait_for_function("document.querySelector('.slot .text')?.textContent.includes('two after')")
    wait_until_ended(page)
    assert texts(page)[:2] == [f"{slot} two after (('one', '{slot} one after ()'),)" for slot in ("baseline", "kv-cache")]
    page.wait_for_function("!document.querySelector('#follow-up').disabled")


def test_the_cache_panel_tells_costs_and_findings_and_follows_its_sliders(open_page):
    page = open_page(echo)
    page.click("#kv-panel button.label-wrap")
    page.wait_for_selector("#kv-result tr[data-ok=false]")
    first = page.locator("#kv-result tr").first.inner_text()
    assert "1 × 2,048 positions need" in first and "It ends at" in first
    assert "off (config.json)" in page.locator("#kv-result").inner_text()
    page.fill("#kv-batch input[type=number]", "64")
    page.locator("#kv-batch input[type=number]").blur()
    page.wait_for_function("document.querySelector('#kv-result tr').innerText.includes('64 × 2,048')")
    assert page.locator("#kv-result tr").first.get_attribute("data-ok") == "false"


def test_accepted_drafts_are_marked_tell_their_round_and_can_be_unmarked(open_page):
    def drafting(slot, prompt):
        if slot.decode.speculation == "none":
            return echo(slot, prompt)
        ready, warmed, started, *_, memory, done = echo(slot, prompt)
        return [
            ready, warmed, started, Round(3, 2, 0.1, 0.2), Tokens(2 * 10**9, (1, 2, 3), "<b>ab", 3, 4),
            Round(2, 0, 0.1, 0.2), Tokens(3 * 10**9, (4,), "c", 1), memory, Drafts(("<b>a", ""), ("xy", "z")), done,
        ]

    page = open_page(drafting)
    compare(page)
    wait_until_ended(page)
    marked = page.locator(".slot[data-slot=draft-head] .drafted")
    assert texts(page)[4] == "<b>abc" and marked.all_inner_texts() == ["<b>a"], "markup from a model stays text"
    assert marked.get_attribute("title") == "round 1: 2 of 3 drafted ids accepted · rejected: “xy”"
    assert page.locator(".slot[data-slot=sdpa] .drafted").count() == 0
    assert marked.evaluate("e => getComputedStyle(e).textDecorationLine") == "underline"
    page.uncheck("#tint input")
    page.wait_for_function("getComputedStyle(document.querySelector('.drafted')).textDecorationLine === 'none'")
    assert contrast(page, ".slot .note") >= 4.5


def replay_text(page, place):
    return page.locator(".replay-answer .text").nth(place).text_content()


def recordings(gap_s=0.05):
    """One that is over soon: half a second if not asked otherwise."""
    script = {"a": spoken("first " + HOSTILE, gap_s=0.004), "b": spoken("second", gap_s=gap_s)}
    slots = tuple(SlotSpec(name, name.upper(), ModelSpec("m")) for name in script)
    board = Board(Comparison("c", "Recorded", slots, "a"))
    board.absorb(SlotEvent(slot, event) for slot, events in script.items() for event in events)
    return {"first": record(board, "the prompt", this_machine("CPU"), "2026-01-01T00:00:00")}


def test_the_page_opens_with_a_replay_that_moves_ends_and_can_be_scrubbed(open_page):
    page = open_page(echo, recordings=recordings())
    page.wait_for_function("document.querySelectorAll('.replay-answer .text')[1].textContent === 'second'", timeout=10_000)
    page.wait_for_function("document.querySelector('.replay-play').dataset.playing === 'false'")
    assert replay_text(page, 0) == "first " + HOSTILE and page.evaluate("window.hacked") is None
    assert page.locator(".replay-prompt").inner_text() == "the prompt" and "20.0 tok/s" in page.locator(".replay-rate").nth(1).inner_text()
    page.locator(".replay-scrub").fill("0.16")
    assert replay_text(page, 1) == "se", "two ids have arrived: at 0.1 s and 0.15 s"
    page.locator(".replay-scrub").fill("0")
    assert replay_text(page, 1) == "" and page.locator(".replay-status").nth(1).inner_text() == "Reading the prompt"
    assert page.locator(".replay-summary.told").count() == 0, "who won is told at the end"
    page.select_option(".replay-speed", "4")
    page.click(".replay-play")
    page.wait_for_function("document.querySelectorAll('.replay-answer .text')[1].textContent === 'second'")
    assert page.locator(".replay-race polyline").count() == 2


def test_a_replay_keeps_the_time_that_its_speed_asks_for(open_page):
    page = open_page(echo, recordings=recordings(gap_s=0.5))
    page.locator(".replay-scrub").fill("0")  # which pauses it
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now()") + 60_000)
    for speed, at in (("0.5", 0.1), ("1", 0.3), ("4", 1.1)):
        page.select_option(".replay-speed", speed)
        page.click(".replay-play")
        page.clock.run_for(200)
        page.click(".replay-play")
        assert float(page.locator(".replay-scrub").input_value()) == pytest.approx(at, abs=0.01 + 0.05 * float(speed))


def test_a_finished_fair_run_is_ready_for_replay(open_page):
    page = open_page(echo, query="?preset=kv-cache", recordings=recordings())
    page.wait_for_function("document.querySelector('.replay-play').dataset.playing === 'false'")
    page.locator(".replay-scrub").fill("0")
    page.click(".replay-play")
    compare(page)
    assert page.locator(".replay-play").get_attribute("data-playing") == "false", "a run is not disturbed"
    wait_until_ended(page)
    page.wait_for_function("document.querySelector('.replay-title').textContent !== 'Recorded'")
    assert page.locator("#recording input").input_value() == "Replay: this page's last comparison"
    assert page.locator(".replay-play").get_attribute("data-playing") == "false", "it waits to be played"
    page.locator(".replay-scrub").fill("99")
    assert replay_text(page, 0) == texts(page)[0]


def seen(page):
    """What of the page's main parts is visible."""
    parts = ("preset", "settings", "prompt", "compare", "columns", "summary", "chart-timeline", "chart-ttft", "replay", "models")
    return {part for part in parts if page.locator(f"#{part}").is_visible()}


def test_the_presentation_is_entered_and_left_by_one_key_and_by_its_button(open_page):
    page = open_page(echo, recordings=recordings())
    everything = seen(page)
    assert everything >= {"preset", "settings", "columns", "replay", "models"}
    page.keyboard.press("p")
    page.wait_for_selector("body.presentation")
    assert seen(page) == {"replay"} and page.locator(".replay-title").inner_text() == "Recorded"
    page.keyboard.press("Escape")
    page.wait_for_selector("body:not(.presentation)")
    assert seen(page) == everything
    page.click("#present")
    page.wait_for_selector("body.presentation")
    page.click("#present")
    page.wait_for_selector("body:not(.presentation)")
    page.click("#prompt textarea")
    page.keyboard.type("p")
    assert page.locator("body.presentation").count() == 0, "typing is typing"
    page.click("#mode input[value=race]")
    page.keyboard.press("p")
    page.wait_for_selector("body.presentation")


def test_once_a_run_has_begun_it_is_what_is_presented_until_a_replay_plays(open_page):
    page = open_page(at_other_speeds, query="?preset=kv-cache", recordings=recordings())
    above = "document.querySelector('#replay').getBoundingClientRect().top < document.querySelector('#columns').getBoundingClientRect().top"
    assert page.evaluate(above), "what moves comes first"
    page.keyboard.press("p")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("body.presentation.live")
    wait_until_ended(page)
    page.wait_for_selector("#summary .summary")
    assert seen(page) == {"prompt", "columns", "summary", "chart-timeline"}
    assert page.locator(".slot .numbers > div:visible").count() == 2 * 3, "speed-up, decode rate, TTFT"
    chart, column = (page.locator(f"#chart-timeline {part}").first.bounding_box()["width"] for part in (".main-svg", ".js-plotly-plot"))
    assert chart == column, "the chart has the presentation's width"
    page.keyboard.press("p")
    assert not page.evaluate(above), "then the run's own columns do"
    page.wait_for_function("document.querySelector('.replay-title').textContent !== 'Recorded'")
    page.click(".replay-play")
    page.keyboard.press("p")
    assert seen(page) == {"replay"}
    page.wait_for_selector(".replay-summary.told")
    assert page.locator(".replay-summary b").first.inner_text() == page.evaluate("document.querySelector('#summary b').textContent")


def at_other_speeds(slot, prompt):
    return spoken(f"{slot.id} answers", gap_s=0.01 * (1 + len(slot.id)))


def test_a_chart_tells_its_definition_on_hover(open_page):
    page = open_page(at_other_speeds, query="?preset=kv-cache")
    compare(page)
    page.wait_for_function("document.querySelectorAll('#chart-ttft .bars .point path').length === 2")
    page.wait_for_function("!document.querySelector('#charts.stale')")
    page.locator("#chart-ttft .annotation").first.hover()
    page.wait_for_function("document.querySelector('#chart-ttft .hoverlayer')?.textContent.includes('first new id')")
    page.locator("#chart-ttft .bars .point path").first.hover(force=True)  # a sheet of Plotly lies above
    page.wait_for_function("document.querySelector('#chart-ttft .hoverlayer .hovertext')?.textContent.includes('first new id')")


def test_what_went_wrong_is_said_in_the_pages_language(open_page):
    refused = [Failed("cache: offloaded moves keys and values between a GPU and the CPU's memory; this slot runs on the CPU.", 'Use cache = "dynamic", or a GPU.')]
    page = open_page(lambda slot, prompt: refused if slot.id == "kv-cache" else spoken("fine"), query="?lang=ko")
    compare(page)
    wait_until_ended(page)
    said = page.locator(".slot[data-phase=failed] .failure").inner_text()
    assert said.startswith("캐시: offloaded") and 'cache = "dynamic"' in said and "moves" not in said
    page.fill("#prompt textarea", "")
    compare(page)
    page.wait_for_selector("#notice .notice")
    assert page.locator("#notice .notice").inner_text().startswith("프롬프트: 비어 있습니다")


def test_control_enter_compares_and_escape_stops(open_page):
    page = open_page(Conversation(), query="?preset=kv-cache")
    page.click("#prompt textarea")
    page.keyboard.press("Control+Enter")
    page.wait_for_function("document.querySelector('.slot[data-phase=answering] .text')?.textContent.length > 5")
    page.keyboard.press("Escape")
    wait_until_ended(page)
    assert set(phases(page)) == {"stopped"}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("query", ["", "?lang=ko"], ids=["english", "korean"])
def test_axe_finds_nothing_serious(open_page, dark, query):
    page = open_page(troubled, dark=dark, query=query, recordings=recordings())
    compare(page)
    wait_until_ended(page)
    page.wait_for_function("!document.querySelector('#charts.stale')")
    # A button that is fading in has the contrast of neither state.
    page.wait_for_selector("#follow-up:enabled")
    page.wait_for_function("document.getAnimations().every(animation => animation.playState !== 'running')")
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa"]}).response["violations"]
    serious = {v["id"]: [n["html"][:160] for n in v["nodes"]] for v in found if v["impact"] in ("serious", "critical")}
    assert not serious, serious


def test_nothing_jumps_while_text_streams(open_page):
    talk = Conversation()
    page = open_page(talk, recordings=recordings())
    page.wait_for_function("!document.querySelector('#compare').disabled")
    # What moves at once because of a click, such as the player that makes room for the columns, is no surprise.
    page.evaluate("""() => { window.shift = 0;
        new PerformanceObserver(list => { for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value; })
        .observe({type: 'layout-shift', buffered: false}); }""")
    compare(page)
    page.wait_for_function("document.querySelector('.slot[data-phase=answering] .text')?.textContent.length > 5")
    tops = "[...document.querySelectorAll('.slot .answer')].map(e => e.getBoundingClientRect().top)"
    assert len(set(page.evaluate(tops))) == 1, "with a progress bar or without, answers begin at one height"
    talk.hold.gate.set()
    page.wait_for_function("[...document.querySelectorAll('.slot')].every(s => s.dataset.phase === 'done')")
    assert page.evaluate("window.shift") < 0.05


def test_no_console_error_through_a_comparison_in_either_language(open_page):
    page = open_page(echo, recordings=recordings())
    errors = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    compare(page)
    wait_until_ended(page)
    page.click("#language label:has-text('한국어')")
    page.wait_for_function("document.querySelector('#compare').innerText === '비교'")
    assert errors == []


def test_what_was_chosen_survives_a_reload_and_an_address_wins(open_page):
    page = open_page(echo)
    page.fill("#prompt textarea", "my own question")
    page.click("#mode input[value=race]")
    page.click("#settings button.label-wrap")
    page.wait_for_selector("#new_tokens input[type=number]")
    page.wait_for_function("localStorage.getItem('playground') !== null")
    page.evaluate("window.before = localStorage.getItem('playground')")
    page.fill("#new_tokens input[type=number]", "33")
    page.locator("#new_tokens input[type=number]").blur()
    page.wait_for_function("localStorage.getItem('playground') !== window.before")
    page.reload()
    page.wait_for_function("document.querySelector('#prompt textarea')?.value === 'my own question'")
    assert page.locator("#mode input[value=race]").is_checked()
    page.click("#settings button.label-wrap")
    assert page.locator("#new_tokens input[type=number]").input_value() == "33"
    page.goto(page.url.split("?")[0] + "?preset=kv-cache")
    page.wait_for_function("document.querySelectorAll('.slot').length === 2")
    page.wait_for_selector("#compare:enabled")
    assert page.locator("#mode input[value=fair]").is_checked(), "what was chosen for another comparison stays with it"


def test_edited_columns_survive_a_reload_until_a_preset_is_chosen(open_page):
    page = open_page(echo, query="?preset=kv-cache")
    page.click("#editor button.label-wrap")
    page.click("#edit-duplicate")
    page.wait_for_function("document.querySelectorAll('.slot').length === 3")
    page.wait_for_function("localStorage.getItem('playground-columns') !== null")
    page.reload()
    page.wait_for_function("document.querySelectorAll('.slot').length === 3")
    page.wait_for_selector("#compare:enabled")
    compare(page)
    wait_until_ended(page)
    assert [text.split()[0] for text in texts(page)] == ["off", "off-2", "on"]
    page.goto(page.url.split("?")[0])
    page.wait_for_function("document.querySelectorAll('.slot').length === 5")
    page.click("#preset input")
    page.get_by_role("option", name="What the KV cache is worth").click()
    page.wait_for_function("document.querySelectorAll('.slot').length === 2")
    page.goto(page.url.split("?")[0] + "?preset=kv-cache")
    page.wait_for_selector("#compare:enabled")
    assert page.locator(".slot").count() == 2


def test_a_first_question_fills_everything_and_runs_with_one_click(open_page):
    page = open_page(lambda slot, prompt: spoken(f"{slot.id} heard {prompt.text[:20]}"))
    page.wait_for_selector("#card-cache:enabled")
    page.click("#card-cache")
    page.wait_for_function("document.querySelectorAll('.slot').length === 2")
    wait_until_ended(page)
    assert texts(page) == ["off heard Write a short story ", "on heard Write a short story "]
    assert page.input_value("#prompt textarea").startswith("Write a short story")


def test_columns_are_duplicated_renamed_changed_moved_and_removed(open_page):
    page = open_page(lambda slot, prompt: spoken(f"{slot.decode.attention} {slot.decode.cache}"), query="?preset=kv-cache")
    page.click("#editor button.label-wrap")
    page.click("#edit-duplicate")
    page.wait_for_function("document.querySelectorAll('.slot').length === 3")
    page.fill("#edit-name textarea, #edit-name input", "Mine")
    page.keyboard.press("Enter")
    page.wait_for_selector(".slot h3[title=Mine]")
    page.click("#edit-attention input")
    page.get_by_role("option", name="sdpa", exact=True).click()
    page.wait_for_function("document.querySelector('.slot h3[title=Mine]').closest('.slot').innerText.includes('sdpa')")
    page.click("#edit-lean input")
    page.wait_for_function("document.querySelector('.slot h3[title=Mine]').closest('.slot').innerText.includes('lean')")
    page.fill("#edit-device textarea, #edit-device input", "tensor:99")
    page.keyboard.press("Enter")
    page.wait_for_selector("#notice .notice")
    assert "tensor parallel" in page.locator("#notice").inner_text()
    page.wait_for_function("document.querySelector('#edit-device textarea, #edit-device input').value === 'auto'")
    compare(page)
    wait_until_ended(page)
    assert texts(page) == ["eager none", "sdpa none", "eager dynamic"]
    page.click("#edit-right")
    page.wait_for_function("document.querySelectorAll('.slot h3')[2].title === 'Mine'")
    page.click("#edit-refer")
    page.wait_for_function("document.querySelectorAll('.slot .difference')[2].innerText.includes('reference')")
    page.click("#edit-remove")
    page.wait_for_function("document.querySelectorAll('.slot').length === 2")
    page.click("#edit-remove")
    page.wait_for_selector("#notice .notice")
    assert "fewest" in page.locator("#notice").inner_text() and page.locator(".slot").count() == 2


def test_the_menus_mark_what_does_not_run_here_and_say_why_beneath(open_page):
    page = open_page(echo)
    page.click("#editor button.label-wrap")
    page.wait_for_selector("#edit-reasons summary")
    page.click("#edit-quantization input")
    marked = page.get_by_role("option").filter(has_text="✗").all_inner_texts()
    assert [text.split("\n")[-1] for text in marked] == ["torchao-fp8 ✗ not here"]
    page.keyboard.press("Escape")
    page.click("#edit-reasons summary")
    assert "torchao-fp8: It needs a GPU. Use torchao-int8." in page.locator("#edit-reasons li").inner_text()


def test_one_column_can_be_enlarged_and_all_shown_again(open_page):
    page = open_page(echo)
    compare(page)
    wait_until_ended(page)
    page.locator(".slot .focus").nth(2).click()
    assert page.locator(".slot:visible").count() == 1 and page.locator(".slot:visible").bounding_box()["width"] > 1000
    page.locator(".slot:visible .focus").click()
    assert page.locator(".slot:visible").count() == 5


def test_answers_can_be_read_as_markdown(open_page):
    text = "**bold** costs $3 and $4 " + HOSTILE
    page = open_page(lambda slot, prompt: spoken(text))
    compare(page)
    wait_until_ended(page)
    assert texts(page)[0] == text
    page.click("#markdown input")
    page.wait_for_selector(".slot .markdown strong")
    assert page.locator(".slot .markdown").first.inner_text().startswith("bold costs $3 and $4")
    assert page.evaluate("window.hacked") is None and page.locator(".slot .markdown img").count() == 0
    page.click("#markdown input")
    page.wait_for_function("!document.querySelector('.slot .markdown')")
    assert texts(page)[0] == text


def test_the_main_states_can_be_looked_at(open_page, request):
    """With --screenshots DIR, pictures of the page: idle, running, finished, failed, in light and dark and at three widths."""
    folder = request.config.getoption("--screenshots")
    if folder is None:
        pytest.skip("asked for with --screenshots DIR")
    for dark, width in itertools.product((False, True), (390, 1280, 1920)):
        talk = Conversation()
        page = open_page(talk, width=width, dark=dark, recordings=recordings())
        shot = partial(_shoot, page, Path(folder), f"{'dark' if dark else 'light'}-{width}")
        shot("idle")
        compare(page)
        page.wait_for_function("document.querySelector('.slot[data-phase=answering] .text')?.textContent.length > 5")
        shot("running")
        talk.hold.gate.set()
        wait_until_ended(page)
        page.wait_for_function("!document.querySelector('#charts.stale')")
        shot("finished")
        failed = open_page(troubled, width=width, dark=dark, query="?lang=ko")
        compare(failed)
        wait_until_ended(failed)
        _shoot(failed, Path(folder), f"{'dark' if dark else 'light'}-{width}", "failed")


def _shoot(page, folder, where, state):
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{where}-{state}.png", full_page=True)
