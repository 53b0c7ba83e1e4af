# SPDX-License-Identifier: BSD-3-Clause
"""Send and receive, on a channel of messages beside the collectives of a group.

Nobody finishes a request but a thread that waits for it, so the Work of one asks the library
whenever it is asked; a future of it has a thread that waits.
"""
import collections
import ctypes
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, Callable, Deque, List, Optional, Tuple

import torch
from torch._C import _distributed_c10d as c10d

from .. import _c, interrupts
from ._engine import Engine
from ._record import BackendError, Entry, error_of, milliseconds
from ._types import dense, land, landing, only
from ._work import take

_AGAIN = int(_c.tutti_status.TUTTI_AGAIN)
_NO_TIMEOUT = timedelta(0)


class Message(c10d.Work):  # type: ignore[misc]
    """A message that is being sent or received. Any thread may wait for it, or ask about it."""

    def __init__(self, channel: "Channel", entry: Entry, tensor: torch.Tensor, place: torch.Tensor,
                 is_receive: bool) -> None:
        super().__init__()
        self._channel = channel
        self._entry = entry
        #: 0 until it is begun.
        self.number = ctypes.c_uint64()
        self._tensor = tensor
        self._place: Optional[torch.Tensor] = place
        self._is_receive = is_receive
        self._turn = threading.Lock()
        self._error: Optional[BaseException] = None
        self._source = -1
        self._over = False
        self._future: Optional[torch.futures.Future] = None

    def _ask(self, timeout_ms: int) -> bool:
        """Whether it is over. The library waits so long for that. One thread at a time asks."""
        if self._over:
            return True
        info = _c.tutti_message_info()
        status = _c.tutti_message_wait(self._channel.handle, self.number.value, timeout_ms,
                                       ctypes.byref(info))
        if status == _AGAIN:
            interrupts.reraise()
            return False
        if status < 0:
            self._error = error_of(status, self._entry.call)
            engine = self._channel.engine()
            if engine is not None and status <= _c.TUTTI_STATUS_LOST:
                engine.held_by_failed.append(self._place)
                engine.report(self._error)
        elif self._is_receive:
            self._take(info)
        self._place = None
        self._over = True
        self._entry.end(self._error)
        return True

    def _take(self, info: Any) -> None:
        tensor, place = self._tensor, self._place
        assert place is not None
        self._source = info.source
        expected = tensor.numel() * tensor.element_size()
        if info.bytes != expected:
            self._error = RuntimeError(f"recv: rank {info.source} sent {info.bytes} bytes, but the "
                                       f"tensor to receive into has {expected}")
        else:
            land(place, tensor)

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Wait until the message is sent, or received, and raise what it ended with. If `timeout`
        passes, or Ctrl-C ends the wait, the message is taken back if possible. Otherwise a timeout
        ends the group, and after Ctrl-C the message goes on."""
        limit = timeout if timeout is not None and timeout > _NO_TIMEOUT else None
        if not self._over:
            begun = time.monotonic()
            # The thread of a future waits now, without a limit, until it is ended here.
            in_time = take(self._turn, limit)
            if not in_time:
                self._end(limit)
                take(self._turn)
            try:
                if not in_time:
                    self._expire(limit)
                elif not self._ask(-1 if limit is None else self._left(limit, begun)):
                    self._end(limit)
                    self._expire(limit)
            except BaseException:
                if not self._over and self._cancel() == _c.tutti_status.TUTTI_OK:
                    self._ask(-1)
                raise
            finally:
                self._turn.release()
        if self._error is not None:
            raise self._error
        return True

    def _cancel(self) -> int:
        """Take the message back. _AGAIN: it is too late for that, and the message goes on."""
        return int(_c.tutti_message_cancel(self._channel.handle, self.number.value))

    @staticmethod
    def _left(limit: timedelta, begun: float) -> int:
        spent = timedelta(seconds=time.monotonic() - begun)
        return milliseconds(max(limit - spent, _NO_TIMEOUT))

    def _end(self, limit: Any) -> None:
        """Take the message back because its time is over, or else end the group."""
        if self._cancel() == _AGAIN:
            engine = self._channel.engine()
            if engine is not None:
                engine.report(self._late(limit))
                engine.abort()

    def _expire(self, limit: Any) -> None:
        self._ask(-1)
        self._error = self._late(limit)

    def _late(self, limit: Any) -> BaseException:
        return BackendError(f"Timed out waiting {milliseconds(limit)} ms for {self._entry}")

    def is_completed(self) -> bool:
        """Whether the message is sent, or received, or failed."""
        if not self._over and self._turn.acquire(blocking=False):
            try:
                self._ask(0)
            finally:
                self._turn.release()
        return self._over

    def is_success(self) -> bool:
        """Whether it is over and did not fail."""
        return self.is_completed() and self._error is None

    def exception(self) -> Optional[BaseException]:
        """The exception that the message failed with."""
        return self._error

    def result(self) -> List[torch.Tensor]:
        """The tensor that was sent or received."""
        return [self._tensor]

    def synchronize(self) -> None:
        """Do nothing: tensors of the host need nothing more."""

    def source_rank(self) -> int:
        """The rank that sent what was received."""
        return self._source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        """A future of the tensor, which a thread of its own waits for."""
        with self._channel.lock:
            if self._future is None:
                self._future = torch.futures.Future()
                threading.Thread(target=self._settle, args=(self._future,), daemon=True).start()
            return self._future

    def _settle(self, future: torch.futures.Future) -> None:
        try:
            self.wait()
            future.set_result(self.result())
        except Exception as error:  # pylint: disable=broad-except
            future.set_exception(error)

    def __del__(self) -> None:
        if not self._over and self.number.value:
            self._channel.leave(self.number.value, self._place)


class Channel:
    """The channel of a group."""

    def __init__(self, engine: Engine) -> None:
        self.engine = weakref.ref(engine)
        self.lock = threading.Lock()
        handle = ctypes.c_void_p()
        entry = engine.note("channel")
        engine.run_now(entry, _c.tutti_channel_create, engine.comm, ctypes.byref(handle))
        entry.end(None)
        self.handle: Optional[int] = handle.value
        # Requests whose Work nobody has any more, and their memory.
        self._left: Deque[Tuple[int, Any]] = collections.deque()

    def leave(self, number: int, place: Any) -> None:
        """Keep the memory of a request that nobody waits for. Takes no lock, as a destructor calls it."""
        self._left.append((number, place))

    def _sweep(self) -> None:
        engine = self.engine()
        with self.lock:
            for _ in range(len(self._left)):
                # It stays there meanwhile, because a signal handler may raise at any line.
                number, place = self._left[0]
                status = _c.tutti_message_wait(self.handle, number, 0, None)
                if status == _AGAIN:
                    self._left.rotate(-1)
                    continue
                if engine is not None and status <= _c.TUTTI_STATUS_LOST:
                    # Its peer may still write to it.
                    engine.held_by_failed.append(place)
                self._left.popleft()

    def _begin(self, function: Callable[..., int], entry: Entry, tensor: torch.Tensor,
               place: torch.Tensor, peer: int, tag: int, is_receive: bool) -> Message:
        if self._left:
            self._sweep()
        # Before the call: if a signal handler raises after it, the memory must stay all the same.
        message = Message(self, entry, tensor, place, is_receive)
        status = function(self.handle, place.data_ptr(), place.numel() * place.element_size(), peer,
                          tag, ctypes.byref(message.number))
        if status < 0:
            error = error_of(status, entry.call)
            entry.end(error)
            raise error
        if entry.event is not None:
            # The profiler treats what other threads end as asynchronous.
            message.get_future()
        return message

    def send(self, engine: Engine, tensors: List[torch.Tensor], peer: int, tag: int) -> Message:
        """Begin to send a tensor."""
        tensor = only(tensors, "send")
        entry = engine.note("send", tensor.numel(), tensors, peer, False)
        return self._begin(_c.tutti_message_isend, entry, tensor, dense(tensor), peer, tag, False)

    def receive(self, engine: Engine, tensors: List[torch.Tensor], peer: int, tag: int) -> Message:
        """Begin to receive a tensor, from any rank if `peer` is -1."""
        tensor = only(tensors, "recv")
        entry = engine.note("recv" if peer >= 0 else "recvAnySource", tensor.numel(), tensors, peer,
                            False)
        return self._begin(_c.tutti_message_irecv, entry, tensor, landing(tensor), peer, tag, True)

    def close(self) -> None:
        """Free the channel, when the communicator is gone."""
        handle, self.handle = self.handle, None
        if handle is not None:
            _c.tutti_channel_destroy(handle)
