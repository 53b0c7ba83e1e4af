# SPDX-License-Identifier: BSD-3-Clause
"""One communicator as a process group uses it: calls that are done at once, calls that are done
later and the Work of each, deadlines, the end, and a record of what was called last.

Threads: what a group does is done under its lock, since a communicator is one thread's at a time;
abort() takes none, nor do messages and windows. The stream's thread finishes each Work, with the GIL,
and never touches the Engine: so an Engine, whose end waits for that thread, is never freed on it.
Callbacks of futures run on other threads: see Callbacks.
"""
import atexit
import collections
import contextlib
import ctypes
import itertools
import logging
import math
import os
import queue
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Tuple, cast

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from .. import _c, interrupts
from ..comm import await_made

_log = logging.getLogger("tutti.torch")

BackendError = getattr(dist, "DistBackendError", RuntimeError)
_Status = _c.tutti_status
#: These are the caller's mistakes, and leave the group as it was.
_MISTAKES = (_Status.TUTTI_EINVAL, _Status.TUTTI_EUSAGE, _Status.TUTTI_EUNSUPPORTED)
#: How many calls the record keeps.
RECORD = 64
#: How many Works are kept for C++ which nobody has asked yet: see Engine.keep.
UNASKED = 1024
_NO_TIMEOUT = timedelta(0)
_ALWAYS = contextlib.nullcontext()
_is_profiled = torch.autograd._profiler_enabled
# Whether this PyTorch forgets the Python half of a Work when only C++ holds it: see Engine.keep.
_FORGETS = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 8)


def milliseconds(timeout: timedelta) -> int:
    """`timeout` for the library, to which 0 is none."""
    return max(0, min(int(timeout / timedelta(milliseconds=1)), 2**31 - 1))


def error_of(status: int, call: str, comm: Optional[int] = None) -> Exception:
    """What a call of this thread, or of making `comm`, raises that ended with `status`."""
    text = _c.tutti_last_error(comm).decode(errors="replace")
    name = _c.tutti_status_name(status).decode()
    if status == _Status.TUTTI_ETIMEOUT:
        call = f"{call}: Timed out"
    text = f"{call} ({name}): {text or _c.tutti_status_string(status).decode()}"
    return (RuntimeError if status in _MISTAKES else BackendError)(text)


def fresh(error: BaseException) -> BaseException:
    """`error` without a traceback, whose frames would keep all that they use, the group among it."""
    return type(error)(*error.args)


class Entry:
    """What the record has of one call; a profiler that is on has it, too."""

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


# -- Work ------------------------------------------------------------------------------------

# What the stream's thread is to finish, by the numbers that it is given.
_under_way: Dict[int, "Work"] = {}
_numbers = itertools.count(1)
# What nobody has waited for yet, by the id of each: see Engine.keep.
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


