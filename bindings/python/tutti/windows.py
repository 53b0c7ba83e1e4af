# SPDX-License-Identifier: BSD-3-Clause
"""Windows: one rank reads and writes the memory of another, which makes no call for it."""
import ctypes
import os
from typing import TYPE_CHECKING, Any, Iterable, Optional, Tuple

from . import _c
from .arrays import SIZES, read
from .errors import ArgumentError, check
from .streams import Stream

if TYPE_CHECKING:
    from .comm import Communicator


class Window:
    """Memory of all ranks that each of them may read and write. All ranks make and destroy it
    together.

    Offsets are in elements of the buffer that is put or got, so they mean the same as in an array
    of that type. What one rank puts and signals to another arrives in that order.
    """

    def __init__(self, comm: "Communicator", memory: Any = None, signals: int = 1) -> None:
        """`memory` is this rank's memory that the others may access; None: nothing. `signals` is
        how many signals each pair of ranks has, each counted and waited for by itself. It is the
        same on all ranks."""
        place = read(memory, "memory", True) if memory is not None else (None, 0, 0, None)
        handle = ctypes.c_void_p()
        self._comm, self._memory = comm, place[3]
        if not 1 <= signals <= _c.TUTTI_SIGNALS_MOST:
            raise ArgumentError(f"signals is {signals}: 1 to {_c.TUTTI_SIGNALS_MOST}")
        config = _c.tutti_window_config(ctypes.sizeof(_c.tutti_window_config), signals)
        comm._after(_c.tutti_window_create_config(comm._handle, place[0], place[1] * SIZES[place[2]],
                                                  ctypes.byref(config), ctypes.byref(handle)), None)
        self._handle, self._pid = handle.value, os.getpid()
        comm._open.add(self)

    def _move(self, call: Any, peer: int, buffer: Any, what: str, offset: int,
              stream: Optional[Stream]) -> None:
        place = read(buffer, what, what == "dst")
        if offset < 0:
            raise ArgumentError(f"offset is {offset}: it is 0 or more elements")
        nbytes = SIZES[place[2]]
        self._comm._after(call(self._handle, peer, offset * nbytes, place[0], place[1] * nbytes,
                               stream and stream._handle), stream, place)

    def put(self, src: Any, peer: int, offset: int = 0, *, stream: Optional[Stream] = None) -> None:
        """Write src to the window of `peer`. Only a flush, or a signal, says that it has arrived."""
        self._move(_c.tutti_put, peer, src, "src", offset, stream)

    def get(self, dst: Any, peer: int, offset: int = 0, *, stream: Optional[Stream] = None) -> None:
        """Read from the window of `peer` into dst."""
        self._move(_c.tutti_get, peer, dst, "dst", offset, stream)

    def signal(self, peer: int, index: int = 0, *, stream: Optional[Stream] = None) -> None:
        """Send one signal to `peer`, which sees it after all that was put to it before."""
        self._comm._after(_c.tutti_signal_index(self._handle, peer, index, stream and stream._handle),
                          stream)

    def wait_signal(self, peer: int, count: int = 1, index: int = 0, *,
                    stream: Optional[Stream] = None) -> None:
        """Wait until `peer` has sent `count` more signals `index` than were waited for."""
        wait = _c.tutti_signal_wait(peer, index, count)
        self._comm._after(_c.tutti_wait_signals(self._handle, ctypes.byref(wait), 1,
                                                stream and stream._handle), stream)

    def wait_signals(self, waits: Iterable[Tuple[int, int, int]], *,
                     stream: Optional[Stream] = None) -> None:
        """wait_signal() for each (peer, index, count)."""
        all_of = [_c.tutti_signal_wait(*wait) for wait in waits]
        array = (_c.tutti_signal_wait * len(all_of))(*all_of)
        self._comm._after(_c.tutti_wait_signals(self._handle, array, len(all_of),
                                                stream and stream._handle), stream)

    def flush(self, peer: int = -1, *, stream: Optional[Stream] = None) -> None:
        """Wait until all that was put to `peer`, or to all ranks, has arrived."""
        self._comm._after(_c.tutti_window_flush(self._handle, peer, stream and stream._handle), stream)

    def destroy(self) -> None:
        """Destroy the window, together with all ranks; what all have put has arrived then.
        UsageError: the window cannot be destroyed now, as inside a group, and stays."""
        status = _c.tutti_window_destroy(self._handle)
        # In a forked process its memory is freed all the same.
        if status == _c.tutti_status.TUTTI_EUSAGE and os.getpid() == self._pid:
            check(status)
        self._handle = self._memory = None
        self._comm._open.discard(self)
        check(status)

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._handle and exception[0] is None:
            self.destroy()
