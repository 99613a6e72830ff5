"""Optional packages: whether one imports here, found out without leaving traces."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from . import quiet


def broken_package(package: str) -> str:
    """Why a package does not import, in one line; empty when it does."""
    if sys.modules.get(package, "") is None:
        return "it was left out; the worker's log says why"
    quiet.before_import(package)
    environment = dict(os.environ)
    try:
        import_module(package)
    except Exception as error:  # a broken native library raises anything
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
    finally:  # gptqmodel sets the allocator's options and the hub's folders for everybody
        os.environ.clear()
        os.environ.update(environment)
    return ""
