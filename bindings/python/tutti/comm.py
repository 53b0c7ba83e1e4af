# SPDX-License-Identifier: BSD-3-Clause
"""Communicators: how they are made, used and ended."""
import atexit
import ctypes
import math
import sys
import threading
import time
import warnings
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Set, Type, Union

from . import _c, groups, interrupts
from .calls import Calls
from .errors import ArgumentError, Error, check, error_of
from .messages import Channel
from .persistent import PersistentCall
from .topology import text_of
from .windows import Window

# How often to look at an init that is under way: soon at first, then less often.
_FIRST_PAUSE, _LAST_PAUSE = 50e-6, 2e-3
# A placeholder for the address of the result among the arguments of a call.
_OUT = object()
# Those that were neither destroyed nor aborted.
_alive: Set["Communicator"] = set()


class UniqueId:
    """A unique id. One rank makes it, and all ranks of a new communicator get it. It holds a
    secret."""

    def __init__(self, data: Optional[bytes] = None) -> None:
        self._id = _c.tutti_unique_id()
        if data is None:
            check(_c.tutti_get_unique_id(ctypes.byref(self._id)))
        elif len(data) != _c.TUTTI_UNIQUE_ID_BYTES:
            raise ArgumentError(f"an id has {_c.TUTTI_UNIQUE_ID_BYTES} bytes, not {len(data)}")
        else:
            ctypes.memmove(ctypes.byref(self._id), data, len(data))

    def __bytes__(self) -> bytes:
        return bytes(self._id)


def make_config(settings: Dict[str, Any]) -> Any:
    """Make a tutti_config. A setting X in seconds is the field X_ms."""
    config = _c.tutti_config.new()
    fields = {field[0] for field in config._fields_} - {"size", "blocking"}
    config.blocking = 0
    for name, value in settings.items():
        if name in fields and not name.endswith("_ms"):
            value = value.encode() if isinstance(value, str) else value
        elif f"{name}_ms" in fields:
            name, value = f"{name}_ms", round(value * 1000)
        else:
            known = sorted(field[:-3] if field.endswith("_ms") else field for field in fields)
            raise TypeError(f"there is no setting {name!r}: there are {', '.join(known)}")
        setattr(config, name, value)
    return config


def await_made(handle: Optional[int]) -> int:
    """Wait until a communicator that was begun with config.blocking 0 is made, and return how that
    ended."""
    interrupts.install()
    pause, out = _FIRST_PAUSE, ctypes.c_int()
    while True:
        status: int = _c.tutti_comm_get_async_error(handle, ctypes.byref(out))
        if status < 0 or out.value != _c.tutti_status.TUTTI_AGAIN:
            return min(status, out.value)
        time.sleep(pause)
        pause = min(1.5 * pause, _LAST_PAUSE)


