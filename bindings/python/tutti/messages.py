# SPDX-License-Identifier: BSD-3-Clause
"""Messages with tags, beside the collectives and in no order with them."""
import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from . import _c, interrupts
from .arrays import SIZES, read
from .errors import check

if TYPE_CHECKING:
    from .comm import Communicator


class Message(NamedTuple):
    """A message that was received, found or sent: its source, its tag, and its length in bytes."""

    source: int
    tag: int
    bytes: int


def _message(info: Any) -> Message:
    return Message(info.source, info.tag, info.bytes)


def _milliseconds(timeout: Optional[float]) -> int:
    return -1 if timeout is None else max(0, round(timeout * 1000))


class Request:
    """A send or receive that is under way. Its buffer is kept until wait() says that it is over."""

    def __init__(self, channel: "Channel", call: Any, buffer: Any, written: bool, peer: int,
                 tag: int) -> None:
        address, count, kind, owner = read(buffer, "data", written)
        number = ctypes.c_uint64()
        self._channel, self._owner = channel, owner
        check(call(channel._handle, address, count * SIZES[kind], peer, tag, ctypes.byref(number)))
        self._number = number.value
        # The result of a wait that was over when it was interrupted.
        self._message: Optional[Message] = None
        channel._requests.add(self)

    def wait(self, timeout: Optional[float] = None) -> Optional[Message]:
        """Wait for at most `timeout` seconds, and return the message. None: the request is not over
        yet."""
        if self._message is not None:
            return self._message
        info = _c.tutti_message_info()
        status = _c.tutti_message_wait(self._channel._handle, self._number, _milliseconds(timeout),
                                       ctypes.byref(info))
        if status != _c.tutti_status.TUTTI_AGAIN:
            self._channel._requests.discard(self)
            check(status)
            self._message = _message(info)
        interrupts.reraise()
        return self._message

    def cancel(self) -> bool:
        """Cancel the request, if that is still possible: wait() raises CancelledError then."""
        status = _c.tutti_message_cancel(self._channel._handle, self._number)
        check(status)
        return bool(status == _c.tutti_status.TUTTI_OK)


class Channel:
    """A message channel between all ranks of a communicator. Communicator.channel() makes it. All
    ranks call that and destroy(); any rank and any thread may call the rest."""

    def __init__(self, comm: "Communicator") -> None:
        handle = ctypes.c_void_p()
        comm._after(_c.tutti_channel_create(comm._handle, ctypes.byref(handle)), None)
        self._comm, self._handle = comm, handle.value
        # Their buffers belong to the library.
        self._requests: "set[Request]" = set()
        comm._open.add(self)

    def isend(self, data: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send `data`, which must not change until the request is over."""
        return Request(self, _c.tutti_message_isend, data, False, dest, tag)

    def irecv(self, data: Any, source: Optional[int] = None, tag: Optional[int] = None) -> Request:
        """Begin to receive into `data` from one rank, or any, with one tag, or any."""
        return Request(self, _c.tutti_message_irecv, data, True, _any(source), _any(tag))

    def send(self, data: Any, dest: int, tag: int = 0) -> None:
        """Send. Returns when `data` may be changed."""
        self._wait(self.isend(data, dest, tag))

    def recv(self, data: Any, source: Optional[int] = None, tag: Optional[int] = None) -> Message:
        """Receive, and return what came. A message that is longer than `data` is an error, and
        stays."""
        return self._wait(self.irecv(data, source, tag))

    def _wait(self, request: Request) -> Message:
        try:
            message = request.wait()
        except BaseException:
            if request in self._requests:
                request.cancel()
            raise
        assert message is not None
        return message

    def probe(self, source: Optional[int] = None, tag: Optional[int] = None,
              timeout: Optional[float] = None) -> Optional[Message]:
        """Return the oldest message that can be received, which stays. None: none came in `timeout`
        seconds."""
        info = _c.tutti_message_info()
        status = _c.tutti_message_probe(self._handle, _any(source), _any(tag), _milliseconds(timeout),
                                        ctypes.byref(info))
        check(status)
        interrupts.reraise()
        return _message(info) if status == _c.tutti_status.TUTTI_OK else None

    def destroy(self) -> None:
        """Destroy the channel, together with all ranks."""
        handle, self._handle = self._handle, None
        status = _c.tutti_channel_destroy(handle)
        self._requests.clear()
        self._comm._open.discard(self)
        check(status)

    def __enter__(self) -> "Channel":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._handle and exception[0] is None:
            self.destroy()


def _any(number: Optional[int]) -> int:
    return -1 if number is None else number
