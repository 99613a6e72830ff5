"""Every drafter: greedy ids unchanged, real draft lengths, times of a round, and what a pair cannot do."""

import pytest

from playground.config import DecodeSpec, ModelSpec, SlotSpec
from playground.engine import Stop
from playground.events import Done, Drafts, Failed, Round, Tokens

from .conftest import ask, ids_of, make_head, make_model, make_tokenizer, measure, run, text_of
from .test_runs import plain


def slot(model, decode=DecodeSpec(), name="s"):
    return SlotSpec(name, name, model, decode)


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """A drafter with another tokenizer: other merges, another size."""
    tokenizer = make_tokenizer(300, corpus=["lorem ipsum dolor sit amet fox fox"] * 9)
    return ModelSpec(make_model(tmp_path_factory.mktemp("stranger"), seed=3, tokenizer=tokenizer), dtype="float32")


@pytest.fixture(scope="session")
def head(tiny, tmp_path_factory):
    return make_head(tmp_path_factory.mktemp("head"), tiny)


@pytest.fixture(params=["prompt-lookup", "draft-model", "universal", "early-exit", "draft-head"])
def decode(request, other, stranger, head):
    return {
        "prompt-lookup": DecodeSpec(speculation="prompt-lookup"),
        "draft-model": DecodeSpec(speculation="draft-model", drafter=other),
        "universal": DecodeSpec(speculation="universal", drafter=stranger),
        "early-exit": DecodeSpec(speculation="early-exit", exit_layer=1),
        "draft-head": DecodeSpec(speculation="draft-head", draft_head=head),
    }[request.param]


@pytest.mark.parametrize("draft_len", [1, 4])
@pytest.mark.parametrize("length", [1, 7, 30])
def test_no_drafter_changes_a_greedy_id(engine, tiny, decode, length, draft_len):
    prompt = ask("fox fox the quick brown fox", new_tokens=length, draft_len=draft_len)
    events = run(engine, slot(tiny, decode), prompt)
    assert isinstance(events[-1], Done), events[-1]
    assert ids_of(events) == plain(tiny, prompt)[0]


