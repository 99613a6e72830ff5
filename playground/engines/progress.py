"""Libraries' progress bars, turned into reports for the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm.auto import tqdm

# Hears a stage ("loading weights") and the fraction done, None where the end is unknown.
Report = Callable[[str, float | None], None]


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
