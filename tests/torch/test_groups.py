# SPDX-License-Identifier: BSD-3-Clause
"""How groups are made: the first one, those of some ranks, beside other backends, after a death."""
import datetime
import inspect
import os
import signal
import threading
import time
import unittest
from typing import List

import torch
import torch.distributed as dist

import tutti.torch
from tutti import _c
from tutti.torch import _engine, _join
from tutti.torch._process_group import HAS_BACKENDS
from ranks import KILLED, Ranks, meet, raises, run, same
from torch._C import _distributed_c10d as c10d

SECOND = datetime.timedelta(seconds=1)


# -- The first -----------------------------------------------------------------------------


def deadline_of_init(rank: int, n: int) -> None:
    """Who does not come to a new group is named when its time is over."""
    store = dist.distributed_c10d._get_default_store()
    dist.destroy_process_group()
    if rank == 0:
        error = raises(tutti.torch.BackendError, "Timed out", lambda: dist.init_process_group(
            "tutti", store=dist.PrefixStore("next", store), rank=0, world_size=n, timeout=SECOND))
        assert "1" in str(error), error
        store.set("over", "yes")
    else:
        store.get("over")


def init_that_fails(rank: int, n: int) -> None:
    """Who comes after rank 0 has given up hears that, and why, at once."""
    store = dist.distributed_c10d._get_default_store()
    dist.destroy_process_group()
    following = dist.PrefixStore("next", store)
    if rank == 0:
        raises(tutti.torch.BackendError, "Timed out",
               lambda: _join.join(following, "id", rank, n, SECOND, "next"))
        store.set("over", "yes")
        return
    store.get("over")
    begun = time.monotonic()
    error = raises(tutti.torch.BackendError, "rank 0 failed",
                   lambda: _join.join(following, "id", rank, n, 60 * SECOND, "next"))
    assert "Timed out" in str(error) and time.monotonic() - begun < 30, error


class PlainStore(dist.Store):
    """A store in Python that can do no more than some of PyTorch's own."""

    def __init__(self, inner: dist.Store, setters: int = 100) -> None:
        super().__init__()
        self._inner = inner
        self._setters = setters

    def set(self, key: str, value: str) -> None:
        self._setters -= 1
        if self._setters < 0:
            raise RuntimeError("the store is gone")
        self._inner.set(key, value)

    def get(self, key: str) -> bytes:
        return self._inner.get(key)

    def add(self, key: str, number: int) -> int:
        return self._inner.add(key, number)

    if hasattr(dist.Store, "check"):
        def check(self, keys: List[str]) -> bool:
            return self._inner.check(keys)

    def wait(self, keys: List[str], timeout: datetime.timedelta) -> None:
        self._inner.wait(keys, timeout)


def init_with_a_plain_store(rank: int, n: int) -> None:
    """It deletes no key: the next group that uses it does not take the old id for its own. One that
    fails behind the making of the communicator leaves nothing of that."""
    store = dist.PrefixStore("plain", dist.distributed_c10d._get_default_store())
    for turn in range(3):
        if rank == 0 and turn:
            time.sleep(0.3)
        comm = _join.join(PlainStore(store), "id", rank, n, 30 * SECOND, "plain")
        engine = _engine.Engine(comm, rank, n, 30 * SECOND, "plain", "tutti")
        engine.run_now(engine.note("barrier"), _c.tutti_barrier, comm, None)
        engine.shutdown()
    if rank == 0:
        raises(RuntimeError, "the store is gone",
               lambda: _join.join(PlainStore(store, 1), "id", rank, n, 30 * SECOND, "plain"))
        return

    def join_and_call() -> None:
        comm = _join.join(PlainStore(store), "id", rank, n, 30 * SECOND, "plain")
        engine = _engine.Engine(comm, rank, n, 30 * SECOND, "plain", "tutti")
        engine.run(engine.note("barrier"), _c.tutti_barrier, (), c10d.BarrierOptions(), []).wait()

    raises(tutti.torch.BackendError, "rank 0", join_and_call)


# -- Groups --------------------------------------------------------------------------------