class Communicator(Calls):
    """The ranks that call together, and this process as one of them.

    Buffers are whatever arrays.py reads: arrays of numpy, tensors of torch, objects with
    `__dlpack__` or the buffer protocol. A call without a stream is done when it returns; with a
    stream, it returns at once. All ranks make the same calls in the same order. One thread at a
    time uses a communicator.

    As a context manager it is destroyed at the end of the block. If an exception leaves the block
    it is aborted, so that the other ranks do not wait.
    """

    size: int
    rank: int
    # Channels and windows that were not destroyed. Even if the program has dropped them, other
    # ranks write to their memory.
    _open: Set[Union[Channel, Window]]

    def __init__(self, nranks: int, id: Union[UniqueId, bytes], rank: int, **config: Any) -> None:
        if not isinstance(id, UniqueId):
            id = UniqueId(id)
        self._take(_c.tutti_comm_init_rank_config, _OUT, nranks, id._id, rank,
                   ctypes.byref(make_config(config)))

    # -- Making --------------------------------------------------------------------------

    def _own(self, handle: Optional[int]) -> None:
        self._handle, self._open = handle, set()

    def _take(self, call: Any, *args: Any, of: Optional[int] = None) -> None:
        """Begin to make it, and wait until it is made, or until the end of the group."""
        handle = ctypes.c_void_p()
        check(call(*(ctypes.byref(handle) if arg is _OUT else arg for arg in args)), of)
        self._own(handle.value)
        if groups.is_open():
            groups.afterwards(self._finish)
        else:
            self._finish()

    @classmethod
    def _made_by(cls, call: Any, *args: Any, of: Optional[int] = None) -> "Communicator":
        self = cls.__new__(cls)
        self._take(call, *args, of=of)
        return self

    def _child(self, call: Any, *args: Any) -> "Communicator":
        return self._made_by(call, self._handle, *args, of=self._handle)

    def _finish(self) -> None:
        out, handle = ctypes.c_int(), self._handle
        try:
            check(await_made(handle), handle)
            check(_c.tutti_comm_rank(handle, ctypes.byref(out)))
            self.rank = out.value
            check(_c.tutti_comm_count(handle, ctypes.byref(out)))
            self.size = out.value
            _alive.add(self)
        except BaseException:
            self.abort()
            raise

    def split(self, color: Optional[int], key: int = 0, **config: Any) -> Optional["Communicator"]:
        """Split: ranks with one `color` make a communicator, ordered by `key`. A color of None
        joins none."""
        if color is None:
            handle = ctypes.c_void_p()
            check(_c.tutti_comm_split(self._handle, _c.TUTTI_NOCOLOR, key, ctypes.byref(handle), None),
                  self._handle)
            return None
        return self._child(_c.tutti_comm_split, color, key, _OUT, ctypes.byref(make_config(config)))

    def dup(self, **config: Any) -> "Communicator":
        """Make another communicator of the same ranks, with an order of calls of its own."""
        return self._child(_c.tutti_comm_dup, _OUT, ctypes.byref(make_config(config)))

    def create_group(self, ranks: Sequence[int], tag: int = 0, **config: Any) -> "Communicator":
        """Make a communicator of `ranks`, in that order. Only they call it, also while another
        thread is in a call on this communicator. Several such calls at once need different tags."""
        members = (ctypes.c_int * len(ranks))(*ranks)
        return self._child(_c.tutti_comm_create_group, members, len(ranks), tag, _OUT,
                           ctypes.byref(make_config(config)))

    def shrink(self, exclude: Sequence[int] = (), *, failed: bool = False,
               **config: Any) -> "Communicator":
        """Make a communicator without the ranks of `exclude`, which do not call this. With `failed`
        the dead ranks are left out, too; the others find out together which those are."""
        ranks = (ctypes.c_int * len(exclude))(*exclude)
        flags = _c.TUTTI_SHRINK_FAILED if failed else _c.TUTTI_SHRINK_DEFAULT
        return self._child(_c.tutti_comm_shrink, ranks, len(exclude), _OUT,
                           ctypes.byref(make_config(config)), flags)

    def grow(self, nranks: int, id: Union[UniqueId, bytes, None] = None,
             **config: Any) -> "Communicator":
        """Make a communicator of these ranks and new ones behind them, `nranks` in all. At least
        one rank passes the id. A new rank makes a Communicator(nranks, id, rank)."""
        if id is not None and not isinstance(id, UniqueId):
            id = UniqueId(id)
        return self._child(_c.tutti_comm_grow, nranks, ctypes.byref(id._id) if id else None, -1,
                           _OUT, ctypes.byref(make_config(config)))

    # -- Other things on it ------------------------------------------------------------------

    def window(self, memory: Any = None, signals: int = 1) -> Window:
        """Make a window: let the other ranks read and write `memory`. Each pair of ranks has
        `signals` signals. All ranks call it."""
        return Window(self, memory, signals)

    def channel(self) -> Channel:
        """Make a channel for messages with tags. All ranks call it."""
        return Channel(self)

    def persistent(self, name: str, send: Any = None, recv: Any = None, *, op: Any = "sum",
                   root: int = 0) -> PersistentCall:
        """Make the call `name` ready. start() of the result makes the call."""
        return PersistentCall(self, name, send, recv, op, root)

    def plan(self, name: str, send: Any = None, recv: Any = None, *, op: Any = "sum",
             root: int = 0) -> PersistentCall:
        """Deprecated, and gone with version 0.2: persistent()."""
        warnings.warn("Communicator.plan() is Communicator.persistent() now", DeprecationWarning, stacklevel=2)
        return self.persistent(name, send, recv, op=op, root=root)

    def set_algorithm(self, algo: Optional[str]) -> None:
        """Set the algorithms that later collectives may take, in the words of TUTTI_ALGO, as
        "all_reduce:ring,tree". None: those of the configuration; "": whichever is best. All ranks
        do the same before the same call. Calls that are queued, and persistent calls, keep theirs.
        Any thread."""
        check(_c.tutti_comm_set_algorithm(self._handle, None if algo is None else algo.encode()), self._handle)

    def set_timeout(self, seconds: Optional[float]) -> None:
        """Limit later calls: one that takes longer raises Timeout. None or 0: no limit. Any thread."""
        check(_c.tutti_comm_set_timeout(self._handle, math.ceil(1000 * (seconds or 0))), self._handle)

    def channels(self, json: bool = False) -> str:
        """The rings and trees of this communicator, as text or as JSON."""
        return text_of(_c.tutti_comm_plan, self._handle, int(json), handle=self._handle)

    def transport(self, peer: int) -> str:
        """How this rank reaches `peer`: "shm", "tcp" or "self"."""
        out = ctypes.c_char_p()
        check(_c.tutti_comm_transport(self._handle, peer, ctypes.byref(out)), self._handle)
        return (out.value or b"").decode()

    # -- The end ---------------------------------------------------------------------------

    def finalize(self) -> None:
        """Wait until all calls of all ranks are done. Only destroy() is allowed afterwards."""
        self._after(_c.tutti_comm_finalize(self._handle), None)

    def destroy(self) -> None:
        """Free the communicator once this rank's own calls are done. It waits for no other rank."""
        status = _c.tutti_comm_destroy(self._take_away())
        self._open.clear()
        check(status)
        # It waits for calls that are queued on streams.
        interrupts.reraise()

    def abort(self) -> None:
        """Abort: pending calls of this rank end with AbortedError, those of other ranks with
        PeerError. Any thread."""
        check(_c.tutti_comm_abort(self._take_away()))
        self._open.clear()

    def _take_away(self) -> Optional[int]:
        handle, self._handle = self._handle, None
        _alive.discard(self)
        return handle

    def revoke(self) -> None:
        """End the calls of all ranks with RevokedError, so that the communicator can be shrunk. Any
        thread."""
        check(_c.tutti_comm_revoke(self._handle), self._handle)

    @property
    def error(self) -> Optional[Error]:
        """What ended the communicator; None: all is well."""
        out = ctypes.c_int()
        check(_c.tutti_comm_get_async_error(self._handle, ctypes.byref(out)), self._handle)
        return error_of(out.value, self._handle) if out.value < 0 else None

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self._handle is None:
            return
        if kind is None:
            self.destroy()
        else:
            self.abort()

    def __repr__(self) -> str:
        state = "" if self._handle else ", destroyed"
        return f"<tutti.Communicator: rank {self.rank} of {self.size}{state}>"


