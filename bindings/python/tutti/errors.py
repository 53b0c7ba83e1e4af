# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions, one class for each status of the library."""
from typing import Dict, Optional, Type

from . import _c


class Error(Exception):
    """A call of the library failed. `status` is its tutti_status, the message its text."""

    status: int = 0

    def __init__(self, text: str, status: Optional[int] = None) -> None:
        super().__init__(text)
        if status is not None:
            self.status = status


class ArgumentError(Error, ValueError):
    """TUTTI_EINVAL: an argument is wrong by itself; nothing was sent."""

    status = _c.tutti_status.TUTTI_EINVAL


class NoMemoryError(Error, MemoryError):
    """TUTTI_ENOMEM."""

    status = _c.tutti_status.TUTTI_ENOMEM


class SystemCallError(Error):
    """TUTTI_ESYS: a system call failed; the message says which and why."""

    status = _c.tutti_status.TUTTI_ESYS


class UsageError(Error):
    """TUTTI_EUSAGE: the call is not allowed in this state."""

    status = _c.tutti_status.TUTTI_EUSAGE


class UnsupportedError(Error, NotImplementedError):
    """TUTTI_EUNSUPPORTED."""

    status = _c.tutti_status.TUTTI_EUNSUPPORTED


class InternalError(Error):
    """TUTTI_EINTERNAL: an error of the library. Please report it."""

    status = _c.tutti_status.TUTTI_EINTERNAL


class CancelledError(Error):
    """TUTTI_ECANCELED: the request was cancelled."""

    status = _c.tutti_status.TUTTI_ECANCELED


class LostError(Error):
    """The communicator is lost: it can only be shrunk, destroyed or aborted."""

    status = _c.TUTTI_STATUS_LOST


class PeerError(LostError):
    """TUTTI_EPEER: a rank died or left; the message names it."""

    status = _c.tutti_status.TUTTI_EPEER


class Timeout(LostError, TimeoutError):
    """TUTTI_ETIMEOUT: a deadline passed; the message says who was waited for."""

    status = _c.tutti_status.TUTTI_ETIMEOUT


class MismatchError(LostError):
    """TUTTI_EMISMATCH: ranks called different things; the message has both calls."""

    status = _c.tutti_status.TUTTI_EMISMATCH


class AbortedError(LostError):
    """TUTTI_EABORTED."""

    status = _c.tutti_status.TUTTI_EABORTED


class ProtocolError(LostError):
    """TUTTI_EPROTO: a peer sent what the protocol does not allow."""

    status = _c.tutti_status.TUTTI_EPROTO


class PlanError(LostError):
    """TUTTI_EPLAN: ranks hold different plans, or none can be made."""

    status = _c.tutti_status.TUTTI_EPLAN


class RevokedError(LostError):
    """TUTTI_EREVOKED: a rank revoked the communicator."""

    status = _c.tutti_status.TUTTI_EREVOKED


def _all(base: Type[Error]) -> Dict[int, Type[Error]]:
    out = {int(base.status): base}
    for each in base.__subclasses__():
        out.update(_all(each))
    return out


_CLASSES = _all(Error)


def error_of(status: int, handle: object = None) -> Error:
    """The exception for `status`, with the text of the last error on `handle`, or without one of
    this thread."""
    text = _c.tutti_last_error(handle).decode(errors="replace")
    name = _c.tutti_status_name(status).decode()
    default = LostError if status <= _c.TUTTI_STATUS_LOST else Error
    if not text:
        text = _c.tutti_status_string(status).decode()
    if not text.startswith(name):
        text = f"{name}: {text}"
    return _CLASSES.get(status, default)(text, status)


def check(status: int, handle: object = None) -> None:
    """Raise what `status` says, if it is an error."""
    if status < 0:
        raise error_of(status, handle)
