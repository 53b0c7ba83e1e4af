# SPDX-License-Identifier: BSD-3-Clause
"""Windows: what is put, got and signalled, in memory of both kinds, and how windows end."""
import datetime
import gc
import os
import signal
import threading
import time
import unittest
from types import SimpleNamespace
from typing import Any, Callable

import torch
import torch.distributed as dist

import tutti.torch
from tutti import _c
from ranks import KILLED, Ranks, meet, raises, run, same
from torch._C import _distributed_c10d as c10d

COUNT = 1000


def shared(count: int) -> torch.Tensor:
    return tutti.torch.empty(count)


def plain(count: int) -> torch.Tensor:
    return torch.zeros(count)


def each_memory(body: Callable[..., None]) -> Callable[[int, int], None]:
    """body(rank, n, empty) with both kinds of memory."""

    def bodies(rank: int, n: int) -> None:
        for make in (shared, plain):
            body(rank, n, make)

    return bodies


def puts(rank: int, n: int, make: Callable[[int], torch.Tensor]) -> None:
    """Each rank has a part of the window of every other."""
    mine = make(n * COUNT)
    window = tutti.torch.new_window(mine)
    for asynchronous in (False, True):
        for peer in range(n):
            work = window.put(torch.full((COUNT,), rank + 10.0 * asynchronous), peer, rank * COUNT,
                              async_op=asynchronous)
            work.wait()
        window.fence()
        same(mine, torch.arange(float(n)).repeat_interleave(COUNT) + 10 * asynchronous)
        window.fence()
    # Not contiguous, and of another type.
    wide = torch.full((COUNT, 2), float(rank), dtype=torch.float64)
    if n * COUNT >= 2 * COUNT:
        window.put(wide[:, 0], (rank + 1) % n)
        window.fence()
        same(mine[:2 * COUNT].view(torch.float64),
             torch.full((COUNT,), float((rank - 1) % n), dtype=torch.float64))
    window.tensor_deregister()
    raises(RuntimeError, "tensor_register", lambda: window.put(mine, 0))


def ends_that_are_refused(rank: int, n: int) -> None:
    """The window is there, and its tensor, until it has ended."""
    tensor = plain(COUNT)
    window, engine = tutti.torch.new_window(tensor), tutti.torch.engine_of()
    window.fence()
    assert _c.tutti_group_start() == 0
    raises(RuntimeError, "TUTTI_EUSAGE", window.tensor_deregister)
    assert _c.tutti_group_end() <= 0
    assert list(engine.windows.values()) == [tensor]
    window.put(torch.full((1,), float(rank)), (rank + 1) % n)
    window.fence()
    same(tensor[:1], torch.full((1,), float((rank - 1) % n)))
    window.tensor_deregister()
    window.tensor_deregister()
    assert not engine.windows
    # A tensor of a window whose group was lost stays as long as the group.
    window = tutti.torch.new_window(tensor)
    meet(n)
    engine.run_now(engine.note("revoke"), _c.tutti_comm_revoke, engine.comm)
    raises(tutti.torch.BackendError, "TUTTI_EREVOKED", window.tensor_deregister)
    assert not engine.windows and any(held is tensor for held in engine.held_by_failed)


def ends_that_are_interrupted(rank: int, n: int) -> None:
    """A handler of a signal raises when the call is done: the window is destroyed once, and its tensor stays."""
    engine, destroy, destroyed = tutti.torch.engine_of(), _c.tutti_window_destroy, []
    first, second = (tutti.torch.new_window(plain(COUNT)) for _ in range(2))
    tensor = engine.windows[first._handle]

    def interrupted(handle: int) -> int:
        destroyed.append(handle)
        assert destroy(handle) == 0
        raise KeyboardInterrupt

    _c.tutti_window_destroy = interrupted
    try:
        raises(KeyboardInterrupt, "", first.tensor_deregister)
        first.tensor_deregister()
        assert any(held is tensor for held in engine.held_by_failed)
        meet(n)
        raises(KeyboardInterrupt, "", engine.shutdown)
        engine.shutdown()
    finally:
        _c.tutti_window_destroy = destroy
    assert len(set(destroyed)) == len(destroyed) == 2 and not engine.windows, destroyed
    del second


def gets(rank: int, n: int, make: Callable[[int], torch.Tensor]) -> None:
    mine = make(COUNT)
    mine.copy_(torch.arange(float(COUNT)) + rank)
    window = tutti.torch.new_window(mine)
    for peer in range(n):
        got = torch.zeros(COUNT - 7)
        window.get(got, peer, 7)
        same(got, torch.arange(7.0, COUNT) + peer)
        wide = torch.zeros(COUNT, 2)
        window.get(wide[:, 1], peer, async_op=True).wait()
        same(wide[:, 1].contiguous(), torch.arange(float(COUNT)) + peer)
        same(wide[:, 0].contiguous(), torch.zeros(COUNT))
    raises(RuntimeError, "TUTTI_EINVAL", lambda: window.get(got, 0, 8))
    raises(RuntimeError, "TUTTI_EINVAL", lambda: window.get(got, n))
    raises(RuntimeError, "0 or more", lambda: window.get(got, 0, -1))
    window.tensor_deregister()


