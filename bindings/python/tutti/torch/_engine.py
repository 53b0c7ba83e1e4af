# SPDX-License-Identifier: BSD-3-Clause
"""One communicator as a process group uses it: calls that are done at once or later, deadlines, the
end, and a record of the last calls.

Threads: a group works under its lock, since one thread at a time uses a communicator. abort() takes
no lock, nor do messages and windows.
"""
import atexit
import collections
import contextlib
import ctypes
import logging
import math
import os
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from .. import _c, interrupts
from . import _work
from ._record import MISTAKES, BackendError, Entry, error_of, fresh, milliseconds
from ._work import Callbacks, Work, finished

_log = logging.getLogger("tutti.torch")

_Status = _c.tutti_status
#: How many calls the record keeps.
RECORD = 64
_NO_TIMEOUT = timedelta(0)
_ALWAYS = contextlib.nullcontext()


class Engine:
    """A communicator and all that a process group needs for it. It owns the communicator and the
    stream, and ends both when it is shut down or freed."""

    def __init__(self, comm: int, rank: int, size: int, timeout: timedelta, name: str,
                 title: str) -> None:
        self.comm: Optional[int] = comm
        self.rank = rank
        self.size = size
        self.name = name
        self.title = title
        # The Python half of a backend, which PyTorch does not keep; it is kept until the end.
        self.owner: Any = None
        # The channel of the group's messages, which its own module makes.
        self.channel: Any = None
        # The tensors of its windows, by handle.
        self.windows: Dict[Optional[int], torch.Tensor] = {}
        self.timeout = timeout
        self.renew_locks()
        self._number = 0
        #: The number of calls of all ranks, which is the same on each rank.
        self.ncollectives = 0
        self.error: Optional[BaseException] = None
        self._lost_at = math.inf
        # The buffers of failed calls: other ranks may write to them until their calls have
        # returned.
        self.held_by_failed: List[Any] = []
        self._record: Deque[Entry] = collections.deque(maxlen=RECORD)
        self._kept: Deque[Work] = collections.deque(maxlen=RECORD)
        self.callbacks = Callbacks()
        stream = ctypes.c_void_p()
        status = _c.tutti_stream_create(ctypes.byref(stream))
        if status < 0:
            error = error_of(status, "init_process_group")
            _c.tutti_comm_abort(comm)
            raise error
        self.stream: Optional[int] = stream.value
        _engines.add(self)

    def renew_locks(self) -> None:
        """Make the locks, anew in the child of a fork, which does not have the threads that held
        them."""
        self.lock = threading.RLock()
        # Protects a call and the function that finishes its Work, which are next to each other on
        # the stream.
        self._queue = threading.RLock()
        if self.channel is not None:
            self.channel.lock = threading.Lock()

    # -- Calls ---------------------------------------------------------------------------

    def note(self, call: str, elements: int = 0, tensors: Sequence[torch.Tensor] = (),
             peer: int = -1, is_collective: bool = True) -> Entry:
        """Begin the record of a call. `tensors` are those that it reads."""
        if self.comm is None:
            raise (fresh(self.error) if self.error is not None else
                   BackendError(f"{call}: the process group was shut down"))
        self._number += 1
        self.ncollectives += is_collective
        entry = Entry(self._number, self.title, call, elements, tensors, peer)
        self._record.append(entry)
        return entry

    def parts(self, entry: Entry, number: int) -> List[Entry]:
        """Entries for `number` calls that are one call to the user, which ends with the last of
        them."""
        return [Entry(entry.number, self.title, entry.call, entry.elements, (), -1, False)
                for _ in range(number - 1)] + [entry]

    def run(self, entry: Entry, function: Callable[..., int], arguments: Tuple[Any, ...],
            options: Any, outputs: List[torch.Tensor], held: Any = None,
            after: Optional[Callable[[], None]] = None, beside: bool = False) -> Work:
        """Call `function` with `arguments`, the communicator and a stream, and then `after`. It is
        done at once if the options say that the caller waits for it, else on the stream; also there
        if a profiler is on, so that all calls are in one place. `held` and `outputs` keep the
        memory that the arguments point at. `beside`: the call may be made while another thread is
        in one."""
        limit = self.limit(options)
        lock = _ALWAYS if beside else self.lock
        if entry.event is None and not getattr(options, "asyncOp", True):
            with lock, self._within(limit):
                status = function(*arguments, self.comm, None)
            if status < 0:
                raise self.failed(entry, status, (outputs, held))
            if after is not None:
                after()
            entry.end(None)
            return finished(self, outputs)
        work = Work(self, entry, outputs, held, after)
        # Before the call, because a signal handler may raise as soon as it is queued, and its
        # buffers must stay all the same.
        number = _work.begin(work)
        with lock, self._queue, self._within(limit):
            if self.stream is None:
                # By a callback while shutdown() waits for it.
                _work.take_back(number)
                error = BackendError(f"{entry.call}: the process group was shut down")
                entry.end(error)
                raise error
            status = function(*arguments, self.comm, self.stream)
            if status < 0:
                _work.take_back(number)
                raise self.failed(entry, status)
            status = _c.tutti_stream_call(self.stream, _work.ended, number)
            if status < 0:
                raise self.failed(entry, status)
        self.keep(work)
        if not getattr(options, "asyncOp", True):
            work.wait()
        return work

    def run_now(self, entry: Entry, function: Callable[..., int], *arguments: Any,
                held: Any = None) -> None:
        """Call `function` with only these arguments, and wait for it. `held` keeps the memory that
        they point at."""
        with self.lock:
            status = function(*arguments)
        if status < 0:
            raise self.failed(entry, status, held)

    def limit(self, options: Any) -> Optional[timedelta]:
        """The deadline that the caller set for this call, if it differs from the group's."""
        limit = getattr(options, "timeout", None)
        if limit is None or limit <= _NO_TIMEOUT or limit == self.timeout:
            return None
        return limit

    def _within(self, limit: Optional[timedelta]) -> Any:
        """Give calls that are made inside this deadline. Each call keeps the one that it was made
        with."""
        return _ALWAYS if limit is None else self._with_deadline(limit)

    @contextlib.contextmanager
    def _with_deadline(self, limit: timedelta) -> Iterator[None]:
        self._set_timeout(limit)
        try:
            yield
        finally:
            self._set_timeout(self.timeout)

    def _set_timeout(self, timeout: timedelta) -> None:
        status = _c.tutti_comm_set_timeout(self.comm, milliseconds(timeout))
        if status < 0 and self.comm is not None:
            raise error_of(status, "set_timeout")

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the deadline of later calls."""
        with self.lock:
            self._set_timeout(timeout)
            self.timeout = timeout

    def keep(self, work: Work) -> Work:
        """Keep a Work as long as an old PyTorch may ask for it."""
        return _work.keep(work, self._kept)

    def failed(self, entry: Entry, status: int, held: Any = None) -> BaseException:
        """The exception for a call of this thread that failed, or Ctrl-C if that has ended it.
        `held` is kept as long as the communicator, if the call began before that was lost."""
        if held is not None and status <= _c.TUTTI_STATUS_LOST and entry.begun <= self._lost_at:
            self.held_by_failed.append(held)
        if self.comm is None and status in MISTAKES:
            # abort() came between the beginning of the call and the library.
            error: Exception = BackendError(f"{entry.call} (TUTTI_EABORTED): the process group was "
                                            f"aborted or shut down")
        else:
            error = error_of(status, entry.call)
        entry.end(error)
        if status <= _c.TUTTI_STATUS_LOST:
            self.report(error)
        return interrupts.taken() or error

    def let_go(self, held: Any) -> None:
        """Take that out of held_by_failed, once. It is found by identity, because tensors compare
        by their elements."""
        for k, each in enumerate(self.held_by_failed):
            if each is held:
                del self.held_by_failed[k]
                break

    # -- The record ------------------------------------------------------------------------

    def record(self) -> List[Entry]:
        """The last calls, oldest first."""
        return list(self._record)

    def report(self, error: BaseException) -> None:
        """Log the record once, with what ended the group."""
        if self.error is None:
            self.error = fresh(error)
            self._lost_at = time.time()
            calls = "\n".join(f"  {entry}" for entry in self.record()[-16:])
            _log.warning("rank %d of %d of the group %s: %s\nits last calls:\n%s", self.rank,
                         self.size, self.name, error, calls)

    # -- The end -----------------------------------------------------------------------------

    def get_error(self) -> Optional[int]:
        """The status that ended the communicator, or None."""
        comm = self.comm
        status = ctypes.c_int()
        if comm is None or _c.tutti_comm_get_async_error(comm, ctypes.byref(status)) < 0:
            return int(_Status.TUTTI_EABORTED)
        return status.value if status.value < 0 else None

    def abort(self) -> None:
        """End what is under way here with an error, and the group on all ranks. Any thread."""
        comm, self.comm = self.comm, None
        if comm is not None:
            _c.tutti_comm_abort(comm)

    def shutdown(self) -> None:
        """Wait for what was begun on this rank, then free the communicator. Waits for no other rank:
        messages that were sent are received all the same."""
        self.owner = None
        with self._queue:
            stream, self.stream = self.stream, None
        interrupted: Optional[BaseException] = None
        if stream is not None:
            if _c.tutti_stream_synchronize(stream) == _Status.TUTTI_AGAIN:
                self.abort()
            _c.tutti_stream_destroy(stream)
            _work.forget_all(self)
            try:
                self.callbacks.end()
            except BaseException as error:  # of a handler of a signal  # pylint: disable=broad-except
                interrupted = error
                self.abort()
        comm, self.comm = self.comm, None
        if comm is not None:
            _c.tutti_comm_destroy(comm)
        # After the communicator, because before its end they would wait for the others.
        while self.windows:
            # Taken out first, because a signal handler may raise after the call, and this may be
            # called again.
            handle, _tensor = self.windows.popitem()
            _c.tutti_window_destroy(handle)
        if self.channel is not None:
            self.channel.close()
        self.held_by_failed.clear()
        interrupts.reraise()
        if interrupted is not None:
            raise interrupted

    def __del__(self) -> None:
        if getattr(self, "stream", None) is not None:
            self.shutdown()


_engines: "weakref.WeakSet[Engine]" = weakref.WeakSet()


def _after_fork() -> None:
    """Renew locks in the child of a fork. It has no thread but its own, so a lock that another
    thread held would never be released."""
    for engine in list(_engines):
        engine.renew_locks()
        engine.callbacks.renew()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _at_exit() -> None:
    """End what was not destroyed while there is still an interpreter for the threads of streams."""
    for engine in list(_engines):
        # One whose end was interrupted may have the communicator without the stream.
        if engine.stream is None and engine.comm is None:
            continue
        if engine.lock.acquire(blocking=False):  # pylint: disable=consider-using-with
            engine.lock.release()
            if not _work.is_any_under_way(engine):
                engine.shutdown()
                continue
        engine.abort()
        engine.shutdown()
