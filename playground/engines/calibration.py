"""Text that quantization is calibrated on and quality is measured on: what ships, or a user's file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ..quantization import DEFAULT_CALIBRATION
from .refusal import Refusal

TEXTS = Path(__file__).parent / "texts"
QUALITY_TEXTS = ("english", "korean", "code")
SAMPLE_TOKENS = 256
MAX_SAMPLES = 64
MIN_TOKENS = 256
MAX_BYTES = 8_000_000


@dataclass(frozen=True)
class Calibration:
    """A calibration text and what is recorded of it."""

    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def read_calibration(name: str) -> Calibration:
    """The text called "default", or the file at a path. Raises Refusal when it cannot be used."""
    if name == DEFAULT_CALIBRATION:
        return Calibration(name, (TEXTS / "calibration.txt").read_text(encoding="utf-8"))
    path = Path(name).expanduser()
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Refusal(
                f"calibration: {path.name} has {path.stat().st_size / 1e6:.0f} MB; at most {MAX_BYTES / 1e6:.0f} MB are read.",
                f"{MAX_SAMPLES * SAMPLE_TOKENS:,} tokens are used at most: a shorter file does as well.",
            )
        return Calibration(path.name, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refusal(f"calibration: {name} cannot be read: {error.strerror}.", "Give the path of a text file.") from error
    except UnicodeDecodeError as error:
        raise Refusal(f"calibration: {name} is not UTF-8 text.", "Give a plain text file.") from error


def samples(ids: list[int]) -> list[list[int]]:
    """A text's ids cut into samples of SAMPLE_TOKENS, at most MAX_SAMPLES, spread over the whole text.

    Raises Refusal for a text of fewer than MIN_TOKENS.
    """
    if len(ids) < MIN_TOKENS:
        raise Refusal(
            f"calibration: the text has {len(ids)} tokens; at least {MIN_TOKENS} are needed.", "Give a longer text."
        )
    pieces = [ids[i : i + SAMPLE_TOKENS] for i in range(0, len(ids) - SAMPLE_TOKENS + 1, SAMPLE_TOKENS)]
    stride = max(1, len(pieces) // MAX_SAMPLES)
    return pieces[::stride][:MAX_SAMPLES]


def quality_texts() -> dict[str, str]:
    """The short texts that perplexity is measured on, by name."""
    return {name: (TEXTS / f"quality-{name}.txt").read_text(encoding="utf-8") for name in QUALITY_TEXTS}
