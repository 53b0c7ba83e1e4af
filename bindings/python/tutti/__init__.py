# SPDX-License-Identifier: BSD-3-Clause
"""Tutti: collective communication between processes, machines and threads.

    import numpy, tutti

    with tutti.init() as comm:
        x = numpy.full(1000, comm.rank, dtype="float32")
        comm.all_reduce(x, op="avg")

Start it with `python -m tutti run -n 4 python program.py`. docs/python.md says more.
"""
import warnings

from . import _c
from ._library import get_include, get_library_dir, get_tool
from .calls import Operator, Side, part, reproducible
from .comm import Communicator, UniqueId, init, init_all
from .errors import (AbortedError, ArgumentError, CancelledError, Error, InternalError, LostError, MismatchError,
                     NoMemoryError, PeerError, PlanError, ProtocolError, RevokedError,
                     SystemCallError, Timeout, UnsupportedError, UsageError)
from .groups import Cost, group, simulate
from .memory import empty
from .messages import Channel, Message, Request
from .persistent import PersistentCall
from .streams import Event, Stream
from .topology import JobPlan, Topology
from .windows import Window

__all__ = ["AbortedError", "ArgumentError", "CancelledError", "Channel", "Communicator", "Cost", "Error",
           "Event", "InternalError", "JobPlan", "LostError", "Message", "MismatchError",
           "NoMemoryError", "Operator", "PeerError", "PersistentCall", "PlanError", "ProtocolError",
           "Request", "RevokedError", "Side", "Stream", "SystemCallError", "Timeout", "Topology",
           "UniqueId", "UnsupportedError", "UsageError", "Window", "empty", "get_include",
           "get_library_dir", "get_tool", "group", "init", "init_all", "part", "reproducible",
           "simulate"]
__version__ = f"{_c.TUTTI_VERSION_MAJOR}.{_c.TUTTI_VERSION_MINOR}.{_c.TUTTI_VERSION_PATCH}"


def __getattr__(name: str) -> type:
    if name != "Plan":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("tutti.Plan is tutti.PersistentCall now; version 0.2 has no tutti.Plan", DeprecationWarning,
                  stacklevel=2)
    return PersistentCall


# Errors are exceptions here, which show the text.
_c.tutti_log_errors(0)
