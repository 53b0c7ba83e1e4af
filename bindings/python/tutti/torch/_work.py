# SPDX-License-Identifier: BSD-3-Clause
"""Calls that are done later: the Work of each, and the threads that complete its future.

Threads: the stream's thread finishes each Work, with the GIL, and never touches the Engine: so an Engine, whose
end waits for that thread, is never freed on it. Callbacks of futures run on other threads: see Callbacks.
"""
import collections
import itertools
import logging
import math
import os
import queue
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, Callable, Dict, List, Optional

import torch
from torch._C import _distributed_c10d as c10d

from .. import _c
from ._record import BackendError, Entry, error_of, milliseconds

_log = logging.getLogger("tutti.torch")
#: How many Works are kept for C++ which nobody has asked yet: see keep().
UNASKED = 1024
_NO_TIMEOUT = timedelta(0)
# Seconds until Ctrl-C is heard at the latest: see take().
_TURN = 0.5
# Whether this PyTorch forgets the Python half of a Work when only C++ holds it: see keep().
_FORGETS = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 8)

# The Works that the stream's thread is to finish, by the numbers that it is given.
_under_way: Dict[int, "Work"] = {}
_numbers = itertools.count(1)
# The Works that nobody has waited for yet, by the id of each: see keep().
_unasked: "collections.OrderedDict[int, Work]" = collections.OrderedDict()
_futures = threading.Lock()


class _Row:
    """The futures that one thread of callbacks completes, in their order."""

    __slots__ = ("jobs", "pending", "thread")

    def __init__(self) -> None:
        self.jobs: "queue.SimpleQueue[Optional[Work]]" = queue.SimpleQueue()
        #: How many are not completed yet; the one whose callbacks run is among them.
        self.pending = 0
        self.thread: Optional[threading.Thread] = None


class Callbacks:
    """Threads that complete the futures of a group's calls, since a callback may begin a call and wait for
    it, which the stream's thread could not end meanwhile.

    Threads: the program is at depth 0. A thread at depth 1 completes the futures of its calls in their order,
    so that these callbacks begin the same calls in the same order on all ranks; one at depth 2 those of calls
    that callbacks at depth 1 begin; and so on. So what a callback waits for never has to come behind it. What
    callbacks of different depths begin has no common order. The thread at depth 1 stays until the end; a
    deeper one ends when it has nothing to do, since a callback that begins the next call of a chain, with
    itself as the callback, makes one more depth with each."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forget all threads, and what they have to do: in the child of a fork, which has none of them."""
        # A destructor, or a handler of a signal, may come here again on the same thread.
        self._lock = threading.RLock()
        self._rows: Dict[int, _Row] = {}
        self._ended = False

    @staticmethod
    def depth() -> int:
        """The depth of this thread."""
        return getattr(_here, "depth", 0)

    def settle(self, work: "Work", depth: int) -> None:
        """Complete the future of a Work that was begun at that depth. By the stream's thread alone."""
        with self._lock:
            row = self._rows.get(depth)
            if row is None:
                row = _Row()
                row.thread = threading.Thread(target=self._serve, args=(row, depth), daemon=True,
                                              name=f"tutti callbacks {depth + 1}")
                try:
                    row.thread.start()
                except RuntimeError:  # The interpreter ends, or there are too many.
                    row = None
                else:
                    self._rows[depth] = row
            if row is not None:
                row.pending += 1
                row.jobs.put(work)
        if row is None:
            work.settle()

    def settle_over(self, work: "Work", depth: int) -> None:
        """Complete the future of a Work that is over. Behind those of its depth that are not completed yet,
        since their callbacks come first on a rank where the Work was not over; else here, at once."""
        with self._lock:
            row = None if self._ended else self._rows.get(depth)
            if row is not None and row.pending:
                row.pending += 1
                row.jobs.put(work)
                return
        work.settle()

    # Does not touch the Engine either, so that its end may wait for the thread.
    def _serve(self, row: _Row, depth: int) -> None:
        _here.depth = depth + 1
        while True:
            work = row.jobs.get()
            if work is None:
                return
            try:
                work.settle()
            except Exception:  # pylint: disable=broad-except
                _log.exception("a future was not completed")
            del work
            with self._lock:
                row.pending -= 1
                if row.pending == 0 and depth > 0:
                    del self._rows[depth]
                    return

    def end(self) -> None:
        """Wait until all callbacks have run. When the stream is gone, so no call ends any more."""
        with self._lock:
            self._ended = True
            rows = list(self._rows.values())
        for row in rows:
            row.jobs.put(None)
        threads = [row.thread for row in rows if row.thread is not None]
        # A callback may have had the last reference to the group.
        if threading.current_thread() not in threads:
            for thread in threads:
                thread.join()