def signals(rank: int, n: int, make: Callable[[int], torch.Tensor]) -> None:
    """A ring: what is signalled is there."""
    mine = make(COUNT)
    window = tutti.torch.new_window(mine)
    before, behind = (rank - 1) % n, (rank + 1) % n
    for turn in range(20):
        window.put(torch.full((COUNT,), float(turn)), behind, async_op=True)
        window.signal(behind, async_op=turn % 2 == 0)
        window.wait_signal(before, async_op=turn % 3 == 0).wait()
        same(mine, torch.full((COUNT,), float(turn)))
        window.signal(before)
        window.wait_signal(behind)
    window.tensor_deregister()


def beside_a_collective(rank: int, n: int) -> None:
    """A thread waits for a signal, which comes when the group has done something else."""
    window = tutti.torch.new_window(torch.zeros(COUNT))
    thread = threading.Thread(target=lambda: window.wait_signal(1 - rank), daemon=True)
    thread.start()
    time.sleep(0.2)
    dist.barrier()
    dist.barrier(async_op=True).wait()
    window.signal(1 - rank)
    thread.join()
    window.tensor_deregister()


def deadline_of_a_call(rank: int, n: int) -> None:
    window = tutti.torch.new_window(torch.zeros(COUNT))
    options = SimpleNamespace(timeout=datetime.timedelta(seconds=100))
    window.signal(1 - rank, opts=options)
    window.wait_signal(1 - rank, opts=options)
    if rank == 0:
        options.timeout = datetime.timedelta(seconds=1)
        raises(tutti.torch.BackendError, "Timed out waiting 1000 ms",
               lambda: window.wait_signal(1, opts=options))
        store().set("over", "yes")
    store().get("over")


def store() -> Any:
    return dist.distributed_c10d._get_default_store()


def as_pytorch_has_them(rank: int, n: int) -> None:
    assert dist._supports_window()
    window = dist._new_window()
    mine = tutti.torch.empty(COUNT)
    window.tensor_register(mine)
    raises(RuntimeError, "has a tensor", lambda: window.tensor_register(mine))
    c10d = dist.distributed_c10d.torch._C._distributed_c10d
    options = c10d.PutOptions()
    window.put(torch.full((COUNT,), float(rank)), (rank + 1) % n, 0, True, options).wait()
    window.signal((rank + 1) % n, True, c10d.SignalOptions()).wait()
    window.wait_signal((rank - 1) % n, False, c10d.WaitSignalOptions()).wait()
    same(mine, torch.full((COUNT,), float((rank - 1) % n)))
    assert window.get_attr(0).access_type == c10d.WindowAccessType.UNIFIED
    window.tensor_deregister()


def of_some_ranks(rank: int, n: int) -> None:
    """Of a group, whose ranks the peers are; a rank may give nothing."""
    group = dist.new_group([1, 2])
    if rank == 0:
        return
    mine = torch.zeros(COUNT if rank == 2 else 0)
    window = tutti.torch.new_window(mine, group)
    if rank == 1:
        window.put(torch.ones(COUNT), 1)
        raises(RuntimeError, "TUTTI_EINVAL", lambda: window.put(torch.ones(1), 0))
    window.fence()
    if rank == 2:
        same(mine, torch.ones(COUNT))
    window.tensor_deregister()


def left_to_the_group(rank: int, n: int) -> None:
    """It ends with its group, on each rank alone; until then the memory is there."""
    store = dist.distributed_c10d._get_default_store()
    window = tutti.torch.new_window(torch.zeros(COUNT))
    window.put(torch.ones(COUNT), (rank + 1) % n)
    del window
    gc.collect()
    dist.barrier()
    if rank == 0:
        dist.destroy_process_group()
        store.set("destroyed", "yes")
    else:
        store.get("destroyed")


def death(rank: int, n: int) -> None:
    window = tutti.torch.new_window(tutti.torch.empty(COUNT))
    window.fence()
    # Else the other may still be in the fence when it dies.
    meet(n)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    raises(tutti.torch.BackendError, "rank 1", lambda: window.wait_signal(1))
    raises(tutti.torch.BackendError, "rank 1", window.wait_signal(1, async_op=True).wait)


class Windows(Ranks):
    def test_puts(self) -> None:
        self.each(each_memory(puts))

    def test_ends_that_are_refused(self) -> None:
        self.each(ends_that_are_refused)

    def test_ends_that_are_interrupted(self) -> None:
        self.each(ends_that_are_interrupted, [2])

    def test_gets(self) -> None:
        self.each(each_memory(gets))

    def test_signals(self) -> None:
        self.each(each_memory(signals))

    @unittest.skipUnless(hasattr(c10d, "Backend"), "with PyTorch 1 all calls are queued in one row")
    def test_beside_a_collective(self) -> None:
        self.each(beside_a_collective, [2], timeout=60.0)

    def test_deadline_of_a_call(self) -> None:
        self.each(deadline_of_a_call, [2])

    @unittest.skipUnless(hasattr(dist, "_new_window"), "this PyTorch has no windows")
    def test_as_pytorch_has_them(self) -> None:
        self.each(as_pytorch_has_them, [3])

    def test_of_some_ranks(self) -> None:
        self.each(of_some_ranks, [3])

    def test_left_to_the_group(self) -> None:
        self.each(left_to_the_group, [2, 3])

    def test_death(self) -> None:
        self.assertEqual(run(death, 2), [0, KILLED])


if __name__ == "__main__":
    unittest.main()
