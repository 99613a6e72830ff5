"""The processes of a tensor-parallel slot: how they agree. Without a process group everything here is the identity.

torchrun starts the ranks and ends them all when one dies. Rank 0 talks to the web process; the others do what it does.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

# Ranks wait for the next request as long as the page is open. torchrun ends them when one of them dies.
_PATIENCE = timedelta(days=365)


def wanted() -> int:
    """How many ranks torchrun has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """This process's place among them; 0 without torchrun."""
    return int(os.environ.get("RANK", "0"))


def meet() -> None:
    """Join the group: NCCL between GPUs, Gloo between processes on a CPU."""
    if wanted() > 1 and not dist.is_initialized():
        on_gpus = torch.cuda.is_available() and torch.cuda.device_count() >= wanted()
        if on_gpus:
            torch.cuda.set_device(rank())
        dist.init_process_group("cuda:nccl,cpu:gloo" if on_gpus else "gloo", timeout=_PATIENCE)


def alone() -> bool:
    """Whether there is nobody to agree with."""
    return wanted() == 1


def shared(thing: Any = None) -> Any:
    """Rank 0's `thing`, on every rank."""
    if alone():
        return thing
    box = [thing]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def agreed(flag: bool) -> bool:
    """Rank 0's answer, so that all of them stop at the same step."""
    return bool(_combined(int(flag) if rank() == 0 else 0, dist.ReduceOp.MAX)) if not alone() else flag


def least(number: int) -> int:
    """The smallest of all ranks' numbers."""
    return number if alone() else _combined(number, dist.ReduceOp.MIN)


def total(number: int | None) -> int | None:
    """The sum over all ranks; None stays None."""
    return number if alone() or number is None else _combined(number, dist.ReduceOp.SUM)


def _combined(number: int, how: Any) -> int:
    cell = torch.tensor([number], dtype=torch.int64)
    dist.all_reduce(cell, how)
    return int(cell)


def abandon() -> None:
    """After a failure that the other ranks may not share: end this process, and torchrun ends the group."""
    if not alone():
        os._exit(1)