class Work(c10d.Work):  # type: ignore[misc]
    """A call that was begun. Any thread may wait for it, or ask."""

    def __init__(self, engine: "Engine", entry: Entry, outputs: List[torch.Tensor],
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
        """By whoever ran the call, once."""
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

    def is_of(self, engine: "Engine") -> bool:
        """Whether the call is on the communicator of `engine`."""
        return self._of == id(engine)

    def settle(self) -> None:
        """Complete the future, by whoever comes first."""
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
        """Until the call is done; raises what it ended with. A `timeout` that passes ends the
        group, as no call can be taken back."""
        if not self._over:
            if timeout is None or timeout <= _NO_TIMEOUT:
                self._gate.acquire()
            elif not self._gate.acquire(timeout=timeout.total_seconds()):
                self._expire(timeout)
                # The call ends now, and its buffers are the library's until it has.
                self._gate.acquire()
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
        """What the call failed with."""
        return self._error

    def result(self) -> List[torch.Tensor]:
        """The tensors that the call wrote."""
        return self._outputs

    def synchronize(self) -> None:
        """Nothing is left to be done for tensors of the host."""

    def source_rank(self) -> int:
        """Who sent what was received from any source."""
        return self._source

    _source_rank = source_rank


def finished(engine: "Engine", outputs: List[torch.Tensor]) -> Work:
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


@_c.tutti_stream_fn
def _ended(status: int, number: int) -> None:
    work = _under_way.pop(number)
    work.finish(error_of(status, work._entry.call) if status < 0 else None)


# -- The communicator --------------------------------------------------------------------------


def becomes(condition: Callable[[], bool], deadline: float) -> bool:
    """Whether `condition` holds before that time of time.monotonic(), as seen by asking."""
    nap = 0.0001
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(nap)
        nap = min(1.05 * nap, 0.1)
    return True


def awaited(store: Any, key: str, deadline: float) -> str:
    """What somebody sets `key` to before that time of time.monotonic(); "" if nobody does. By asking,
    not by waiting in get(), which would keep other threads from the store meanwhile."""
    text = ""

    def is_set() -> bool:
        nonlocal text
        if hasattr(store, "check"):
            there = store.check([key])
        else:  # PyTorch 1
            try:
                store.wait([key], timedelta(seconds=max(deadline - time.monotonic(), 0.001)))
                there = True
            except RuntimeError:
                there = False
        text = bytes(store.get(key)).decode() if there else ""
        return bool(text)

    becomes(is_set, deadline)
    return text


def forget(store: Any, key: str) -> None:
    """Take `key` out of the store. A store that is written in Python may be unable to, and gets an empty text,
    for which awaited() waits no less."""
    try:
        store.delete_key(key)
    except RuntimeError:  # NotImplementedError is one.
        store.set(key, "")


#: Where a handle, and a configuration, go among the arguments of what makes a communicator.
OUT, CONFIG = object(), object()


def make(call: str, function: Callable[..., int], arguments: Sequence[Any], timeout: timedelta,
         name: Optional[str] = None) -> Optional[int]:
    """The handle of the communicator that `function` makes; None if this rank is not in it. The name
    of None is that of the communicator that it is made of."""
    config = _c.tutti_config.new()
    config.name = name and name.encode()
    config.timeout_ms = config.boot_timeout_ms = milliseconds(timeout)
    config.blocking = 0
    comm = ctypes.c_void_p()
    places = {id(OUT): ctypes.byref(comm), id(CONFIG): ctypes.byref(config)}
    status = function(*(places.get(id(each), each) for each in arguments))
    if comm.value is not None and status >= 0:
        try:
            status = await_made(comm.value)
        except BaseException:
            _c.tutti_comm_abort(comm)
            raise
    if status < 0:
        error = error_of(status, call, comm.value)
        _c.tutti_comm_abort(comm)
        raise error
    return comm.value


def join(store: Any, key: str, rank: int, size: int, timeout: timedelta, name: str) -> int:
    """Make a communicator of all ranks that share `store`; returns its handle."""
    unique = _c.tutti_unique_id()
    if rank == 0:
        try:
            status = _c.tutti_get_unique_id(ctypes.byref(unique))
            if status < 0:
                raise error_of(status, "init_process_group")
            store.set(key, ctypes.string_at(ctypes.addressof(unique), ctypes.sizeof(unique)).hex())
            comm = _join_with(unique, rank, size, timeout, name)
        except BaseException as error:
            # Who comes late hears of it, and does not wait for an id.
            with contextlib.suppress(RuntimeError):
                store.set(key, f"!{str(error) or type(error).__name__}")
            raise
        try:
            # All have read the id, and none leaves the making of the channel, which is next, before this
            # rank comes: so who uses the same store for the next group does not find it.
            forget(store, key)
        except BaseException:
            _c.tutti_comm_abort(comm)
            raise
        return comm
    text = awaited(store, key, time.monotonic() + timeout.total_seconds())
    if not text:
        raise BackendError(f"Timed out: rank 0 did not put the id of the group into the store "
                           f"within {milliseconds(timeout)} ms")
    if text.startswith("!"):
        raise BackendError(f"rank 0 failed: {text[1:]}")
    ctypes.memmove(ctypes.addressof(unique), bytes.fromhex(text), ctypes.sizeof(unique))
    return _join_with(unique, rank, size, timeout, name)


def _join_with(unique: Any, rank: int, size: int, timeout: timedelta, name: str) -> int:
    return cast(int, make("init_process_group", _c.tutti_comm_init_rank_config,
                          (OUT, size, unique, rank, CONFIG), timeout, name))


class Engine:
    """A communicator and all that a process group needs of it. Owns both the communicator and
    the stream, and ends them when it is shut down or freed."""

    def __init__(self, comm: int, rank: int, size: int, timeout: timedelta, name: str,
                 title: str) -> None:
        self.comm: Optional[int] = comm
        self.rank = rank
        self.size = size
        self.name = name
        self.title = title
        # The Python half of a backend, which PyTorch does not keep; until the end.
        self.owner: Any = None
        # Of the group's messages; its own module makes it.
        self.channel: Any = None
        # The tensors of its windows, by handle.
        self.windows: Dict[Optional[int], torch.Tensor] = {}
        self.timeout = timeout
        self.renew_locks()
        self._number = 0
        #: How many calls of all ranks there were, which is the same on each.
        self.ncollectives = 0
        self.error: Optional[BaseException] = None
        self._lost_at = math.inf
        # What calls worked on that failed: other ranks may write to it until theirs have returned.
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
        """Make the locks. Anew in the child of a fork, where the threads that had them are not."""
        self.lock = threading.RLock()
        # For a call and that which finishes its Work, one behind the other on the stream.
        self._queue = threading.RLock()
        if self.channel is not None:
            self.channel.lock = threading.Lock()

    # -- Calls ---------------------------------------------------------------------------

    def note(self, call: str, elements: int = 0, tensors: Sequence[torch.Tensor] = (),
             peer: int = -1, is_collective: bool = True) -> Entry:
        """Begin a call in the record; `tensors` are what it reads."""
        if self.comm is None:
            raise (fresh(self.error) if self.error is not None else
                   BackendError(f"{call}: the process group was shut down"))
        self._number += 1
        self.ncollectives += is_collective
        entry = Entry(self._number, self.title, call, elements, tensors, peer)
        self._record.append(entry)
        return entry

    def parts(self, entry: Entry, number: int) -> List[Entry]:
        """Entries of `number` calls that are one call to the user: that one ends with the last."""
        return [Entry(entry.number, self.title, entry.call, entry.elements, (), -1, False)
                for _ in range(number - 1)] + [entry]

    def run(self, entry: Entry, function: Callable[..., int], arguments: Tuple[Any, ...],
            options: Any, outputs: List[torch.Tensor], held: Any = None,
            after: Optional[Callable[[], None]] = None, beside: bool = False) -> Work:
        """Call `function` with `arguments`, the communicator and a stream; then `after`. At once
        if the options say that the caller waits for it, else on the stream; there, too, if there
        is a profiler, so that it has all calls in one place. `held` and `outputs` keep what the
        arguments point at. `beside`: the call may be made while another thread is in one."""
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
        number = next(_numbers)
        # Before the call: a handler of a signal may raise as soon as it is queued, and then its buffers
        # must stay all the same.
        _under_way[number] = work
        with lock, self._queue, self._within(limit):
            if self.stream is None:
                # By a callback while shutdown() waits for it.
                del _under_way[number]
                error = BackendError(f"{entry.call}: the process group was shut down")
                entry.end(error)
                raise error
            status = function(*arguments, self.comm, self.stream)
            if status < 0:
                del _under_way[number]
                raise self.failed(entry, status)
            status = _c.tutti_stream_call(self.stream, _ended, number)
            if status < 0:
                raise self.failed(entry, status)
        self.keep(work)
        if not getattr(options, "asyncOp", True):
            work.wait()
        return work

    def run_now(self, entry: Entry, function: Callable[..., int], *arguments: Any,
                held: Any = None) -> None:
        """Call `function` with these arguments alone, and wait for it. `held` keeps what they point at."""
        with self.lock:
            status = function(*arguments)
        if status < 0:
            raise self.failed(entry, status, held)

    def limit(self, options: Any) -> Optional[timedelta]:
        """The deadline that the caller set for this call, if it is not that of the group."""
        limit = getattr(options, "timeout", None)
        if limit is None or limit <= _NO_TIMEOUT or limit == self.timeout:
            return None
        return limit

    def _within(self, limit: Optional[timedelta]) -> Any:
        """Calls that are made inside have this deadline: each keeps the one it was made with."""
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
        """The deadline of calls from now on."""
        with self.lock:
            self._set_timeout(timeout)
            self.timeout = timeout

    def keep(self, work: Work) -> Work:
        """Old PyTorch calls wait() and get_future() from C++ of a Work of which it holds the C++ half only,
        and would wait for ever without the other half, whether the call is done or not. So a Work is kept
        until one of these was called, and the last ones longer, as they may be called again. Not more
        than UNASKED, since there are programs that call neither."""
        if _FORGETS:
            self._kept.append(work)
            _unasked[id(work)] = work
            if len(_unasked) > UNASKED:
                _unasked.popitem(last=False)
        return work

    def failed(self, entry: Entry, status: int, held: Any = None) -> BaseException:
        """The exception for a call of this thread that failed; where Ctrl-C has ended it, that. `held`
        is kept as long as the communicator, if the call began before that was lost."""
        if held is not None and status <= _c.TUTTI_STATUS_LOST and entry.begun <= self._lost_at:
            self.held_by_failed.append(held)
        if self.comm is None and status in _MISTAKES:
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
        """Take that out of held_by_failed, once; tensors are not to be compared by their elements."""
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
            for number, work in list(_under_way.items()):
                if work.is_of(self):
                    del _under_way[number]
            for key, work in list(_unasked.items()):
                if work.is_of(self):
                    _unasked.pop(key, None)
            try:
                self.callbacks.end()
            except BaseException as error:  # of a handler of a signal  # pylint: disable=broad-except
                interrupted = error
                self.abort()
        comm, self.comm = self.comm, None
        if comm is not None:
            _c.tutti_comm_destroy(comm)
        # Behind the communicator, since they would wait for the others before.
        while self.windows:
            # Taken out first: a handler of a signal may raise behind the call, and this be called again.
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
    """The child has no thread but its own, so nobody would ever release what another one held."""
    global _futures  # pylint: disable=global-statement
    _futures = threading.Lock()
    for engine in list(_engines):
        engine.renew_locks()
        engine.callbacks.renew()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _at_exit() -> None:
    """What was not destroyed must end while there is an interpreter for the threads of streams."""
    for engine in list(_engines):
        # One whose end was interrupted may have the communicator without the stream.
        if engine.stream is None and engine.comm is None:
            continue
        if engine.lock.acquire(blocking=False):  # pylint: disable=consider-using-with
            engine.lock.release()
            if not any(work.is_of(engine) for work in list(_under_way.values())):
                engine.shutdown()
                continue
        engine.abort()
        engine.shutdown()
