# SPDX-License-Identifier: BSD-3-Clause
"""How ranks that share a store make a communicator."""
import contextlib
import ctypes
import time
from datetime import timedelta
from typing import Any, Callable, Optional, Sequence, cast

from .. import _c
from ..comm import await_made
from ._record import BackendError, error_of, milliseconds


def becomes(condition: Callable[[], bool], deadline: float) -> bool:
    """Whether `condition` becomes true before that time of time.monotonic(). It is asked again and
    again."""
    nap = 0.0001
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(nap)
        nap = min(1.05 * nap, 0.1)
    return True


def awaited(store: Any, key: str, deadline: float) -> str:
    """The value of `key` that is set before that time of time.monotonic(); "" if nobody sets it. It
    asks again and again, because waiting in get() would keep other threads from the store."""
    text = ""

    def is_set() -> bool:
        nonlocal text
        if hasattr(store, "check"):
            there = store.check([key])
        else:  # PyTorch 1
            try:
                store.wait([key], timedelta(seconds=max(deadline - time.monotonic(), 0.001)))
                there = True
            except RuntimeError:
                there = False
        text = bytes(store.get(key)).decode() if there else ""
        return bool(text)

    becomes(is_set, deadline)
    return text


def forget(store: Any, key: str) -> None:
    """Take `key` out of the store. A store that is written in Python may be unable to. It then gets
    an empty text, which awaited() treats as not set."""
    try:
        store.delete_key(key)
    except RuntimeError:  # NotImplementedError is one.
        store.set(key, "")


#: Where a handle, and a configuration, go among the arguments of what makes a communicator.
OUT, CONFIG = object(), object()


def make(call: str, function: Callable[..., int], arguments: Sequence[Any], timeout: timedelta,
         name: Optional[str] = None) -> Optional[int]:
    """The handle of the communicator that `function` makes; None if this rank is not in it. A name
    of None: that of its parent."""
    config = _c.tutti_config.new()
    config.name = name and name.encode()
    config.timeout_ms = config.boot_timeout_ms = milliseconds(timeout)
    config.blocking = 0
    comm = ctypes.c_void_p()
    places = {id(OUT): ctypes.byref(comm), id(CONFIG): ctypes.byref(config)}
    status = function(*(places.get(id(each), each) for each in arguments))
    if comm.value is not None and status >= 0:
        try:
            status = await_made(comm.value)
        except BaseException:
            _c.tutti_comm_abort(comm)
            raise
    if status < 0:
        error = error_of(status, call, comm.value)
        _c.tutti_comm_abort(comm)
        raise error
    return comm.value


def join(store: Any, key: str, rank: int, size: int, timeout: timedelta, name: str) -> int:
    """Make a communicator of all ranks that share `store`, and return its handle."""
    unique = _c.tutti_unique_id()
    if rank == 0:
        try:
            status = _c.tutti_get_unique_id(ctypes.byref(unique))
            if status < 0:
                raise error_of(status, "init_process_group")
            store.set(key, ctypes.string_at(ctypes.addressof(unique), ctypes.sizeof(unique)).hex())
            comm = _join_with(unique, rank, size, timeout, name)
        except BaseException as error:
            # A rank that comes late hears of it, and does not wait for an id.
            with contextlib.suppress(RuntimeError):
                store.set(key, f"!{str(error) or type(error).__name__}")
            raise
        try:
            # All have read the id, and none leaves the making of the channel, which is next, before this
            # rank comes: so who uses the same store for the next group does not find it.
            forget(store, key)
        except BaseException:
            _c.tutti_comm_abort(comm)
            raise
        return comm
    text = awaited(store, key, time.monotonic() + timeout.total_seconds())
    if not text:
        raise BackendError(f"Timed out: rank 0 did not put the id of the group into the store "
                           f"within {milliseconds(timeout)} ms")
    if text.startswith("!"):
        raise BackendError(f"rank 0 failed: {text[1:]}")
    ctypes.memmove(ctypes.addressof(unique), bytes.fromhex(text), ctypes.sizeof(unique))
    return _join_with(unique, rank, size, timeout, name)


def _join_with(unique: Any, rank: int, size: int, timeout: timedelta, name: str) -> int:
    return cast(int, make("init_process_group", _c.tutti_comm_init_rank_config,
                          (OUT, size, unique, rank, CONFIG), timeout, name))
