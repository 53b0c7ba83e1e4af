# SPDX-License-Identifier: BSD-3-Clause
"""Windows: a rank writes and reads the tensor of another, which makes no call for it."""
import ctypes
import os
from types import SimpleNamespace
from typing import Any, Callable, Optional, Sequence, Tuple

import torch
from torch._C import _distributed_c10d as c10d

from .. import _c
from ._engine import Engine
from ._types import check_tensor, dense, is_dense, land, landing
from ._work import Work


class Window:
    """A tensor of each rank of a group, which every other rank may write and read. It has the
    methods of the windows of torch.distributed, and get(), flush() and fence().

    Ranks are those of the group, offsets are in elements of the tensor that is put or got. With
    `async_op` a call returns a Work at once; else it is done when it returns. Calls of one rank are
    done in the order in which it makes them. Ranks of one host write and read memory of
    tutti.torch.empty() in place; a thread of its rank serves other memory. A window that was not
    ended by tensor_deregister() ends with the group."""

    def __init__(self, engine: Engine, tensor: Optional[torch.Tensor] = None) -> None:
        self._engine = engine
        self._handle: Optional[int] = None
        self._process = os.getpid()
        if tensor is not None:
            self.tensor_register(tensor)

    def tensor_register(self, tensor: torch.Tensor, owning: bool = True) -> None:
        """Let the others reach `tensor`, which is contiguous and may be empty. All ranks call this. The
        window keeps the memory, whatever `owning` says."""
        del owning
        check_tensor(tensor, "new_window")
        if not is_dense(tensor):
            raise RuntimeError("new_window: the tensor must be contiguous, and not conjugated or negated "
                               "only when it is read")
        if self._handle is not None:
            raise RuntimeError("new_window: the window has a tensor: tensor_deregister() first")
        engine, handle = self._engine, ctypes.c_void_p()
        entry = engine.note("new_window", tensor.numel(), [tensor])
        engine.run_now(entry, _c.tutti_window_create, engine.comm, tensor.data_ptr(),
                       tensor.numel() * tensor.element_size(), ctypes.byref(handle))
        entry.end(None)
        self._handle = handle.value
        engine.windows[handle.value] = tensor

    def tensor_deregister(self) -> None:
        """End the window. All ranks call this; what they have put is there when it returns."""
        engine, handle = self._engine, self._handle
        if handle not in engine.windows:
            self._handle = None
            return
        entry = engine.note("end_window")
        with engine.lock:
            # Ahead of the call, since a handler of a signal may raise as soon as it is back: what was destroyed
            # is not destroyed again, and what others may write to stays.
            tensor = engine.windows[handle]
            engine.held_by_failed.append(tensor)
            self._handle = None
            engine.windows.pop(handle)
            status = _c.tutti_window_destroy(handle)
            if status == _c.tutti_status.TUTTI_EUSAGE and os.getpid() == self._process:
                # The window is still there, and others reach the tensor.
                engine.windows[handle] = tensor
                self._handle = handle
        # Else others may be in calls that write to it, whenever the group was lost.
        if status > _c.TUTTI_STATUS_LOST:
            engine.let_go(tensor)
        if status < 0:
            raise engine.failed(entry, status)
        entry.end(None)

    def _run(self, function: Any, peer: int, arguments: Tuple[Any, ...], async_op: bool, opts: Any,
             tensors: Sequence[torch.Tensor] = (), held: Any = None,
             after: Optional[Callable[[], None]] = None) -> Work:
        if self._handle is None:
            raise RuntimeError("the window has no tensor: tensor_register() first")
        engine, full = self._engine, (self._handle, peer) + arguments
        entry = engine.note(function.__name__[len("tutti_"):], sum(map(torch.numel, tensors)), tensors,
                            peer, False)
        limit = engine.limit(opts)
        # Behind what is queued, since a signal is for all that was put before. A deadline is that of the
        # Work, since the communicator's would be that of other threads' calls, too.
        queued = (async_op or limit is not None or
                  _c.tutti_stream_query(engine.stream) == _c.tutti_status.TUTTI_AGAIN)
        options = SimpleNamespace(asyncOp=queued, timeout=None)
        # These calls have no communicator among their arguments.
        work = engine.run(entry, lambda _comm, stream: function(*full, stream), (), options,
                          list(tensors), held, after, beside=True)
        if not async_op:
            work.wait(limit)
        return work

    def _move(self, function: Any, tensor: torch.Tensor, place: torch.Tensor, peer: int, offset: int,
              async_op: bool, opts: Any, after: Optional[Callable[[], None]]) -> Work:
        if offset < 0:
            raise RuntimeError(f"the offset is {offset}: it is 0 or more elements")
        size = tensor.element_size()
        return self._run(function, peer, (offset * size, place.data_ptr(), place.numel() * size),
                         async_op, opts, [tensor], place, after)

    def put(self, tensor: torch.Tensor, dst_rank: int, target_offset_nelems: int = 0,
            async_op: bool = False, opts: Any = None) -> Work:
        """Write `tensor` to the window of a rank. When the call is done `tensor` may change. A
        signal, flush() or fence() says that the elements have arrived."""
        check_tensor(tensor, "put")
        return self._move(_c.tutti_put, tensor, dense(tensor), dst_rank, target_offset_nelems, async_op,
                          opts, None)

    def get(self, tensor: torch.Tensor, src_rank: int, offset: int = 0, async_op: bool = False,
            opts: Any = None) -> Work:
        """Read `tensor` from the window of a rank."""
        check_tensor(tensor, "get")
        place = landing(tensor)
        return self._move(_c.tutti_get, tensor, place, src_rank, offset, async_op, opts,
                          None if place is tensor else lambda: land(place, tensor))

    def signal(self, peer_rank: int, async_op: bool = False, opts: Any = None) -> Work:
        """Send one signal to a rank, which sees it after all that this rank has put to it before."""
        return self._run(_c.tutti_signal, peer_rank, (), async_op, opts)

    def wait_signal(self, peer_rank: int, async_op: bool = False, opts: Any = None) -> Work:
        """Wait for one more signal of a rank."""
        return self._run(_c.tutti_wait_signal, peer_rank, (1,), async_op, opts)

    def flush(self, peer_rank: int = -1, async_op: bool = False, opts: Any = None) -> Work:
        """Wait until all that this rank has put to a rank (-1: to all) has arrived."""
        return self._run(_c.tutti_window_flush, peer_rank, (), async_op, opts)

    def fence(self) -> None:
        """Wait until all that all ranks have put has arrived. All ranks call this."""
        self.flush()
        options = SimpleNamespace(asyncOp=False, timeout=None)
        self._engine.run(self._engine.note("fence"), _c.tutti_barrier, (), options, [])

    def get_attr(self, peer_rank: int) -> Any:
        """As PyTorch asks: the memory is the tensor's own."""
        del peer_rank
        attribute = c10d.WindowAttr()
        attribute.access_type = c10d.WindowAccessType.UNIFIED
        return attribute
