# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of calls that are done later: Works, futures and their callbacks."""
import datetime
import gc
import threading
import time
import unittest
import weakref
from typing import Any, Callable, List

import torch
import torch.distributed as dist

import tutti.torch
from tutti.torch import _engine, _work
from ranks import Ranks, raises, same

SECOND = datetime.timedelta(seconds=1)


def works(rank: int, n: int) -> None:
    """Many calls at once, in any order of waiting."""
    tensors = [torch.full((k + 1,), float(k + rank)) for k in range(50)]
    begun = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for k in reversed(range(50)):
        assert begun[k].wait() is True
        assert begun[k].is_completed() and begun[k].is_success()
        assert begun[k].exception() is None
        same(tensors[k], torch.full((k + 1,), sum(float(k + r) for r in range(n))))
    assert begun[0].result()[0] is tensors[0]
    # A call that is waited for comes after those that are not.
    late = torch.ones(100000)
    first = dist.all_reduce(late, async_op=True)
    dist.all_reduce(torch.ones(3))
    first.wait()
    same(late, torch.full((100000,), float(n)))


def futures(rank: int, n: int) -> None:
    tensor = torch.ones(4)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2)
    same(doubled.wait(), torch.full((4,), 2.0 * n))
    work = dist.broadcast(tensor, 0, async_op=True)
    work.wait()
    same(work.get_future().wait()[0], tensor)
    # Where a future calls the next call may be begun.
    again = torch.ones(2)
    nested = dist.all_reduce(tensor, async_op=True).get_future().then(
        lambda _: dist.all_reduce(again, async_op=True))
    nested.wait().wait()
    same(again, torch.full((2,), float(n)))


def waits_in_callbacks(rank: int, n: int) -> None:
    """A callback may wait for what it begins, and that have such callbacks; they run in the order of calls."""
    order: List[int] = []

    def added(tensor: torch.Tensor) -> torch.Tensor:
        """As PyTorch's hook powerSGD_hook does."""
        return dist.all_reduce(tensor, async_op=True).get_future().wait()[0]

    def callback(k: int) -> Callable[[Any], torch.Tensor]:
        def call(done: Any) -> torch.Tensor:
            order.append(k)
            total = added(done.value()[0].clone())
            dist.all_reduce(total)
            inner = dist.all_reduce(torch.ones(k + 1), async_op=True).get_future().then(
                lambda given: added(given.value()[0]) + k)
            # What its callback begins has no order with the calls here, unless these wait for it.
            same(inner.wait(), torch.full((k + 1,), float(n**2 + k)))
            dist.all_reduce(total, async_op=True).wait()
            return total
        return call

    begun = [dist.all_reduce(torch.ones(k + 1), async_op=True) for k in range(10)]
    futures = [work.get_future().then(callback(k)) for k, work in enumerate(begun)]
    for k, future in enumerate(futures):
        same(future.wait(), torch.full((k + 1,), float(n**4)))
    assert order == list(range(10)), order
    # It may wait for a later call of the program, too.
    first, second = (dist.all_reduce(torch.ones(1 << 20), async_op=True) for _ in range(2))
    chained = first.get_future().then(lambda _: second.get_future().wait()[0])
    same(chained.wait(), torch.full((1 << 20,), float(n)))


def callbacks_that_wait_their_turn(rank: int, n: int) -> None:
    """A Work that was over when it was asked for its future comes behind those before it, at each depth."""
    store = dist.distributed_c10d._get_default_store()

    def two_calls(key: str) -> None:
        order: List[str] = []
        is_attached, total = threading.Event(), torch.ones(3)

        def first_callback(_: Any) -> None:
            assert is_attached.wait(60)
            order.append("first")
            dist.all_reduce(total)

        def second_callback(_: Any) -> None:
            order.append("second")
            dist.all_reduce(torch.ones(5))

        if rank:
            is_attached.set()
            store.get(key)
        first = dist.all_reduce(torch.ones(2), async_op=True)
        second = dist.all_reduce(torch.ones(2), async_op=True)
        if rank == 0:
            ahead = first.get_future().then(first_callback)
            store.set(key, "yes")
        second.wait()
        if rank:
            ahead = first.get_future().then(first_callback)
        behind = second.get_future().then(second_callback)
        assert rank or not order, order
        is_attached.set()
        ahead.wait()
        behind.wait()
        assert order == ["first", "second"], order
        same(total, torch.full((3,), float(n)))

    two_calls("program")
    dist.all_reduce(torch.ones(2), async_op=True).get_future().then(lambda _: two_calls("callback")).wait()