def _called() -> Set[Communicator]:
    """The communicators that another thread is in a call on. That thread is then in the function of
    this package that makes the call."""
    found = set()
    for number, frame in sys._current_frames().items():
        if number == threading.get_ident() or frame.f_globals.get("__package__") != __package__:
            continue
        owner = frame.f_locals.get("self")
        owner = getattr(owner, "_channel", owner)
        owner = getattr(owner, "_comm", owner)
        if isinstance(owner, Communicator):
            found.add(owner)
    return found


@atexit.register
def _end_all() -> None:
    """End communicators that the program has not ended. After an exception the other ranks must
    not wait for it, and this function cannot wait for the call of a daemon thread, which may
    never end."""
    failed, called = hasattr(sys, "last_type"), _called()
    interrupts.end()
    for comm in list(_alive):
        abort = failed or comm in called
        (_c.tutti_comm_abort if abort else _c.tutti_comm_destroy)(comm._take_away())


def init(**config: Any) -> Communicator:
    """Make the communicator of all processes that a launcher started: `tutti run`, mpirun, srun,
    torchrun, or TUTTI_RANK and TUTTI_NRANKS by hand. Settings: name, transport, algo, timeout in
    seconds, reproducible, encrypt, traffic_class. A variable of the environment wins over a
    setting."""
    return Communicator._made_by(_c.tutti_comm_init_env, _OUT, ctypes.byref(make_config(config)))


def init_all(nranks: int, **config: Any) -> List[Communicator]:
    """Make a communicator whose ranks are threads of this process: one handle for each thread."""
    handles = (ctypes.c_void_p * nranks)()
    settings = make_config(config)
    settings.blocking = 1
    check(_c.tutti_comm_init_all(handles, nranks, ctypes.byref(settings)))
    out = []
    for handle in handles:
        comm = Communicator.__new__(Communicator)
        comm._own(handle)
        comm._finish()
        out.append(comm)
    return out
