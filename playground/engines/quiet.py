"""Keeps third-party chatter out of the console, at the loggers that make it.

Called once at the start of the process that runs models, before the libraries are imported.
Errors still get through.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings

_CHATTY = ("bitsandbytes", "torchao", "torch.utils._pytree", "accelerate", "filelock", "optimum", "kernels")


def quieten() -> None:
    """Raise the level of loggers that repeat themselves per layer, token or import."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TQDM_DISABLE", "1")  # bars that nobody redirected; those in progress.py say otherwise
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"(bitsandbytes|torchao|transformers|torch)(\..*)?")


def set_up_logging() -> None:
    """One format for every process of the app; HTTP clients say nothing about each request."""
    for name in ("httpx", "httpcore", "huggingface_hub"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")


def before_import(package: str) -> None:
    """What must be done before a noisy package is imported: gptqmodel prints a banner at INFO."""
    if package != "gptqmodel" or package in sys.modules:
        return
    try:
        from logbar import LogBar
    except ImportError:
        return
    with contextlib.redirect_stdout(io.StringIO()):
        LogBar.shared().setLevel("ERROR")
