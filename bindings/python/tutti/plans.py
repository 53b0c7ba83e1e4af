# SPDX-License-Identifier: BSD-3-Clause
"""Persistent calls: calls that are made ready once."""
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

class Plan:
    """One call, made ready once and started many times: Communicator.plan() makes it. A start costs
    less than the call, since nothing is looked at again."""

    def __init__(self, comm: "Communicator", name: str, send: Any, recv: Any, op: Any,
                 root: int) -> None:
        if name not in _NAMES:
            raise ArgumentError(f"no plan of {name!r}: there are plans of {', '.join(_NAMES)}")
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
        """Make the call: done on return, or, on a stream, after wait()."""
        status = _c.tutti_persistent_start(self._handle, stream and stream._handle)
        if status or stream:
            self._comm._after(status, stream, *self._places)

    def wait(self) -> None:
        """Wait until the last start is done."""
        self._comm._after(_c.tutti_persistent_wait(self._handle), None)
        interrupts.reraise()

    def destroy(self) -> None:
        """Wait for the last start and free the plan."""
        handle, self._handle = self._handle, None
        check(_c.tutti_persistent_destroy(handle))
        self._places = ()

    def __enter__(self) -> "Plan":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._handle and exception[0] is None:
            self.destroy()
