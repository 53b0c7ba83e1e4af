# SPDX-License-Identifier: BSD-3-Clause
"""Groups of calls: `with tutti.group():`. How long they would take: `with tutti.simulate() as
cost:`."""
import contextlib
import ctypes
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Optional, Tuple

from . import _c
from .errors import UsageError, check

if TYPE_CHECKING:
    from .calls import Calls
    from .streams import Stream

# The number of open groups of all threads. If it is 0, a call need not look at the thread's.
n_open = 0
_lock = threading.Lock()


class _Thread(threading.local):
    depth = 0
    kept: List[Tuple["Calls", Optional["Stream"], Any]] = []
    then: List[Callable[[], None]] = []


_mine = _Thread()


def is_open() -> bool:
    """Whether this thread is inside a group."""
    return n_open != 0 and _mine.depth != 0


def keep(comm: "Calls", stream: Optional["Stream"], places: Any) -> None:
    """Keep the buffers of a call until the group has ended, which makes the call or queues it on
    its stream."""
    _mine.kept.append((comm, stream, places))


def afterwards(call: Callable[[], None]) -> None:
    """Call this function when the group has ended without an error."""
    _mine.then.append(call)


def _count(step: int) -> None:
    global n_open
    with _lock:
        n_open += step
    _mine.depth += step


class Cost:
    """The prediction of simulate()."""

    #: The time from when the last rank has made the calls to when they are done; 0 until the block
    #: has ended.
    seconds: float = 0.0


@contextlib.contextmanager
def group() -> Iterator[None]:
    """Calls inside are only queued. The end of the outermost group runs first all sends and
    receives at the same time, then the collectives. If an exception leaves the group, nothing of it
    runs."""
    with _block(_end):
        yield


@contextlib.contextmanager
def simulate() -> Iterator[Cost]:
    """Calls inside are not made. At the end of the block the Cost says how long they would take by
    the model of `tutti tune --table`. No other rank is asked, and the others need not do the same.
    Not inside a group."""
    if is_open():
        raise UsageError("simulate() is inside a group: end the group first, or call it outside")
    cost, us = Cost(), ctypes.c_double()
    with _block(lambda: _drop(us)):
        yield cost
    cost.seconds = us.value / 1e6


@contextlib.contextmanager
def _block(end: Callable[[], int]) -> Iterator[None]:
    check(_c.tutti_group_start())
    if _mine.depth == 0:
        _mine.kept, _mine.then = [], []
    _count(1)
    try:
        yield
    except BaseException:
        # If a call fails inside the group, the group's end runs nothing.
        _c.tutti_barrier(None, None)
        _end()
        raise
    check(end())
    if _mine.depth == 0:
        for call in _mine.then:
            call()


def _drop(us: ctypes.c_double) -> int:
    status: int = _c.tutti_group_simulate_end(ctypes.byref(us))
    _count(-1)
    _mine.kept = []
    return status


def _end() -> int:
    status: int = _c.tutti_group_end()
    _count(-1)
    if _mine.depth == 0:
        kept, _mine.kept = _mine.kept, []
        for comm, stream, places in kept:
            if stream is not None:
                stream._keep(places)
            elif status < 0:
                together = [place for other, _, mine in kept if other is comm for place in mine]
                comm._hold(status, tuple(together))
    return status
