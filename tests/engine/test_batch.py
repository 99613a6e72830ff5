"""Several copies of a prompt at once: the first is shown and is what it would be alone; all of them cost."""

import pytest

from playground.config import DecodeSpec, SlotSpec
from playground.events import Done, Failed, Memory, Started

from .conftest import ask, ids_of, measure, run


def slot(model, **decode):
    return SlotSpec("s", "s", model, DecodeSpec(**decode))


def found(events, kind):
    return next(e for e in events if isinstance(e, kind))


@pytest.mark.parametrize("decode", [{}, {"cache": "none"}, {"cache": "static"}, {"attention": "eager"}], ids=str)
def test_the_first_of_a_batch_is_what_it_is_alone_and_the_cache_grows_with_it(engine, tiny, decode):
    alone, three = run(engine, slot(tiny, **decode)), run(engine, slot(tiny, **decode), ask(batch=3))
    assert ids_of(three) == ids_of(alone) and found(three, Started).batch == 3
    kv, tripled = found(alone, Memory), found(three, Memory)
    assert tripled.kv_bytes == pytest.approx(3 * kv.kv_bytes, rel=0.01) and tripled.kv_predicted_bytes == 3 * kv.kv_predicted_bytes
    numbers = measure(three)
    assert numbers.new_tokens == 24 and numbers.all_tok_per_s == pytest.approx(3 * numbers.decode_tok_per_s)


def test_an_answer_that_ends_before_the_others_ends_the_column(engine, tiny):
    """Sampled, the sequences of a batch go different ways; the first one's ids end at its end of sequence."""
    for seed in range(6):
        events = run(engine, slot(tiny), ask(batch=4, temperature=3.0, seed=seed, ignore_eos=False, new_tokens=200))
        ids = ids_of(events)
        assert isinstance(events[-1], Done) and 1 not in ids[:-1]
        assert (events[-1].reason == "eos") == (ids[-1] == 1)


@pytest.mark.parametrize("decode", [{"speculation": "prompt-lookup"}, {"keep_prefix": True}], ids=str)
def test_what_answers_one_prompt_at_a_time_is_refused(engine, tiny, decode):
    failed = run(engine, slot(tiny, **decode), ask(batch=2))[-1]
    assert isinstance(failed, Failed) and "batch" in failed.message and "Set batch to 1" in failed.hint


def test_a_larger_batch_is_foreseen_to_need_more(engine, tiny):
    (one,), (eight,) = (engine.forecast((slot(tiny),), ask(batch=n)) for n in (1, 8))
    assert eight.kv_bytes == 8 * one.kv_bytes and eight.working_bytes == 8 * one.working_bytes
