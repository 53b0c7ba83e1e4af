# SPDX-License-Identifier: BSD-3-Clause
"""Streams, which do calls while the program does something else, and events in them."""
import ctypes
import itertools
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from . import _c, groups, interrupts
from .arrays import SIZES, Place
from .errors import Error, check, error_of

# After so many calls, or bytes of their buffers, look which calls are done.
_LOOK_AFTER, _LOOK_AFTER_BYTES = 256, 16 << 20

# The functions that streams are to call, by numbers that the library passes on.
_functions: Dict[int, Callable[[Optional[Error]], None]] = {}
_numbers = itertools.count(1)


def _run(status: int, number: int) -> None:
    _functions.pop(number)(error_of(status) if status < 0 else None)


_call = _c.tutti_stream_fn(_run)
_keep_for_ever = ctypes.pythonapi.Py_IncRef
_keep_for_ever.argtypes = [ctypes.py_object]
_keep_for_ever.restype = None


class Event:
    """A point in a stream; `stream.record()` makes one."""

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(_c.tutti_event_create(ctypes.byref(handle)))
        self._handle = handle.value

    def record(self, stream: "Stream") -> None:
        """Let the event happen when `stream` has done all that is queued by now."""
        check(_c.tutti_event_record(self._handle, stream._handle))

    def query(self) -> bool:
        """Whether it has happened."""
        status = _c.tutti_event_query(self._handle)
        check(status)
        return bool(status == _c.tutti_status.TUTTI_OK)

    def synchronize(self) -> None:
        """Wait until it has happened."""
        status = _c.tutti_event_synchronize(self._handle)
        check(status)
        interrupts.after_wait(status)

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            _c.tutti_event_destroy(handle)


class _Batch:
    """The buffers of some calls, which are done when the event has happened. None: not recorded
    yet."""

    def __init__(self, places: List[Tuple[Place, ...]]) -> None:
        self.places = places
        self.event: Optional[Event] = None

    def is_done(self) -> bool:
        return self.event is not None and self.event.query()


class Stream:
    """A queue of calls, which a thread of the library does in order.

    A call on a stream returns at once. The buffers that it reads and writes belong to the library
    until it is done, and are kept alive until then.
    """

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(_c.tutti_stream_create(ctypes.byref(handle)))
        self._handle = handle.value
        self._kept: List[Tuple[Place, ...]] = []
        self._nbytes = 0
        # Under the lock, because several threads may queue calls.
        self._older: Set[_Batch] = set()
        self._lock = threading.Lock()

    def _keep(self, places: Tuple[Place, ...]) -> None:
        """Keep the buffers of a call that has been queued."""
        self._kept.append(places)
        self._nbytes += sum(place[1] * SIZES.get(place[2], 0) for place in places)
        if self._handle and (len(self._kept) >= _LOOK_AFTER or self._nbytes >= _LOOK_AFTER_BYTES):
            self._look()

    def _look(self) -> None:
        """Drop the buffers of calls that are done."""
        with self._lock:
            # An exception of a signal handler may come between any two lines, so at each of them
            # what is kept must be in one of the lists. A thread that adds to the old list has
            # queued its call before, so an event that is recorded after the list was changed
            # happens after that call.
            batch = _Batch(self._kept)
            self._older.add(batch)
            self._kept, self._nbytes = [], 0
            batch.event = self.record()
            self._older -= {each for each in self._older if each.is_done()}

    def record(self) -> Event:
        """An event that happens when all that is queued by now is done."""
        event = Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let later calls start only after `event` has happened. Does not block."""
        check(_c.tutti_stream_wait_event(self._handle, event._handle))

    def call(self, function: Callable[[Optional[Error]], None]) -> None:
        """Let the stream's thread call function(error) when all that is queued by now is done.
        error is None, or the first error of the calls since the function before. The function must
        not wait."""
        number = next(_numbers)
        _functions[number] = function
        status = _c.tutti_stream_call(self._handle, _call, number)
        if status < 0:
            del _functions[number]
        check(status)

    def query(self) -> bool:
        """Whether all that is queued is done. Raises the first error of all that ever was."""
        status = _c.tutti_stream_query(self._handle)
        check(status)
        return bool(status == _c.tutti_status.TUTTI_OK)

    def synchronize(self) -> None:
        """Wait until all that is queued is done. Raises the first error of all that ever was."""
        with self._lock:
            # What other threads queue from now on need not be done then.
            kept, older = self._kept, set(self._older)
            count = len(kept)
        status = _c.tutti_stream_synchronize(self._handle)
        check(status)
        interrupts.after_wait(status)
        with self._lock:
            del kept[:count]
            self._older -= older
            self._nbytes = 0

    def destroy(self) -> None:
        """Wait for what is queued and free the stream."""
        try:
            # This can be interrupted, and the end cannot.
            self.synchronize()
        finally:
            self._abandon()

    def _abandon(self) -> None:
        """Leave the end to a thread that waits for what is queued, and that keeps its buffers."""
        handle, self._handle = self._handle, None
        kept = self._kept, self._older
        self._kept, self._older = [], set()

        def end() -> None:
            _c.tutti_stream_destroy(handle)
            del kept[0][:]
            kept[1].clear()

        if not _c.tutti_stream_query(handle) == _c.tutti_status.TUTTI_AGAIN:
            end()
            return
        try:
            if not sys.is_finalizing():
                threading.Thread(target=end, daemon=True).start()
                return
        except RuntimeError:
            pass
        # The program ends and starts no more threads: the buffers stay until the process is gone.
        _keep_for_ever(kept)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._abandon()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._handle:
            return
        if exception[0] is None:
            self.destroy()
        else:
            # It may wait for something that never comes.
            self._abandon()
