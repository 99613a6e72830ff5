"""How large a KV cache gets, by hand-made figures."""

from playground.checkup import KvShape

FULL = KvShape((None,) * 30, 192, 2)
MIXED = KvShape((None, 16, 16), 4, 2)


def test_full_attention_grows_with_length_and_batch():
    assert FULL.bytes(1000) == 2 * 30 * 192 * 1000 * 2
    assert FULL.bytes(1000, batch=8) == 8 * FULL.bytes(1000)


def test_a_layer_with_a_window_stops_at_it():
    assert MIXED.values(10) == 2 * 4 * 30
    assert MIXED.values(100) == 2 * 4 * (100 + 16 + 16)


def test_the_longest_fits_and_one_more_does_not():
    for shape in (FULL, MIXED):
        for room in (shape.bytes(1), shape.bytes(777) + 1, 10**9):
            longest = shape.longest(room, batch=1)
            assert shape.bytes(longest) <= room < shape.bytes(longest + 1)
    assert FULL.longest(10) == 0


def test_windows_everywhere_have_no_end_once_they_fit():
    windows = KvShape((16, 16), 4, 2)
    assert windows.longest(windows.bytes(16)) is None
    assert windows.longest(windows.bytes(16) - 1) == 15
