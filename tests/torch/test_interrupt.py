# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C while a call of torch.distributed waits: the last rank alone makes it, and is interrupted."""
import gc
import os
import signal
import sys
import threading
import time
import unittest
import weakref
from types import SimpleNamespace
from typing import Any, Callable, List, Set

import torch
import torch.distributed as dist

import tutti.torch
from tutti import _c, comm, interrupts
from tutti.torch import _engine, _join, _work
from ranks import Ranks, raises, same
from torch._C import _distributed_c10d as c10d

# Where calls that are waited for run on the calling thread; older PyTorch does not say which are.
NEW = hasattr(c10d.BarrierOptions(), "asyncOp")
# What waits in Python.
IN_PYTHON = {each.__code__ for each in (comm.await_made, _join.becomes, _work.Work.wait)}
# What the library has called once.
kept: List[Any] = []


def codes_of(thread: threading.Thread) -> Set[Any]:
    """Of the functions that the thread is in."""
    frame, codes = sys._current_frames()[thread.ident or 0], set()
    while frame:
        codes.add(frame.f_code)
        frame = frame.f_back
    return codes


def signal_once_it_waits() -> None:
    """Send this process SIGINT once its main thread waits: in the library, which then gives Python a turn, or
    between calls of the library, in Python."""
    waits = threading.Event()

    def turn(_: Any) -> int:
        interrupts.install()
        waits.set()
        return 0

    def is_waiting() -> bool:
        codes = codes_of(threading.main_thread())
        # In the turn an exception would be lost. The main thread does not come back there.
        return turn.__code__ not in codes and (waits.is_set() or not codes.isdisjoint(IN_PYTHON))

    def send() -> None:
        while not is_waiting():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    kept.append(_c.tutti_interrupt_fn(turn))
    _c.tutti_set_interrupt(kept[-1], None)
    threading.Thread(target=send, daemon=True).start()


def interrupted(call: Callable[[], Any]) -> None:
    """Make the call; a signal ends it where it waits."""
    # A shell has what it runs in the background ignore it, and Python leaves that so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal_once_it_waits()
    raises(KeyboardInterrupt, "", call)


def store() -> Any:
    return dist.distributed_c10d._get_default_store()


def a_call(rank: int, n: int) -> None:
    """It ends the group, on all ranks. A queued one can be waited for again."""
    if rank == n - 1:
        interrupted(dist.barrier)
        store().set("said", "yes")
    store().get("said")
    if not NEW:
        if rank < n - 1:
            dist.barrier()
        return
    # The others may pass the first one, since the last rank has come to it.
    raises(tutti.torch.BackendError, "was interrupted", lambda: (dist.barrier(), dist.barrier()))


def interrupted_behind(call: Callable[..., int]) -> Callable[..., int]:
    """`call`, behind which a handler of a signal raises before it is back."""

    def both(*arguments: Any) -> int:
        assert call(*arguments) >= 0
        raise KeyboardInterrupt

    return both


def a_call_that_was_queued(rank: int, n: int) -> None:
    """Its buffers stay until it is done, and so do those of messages that were begun."""
    engine = tutti.torch.engine_of()
    held, place = torch.ones(1000), torch.zeros(1000)
    buffers = [weakref.ref(held), weakref.ref(place)]
    options = SimpleNamespace(asyncOp=True)
    if rank == n - 1:
        raises(KeyboardInterrupt, "", lambda: engine.run(
            engine.note("test"), interrupted_behind(_c.tutti_broadcast),
            (held.data_ptr(), held.data_ptr(), 1000, int(_c.tutti_type.TUTTI_FLOAT32), 0), options,
            [], held))
        raises(KeyboardInterrupt, "", lambda: engine.channel._begin(
            interrupted_behind(_c.tutti_message_irecv), engine.note("test"), place, place, 0, 7, True))
    del held, place
    gc.collect()
    assert [ref() is not None for ref in buffers] == [rank == n - 1] * 2
    store().add("begun", 1)
    while store().add("begun", 0) < n:
        time.sleep(0.01)
    if rank < n - 1:
        dist.broadcast(torch.ones(1000), 0)
    if rank == 0:
        dist.send(torch.ones(1000), n - 1, tag=7)
    del engine
    dist.destroy_process_group()
    gc.collect()
    assert buffers[0]() is None


def a_sweep(rank: int, n: int) -> None:
    """The memory of a receive that nobody waits for stays, where a look at it is interrupted."""
    engine, wait, place = tutti.torch.engine_of(), _c.tutti_message_wait, torch.zeros(1000)
    reference = weakref.ref(place)
    if rank == n - 1:
        dist.irecv(place, 0, tag=7)
        del place
        gc.collect()
        _c.tutti_message_wait = interrupted_behind(wait)
        try:
            raises(KeyboardInterrupt, "", engine.channel._sweep)
        finally:
            _c.tutti_message_wait = wait
        gc.collect()
        assert reference() is not None and len(engine.channel._left) == 1
        engine.channel._sweep()
        assert reference() is not None and len(engine.channel._left) == 1
        store().set("said", "yes")
    store().get("said")
    if rank == 0:
        dist.send(torch.ones(1000), n - 1, tag=7)
    if rank == n - 1:
        while engine.channel._left:
            engine.channel._sweep()
        gc.collect()
        assert reference() is None