def callbacks_in_a_chain(rank: int, n: int) -> None:
    """One begins the next call, with itself as the callback: its threads end before the group does."""
    tensor, is_done, counts = torch.zeros(2), threading.Event(), []

    def beat(_: Any) -> None:
        counts.append(threading.active_count())
        if len(counts) < 300:
            dist.all_reduce(tensor, async_op=True).get_future().then(beat)
        else:
            is_done.set()

    before = threading.active_count()
    beat(None)
    assert is_done.wait(120) and len(counts) == 300
    assert max(counts) <= before + 6, (before, max(counts))


def callbacks_at_the_end(rank: int, n: int) -> None:
    """Who destroys a group waits for its callbacks, whose calls are refused from then on."""
    store, engine = dist.distributed_c10d._get_default_store(), tutti.torch.engine_of()
    if rank:
        store.get("called")
        dist.all_reduce(torch.ones(2))
        store.get("over")
        return
    ran, group = [], dist.distributed_c10d._get_default_group()

    def late(_: Any) -> None:
        while engine.stream is not None:
            time.sleep(0.01)
        raises(RuntimeError, "shut down", lambda: dist.all_reduce(torch.ones(2), group=group, async_op=True))
        ran.append(rank)

    work = dist.all_reduce(torch.ones(2), async_op=True)
    work.get_future().then(late)
    store.set("called", "yes")
    work.wait()
    dist.destroy_process_group()
    engine.shutdown()
    assert ran == [0]
    store.set("over", "yes")


def works_that_are_kept(rank: int, n: int) -> None:
    """Old PyTorch holds no more of a Work than its C++ half, so that the other one stays until it was asked."""
    number = 4 * _engine.RECORD
    works = [weakref.ref(dist.all_reduce(torch.ones(2), async_op=True)) for _ in range(number)]
    dist.barrier()
    gc.collect()
    assert all(work() is not None for work in works)
    for work in works[::2]:
        work().wait()
    for work in works[1::2]:
        same(work().get_future().wait()[0], torch.full((2,), float(n)))
    gc.collect()
    assert sum(work() is not None for work in works) <= _engine.RECORD
    # Of those that nobody ever asks there is an end.
    works = [weakref.ref(dist.barrier(async_op=True)) for _ in range(2 * _work.UNASKED)]
    dist.barrier()
    gc.collect()
    assert sum(work() is not None for work in works) <= _work.UNASKED


def waits_with_a_limit(rank: int, n: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    work = dist.all_reduce(torch.ones(2), async_op=True)
    assert work.wait(datetime.timedelta(seconds=100)) is True
    work = dist.barrier(async_op=True) if rank == 0 else None
    if work is None:
        store.get("over")
        raises(RuntimeError, "TUTTI_", dist.barrier)
        return
    raises(RuntimeError, "Timed out waiting 1000 ms", lambda: work.wait(SECOND))
    store.set("over", "yes")
    raises(RuntimeError, "Timed out", dist.barrier)


def outputs_that_are_not_dense(rank: int, n: int) -> None:
    """What is received elsewhere first is in its place when the Work is done."""
    with torch.inference_mode():
        wide = torch.zeros(3, 2 * n)
    dist.all_gather(list(wide.t())[:n], torch.full((3,), float(rank)), async_op=True).wait()
    for r in range(2 * n):
        same(wide[:, r], torch.full((3,), float(r if r < n else 0)))
    leaf = torch.ones(3, 3, requires_grad=True)
    dist.all_reduce(leaf[:, 0].detach(), async_op=True).wait()
    dist.all_reduce(leaf.t(), async_op=True).wait()


class Works(Ranks):
    """On 2 to 4 ranks."""

    def test_works(self) -> None:
        self.each(works)

    def test_futures(self) -> None:
        self.each(futures)

    def test_waits_in_callbacks(self) -> None:
        self.each(waits_in_callbacks)

    def test_callbacks_that_wait_their_turn(self) -> None:
        self.each(callbacks_that_wait_their_turn, [2, 3])

    def test_callbacks_in_a_chain(self) -> None:
        self.each(callbacks_in_a_chain, [2])

    def test_callbacks_at_the_end(self) -> None:
        self.each(callbacks_at_the_end, [2])

    @unittest.skipUnless(_work._FORGETS, "this PyTorch keeps both halves of a Work")
    def test_works_that_are_kept(self) -> None:
        self.each(works_that_are_kept, [2])

    def test_waits_with_a_limit(self) -> None:
        self.each(waits_with_a_limit, [2])

    def test_outputs_that_are_not_dense(self) -> None:
        self.each(outputs_that_are_not_dense, [3])


if __name__ == "__main__":
    unittest.main()