def new_groups(rank: int, n: int) -> None:
    reverse = dist.new_group([1, 0])
    pair = dist.new_group([0, n - 1])
    for _ in range(3):
        if rank in (0, 1):
            tensor = torch.full((2,), float(rank))
            dist.broadcast(tensor, 1, group=reverse)
            same(tensor, torch.ones(2))
        if rank in (0, n - 1):
            tensor = torch.ones(2)
            dist.all_reduce(tensor, group=pair)
            same(tensor, torch.full((2,), 2.0))
        dist.barrier()
    if rank in (0, n - 1):
        dist.destroy_process_group(pair)


def new_group_of_members(rank: int, n: int) -> None:
    """Only they call, while the others are in other calls; it outlives the death of one of these."""
    if rank == 1:
        tensor = torch.ones(2)
        work = dist.all_reduce(tensor, async_op=True)
        store = dist.distributed_c10d._get_default_store()
        store.get("made")
        work.wait()
        meet(n)
        os.kill(os.getpid(), signal.SIGKILL)
    group = dist.new_group([0, n - 1], use_local_synchronization=True)
    dist.distributed_c10d._get_default_store().set("made", "yes")
    dist.all_reduce(torch.ones(2))
    # Else some may still be in that call when the rank dies.
    meet(n)
    raises(tutti.torch.BackendError, "rank 1", dist.barrier)
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=group)
    same(tensor, torch.full((2,), 2.0))
    # The default group is lost by now, so this one goes through the store.
    other = dist.new_group([0, n - 1], use_local_synchronization=True)
    dist.all_reduce(tensor, group=other)
    same(tensor, torch.full((2,), 4.0))
    os._exit(0)  # PyTorch's own shutdown would meet the store of a dead rank


def beside_another_backend(rank: int, n: int) -> None:
    """PyTorch makes the group then, and wraps what Tutti returns."""
    group = dist.distributed_c10d._get_default_group()
    assert isinstance(group._get_backend(torch.device("cpu")), tutti.torch.TuttiBackend)
    assert isinstance(group._get_backend(torch.device("cuda")), dist.ProcessGroupGloo)
    for each in (None, dist.new_group(list(range(n)))):
        tensor = torch.full((3,), float(rank))
        work = dist.all_reduce(tensor, group=each, async_op=True)
        work.wait()
        same(tensor, torch.full((3,), n * (n - 1) / 2))
        dist.broadcast(tensor.fill_(rank), 1, group=each)
        same(tensor, torch.ones(3))
        if rank == 0:
            dist.send(torch.ones(2), 1, group=each)
        elif rank == 1:
            dist.recv(tensor[:2].zero_(), 0, group=each)
            same(tensor, torch.ones(3))
        dist.barrier(each)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1), process_group=each)
        model(torch.full((1, 3), float(rank))).sum().backward()
        same(model.module.weight.grad, torch.full((1, 3), (n - 1) / 2))


def beside_a_backend_of_a_package(rank: int, n: int) -> None:
    """PyTorch has no place for a second one, so that calls on its tensors are refused."""
    store = dist.distributed_c10d._get_default_store()
    dist.destroy_process_group()
    dist.Backend.register_backend("other", lambda *_: None, devices=["cuda"])
    dist.init_process_group("cpu:tutti,cuda:other", store=dist.PrefixStore("next", store), rank=rank, world_size=n)
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    same(tensor, torch.full((2,), float(n)))
    raises(RuntimeError, "meta", lambda: dist.all_reduce(torch.ones(2, device="meta")))
    raises(RuntimeError, "cuda", lambda: dist.distributed_c10d._get_default_group()._get_backend(
        torch.device("cuda")))


def split_groups(rank: int, n: int) -> None:
    group = dist.split_group(split_ranks=[[n - 1, 0], list(range(1, n - 1))] if n > 2 else [[1, 0]])
    tensor = torch.full((2,), float(rank))
    if rank in (0, n - 1):
        assert group.rank() == (1 if rank == 0 else 0) and group.size() == 2
        work = dist.all_reduce(tensor, group=group, async_op=True)
        work.wait()
        assert work.is_completed()
        same(tensor, torch.full((2,), n - 1.0))
    dist.barrier()


