"""How weights are stored: the methods, what each lets one choose, and the checks of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import PurePath as Path
from typing import Any, Literal

from .checks import ConfigError, checked_bool, checked_choice, checked_text, shown

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
QuantizationMethod = Literal[
    "none",
    "bnb-int8",
    "bnb-nf4",
    "bnb-fp4",
    "gptq",
    "torchao-int8",
    "torchao-int8-dynamic",
    "torchao-int8-static",
    "torchao-int4",
    "torchao-fp8",
]

BITS = (2, 3, 4, 8)
GROUP_SIZES = (32, 64, 128, 256)
WHOLE_COLUMN = -1
DEFAULT_CALIBRATION = "default"

# What each method lets one choose, with the value it takes when nothing is said.
_QUANTIZATION_OPTIONS: dict[str, dict[str, Any]] = {
    "bnb-int8": {"threshold": 6.0},
    "bnb-nf4": {"double_quantization": True, "compute_dtype": "auto"},
    "bnb-fp4": {"double_quantization": True, "compute_dtype": "auto"},
    "gptq": {"bits": 4, "group_size": 128, "act_order": False, "calibration": DEFAULT_CALIBRATION},
    "torchao-int8-static": {"calibration": DEFAULT_CALIBRATION},
    "torchao-int4": {"group_size": 128},
}


@dataclass(frozen=True)
class Quantization:
    """How weights are stored. "none" leaves them as the checkpoint has them, quantized or not.

    An option that is not given takes its method's default; one that the method does not have
    stays None, and giving it raises ConfigError. `group_size` counts weights along the input
    width that share a scale, -1 (GPTQ only) the whole column; `threshold` is the activation
    magnitude from which bitsandbytes keeps a column in 16 bits (0: none); `calibration` is
    "default" or a text file.
    """

    method: QuantizationMethod = "none"
    bits: int | None = None
    group_size: int | None = None
    act_order: bool | None = None
    calibration: str | None = None
    double_quantization: bool | None = None
    threshold: float | None = None
    compute_dtype: Dtype | None = None

    def __post_init__(self) -> None:
        checked_choice("method", self.method, QuantizationMethod)
        defaults = _QUANTIZATION_OPTIONS.get(self.method, {})
        for option in _quantization_option_names():
            given = getattr(self, option)
            if given is None:
                object.__setattr__(self, option, defaults.get(option))
            elif option not in defaults:
                allowed = ", ".join(defaults) or "none"
                raise ConfigError(option, f"{self.method} has no such option; it has: {allowed}.")
            else:
                _check_quantization_option(self.method, option, given)

    @property
    def is_none(self) -> bool:
        return self.method == "none"

    def __str__(self) -> str:
        words = [self.method]
        if self.bits is not None:
            words.append(f"{self.bits}-bit")
        if self.group_size is not None:
            words.append("whole columns" if self.group_size == WHOLE_COLUMN else f"g{self.group_size}")
        words += [
            f"{option} {Path(value).name if option == 'calibration' else value}"
            for option, default in _QUANTIZATION_OPTIONS.get(self.method, {}).items()
            if option not in ("bits", "group_size") and (value := getattr(self, option)) != default
        ]
        return " ".join(words)


def _quantization_option_names() -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(Quantization) if f.name != "method")


def _check_quantization_option(method: str, option: str, value: Any) -> None:
    if option in ("act_order", "double_quantization"):
        checked_bool(option, value)
    elif option == "compute_dtype":
        checked_choice(option, value, Dtype)
    elif option == "calibration":
        if not checked_text(option, value).strip():
            raise ConfigError(option, f'got an empty name; give "{DEFAULT_CALIBRATION}" or the path of a text file.')
    elif option == "threshold":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1000:
            raise ConfigError(option, f"got {shown(value)}; give a number from 0 to 1000.")
    else:
        allowed = BITS if option == "bits" else GROUP_SIZES + ((WHOLE_COLUMN,) if method == "gptq" else ())
        if isinstance(value, bool) or value not in allowed:
            raise ConfigError(option, f"got {shown(value)}; allowed: {', '.join(map(str, allowed))}.")
