# SPDX-License-Identifier: BSD-3-Clause
"""Persistent calls: made ready once, started many times."""
import ctypes
from typing import TYPE_CHECKING, Any, Optional, Tuple

from . import _c, interrupts
from .arrays import Place
from .calls import op_number
from .errors import ArgumentError, check
from .streams import Stream

if TYPE_CHECKING:
    from .comm import Communicator

_NAMES = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "barrier")


class PersistentCall:
    """A call that Communicator.persistent() made ready. A start costs less than the call, since the
    arguments are not checked again."""

    def __init__(self, comm: "Communicator", name: str, send: Any, recv: Any, op: Any,
                 root: int) -> None:
        if name not in _NAMES:
            raise ArgumentError(f"{name!r} cannot be made persistent: {', '.join(_NAMES)} can")
        handle = ctypes.c_void_p()
        call = _c.tutti_call.new()
        call.coll = _c.tutti_collective[f"TUTTI_{name.upper()}"]
        call.op, call.root = op_number(op), root
        self._comm = comm
        self._places: Tuple[Place, ...] = ()
        if name != "barrier":
            mine, into, call.count = comm._buffers(name, send, recv, root)
            call.send, call.recv, call.type = mine[0], into[0], into[2]
            self._places = mine, into
        comm._after(_c.tutti_persistent_create(ctypes.byref(call), comm._handle, ctypes.byref(handle)), None)
        self._handle = handle.value

    def start(self, stream: Optional[Stream] = None) -> None:
        """Make the call. It is done on return, or, on a stream, after wait()."""
        status = _c.tutti_persistent_start(self._handle, stream and stream._handle)
        if status or stream:
            self._comm._after(status, stream, *self._places)

    def wait(self) -> None:
        """Wait until the last start is done."""
        self._comm._after(_c.tutti_persistent_wait(self._handle), None)
        interrupts.reraise()

    def destroy(self) -> None:
        """Wait for the last start and free the persistent call."""
        handle, self._handle = self._handle, None
        check(_c.tutti_persistent_destroy(handle))
        self._places = ()

    def __enter__(self) -> "PersistentCall":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._handle and exception[0] is None:
            self.destroy()