def a_handler_that_raises_nothing(rank: int, n: int) -> None:
    ran = []
    if rank == n - 1:
        signal.signal(signal.SIGUSR1, lambda *_: (ran.append(1), store().set("said", "yes")))
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    else:
        store().get("said")
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    same(tensor, torch.full((2,), float(n)))
    assert len(ran) == (rank == n - 1)


def a_work(rank: int, n: int) -> None:
    """It can be waited for again."""
    tensor = torch.ones(2)
    if rank == n - 1:
        work = dist.all_reduce(tensor, async_op=True)
        interrupted(work.wait)
        assert not work.is_completed()
        store().set("said", "yes")
        work.wait()
    else:
        store().get("said")
        dist.all_reduce(tensor)
    same(tensor, torch.full((2,), float(n)))


def a_message(rank: int, n: int) -> None:
    """A receive is taken back, so that another call gets the message. A send that was announced goes on,
    whoever waits."""
    tensor, long = torch.zeros(2), torch.ones(1 << 20)
    if rank == n - 1:
        work = dist.irecv(torch.zeros(2), 0)
        interrupted(work.wait)
        raises(RuntimeError, "TUTTI_ECANCELED", work.wait)
        interrupted(lambda: dist.recv(torch.zeros(2), 0))
        work = dist.isend(long, 0)
        interrupted(work.wait)
        store().set("said", "yes")
        dist.recv(tensor, 0)
        same(tensor, torch.ones(2))
        work.wait()
    elif rank == 0:
        store().get("said")
        dist.send(torch.ones(2), n - 1)
        got = torch.zeros(1 << 20)
        dist.recv(got, n - 1)
        same(got, long)


def the_end(rank: int, n: int) -> None:
    """destroy_process_group() waits for what this rank has begun, and is interrupted."""
    if rank == n - 1:
        dist.barrier(async_op=True)
        interrupted(dist.distributed_c10d._get_default_group().shutdown)
        store().set("said", "yes")
    store().get("said")
    raises(RuntimeError, "", dist.barrier)


def the_end_of_the_program(rank: int, n: int) -> None:
    """It frees the communicator of a group whose own end was interrupted behind that of its stream."""
    engine, destroy = tutti.torch.engine_of(), _c.tutti_stream_destroy
    _c.tutti_stream_destroy = interrupted_behind(lambda stream: destroy(stream) or 0)
    try:
        raises(KeyboardInterrupt, "", engine.shutdown)
    finally:
        _c.tutti_stream_destroy = destroy
    assert engine.stream is None and engine.comm is not None
    _engine._at_exit()
    assert engine.comm is None and engine.channel.handle is None


def a_new_group(rank: int, n: int) -> None:
    """The others do not come to it."""
    if rank == n - 1:
        interrupted(lambda: dist.new_group([0, n - 1]))
        store().set("said", "yes")
    store().get("said")


def init(rank: int, n: int) -> None:
    begun = dist.distributed_c10d._get_default_store()
    dist.destroy_process_group()
    if rank == 0:
        interrupted(lambda: dist.init_process_group(
            "tutti", store=dist.PrefixStore("next", begun), rank=0, world_size=n))
        begun.set("said", "yes")
    begun.get("said")


class Interrupts(Ranks):
    def test_a_call(self) -> None:
        self.each(a_call)

    def test_a_call_that_was_queued(self) -> None:
        self.each(a_call_that_was_queued, [2])

    def test_a_sweep(self) -> None:
        self.each(a_sweep, [2])

    def test_a_handler_that_raises_nothing(self) -> None:
        self.each(a_handler_that_raises_nothing)

    def test_a_work(self) -> None:
        self.each(a_work, [2, 3])

    def test_a_message(self) -> None:
        self.each(a_message, [2])

    def test_the_end(self) -> None:
        self.each(the_end, [2])

    def test_the_end_of_the_program(self) -> None:
        self.each(the_end_of_the_program, [2])

    def test_a_signal_just_before_a_wait(self) -> None:
        """Python does not hear it while it waits for a lock without a limit; about one of 200 comes so."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        main, lock = threading.main_thread(), threading.Lock()
        lock.acquire()  # pylint: disable=consider-using-with

        def send() -> None:
            # Without a pause, so that this thread goes on when that one begins to wait.
            while _work.take.__code__ not in codes_of(main):
                pass
            os.kill(os.getpid(), signal.SIGINT)

        for _ in range(500):
            thread = threading.Thread(target=send)
            thread.start()
            raises(KeyboardInterrupt, "", lambda: _work.take(lock))
            thread.join()

    def test_a_new_group(self) -> None:
        self.each(a_new_group, [3])

    def test_init(self) -> None:
        self.each(init, [2])


if __name__ == "__main__":
    unittest.main()
