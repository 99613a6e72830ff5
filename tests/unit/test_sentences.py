"""Every sentence of a check or an engine that can reach the page has its Korean, and finds it again with its blanks filled in."""

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

from playground.checks import ConfigError
from playground.config import checked_settings
from playground.ui.i18n import Words
from playground.ui.sentences import KOREAN_SENTENCES, korean

PLAYGROUND = Path(__file__).resolve().parents[2] / "playground"
# Said on a console only: commands, and files that are read before there is a page.
CONSOLE = ("bench.py", "record.py", "recording.py", "cards.py", "presets.py", "distill", "scripted.py")
SPEAKERS = {"Refusal", "ConfigError", "Failed", "failed", "NoQuality", "Loading", "report", "reporting_bar", "say"}
NAMES = {"hint", "stage", "parts"}
NOTES = {"slow_here", "describe", "offloaded", "describe_record", "_head_notes", "_cause", "_from_wheel", "_from_hub"}
# Not sentences: what an exception of a library said, what is put together from others of this list, commands.
OTHERS = {"{}: {}", "got {}; {}", "slot {}", "pip install {}", "{}, {}"}
APART = {
    # put together at run time, see the tests below
    "got {}; give a whole number from {} to {}.", "got {}; give a number from {} to {}.", "{} MB of weights and {} MB of KV cache and working memory", "processes on the CPU",
    "{}, often a sign that memory ran out", "stored as {}",
}  # fmt: skip


def templates(node):
    """The texts that an expression can be, with {} for what is filled in."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)]
    if isinstance(node, ast.IfExp):
        return templates(node.body) + templates(node.orelse)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [a + b for a in templates(node.left) or ["{}"] for b in templates(node.right) or ["{}"]]
    if isinstance(node, (ast.List, ast.Tuple)):
        return [text for item in node.elts for text in templates(item)]
    return []


def spoken(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in SPEAKERS:
                for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                    yield from templates(argument)
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id in NAMES for target in targets):
                yield from templates(node.value)
        if isinstance(node, ast.FunctionDef) and node.name in NOTES:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return):
                    yield from templates(inner.value)


def found_in_sources():
    found = set()
    for path in PLAYGROUND.rglob("*.py"):
        inside = path.relative_to(PLAYGROUND)
        if inside.parts[0] not in (*CONSOLE, "ui") and path.name not in CONSOLE:
            found |= {text for text in spoken(ast.parse(path.read_text(encoding="utf-8"))) if " " in text.strip() and len(text) > 6}
    return found - OTHERS


def test_every_sentence_that_can_reach_the_page_has_its_korean():
    found = found_in_sources()
    assert len(found) > 120
    assert not found - set(KOREAN_SENTENCES), sorted(found - set(KOREAN_SENTENCES))


def test_no_translation_of_what_nobody_says():
    assert not set(KOREAN_SENTENCES) - found_in_sources() - APART


@pytest.mark.parametrize("english", KOREAN_SENTENCES)
def test_a_sentence_with_its_blanks_filled_in_finds_its_own_translation(english):
    count, translation = english.count("{}"), KOREAN_SENTENCES[english]
    blanks = {int(name) for _, name, _, _ in Formatter().parse(translation) if name is not None}
    assert blanks <= set(range(count))
    assert len(blanks) >= count - 1, "one blank may go: the English plural"
    values = [f"x{i}y" for i in range(count)]
    assert korean(english.format(*values)) == translation.format(*values)
    assert re.search("[가-힣]", translation) or not re.search("[a-z]{3}", translation.replace("{", ""))


def test_what_is_put_together_is_translated_part_by_part():
    assert korean("Type some text. Give a longer text.") == "글을 입력하세요. 더 긴 글을 주세요."
    needs = "memory: builtin needs about 5 MB of weights and 3 MB of KV cache and working memory; 2 MB can be had on CPU, with everything idle unloaded."
    assert "가중치 5 MB, KV 캐시와 작업 메모리 3 MB" in korean(needs)
    ended = "The worker process ended while this slot was on it (SIGKILL, often a sign that memory ran out)."
    assert korean(ended) == "이 슬롯을 실행하던 작업 프로세스가 끝났습니다(SIGKILL, 흔히 메모리가 모자랐다는 표시)."


def test_a_refused_setting_is_named_as_on_the_page():
    with pytest.raises(ConfigError) as refused:
        checked_settings({"new_tokens": 0})
    assert Words("ko").said(str(refused.value)).startswith("새 토큰 수: 받은 값 0. 1부터 ")
    assert Words("en").said(str(refused.value)) == str(refused.value)


@pytest.mark.parametrize("text", ["", "CUDA error: device-side assert", "no: such thing", "x" * 10_000, "{0} {", "got"])
def test_what_others_say_stays_as_it_came(text):
    assert Words("ko").said(text) == text