def test_a_stop_string_ends_every_drafter_at_the_same_id(engine, tiny, decode):
    """The string is taken from the plain answer; what a round accepted beyond it is dropped and does not count."""
    whole = text_of(run(engine, slot(tiny), ask(new_tokens=60)))
    stop = whole[len(whole) // 2 :][:3]
    prompt = ask(new_tokens=60, draft_len=4, stop_strings=f"never there\n{stop}")
    plainly = run(engine, slot(tiny), prompt)
    assert plainly[-1].reason == "stop_string" and stop in text_of(plainly) and stop not in text_of(plainly)[:-len(stop) - 8]
    drafted = run(engine, slot(tiny, decode), prompt)
    assert ids_of(drafted) == ids_of(plainly) and drafted[-1].reason == "stop_string"
    assert text_of(drafted) == text_of(plainly)
    last = [e for e in drafted if isinstance(e, Round)][-1]
    emitted = [e for e in drafted if isinstance(e, Tokens)][-1].ids
    assert last.accepted <= last.drafted <= len(emitted)


@pytest.mark.parametrize("draft_len", [2, 5, 8])
def test_a_stop_string_in_the_middle_of_an_accepted_draft_ends_it_there(engine, tiny, draft_len):
    """A drafter equal to its target has whole rounds accepted, so the string lies within one."""
    whole = text_of(run(engine, slot(tiny), ask(new_tokens=60)))
    for start in (9, 17, 30):
        prompt = ask(new_tokens=60, draft_len=draft_len, stop_strings=whole[start : start + 4])
        plainly = run(engine, slot(tiny), prompt)
        drafted = run(engine, slot(tiny, DecodeSpec(speculation="draft-model", drafter=tiny)), prompt)
        assert ids_of(drafted) == ids_of(plainly) and len(ids_of(drafted)) < 60
        last = [e for e in drafted if isinstance(e, Round)][-1]
        assert last.accepted <= last.drafted and measure(drafted).acceptance_rate == 1.0


def test_after_a_stop_the_text_is_a_prefix_of_the_plain_answer(engine, tiny, decode):
    prompt, stop, seen = ask(new_tokens=80), Stop(), []
    for event in engine.run(slot(tiny, decode), prompt, stop):
        seen.append(event)
        if len(ids_of(seen)) > 10:
            stop.set()
    expected = plain(tiny, prompt)[0]
    assert seen[-1].reason == "stopped" and ids_of(seen) == expected[: len(ids_of(seen))] and len(ids_of(seen)) < 80


def test_a_run_with_speculation_leaves_the_next_plain_run_as_it_was(engine, tiny, decode):
    before = ids_of(run(engine, slot(tiny)))
    run(engine, slot(tiny, decode))
    module = next(iter(engine._store._weights.values())).pristine
    assert module.generation_config.num_assistant_tokens is None
    assert ids_of(run(engine, slot(tiny))) == before


def test_rounds_say_how_long_draft_and_verification_took(engine, tiny, decode):
    events = run(engine, slot(tiny, decode), ask("fox fox fox fox", new_tokens=40))
    rounds = [e for e in events if isinstance(e, Round)]
    assert rounds and all(r.draft_s >= 0 and r.verify_s > 0 for r in rounds)
    numbers = measure(events)
    assert numbers.verify_s == pytest.approx(sum(r.verify_s for r in rounds) / len(rounds))
    times = [e.t_ns for e in events if isinstance(e, Tokens)]
    spent = sum(r.draft_s + r.verify_s for r in rounds[1:])
    assert spent <= (times[-1] - times[0]) / 1e9, "parts are not more than the whole"
    assert numbers.accepted_by_round == tuple(r.accepted for r in rounds)
    assert numbers.tokens_per_step == pytest.approx(40 / len(rounds))


def test_accepted_text_is_marked_and_lost_drafts_are_told_at_the_end(engine, tiny):
    """A drafter equal to its target: all but the bonus id of each round comes from drafts, and nothing is lost."""
    events = run(engine, slot(tiny, DecodeSpec(speculation="draft-model", drafter=tiny)), ask(new_tokens=23))
    drafts = next(e for e in events if isinstance(e, Drafts))
    rounds = [e for e in events if isinstance(e, Round)]
    assert len(drafts.accepted) == len(drafts.rejected) == len(rounds) and not any(drafts.rejected)
    marked = sum(e.drafted_chars for e in events if isinstance(e, Tokens))
    assert 0 < marked <= len(text_of(events)) and isinstance(events[-1], Done)
    assert all(e.drafted_chars <= len(e.text) for e in events if isinstance(e, Tokens))
    kinds = [type(e) for e in events]
    assert kinds.index(Drafts) > max(i for i, k in enumerate(kinds) if k is Tokens), "no round pays for it"


def test_a_drafter_that_is_wrong_has_its_lost_drafts_told(engine, tiny, other):
    events = run(engine, slot(tiny, DecodeSpec(speculation="draft-model", drafter=other)), ask(new_tokens=23))
    assert any(next(e for e in events if isinstance(e, Drafts)).rejected)


def test_the_same_text_with_marks_as_without(engine, tiny):
    plainly = run(engine, slot(tiny), ask("하늘 🎉 fox", new_tokens=60))
    drafted = run(engine, slot(tiny, DecodeSpec(speculation="draft-model", drafter=tiny)), ask("하늘 🎉 fox", new_tokens=60))
    assert text_of(drafted) == text_of(plainly)


@pytest.mark.parametrize(("schedule", "lengths"), [("constant", {3}), ("heuristic", {5, 7, 9, 11})])
def test_the_schedule_says_whether_k_follows_success(engine, tiny, schedule, lengths):
    """With every draft accepted the heuristic adds two ids a round."""
    prompt = ask(new_tokens=60, draft_len=3, draft_schedule=schedule)
    events = run(engine, slot(tiny, DecodeSpec(speculation="draft-model", drafter=tiny)), prompt)
    drafted = [e.drafted for e in events if isinstance(e, Round)][:-1]
    assert drafted[0] == 3 and lengths <= set(drafted)
    assert ids_of(events) == plain(tiny, prompt)[0]


def test_a_threshold_cuts_drafts_short_and_zero_does_not(engine, tiny, other):
    def drafted(threshold):
        prompt = ask(new_tokens=40, draft_len=6, draft_threshold=threshold)
        events = run(engine, slot(tiny, DecodeSpec(speculation="draft-model", drafter=other)), prompt)
        assert ids_of(events) == plain(tiny, prompt)[0]
        return measure(events).drafted

    assert drafted(1.0) < drafted(0.0)


def test_early_exit_of_nearly_all_layers_agrees_more_than_of_few(engine, tmp_path):
    model = ModelSpec(make_model(tmp_path / "m", layers=6), dtype="float32")

    def rate(layers):
        return measure(run(engine, slot(model, DecodeSpec(speculation="early-exit", exit_layer=layers)), ask(new_tokens=60))).acceptance_rate

    assert rate(5) > rate(1)


@pytest.mark.parametrize("exit_layer", [2, 30])
def test_an_exit_that_leaves_no_layer_out_is_refused(engine, tiny, exit_layer):
    failed = run(engine, slot(tiny, DecodeSpec(speculation="early-exit", exit_layer=exit_layer)))[-1]
    assert isinstance(failed, Failed) and "exit_layer" in failed.message and "2 layers" in failed.message
    assert engine.resident() == ()


def test_universal_with_the_targets_own_tokenizer_is_refused_with_what_to_use(engine, tiny, other):
    failed = run(engine, slot(tiny, DecodeSpec(speculation="universal", drafter=other)))[-1]
    assert isinstance(failed, Failed) and "scores" in failed.message and "draft-model" in failed.hint
    assert engine.resident() == ()


def test_sampling_with_another_tokenizer_is_refused_since_it_would_not_be_the_targets_distribution(engine, tiny, stranger):
    failed = run(engine, slot(tiny, DecodeSpec(speculation="universal", drafter=stranger)), ask(temperature=1.0))[-1]
    assert isinstance(failed, Failed) and "temperature" in failed.message and "0" in failed.hint
    assert engine.resident() == ()
