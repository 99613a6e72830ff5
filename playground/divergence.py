"""Where two answers part: the first id in which they differ, and whether that is rounding or a real change."""

from __future__ import annotations

import difflib
from dataclasses import dataclass


@dataclass(frozen=True)
class Parting:
    """The first difference. `index` counts new ids from 0; an id is None where that answer had ended.

    The log-probabilities are the reference's and the slot's own, each of (reference's id, slot's id), given the ids
    before; empty until they are measured. `resolution` is the spacing of numbers in the reference's dtype at the
    size of its logits there.
    """

    index: int
    reference_id: int | None
    slot_id: int | None
    reference_text: str = ""
    slot_text: str = ""
    reference_logprobs: tuple[float, ...] = ()
    slot_logprobs: tuple[float, ...] = ()
    resolution: float | None = None

    @property
    def margin(self) -> float | None:
        """By how much the reference preferred its own id, in nats; None until it is measured."""
        return self.reference_logprobs[0] - self.reference_logprobs[1] if self.reference_logprobs else None

    @property
    def is_tie(self) -> bool | None:
        """Whether the reference's dtype cannot tell the two ids apart, so that rounding decided."""
        return None if self.margin is None or self.resolution is None else abs(self.margin) <= self.resolution


def parting(reference: tuple[int, ...], slot: tuple[int, ...]) -> Parting | None:
    """The first difference of two answers; None where they are equal."""
    if reference == slot:
        return None
    index = next((i for i, (a, b) in enumerate(zip(reference, slot)) if a != b), min(len(reference), len(slot)))
    return Parting(index, *(ids[index] if index < len(ids) else None for ids in (reference, slot)))


def word_differences(reference: str, slot: str) -> list[tuple[str, str]]:
    """The slot's text in runs: ("same" | "only_slot" | "only_reference", text). Split at spaces, which stay."""
    ours, theirs = _words(reference), _words(slot)
    runs: list[tuple[str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(a=ours, b=theirs, autojunk=False).get_opcodes():
        if kind == "equal":
            runs.append(("same", "".join(theirs[c:d])))
            continue
        runs += [("only_reference", "".join(ours[a:b]))] if b > a else []
        runs += [("only_slot", "".join(theirs[c:d]))] if d > c else []
    return runs


def _words(text: str) -> list[str]:
    """Words with the space before each; joined they are the text."""
    words: list[str] = []
    for character in text:
        if not words or (character.isspace() and not words[-1][-1].isspace()):
            words.append(character)
        else:
            words[-1] += character
    return words
