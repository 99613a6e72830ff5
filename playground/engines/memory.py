"""A device's clock and memory counters.

On CUDA the allocator keeps the peak itself; on Linux the kernel keeps a process's peak RSS
and lets it be reset. Both cost nothing while a run is timed, so no sampling is needed.
Elsewhere the peak is not measurable and says so with None.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch

from ..config import ranks_of
from . import ranks

_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")
_COPIED_BYTES, _COPIES = 256 << 20, 5  # more than a CPU keeps in its caches
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


class Device:
    """The device of a slot: `name` as torch writes it ("cpu", "cuda:0")."""

    def __init__(self, name: str):
        self.torch = torch.device(name)
        self.name = str(self.torch)
        self.is_cuda = self.torch.type == "cuda"
        self._peak_is_fresh = False

    def now_ns(self) -> int:
        """Monotonic time with all queued work of the device finished."""
        if self.is_cuda:
            torch.cuda.synchronize(self.torch)
        return time.perf_counter_ns()

    @property
    def counter(self) -> str:
        """The name of the counter that `current_bytes` and `peak_bytes` read."""
        return f"{self.name} allocated" if self.is_cuda else "process RSS"

    def reset_peak(self) -> None:
        """Forget the peak of earlier runs."""
        if self.is_cuda:
            torch.cuda.reset_peak_memory_stats(self.torch)
        else:
            self._peak_is_fresh = _reset_peak_rss()

    def current_bytes(self) -> int:
        if self.is_cuda:
            return torch.cuda.memory_allocated(self.torch)
        return psutil.Process().memory_info().rss

    def peak_bytes(self) -> int | None:
        """The highest reading since `reset_peak`; None where the system cannot reset it."""
        if self.is_cuda:
            return torch.cuda.max_memory_allocated(self.torch)
        return _peak_rss() if self._peak_is_fresh else None

    def peak_reserved_bytes(self) -> int | None:
        return torch.cuda.max_memory_reserved(self.torch) if self.is_cuda else None

    def copy_bytes_per_s(self) -> float | None:
        """The best rate of a few large copies, bytes read and written together; None where there is no room for one."""
        if self.free_bytes() < 4 * _COPIED_BYTES:
            return None
        source = torch.ones(_COPIED_BYTES, dtype=torch.uint8, device=self.torch)
        target = torch.empty_like(source)
        times = []
        for _ in range(_COPIES):
            began = self.now_ns()
            target.copy_(source)
            times.append(self.now_ns() - began)
        return 2 * _COPIED_BYTES / (min(times) / 1e9)

    def free_bytes(self) -> int:
        """What could still be allocated here, container limits included."""
        if self.is_cuda:
            return torch.cuda.mem_get_info(self.torch)[0]
        return min(psutil.virtual_memory().available, _cgroup_free())


class HostLoad:
    """What other processes take of the CPUs while this one works."""

    def __init__(self) -> None:
        self.cores = psutil.cpu_count() or 1
        self._began = self._read()

    def other_cores(self) -> float | None:
        """Cores that others kept busy since this was made; None when no time has passed that the system counts."""
        (now, busy, own), (began, busy_before, own_before) = self._read(), self._began
        return max(0.0, (busy - busy_before) - (own - own_before)) / (now - began) if now > began else None

    @staticmethod
    def _read() -> tuple[float, float, float]:
        times, own = psutil.cpu_times(), psutil.Process().cpu_times()
        # guest time is inside user time on Linux; steal is other people's machines.
        busy = times.user + times.system + getattr(times, "nice", 0.0) + getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0)
        return time.monotonic(), busy, own.user + own.system


def pick_device(wanted: str) -> Device:
    """"auto" is the first CUDA device, else the CPU; of several devices the one that inputs go to."""
    if wanted == "auto":
        wanted = "cuda:0" if torch.cuda.is_available() else "cpu"
    if ranks_of(wanted) > 1:
        wanted = f"cuda:{ranks.rank()}" if torch.cuda.device_count() >= ranks_of(wanted) else "cpu"
    return Device(wanted.partition("+")[0])


def release_memory(thorough: bool = False) -> None:
    """Collect garbage and hand freed pages back to the device and the system.

    What survives is set aside from later collections: scanning the libraries' half a million
    objects takes a quarter of a second, which must not fall into a run. `thorough` looks at
    those again, as is needed where weights were dropped.
    """
    if thorough:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (OSError, AttributeError):
            pass  # not glibc: the allocator returns pages in its own time


@contextmanager
def returning_big_blocks() -> Iterator[None]:
    """Inside the block, freed blocks of a megabyte and more go back to the system at once.

    Loading frees many large temporaries; glibc would keep them and the peak would be a third
    higher. Afterwards its thresholds are at the upper end of what it chooses by itself, since
    a run allocates the same blocks again and again. See mallopt(3).
    """
    if _mallopt(_M_MMAP_THRESHOLD, 1 << 20):
        try:
            yield
        finally:
            _mallopt(_M_MMAP_THRESHOLD, 32 << 20)
            _mallopt(_M_TRIM_THRESHOLD, 64 << 20)
    else:
        yield


def _mallopt(option: int, value: int) -> bool:
    try:
        return sys.platform == "linux" and bool(ctypes.CDLL(None).mallopt(option, value))
    except (OSError, AttributeError):
        return False  # not glibc


def tensors_of(root: object) -> list[torch.Tensor]:
    """Every tensor reachable from a module, a cache or a quantization state.

    Looks into attributes of tensors (bitsandbytes keeps its scales there) and into the inner
    tensors of subclasses (torchao), which `parameters()` and `buffers()` do not show.
    """
    found: list[torch.Tensor] = []
    seen: set[int] = set()
    stack: list[object] = [root]
    while stack:
        item = stack.pop()
        if id(item) in seen or _is_leaf(item):
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            inner = _inner_tensors(item)
            stack.extend(inner)
            if not inner:
                found.append(item)
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, (list, tuple, set)):
            stack.extend(item)
        else:
            stack.extend(getattr(item, "__dict__", {}).values())
    return found


def _is_leaf(item: object) -> bool:
    if isinstance(item, (torch.nn.Module, torch.Tensor)):
        return False
    return item is None or callable(item) or isinstance(item, (str, bytes, int, float))


def _inner_tensors(tensor: torch.Tensor) -> list[torch.Tensor]:
    flatten = getattr(tensor, "__tensor_flatten__", None)
    return [getattr(tensor, name) for name in flatten()[0]] if flatten else []


def bytes_of(root: object) -> int:
    """Bytes held by the tensors of a module or cache, storage that several share counted once."""
    storages = {}
    for tensor in tensors_of(root):
        if tensor.is_mkldnn:  # opaque: its storage cannot be asked
            storages[(tensor.device, id(tensor))] = tensor.numel() * tensor.element_size()
            continue
        storage = tensor.untyped_storage()
        storages[(tensor.device, storage.data_ptr())] = storage.nbytes()
    return sum(size for (device, _), size in storages.items() if device.type != "meta")


def _reset_peak_rss() -> bool:
    """Linux: writing 5 sets the peak RSS (VmHWM) to the present RSS; see proc_pid_clear_refs(5)."""
    try:
        _CLEAR_REFS.write_text("5")
    except OSError:
        return False
    return True


def _peak_rss() -> int | None:
    for line in _STATUS.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def _cgroup_free() -> int:
    """Room left under a container's limit (cgroup v2, then v1); sys.maxsize without one."""
    for limit_file, used_file in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            limit = Path(limit_file).read_text().strip()
            used = Path(used_file).read_text().strip()
        except OSError:
            continue
        if limit.isdigit() and used.isdigit():
            return max(0, int(limit) - int(used))
    return sys.maxsize