_here = threading.local()


def take(lock: Any, limit: Optional[timedelta] = None) -> bool:
    """Acquire the lock, or raise what a handler of a signal raises meanwhile; whether it was free in time. A
    signal that comes after Python last looked for one, but before it sleeps for the lock, does not wake it:
    so it looks again."""
    end = math.inf if limit is None else time.monotonic() + limit.total_seconds()
    while True:
        left = max(0.0, end - time.monotonic())
        if lock.acquire(True, min(left, _TURN)):
            return True
        if left <= _TURN:
            return False


class Work(c10d.Work):  # type: ignore[misc]
    """A call that was begun. Any thread may wait for it, or ask about it."""

    def __init__(self, engine: Any, entry: Entry, outputs: List[torch.Tensor],
                 held: Any, after: Optional[Callable[[], None]]) -> None:
        super().__init__()
        self._engine = weakref.ref(engine)
        # Known to the end of the engine, when that reference is empty.
        self._of = id(engine)
        self._entry = entry
        self._outputs = outputs
        self._held = held
        self._failed = engine.held_by_failed
        self._callbacks = engine.callbacks
        self._depth = Callbacks.depth()
        self._after = after
        self._gate = threading.Lock()
        self._gate.acquire()
        self._error: Optional[BaseException] = None
        self._future: Optional[torch.futures.Future] = None
        self._is_settled = False
        self._expired: Optional[BaseException] = None
        self._over = False
        self._source = -1

    def finish(self, error: Optional[BaseException]) -> None:
        """Finish the Work. The thread that ran the call does so, once."""
        if error is None and self._after is not None:
            try:
                self._after()
            except Exception as failed:  # pylint: disable=broad-except
                error = failed
        if error is not None and self._expired is not None:
            error = self._expired
        if error is not None:
            self._failed.append((self._outputs, self._held))
        with _futures:
            self._error = error
            self._over = True
            future = self._future
        self._after = self._held = None
        self._entry.end(error)
        self._gate.release()
        if future is not None:
            self._callbacks.settle(self, self._depth)

    def is_of(self, engine: Any) -> bool:
        """Whether the call is on the communicator of `engine`."""
        return self._of == id(engine)

    def settle(self) -> None:
        """Complete the future. Whichever thread comes first does so."""
        with _futures:
            future = None if self._is_settled else self._future
            self._is_settled = True
        if future is None:
            return
        if self._error is not None:
            future.set_exception(self._error)
        else:
            future.set_result(self._outputs)

    # As PyTorch calls it from C++, a timeout of 0 is none of this call.
    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Wait until the call is done, and raise what it ended with. A `timeout` that passes ends
        the group, because no call can be taken back."""
        if not self._over:
            if not take(self._gate, timeout if timeout is not None and timeout > _NO_TIMEOUT else None):
                self._expire(timeout)
                # The call ends now, and its buffers are the library's until it has.
                take(self._gate)
            self._gate.release()
        _unasked.pop(id(self), None)
        if self._error is not None:
            raise self._error
        return True

    def _expire(self, limit: timedelta) -> None:
        self._expired = BackendError(f"Timed out waiting {milliseconds(limit)} ms for "
                                     f"{self._entry}; the process group was aborted")
        engine = self._engine()
        if engine is not None:
            engine.report(self._expired)
            engine.abort()

    def get_future(self) -> torch.futures.Future:
        """A future of the call's outputs."""
        _unasked.pop(id(self), None)
        # Outside of the lock, as making it may run a destructor that comes here, too.
        made, depth = torch.futures.Future(), Callbacks.depth()
        with _futures:
            is_new = self._future is None
            if is_new:
                self._future = made
            future = self._future
            # A callback that waits for a call of the program does not wait for its own thread.
            at = self._depth = depth if depth > self._depth else self._depth
            settles = self._over and (is_new or depth > 0)
        if settles:
            self._callbacks.settle_over(self, at)
        return future

    def is_completed(self) -> bool:
        """Whether the call is done, or failed."""
        return self._over

    def is_success(self) -> bool:
        """Whether the call is done and did not fail."""
        return self._over and self._error is None

    def exception(self) -> Optional[BaseException]:
        """The exception that the call failed with."""
        return self._error

    def result(self) -> List[torch.Tensor]:
        """The tensors that the call wrote."""
        return self._outputs

    def synchronize(self) -> None:
        """Do nothing: tensors of the host need nothing more."""

    def source_rank(self) -> int:
        """The rank that sent what was received from any source."""
        return self._source

    _source_rank = source_rank


