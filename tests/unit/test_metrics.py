"""The numbers of a run, from hand-written events with exact values."""

import pickle

import pytest

from playground.events import (
    Assessing,
    Compiled,
    Done,
    Failed,
    Memory,
    NoQuality,
    Quality,
    Queued,
    Ready,
    Round,
    Started,
    Tokens,
    WarmedUp,
)
from playground.metrics import RunMetrics, live_tok_per_s, measure, phase_of, text_of

S = 1_000_000_000


def tokens(at_s, n=1, text="x", visible=None):
    return Tokens(round(at_s * S), tuple(range(n)), text, n if visible is None else visible)


def test_prefill_stays_out_of_the_decode_rate():
    """100 tokens, the first after 1 s, the last after 5 s: 99 tokens in 4 s."""
    run = measure([Started(0, 10), *(tokens(1 + 4 * i / 99) for i in range(100))])
    assert run.ttft_s == 1.0
    assert run.decode_tok_per_s == pytest.approx(24.75)
    assert run.tpot_s == pytest.approx(1 / 24.75)
    assert run.e2e_tok_per_s == pytest.approx(100 / 5)
    assert run.prefill_tok_per_s == pytest.approx(10 / 1.0)


def test_ids_are_counted_not_groups():
    """20 ids in 4 groups of 5: the first group belongs to the prefill, 15 ids decode in 3 s."""
    run = measure([Started(0, 4), *(tokens(1 + i, n=5) for i in range(4))])
    assert (run.new_tokens, run.groups) == (20, 4)
    assert run.decode_tok_per_s == pytest.approx(15 / 3)
    assert run.itl_s == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("arrivals", [[], [tokens(1)], [tokens(1, n=7)]])
def test_without_a_second_group_there_is_no_rate(arrivals):
    run = measure([Started(0, 4), *arrivals, Done("length")])
    assert run.decode_tok_per_s is None and run.tpot_s is None and run.itl_s is None
    assert (run.ttft_s is None) == (not arrivals)


def test_nothing_is_measured_before_the_start():
    run = measure([Queued(3), Ready(2.5, 10, None, "float32", "cpu", "here"), WarmedUp(0.5)])
    assert (run.load_s, run.warmup_s) == (2.5, 0.5)
    assert run.ttft_s is None and run.prompt_tokens is None and run.finish is None


def test_loading_and_waiting_never_enter_the_numbers():
    slow = [Queued(2), Ready(99.0, 10, None, "float32", "cpu", "here"), WarmedUp(42.0)]
    quick = [Ready(0.0, 10, None, "float32", "cpu", "here")]
    timed = [Started(7 * S, 4), tokens(8), tokens(9), Done("length")]
    same = {"ttft_s", "decode_tok_per_s", "e2e_tok_per_s", "itl_s"}
    one, other = measure(slow + timed), measure(quick + timed)
    assert {n: getattr(one, n) for n in same} == {n: getattr(other, n) for n in same}


def test_generated_and_visible_ids_are_counted_apart():
    """An end of sequence counts as generated in every column, and as visible in none."""
    run = measure([Started(0, 4), tokens(1), tokens(2, text="", visible=0), Done("eos")])
    assert (run.new_tokens, run.visible_tokens, run.finish) == (2, 1, "eos")


def test_acceptance_uses_the_real_draft_lengths():
    run = measure([Started(0, 4), Round(5, 5), Round(2, 1), Round(0, 0), Round(5, 0)])
    assert run.acceptance_rate == 6 / 12
    assert run.mean_accepted_len == 1 + 6 / 4
    assert run.acceptance_by_position == (2 / 3, 1 / 3, 1 / 2, 1 / 2, 1 / 2)


def test_nothing_drafted_is_not_zero_percent():
    run = measure([Started(0, 4), Round(0, 0), Round(0, 0)])
    assert run.acceptance_rate is None and run.acceptance_by_position is None
    assert run.mean_accepted_len == 1.0
    assert measure([Started(0, 4)]).mean_accepted_len is None


def test_the_runs_own_share_of_the_peak():
    run = measure([Memory("process RSS", 1000, 1700, None, 200)])
    assert (run.peak_bytes, run.run_peak_bytes, run.kv_bytes, run.working_bytes) == (1700, 700, 200, 500)
    assert run.memory_counter == "process RSS"


def test_an_unmeasurable_peak_is_none():
    run = measure([Memory("process RSS", 1000, None, None, 0)])
    assert run.peak_bytes is None and run.run_peak_bytes is None and run.working_bytes is None
    assert run.kv_bytes == 0, "no cache is a measured zero"


