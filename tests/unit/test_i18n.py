"""Both languages say everything, with the same blanks to fill in."""

import re
from pathlib import Path
from string import Formatter
from typing import get_args, get_type_hints

import pytest

from playground import verdicts
from playground.config import DecodeSpec, ModelSpec, Settings
from playground.metrics import Phase
from playground.ui.i18n import Words, keys, pick_language

SOURCES = Path(__file__).resolve().parents[2] / "playground"


def blanks(text):
    return sorted({name for _, name, _, _ in Formatter().parse(text) if name})


@pytest.mark.parametrize("key", keys())
def test_both_languages_have_the_same_blanks(key):
    filled = [f"<{i}>" for i in range(6)]
    english, korean = Words("en")(key, *filled), Words("ko")(key, *filled)
    assert english and korean
    assert sorted(re.findall(r"<\d>", english)) == sorted(re.findall(r"<\d>", korean))


def test_every_literal_key_in_the_code_exists():
    used = set()
    for path in SOURCES.rglob("*.py"):
        used |= set(re.findall(r"words\(\s*\"([^\"]+)\"", path.read_text()))
        used |= set(re.findall(r"say\([^\n]*?=\"([a-z_.]+)\"", path.read_text()))
    assert used and used <= set(keys()), used - set(keys())


def test_every_derived_key_exists():
    wanted = {f"phase.{p}" for p in get_args(Phase)}
    wanted |= {f"why.{r}" for r in verdicts.REASONS}
    wanted |= {f"choice.{name}" for spec in (ModelSpec, DecodeSpec) for name in get_type_hints(spec)}
    wanted |= set(get_type_hints(Settings))
    assert wanted <= set(keys()), wanted - set(keys())


def test_every_finding_of_the_doctor_has_words_and_a_remedy():
    source = (SOURCES / "engines" / "doctor.py").read_text()
    found = set(re.findall(r'Finding\(\s*"(\w+)", (\S+)', source))
    assert len(found) >= 7
    for name, ok in found:
        assert f"doctor.{name}" in keys()
        assert ok.startswith("True") or f"doctor.{name}.remedy" in keys(), name


def test_language_is_asked_for_or_the_browsers_first_choice():
    assert pick_language("ko", "en-US") == "ko"
    assert pick_language(None, "ko-KR,ko;q=0.9,en;q=0.8") == "ko"
    assert pick_language(None, "fr-FR,fr;q=0.9") == "en"
    assert pick_language("xx", None) == "en"
