"""Several turns: what is sent, what is taken over from the cache, and that no id changes by it."""

import pytest

from playground.config import ConfigError, DecodeSpec, Prompt, Settings, SlotSpec
from playground.events import Done, Failed, Started

from .conftest import ask, ids_of, run, text_of
from .test_caches import windowed  # noqa: F401  (a fixture)


def slot(model, name="s", **decode):
    return SlotSpec(name, name, model, DecodeSpec(**decode))


def started(events):
    return next(e for e in events if isinstance(e, Started))


def talk(engine, one, turns=("the quick brown fox", "jumps over", "the lazy dog")):
    """Events of each turn."""
    settings = Settings(new_tokens=12, ignore_eos=True)
    prompt, found = Prompt(turns[0], settings), []
    for i, text in enumerate(turns):
        if i:
            prompt = prompt.follow_up(text, settings, {one.id: text_of(found[-1])})
        found.append(run(engine, one, prompt))
        assert isinstance(found[-1][-1], Done), found[-1][-1]
    return found


def test_keeping_the_cache_changes_no_id_and_prefills_less(engine, tiny):
    plain = talk(engine, slot(tiny, "plain"))
    kept = talk(engine, slot(tiny, "kept", keep_prefix=True))
    assert [ids_of(turn) for turn in kept] == [ids_of(turn) for turn in plain]
    assert [started(turn).reused_tokens for turn in plain] == [0, 0, 0]
    first, second, third = (started(turn) for turn in kept)
    assert first.reused_tokens == 0 and second.reused_tokens >= first.prompt_tokens
    assert second.reused_tokens < third.reused_tokens < third.prompt_tokens


def test_each_turn_sends_the_history(engine, tiny):
    lengths = [started(turn).prompt_tokens for turn in talk(engine, slot(tiny))]
    assert lengths[0] < lengths[1] - 12 < lengths[2] - 24


def test_a_new_conversation_takes_nothing_over(engine, tiny):
    one = slot(tiny, keep_prefix=True)
    talk(engine, one)
    again = run(engine, one, ask(new_tokens=12))
    assert started(again).reused_tokens == 0


def test_another_history_takes_over_only_what_is_the_same(engine, tiny):
    one = slot(tiny, keep_prefix=True)
    talk(engine, one, ("the quick brown fox", "jumps"))
    other = Prompt("jumps", Settings(new_tokens=12, ignore_eos=True), (("s", (("하늘은 왜 파란가요", "the dog"),)),))
    events = run(engine, one, other)
    plain = run(engine, slot(tiny, "s"), other)
    assert ids_of(events) == ids_of(plain) and started(events).reused_tokens < 12


def test_kept_caches_are_counted_and_go_with_the_weights(engine, tiny):
    run(engine, slot(tiny, "plain"), ask(new_tokens=12))
    (before,) = engine.resident()
    talk(engine, slot(tiny, keep_prefix=True))
    (after,) = engine.resident()
    assert after.bytes > before.bytes
    engine.unload(None)
    assert engine.resident() == ()


@pytest.mark.parametrize("how", [{"cache": "static"}, {"cache": "none"}, {"speculation": "prompt-lookup"}])
def test_what_cannot_keep_a_cache_is_refused_when_a_slot_is_made(tiny, how):
    with pytest.raises(ConfigError, match="keep_prefix"):
        slot(tiny, keep_prefix=True, **how)


def test_a_model_with_windows_is_refused(engine, windowed):  # noqa: F811
    failed = run(engine, slot(windowed, keep_prefix=True))[-1]
    assert isinstance(failed, Failed) and "window" in failed.message
