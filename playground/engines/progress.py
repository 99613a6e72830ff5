"""Reports of progress: from libraries' bars to the page, and on a console."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm.auto import tqdm

# Hears a stage ("loading weights") and the fraction done, None where the end is unknown.
Report = Callable[[str, float | None], None]


def unheard(_stage: str, _fraction: float | None) -> None:
    """A Report that nobody listens to."""


def report_to_console(stage: str, fraction: float | None) -> None:
    """A Report that redraws one line on standard error."""
    share = "" if fraction is None else f" {fraction:.0%}"
    print(f"\r\033[K{stage}{share}", end="", file=sys.stderr, flush=True)


class _Nowhere:
    def write(self, _text: str) -> None:
        pass

    def flush(self) -> None:
        pass


def reporting_bar(stage: str, report: Report, only_unit: str | None = None) -> type[tqdm]:
    """A tqdm class that reports fractions of `stage` and draws nothing.

    `only_unit` keeps to bars of one unit: the hub client draws one for files, one for bytes.
    """

    class ReportingBar(tqdm):
        def __init__(self, *args, **kwargs):
            kwargs.pop("name", None)
            super().__init__(*args, **{**kwargs, "disable": False, "file": _Nowhere(), "mininterval": 0.2})

        def update(self, n=1):
            drawn = super().update(n)
            if self.total and only_unit in (None, self.unit):
                report(stage, min(1.0, self.n / self.total))
            return drawn

    return ReportingBar


@contextmanager
def transformers_bars(stage: str, report: Report) -> Iterator[None]:
    """Inside the block, Transformers' own progress bars go to the page instead of the console."""
    from transformers.utils import logging

    bar = reporting_bar(stage, report)
    previous = logging.set_tqdm_hook(lambda _factory, args, kwargs: bar(*args, **kwargs))
    try:
        yield
    finally:
        logging.set_tqdm_hook(previous)