def shrunk(rank: int, n: int) -> None:
    dist.barrier()
    meet(n)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    raises(tutti.torch.BackendError, "rank 1", lambda: dist.all_reduce(torch.ones(2)))
    dist.shrink_group([1], shrink_flags=dist.distributed_c10d.SHRINK_ABORT)
    assert dist.get_world_size() == n - 1
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    same(tensor, torch.full((2,), n - 1.0))
    os._exit(0)  # PyTorch's own shutdown would meet the store of a dead rank


def shrunk_and_trained(rank: int, n: int) -> None:
    """DistributedDataParallel uses the group, and those that are made of it."""
    store = dist.distributed_c10d._get_default_store()
    for excluded in (1, n - 2):
        if dist.get_rank() == excluded:
            store.get("over")
            os._exit(0)
        tutti.torch.shrink_group([excluded])
        left = dist.get_world_size()
        for group in (None, dist.new_group(list(range(left)))):
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1), process_group=group)
            model(torch.full((1, 3), float(dist.get_rank()))).sum().backward()
            same(model.module.weight.grad, torch.full((1, 3), (left - 1) / 2))
    store.set("over", "yes")


def shrunk_beside_a_call(rank: int, n: int) -> None:
    """A thread waits in a call to which the last rank does not come; the others go on without it."""
    store, errors = dist.distributed_c10d._get_default_store(), []
    dist.barrier()
    if rank == n - 1:
        store.get("over")
        return

    def wait() -> None:
        errors.append(raises(RuntimeError, "TUTTI_EREVOKED", dist.barrier))

    before = tutti.torch.flight_record()[-1].number
    thread = threading.Thread(target=wait)
    thread.start()
    # The thread has taken the group that there is now.
    while tutti.torch.flight_record()[-1].number == before:
        time.sleep(0.01)
    dist.shrink_group([n - 1], shrink_flags=dist.distributed_c10d.SHRINK_ABORT)
    thread.join()
    assert len(errors) == 1
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    same(tensor, torch.full((2,), n - 1.0))
    store.set("over", "yes")


class Groups(Ranks):
    """On 2 to 4 ranks."""

    def test_deadline_of_init(self) -> None:
        self.each(deadline_of_init, [2])

    def test_init_that_fails(self) -> None:
        self.each(init_that_fails, [2])

    def test_init_with_a_plain_store(self) -> None:
        self.each(init_with_a_plain_store, [2, 3])

    def test_new_groups(self) -> None:
        self.each(new_groups)

    @unittest.skipUnless("use_local_synchronization" in inspect.signature(dist.new_group).parameters,
                         "in this PyTorch all ranks call new_group()")
    def test_new_group_of_members(self) -> None:
        self.assertEqual(run(new_group_of_members, 3), [0, KILLED, 0])

    @unittest.skipUnless(HAS_BACKENDS, "in this PyTorch a group has no backend beside Tutti")
    def test_beside_another_backend(self) -> None:
        self.each(beside_another_backend, [2], backend="cpu:tutti,cuda:gloo")

    @unittest.skipUnless(HAS_BACKENDS, "in this PyTorch a group has no backend beside Tutti")
    def test_beside_a_backend_of_a_package(self) -> None:
        self.each(beside_a_backend_of_a_package, [2])

    @unittest.skipUnless(HAS_BACKENDS, "this PyTorch splits its own backends alone")
    def test_split_groups(self) -> None:
        self.each(split_groups)

    @unittest.skipUnless(HAS_BACKENDS, "this PyTorch shrinks its own backends alone")
    def test_shrunk(self) -> None:
        self.assertEqual(run(shrunk, 3), [0, KILLED, 0])

    @unittest.skipUnless(HAS_BACKENDS, "this PyTorch shrinks its own backends alone")
    def test_shrunk_and_trained(self) -> None:
        self.each(shrunk_and_trained, [4])

    @unittest.skipUnless(HAS_BACKENDS, "this PyTorch shrinks its own backends alone")
    def test_shrunk_beside_a_call(self) -> None:
        self.each(shrunk_beside_a_call, [3], timeout=20.0)


if __name__ == "__main__":
    unittest.main()