def finished(engine: Any, outputs: List[torch.Tensor]) -> Work:
    """The Work of a call that is done."""
    work = Work.__new__(Work)
    c10d.Work.__init__(work)
    work._outputs = outputs  # pylint: disable=protected-access
    work._error = work._future = None  # pylint: disable=protected-access
    work._callbacks = engine.callbacks  # pylint: disable=protected-access
    work._over, work._is_settled = True, False  # pylint: disable=protected-access
    work._depth = work._of = 0  # pylint: disable=protected-access
    work._source = -1  # pylint: disable=protected-access
    return work


def begin(work: Work) -> int:
    """The number by which ended() finds the Work."""
    number = next(_numbers)
    _under_way[number] = work
    return number


def take_back(number: int) -> None:
    """The call of that number was not made, so nothing ends it."""
    del _under_way[number]


@_c.tutti_stream_fn
def ended(status: int, number: int) -> None:
    """Called by the stream after the call of that number."""
    work = _under_way.pop(number)
    work.finish(error_of(status, work._entry.call) if status < 0 else None)


def is_any_under_way(engine: Any) -> bool:
    """Whether a call on the communicator of `engine` has not ended."""
    return any(work.is_of(engine) for work in list(_under_way.values()))


def keep(work: Work, last: "collections.deque[Work]") -> Work:
    """Old PyTorch calls wait() and get_future() from C++ of a Work of which it holds the C++ half only,
    and would wait for ever without the other half, whether the call is done or not. So a Work is kept
    until one of these was called, and the `last` ones longer, as they may be called again. Not more
    than UNASKED, since there are programs that call neither."""
    if _FORGETS:
        last.append(work)
        _unasked[id(work)] = work
        if len(_unasked) > UNASKED:
            _unasked.popitem(last=False)
    return work


def forget_all(engine: Any) -> None:
    """Let go of the Works of `engine`, whose stream is gone."""
    for number, work in list(_under_way.items()):
        if work.is_of(engine):
            del _under_way[number]
    for key, work in list(_unasked.items()):
        if work.is_of(engine):
            _unasked.pop(key, None)


def _after_fork() -> None:
    global _futures  # pylint: disable=global-statement
    _futures = threading.Lock()


# The child has no thread but its own, so nobody would ever release what another one held.
os.register_at_fork(after_in_child=_after_fork)
