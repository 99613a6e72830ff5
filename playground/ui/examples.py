"""Prompts to start from: some whose answer repeats the prompt, some not, some Korean."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A prompt and the label of its button, in English and Korean.

    `repeats`: the answer repeats the prompt, so that drafting can copy. A measured claim about the
    built-in model, that prompt lookup has more than a quarter of its drafts accepted; the smoke test
    holds it to that.
    """

    label: str
    label_ko: str
    text: str
    repeats: bool


_CODE = """Rewrite this code with every variable named total instead of s, and change nothing else:

def mean(values):
    s = 0.0
    for value in values:
        s = s + value
    if len(values) == 0:
        return 0.0
    return s / len(values)

def variance(values):
    m = mean(values)
    s = 0.0
    for value in values:
        s = s + (value - m) ** 2
    return s / len(values)
"""

_MINUTES = """Repeat the following notes word for word:

The team met on Monday. The team agreed to ship the new page on Friday. The team agreed to measure \
the time to first token before and after. Anna will write the script. Ben will run the script on the \
new machine. Anna and Ben will show the numbers on Thursday. The team will meet again on Friday."""

@dataclass(frozen=True)
class Card:
    """A first question that someone may have: its words' key, and the comparison and prompt that answer it."""

    key: str
    preset: str
    prompt: str


CARDS = (
    Card("card.cache", "kv-cache", "Write a short story about a lighthouse keeper who finds a letter."),
    Card("card.four_bit", "quantization", "Why is the sky blue? Explain it to a ten-year-old."),
    Card("card.drafter", "speculation", _MINUTES),
)

EXAMPLES = (
    Example("Repeat notes · repeats the prompt", "회의록 반복 · 프롬프트를 되풀이", _MINUTES, True),
    Example("Edit code · repeats the prompt", "코드 고치기 · 프롬프트를 되풀이", _CODE, True),
    Example("Explain the sky", "하늘 설명", "Why is the sky blue? Explain it to a ten-year-old.", False),
    Example("Short story", "짧은 이야기", "Write a short story about a lighthouse keeper who finds a letter.", False),
    Example("List numbers", "숫자 나열", "List the numbers from 1 to 40, one per line.", False),
    Example("하늘 · Korean", "하늘 · 한국어", "하늘은 왜 파란가요? 열 살 아이에게 설명해 주세요.", False),
    Example("회의록 반복 · Korean, repeats the prompt", "회의록 반복 · 한국어, 프롬프트를 되풀이", "다음 글을 그대로 다시 써 주세요: 우리는 월요일에 만났습니다. 우리는 금요일에 새 화면을 내기로 했습니다.", True),
)