def test_live_rate_looks_at_the_last_seconds_only():
    slow = [tokens(i) for i in range(10)]
    fast = [tokens(10 + i / 10) for i in range(31)]
    assert live_tok_per_s(slow + fast) == pytest.approx(10.0)
    assert live_tok_per_s([tokens(0)]) is None
    assert live_tok_per_s([tokens(0), tokens(50, n=5)]) == pytest.approx(5 / 50)


def test_text_is_every_events_text_in_order():
    assert text_of([Started(0, 1), tokens(1, text="ab"), tokens(2, text=""), Done("stopped", "c")]) == "abc"


def test_phases():
    ready = Ready(0.0, 1, None, "float32", "cpu", "here")
    assert phase_of([]) == "idle"
    assert phase_of([Queued(0)]) == "queued"
    assert phase_of([Queued(0), ready]) == "warming"
    assert phase_of([ready, Started(0, 1)]) == "answering"
    assert phase_of([Done("eos")]) == "done"
    assert phase_of([Done("stopped")]) == "stopped"
    assert phase_of([Failed("no")]) == "failed"


def test_every_event_survives_the_pipe():
    ready = Ready(0.0, 1, None, "float32", "cpu", "here")
    for event in (Queued(1), ready, Round(1, 1), tokens(1), Memory("c", 1, 2, None, 0), Done("eos"), Failed("a", "b")):
        assert pickle.loads(pickle.dumps(event)) == event


def test_no_events_no_numbers():
    assert measure([]) == RunMetrics()


ENDED = [Started(0, 4), tokens(1), tokens(2), Done("length")]
FOUND = Quality(0.25, 0.75, 8, 12.5, (("english", 10.0), ("code", 15.0)))


def test_quality_stands_beside_the_runs_own_numbers():
    run = measure([*ENDED, Assessing(0.5), FOUND])
    assert (run.kl_nats, run.top1, run.perplexity, run.quality_positions) == (0.25, 0.75, 12.5, 8)
    assert run.decode_tok_per_s == measure(ENDED).decode_tok_per_s and run.finish == "length"
    plain = measure(ENDED)
    assert plain.kl_nats is None and plain.top1 is None and plain.perplexity is None and plain.no_quality is None


def test_quality_that_could_not_be_measured_is_none_with_its_reason():
    run = measure([*ENDED, NoQuality("Another vocabulary.", "Choose one family.")])
    assert run.kl_nats is None and run.no_quality == "Another vocabulary. Choose one family."


@pytest.mark.parametrize(("end", "phase"), [(Done("length"), "done"), (Done("stopped"), "stopped")])
def test_an_assessment_is_a_phase_that_gives_back_how_the_run_ended(end, phase):
    events = [*ENDED[:-1], end]
    assert phase_of(events) == phase
    assert phase_of([*events, Assessing(), Assessing(0.5)]) == "assessing"
    assert phase_of([*events, Assessing(), FOUND]) == phase_of([*events, NoQuality("no")]) == phase


def test_rounds_have_times_and_a_history():
    """Drafting is averaged over rounds that drafted; verification over all."""
    rounds = [Round(4, 2, 0.2, 0.5), Round(0, 0, 0.0, 0.3), Round(4, 4, 0.4, 0.4)]
    events = [Started(0, 4)]
    for i, found in enumerate(rounds):
        events += [found, tokens(1 + i, n=1 + found.accepted)]
    run = measure([*events, Done("length")])
    assert run.draft_s == pytest.approx(0.3) and run.verify_s == pytest.approx(0.4)
    assert run.accepted_by_round == (2, 0, 4) and run.tokens_per_step == pytest.approx(9 / 3)


def test_rounds_without_times_leave_them_out():
    run = measure([Started(0, 4), Round(4, 2), tokens(1, n=3), Done("length")])
    assert run.draft_s is None and run.verify_s is None


def test_compiling_is_set_up_before_the_start_and_a_fault_after_it():
    ready = Ready(1.0, 10, None, "float32", "cpu", "here")
    before = [ready, Compiled(40.0), Compiled(2.0), WarmedUp(0.5), Started(0, 4), tokens(1), tokens(2)]
    run = measure([*before, Done("length")])
    assert (run.compile_s, run.recompiled_s, run.ttft_s) == (42.0, None, 1.0)
    again = measure([*before, Compiled(3.0), Done("length")])
    assert (again.compile_s, again.recompiled_s) == (42.0, 3.0)
    assert measure([ready, Started(0, 4)]).compile_s is None
    assert phase_of([ready, Compiled(1.0)]) == "warming" and phase_of(before + [Compiled(1.0)]) == "answering"
