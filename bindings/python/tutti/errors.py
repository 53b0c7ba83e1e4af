# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions, one class for each status of the library."""
from typing import Dict, Optional, Type

from . import _c, interrupts

_CLASSES: Dict[int, Type["Error"]] = {}


class Error(Exception):
    """A call of the library failed. `status` is its tutti_status, the message its text."""

    status: int = 0

    def __init__(self, text: str, status: Optional[int] = None) -> None:
        super().__init__(text)
        if status is not None:
            self.status = status

    def __init_subclass__(cls, status: Optional[int] = None) -> None:
        super().__init_subclass__()
        if status is not None:
            cls.status = int(status)
            _CLASSES[cls.status] = cls


class ArgumentError(Error, ValueError, status=_c.tutti_status.TUTTI_EINVAL):
    """TUTTI_EINVAL: an argument is wrong by itself; nothing was sent."""


class NoMemoryError(Error, MemoryError, status=_c.tutti_status.TUTTI_ENOMEM):
    """TUTTI_ENOMEM."""


class SystemCallError(Error, status=_c.tutti_status.TUTTI_ESYS):
    """TUTTI_ESYS: a system call failed; the message says which and why."""


class UsageError(Error, status=_c.tutti_status.TUTTI_EUSAGE):
    """TUTTI_EUSAGE: the call is not allowed in this state."""


class UnsupportedError(Error, NotImplementedError, status=_c.tutti_status.TUTTI_EUNSUPPORTED):
    """TUTTI_EUNSUPPORTED."""


class InternalError(Error, status=_c.tutti_status.TUTTI_EINTERNAL):
    """TUTTI_EINTERNAL: an error of the library. Please report it."""


class CancelledError(Error, status=_c.tutti_status.TUTTI_ECANCELED):
    """TUTTI_ECANCELED: the request was cancelled."""


class LostError(Error, status=_c.TUTTI_STATUS_LOST):
    """The communicator is lost: it can only be shrunk, destroyed or aborted."""


class PeerError(LostError, status=_c.tutti_status.TUTTI_EPEER):
    """TUTTI_EPEER: a rank died or left; the message names it."""


class Timeout(LostError, TimeoutError, status=_c.tutti_status.TUTTI_ETIMEOUT):
    """TUTTI_ETIMEOUT: a deadline passed; the message names the ranks that were waited for."""


class MismatchError(LostError, status=_c.tutti_status.TUTTI_EMISMATCH):
    """TUTTI_EMISMATCH: ranks called different things; the message has both calls."""


class AbortedError(LostError, status=_c.tutti_status.TUTTI_EABORTED):
    """TUTTI_EABORTED."""


class ProtocolError(LostError, status=_c.tutti_status.TUTTI_EPROTO):
    """TUTTI_EPROTO: a peer sent what the protocol does not allow."""


class PlanError(LostError, status=_c.tutti_status.TUTTI_EPLAN):
    """TUTTI_EPLAN: ranks hold different plans, or none can be made."""


class RevokedError(LostError, status=_c.tutti_status.TUTTI_EREVOKED):
    """TUTTI_EREVOKED: a rank revoked the communicator."""


def error_of(status: int, handle: object = None) -> Error:
    """The exception for `status`, with the text of the last error on `handle`, or without a handle
    that of this thread."""
    text = _c.tutti_last_error(handle).decode(errors="replace")
    name = _c.tutti_status_name(status).decode()
    default = LostError if status <= _c.TUTTI_STATUS_LOST else Error
    if not text:
        text = _c.tutti_status_string(status).decode()
    if not text.startswith(name):
        text = f"{name}: {text}"
    return _CLASSES.get(status, default)(text, status)


def check(status: int, handle: object = None) -> None:
    """Raise the exception for `status`, if it is an error, or that of a signal handler that ran at
    the same time and would otherwise be lost."""
    if status < 0:
        interrupts.reraise()
        raise error_of(status, handle)
