# SPDX-License-Identifier: BSD-3-Clause
"""What the user sees of a call: the error that it raises, and its entry in the record of the last calls."""
import time
from datetime import timedelta
from typing import Optional, Sequence

import torch
import torch.distributed as dist

from .. import _c

BackendError = getattr(dist, "DistBackendError", RuntimeError)
_Status = _c.tutti_status
#: These are the caller's mistakes, and leave the group as it was.
MISTAKES = (_Status.TUTTI_EINVAL, _Status.TUTTI_EUSAGE, _Status.TUTTI_EUNSUPPORTED)
_is_profiled = torch.autograd._profiler_enabled


def milliseconds(timeout: timedelta) -> int:
    """`timeout` in milliseconds for the library, where 0 means none."""
    return max(0, min(int(timeout / timedelta(milliseconds=1)), 2**31 - 1))


def error_of(status: int, call: str, comm: Optional[int] = None) -> Exception:
    """The exception of a call of this thread, or of the making of `comm`, that ended with `status`."""
    text = _c.tutti_last_error(comm).decode(errors="replace")
    name = _c.tutti_status_name(status).decode()
    if status == _Status.TUTTI_ETIMEOUT:
        call = f"{call}: Timed out"
    text = f"{call} ({name}): {text or _c.tutti_status_string(status).decode()}"
    return (RuntimeError if status in MISTAKES else BackendError)(text)


def fresh(error: BaseException) -> BaseException:
    """`error` without a traceback, whose frames would keep all that they use, the group among it."""
    return type(error)(*error.args)


class Entry:
    """The record of one call, which a profiler that is on gets, too."""

    __slots__ = ("number", "call", "elements", "dtype", "peer", "begun", "ended", "state", "event")

    def __init__(self, number: int, title: str, call: str, elements: int,
                 tensors: Sequence[torch.Tensor], peer: int, profiled: bool = True) -> None:
        self.number = number
        self.call = call
        self.elements = elements
        self.dtype = tensors[0].dtype if tensors else None
        self.peer = peer
        self.begun = time.time()
        self.ended = 0.0
        self.state = "begun"
        self.event = None
        if profiled and _is_profiled():
            self.event = torch.autograd._record_function_with_args_enter(f"{title}:{call}", *tensors)

    def end(self, error: Optional[BaseException]) -> None:
        """The call is done, or failed."""
        if self.event is not None:
            torch.autograd._record_function_with_args_exit(self.event)
        self.ended = time.time()
        self.state = "failed" if error else "done"

    def __str__(self) -> str:
        of = f", peer or root {self.peer}" if self.peer >= 0 else ""
        took = f" after {(self.ended - self.begun) * 1e3:.3f} ms" if self.ended else ""
        kind = f" of {self.dtype}" if self.dtype is not None else ""
        return (f"#{self.number} {self.call}: {self.elements} elements{kind}{of}: "
                f"{self.state}{took}")
