"""Where answers part, and whether rounding decided."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.divergence import Parting, parting, word_differences


def test_the_first_differing_id_is_found_and_equal_answers_part_nowhere():
    assert parting((1, 2, 3), (1, 2, 3)) is None and parting((), ()) is None
    assert parting((1, 2, 3), (1, 9, 3)) == Parting(1, 2, 9)
    assert parting((1, 2), (1, 2, 3)) == Parting(2, None, 3) and parting((1,), ()) == Parting(0, 1, None)


@pytest.mark.parametrize(("logprobs", "tie"), [((-1.0, -1.05), True), ((-1.0, -1.2), False), ((-1.05, -1.0), True), ((-1.2, -1.0), False)])
def test_a_margin_within_the_dtypes_resolution_is_a_tie_on_either_side(logprobs, tie):
    weighed = dataclasses.replace(Parting(1, 2, 9), reference_logprobs=logprobs, slot_logprobs=(-2.0, -1.0), resolution=0.1)
    assert weighed.is_tie is tie and weighed.margin == pytest.approx(logprobs[0] - logprobs[1])


def test_unweighed_it_is_neither_tie_nor_change():
    assert Parting(1, 2, 9).margin is None and Parting(1, 2, 9).is_tie is None


@given(st.text(), st.text())
def test_the_runs_give_both_texts_back(reference, slot):
    runs = word_differences(reference, slot)
    assert "".join(t for kind, t in runs if kind != "only_reference") == slot
    assert "".join(t for kind, t in runs if kind == "only_reference") == "" or reference != slot
    assert [kind for kind, _ in runs if kind != "same"] or reference == slot
