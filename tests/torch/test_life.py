# SPDX-License-Identifier: BSD-3-Clause
"""What becomes of calls and groups: Works and futures, deadlines, deaths, ends."""
import datetime
import gc
import inspect
import os
import signal
import threading
import time
import traceback
import unittest
import weakref
from typing import Any, Callable, List

import torch
import torch.distributed as dist

import tutti.torch
from tutti import _c
from tutti.torch import _engine
from tutti.torch._process_group import HAS_BACKENDS
from ranks import KILLED, Ranks, meet, raises, run, same
from torch._C import _distributed_c10d as c10d

SECOND = datetime.timedelta(seconds=1)
ASYNC = True
# Whether calls say that they are waited for.
NEW = hasattr(c10d.BarrierOptions(), "asyncOp")
OLD = torch.__version__.startswith("1.")


# -- Works ---------------------------------------------------------------------------------


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
    works = [weakref.ref(dist.barrier(async_op=True)) for _ in range(2 * _engine.UNASKED)]
    dist.barrier()
    gc.collect()
    assert sum(work() is not None for work in works) <= _engine.UNASKED


def waits_with_a_limit(rank: int, n: int) -> None:
    work = dist.all_reduce(torch.ones(2), async_op=True)
    assert work.wait(datetime.timedelta(seconds=100)) is True
    work = dist.barrier(async_op=True) if rank == 0 else None
    if work is None:
        time.sleep(1.5)
        raises(RuntimeError, "TUTTI_", dist.barrier)
        return
    raises(RuntimeError, "Timed out waiting 1000 ms", lambda: work.wait(SECOND))
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


# -- Deadlines -------------------------------------------------------------------------------


def deadline_of_the_group(rank: int, n: int) -> None:
    if rank == 0:
        error = raises(tutti.torch.BackendError, "Timed out", lambda: dist.all_reduce(torch.ones(2)))
        assert "1" in str(error), error
    else:
        dist.distributed_c10d._get_default_store().get("over")
        return
    dist.distributed_c10d._get_default_store().set("over", "yes")


def deadline_changed(rank: int, n: int) -> None:
    group = dist.distributed_c10d._get_default_group()
    group.set_timeout(SECOND)
    dist.all_reduce(torch.ones(2))
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        raises(tutti.torch.BackendError, "Timed out", lambda: dist.all_reduce(torch.ones(2)))
        store.set("over", "yes")
    else:
        store.get("over")


def deadline_of_a_call(rank: int, n: int) -> None:
    """Of one that waits and of one that does not; other calls have the group's."""
    group = dist.distributed_c10d._get_default_group()
    options = c10d.AllreduceOptions()
    options.timeout = SECOND
    for asynchronous in (True, False):
        if NEW:
            options.asyncOp = asynchronous
        group.allreduce([torch.ones(2)], options).wait()
    dist.barrier()
    if rank == 0:
        if NEW:
            options.asyncOp = ASYNC
        raises(tutti.torch.BackendError, "Timed out",
               lambda: group.allreduce([torch.ones(2)], options).wait())
        dist.distributed_c10d._get_default_store().set("over", "yes")
    else:
        time.sleep(0.1)
        dist.distributed_c10d._get_default_store().get("over")


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
               lambda: _engine.join(following, "id", rank, n, SECOND, "next"))
        store.set("over", "yes")
        return
    store.get("over")
    begun = time.monotonic()
    error = raises(tutti.torch.BackendError, "rank 0 failed",
                   lambda: _engine.join(following, "id", rank, n, 60 * SECOND, "next"))
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
        comm = _engine.join(PlainStore(store), "id", rank, n, 30 * SECOND, "plain")
        engine = _engine.Engine(comm, rank, n, 30 * SECOND, "plain", "tutti")
        engine.run_now(engine.note("barrier"), _c.tutti_barrier, comm, None)
        engine.shutdown()
    if rank == 0:
        raises(RuntimeError, "the store is gone",
               lambda: _engine.join(PlainStore(store, 1), "id", rank, n, 30 * SECOND, "plain"))
        return

    def join_and_call() -> None:
        comm = _engine.join(PlainStore(store), "id", rank, n, 30 * SECOND, "plain")
        engine = _engine.Engine(comm, rank, n, 30 * SECOND, "plain", "tutti")
        engine.run(engine.note("barrier"), _c.tutti_barrier, (), c10d.BarrierOptions(), []).wait()

    raises(tutti.torch.BackendError, "rank 0", join_and_call)


def monitored_barrier(rank: int, n: int) -> None:
    group = dist.distributed_c10d._get_default_group()
    for _ in range(3):
        group.monitored_barrier(datetime.timedelta(seconds=100))
    if rank == n - 1:
        return
    if rank == 0:
        raises(RuntimeError, f"Rank {n - 1} failed to pass", lambda: group.monitored_barrier(SECOND))
    else:
        raises(RuntimeError, "let nobody pass", lambda: group.monitored_barrier(SECOND))


def monitored_barrier_that_one_leaves(rank: int, n: int) -> None:
    """It came, and its time is over before the last one comes: nobody passes the next barrier too early."""
    group = dist.distributed_c10d._get_default_group()
    store = dist.distributed_c10d._get_default_store()
    long = datetime.timedelta(seconds=100)
    if rank == 0:
        raises(RuntimeError, "Ranks 1 failed to pass", lambda: group.monitored_barrier(long))
    elif rank == 1:
        raises(RuntimeError, "let nobody pass", lambda: group.monitored_barrier(3 * SECOND))
        store.set("left", "yes")
    else:
        store.get("left")
        group.monitored_barrier(long)
    dist.barrier()
    for turn in range(1, 3):
        if rank == 0:
            time.sleep(0.5)
            store.add("coming", 1)
        group.monitored_barrier(long)
        assert store.add("coming", 0) == turn, rank
        dist.barrier()


def monitored_barriers_of_groups_in_turn(rank: int, n: int) -> None:
    """In one store none passes by what another has left there, be it that all came or that one did not."""
    store = dist.PrefixStore("turns", dist.distributed_c10d._get_default_store())

    def barrier(timeout: datetime.timedelta) -> None:
        dist.distributed_c10d._get_default_group().monitored_barrier(timeout)

    for alone in (None, 0, n - 1, None):
        dist.destroy_process_group()
        dist.init_process_group("tutti", store=store, rank=rank, world_size=n)
        if alone is None:
            barrier(datetime.timedelta(seconds=100))
        elif alone == rank:
            raises(RuntimeError, "let nobody pass" if rank else "Rank 1 failed to pass",
                   lambda: barrier(SECOND))


# -- Deaths, ends ------------------------------------------------------------------------------


def death(rank: int, n: int) -> None:
    """Who is killed is named at once on all others, in calls that wait and in others."""
    dist.barrier()
    if rank == n - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    if rank == 0:
        work = dist.all_reduce(torch.ones(2), async_op=True)
        error = raises(tutti.torch.BackendError, f"rank {n - 1}", work.wait)
        assert work.is_completed() and not work.is_success() and work.exception() is error
        raises(Exception, f"rank {n - 1}", work.get_future().wait)
    else:
        raises(tutti.torch.BackendError, f"rank {n - 1}", lambda: dist.all_reduce(torch.ones(2)))
    assert time.monotonic() - begun < 60
    assert any(entry.state == "failed" for entry in tutti.torch.flight_record())
    if HAS_BACKENDS:
        group = dist.distributed_c10d._get_default_group()
        assert group._get_backend(torch.device("cpu")).get_error() == c10d.ErrorType.REMOTE_ERROR
    # The next call fails at once.
    raises(tutti.torch.BackendError, "", dist.barrier)


def buffers_of_failed_calls(rank: int, n: int) -> None:
    """They stay as long as the group, since other ranks write to them until their own calls return;
    what is given to calls that come too late does not."""
    store = dist.distributed_c10d._get_default_store()
    if rank:
        store.get("over")
        return
    dist.distributed_c10d._get_default_group().set_timeout(SECOND)
    references = []
    for asynchronous in (ASYNC, False, False):
        tensor = torch.ones(1000)
        references.append(weakref.ref(tensor))

        def fail() -> None:
            work = dist.all_reduce(tensor, async_op=asynchronous)
            if work is not None:
                work.wait()

        error = raises(tutti.torch.BackendError, "", fail)
        traceback.clear_frames(error.__traceback__)
        del tensor, fail, error
    gc.collect()
    assert references[0]() is not None and references[2]() is None, references
    dist.destroy_process_group()
    gc.collect()
    assert references[0]() is None
    store.set("over", "yes")


def error_of_the_group(rank: int, n: int) -> None:
    """It is raised anew by each call that comes too late, and keeps nothing alive."""
    engine = tutti.torch.engine_of()
    dist.barrier()
    meet(n)
    if rank == 0:
        engine.abort()
    first = raises(tutti.torch.BackendError, "", lambda: dist.all_reduce(torch.ones(2)))
    engine.abort()
    second, third = (raises(tutti.torch.BackendError, "", dist.barrier) for _ in range(2))
    assert second is not third and second is not first
    # Where the call is queued, as with PyTorch 1, its Work alone may have the error.
    if engine.error is not None:
        assert str(first) == str(second) == str(third) and engine.error.__traceback__ is None
    traceback.clear_frames(first.__traceback__)
    gc.collect()
    gc.disable()
    try:
        reference = weakref.ref(engine)
        del first, second, third, engine
        dist.destroy_process_group()
        assert HAS_BACKENDS or reference() is None
    finally:
        gc.enable()


def mismatch(rank: int, n: int) -> None:
    error = raises(tutti.torch.BackendError, "TUTTI_EMISMATCH",
                   lambda: dist.all_reduce(torch.ones(2 + rank)))
    assert "all_reduce" in str(error)


def aborted(rank: int, n: int) -> None:
    """abort() from another thread ends what a call waits for, here and elsewhere."""
    group = dist.distributed_c10d._get_default_group()
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        work = dist.all_reduce(torch.ones(2), async_op=True)
        thread = threading.Timer(0.2, group.abort)
        thread.start()
        raises(tutti.torch.BackendError, "TUTTI_EABORTED", work.wait)
        thread.join()
        raises(RuntimeError, "", dist.barrier)
        store.set("aborted", "yes")
    elif rank == 1:
        raises(tutti.torch.BackendError, "rank 0", lambda: dist.all_reduce(torch.ones(2)))
    store.get("aborted")
    raises(RuntimeError, "", dist.barrier)


def aborted_beside_another_backend(rank: int, n: int) -> None:
    """PyTorch has the C++ half of the backend alone, and asks for the other one until the end."""
    tutti.torch.engine_of().abort()
    gc.collect()
    raises(RuntimeError, "", dist.barrier)
    group = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    assert isinstance(group, tutti.torch.TuttiBackend)
    raises(RuntimeError, "shut down", lambda: dist.all_reduce(torch.ones(2)))
    assert group.get_error() == c10d.ErrorType.COMM_ERROR


def aborted_before_the_call(rank: int, n: int) -> None:
    """By another thread, when the call is in the record and not in the library."""
    engine = tutti.torch.engine_of()
    entry, options = engine.note("barrier"), c10d.BarrierOptions()
    store = dist.distributed_c10d._get_default_store()
    store.add("begun", 1)
    while store.add("begun", 0) < n:
        time.sleep(0.01)
    engine.abort()
    raises(tutti.torch.BackendError, "TUTTI_EABORTED",
           lambda: engine.run(entry, _c.tutti_barrier, (), options, []))
    assert entry.state == "failed"


def destroyed_and_made_again(rank: int, n: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    for turn in range(3):
        dist.all_reduce(torch.ones(2), async_op=True)
        dist.destroy_process_group()
        dist.init_process_group("tutti", store=dist.PrefixStore(str(turn), store), rank=rank,
                                world_size=n)
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        same(tensor, torch.full((2,), float(n)))


def made_again_with_the_same_store(rank: int, n: int) -> None:
    """As under torchrun. Rank 0 comes late, so that the others look for its id while there is none."""
    store = dist.PrefixStore("again", dist.distributed_c10d._get_default_store())
    for turn in range(3):
        dist.destroy_process_group()
        if rank == 0 and turn:
            time.sleep(0.3)
        dist.init_process_group("tutti", store=store, rank=rank, world_size=n,
                                timeout=datetime.timedelta(seconds=30))
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        same(tensor, torch.full((2,), float(n)))


def destroyed_by_one(rank: int, n: int) -> None:
    """Who destroys a group does not wait for the others, who receive what was sent, are told that no more
    will come, and end calls that all have made."""
    store = dist.distributed_c10d._get_default_store()
    dist.all_reduce(torch.ones(1 << 20), async_op=rank > 0)
    if rank == 0:
        for tag in range(20):
            dist.send(torch.full((3000,), float(tag)), n - 1, tag=tag)
        dist.destroy_process_group()
        store.set("destroyed", "yes")
        store.get("received")
        return
    store.get("destroyed")
    if rank == n - 1:
        for tag in reversed(range(20)):
            tensor = torch.empty(3000)
            dist.recv(tensor, 0, tag=tag)
            same(tensor, torch.full((3000,), float(tag)))
        store.set("received", "yes")
        raises(tutti.torch.BackendError, "rank 0", lambda: dist.recv(tensor, 0, tag=20))
    dist.destroy_process_group()


def destroyed_beside_one_that_hangs(rank: int, n: int) -> None:
    """Nobody waits for a rank that does nothing."""
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    if rank > 0:
        dist.destroy_process_group()
        store.add("destroyed", 1)
        store.get("all have")
        return
    while store.add("destroyed", 0) < n - 1:
        time.sleep(0.01)
    store.set("all have", "yes")


def left_alone(rank: int, n: int) -> None:
    """Nobody destroys the group: the process ends by itself all the same."""
    dist.all_reduce(torch.ones(2), async_op=True)
    dist.barrier()
    import atexit  # pylint: disable=import-outside-toplevel
    atexit._run_exitfuncs()
    os._exit(0)


def record(rank: int, n: int) -> None:
    dist.broadcast(torch.ones(5, dtype=torch.int32), 1)
    work = dist.all_reduce(torch.ones(7), async_op=True)
    work.wait()
    first, second = tutti.torch.flight_record()[-2:]
    assert (first.call, first.elements, first.peer, first.state) == ("broadcast", 5, 1, "done")
    assert (second.call, second.elements, second.state) == ("all_reduce", 7, "done")
    assert second.number == first.number + 1 and second.ended >= second.begun
    assert "7 elements of torch.float32: done" in str(second)


def sequence_numbers(rank: int, n: int) -> None:
    """They are those of calls that all ranks make, whatever else some do."""
    group = dist.distributed_c10d._get_default_group()
    begun = group._get_sequence_number_for_group()
    window = tutti.torch.new_window(torch.zeros(2))
    if rank == 0:
        dist.send(torch.ones(2), 1)
        window.put(torch.ones(2), 1)
    elif rank == 1:
        dist.recv(torch.ones(2), 0)
    dist.barrier()
    dist.all_reduce(torch.ones(2), async_op=True).wait()
    assert group._get_sequence_number_for_group() == begun + 3
    window.tensor_deregister()


def forked(rank: int, n: int) -> None:
    """A child's call is an error of the child and of nobody else."""
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(2))
        except RuntimeError as error:
            os._exit(0 if "TUTTI_EUSAGE" in str(error) else 3)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    same(tensor, torch.full((2,), float(n)))


def forked_beside_a_call(rank: int, n: int) -> None:
    """A child ends, although another thread of its parent had all locks of the group, and callbacks ran."""
    engine, is_in, may_leave = tutti.torch.engine_of(), threading.Event(), threading.Event()

    def hold() -> None:
        with engine.lock, engine._queue, engine.channel.lock, engine.callbacks._lock, _engine._futures:
            is_in.set()
            assert may_leave.wait(120)

    work = dist.all_reduce(torch.ones(2), async_op=True)
    work.get_future().then(lambda _: None).wait()
    thread = threading.Thread(target=hold)
    thread.start()
    is_in.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        status = 1
        try:
            assert work.get_future().wait()[0].numel() == 2
            raises(RuntimeError, "TUTTI_EUSAGE", lambda: dist.all_reduce(torch.ones(2)))
            _engine._at_exit()
            status = 0
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    may_leave.set()
    thread.join()
    assert status == 0, status
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    same(tensor, torch.full((2,), float(n)))


# -- Groups -------------------------------------------------------------------------------------


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
        os.kill(os.getpid(), signal.SIGKILL)
    group = dist.new_group([0, n - 1], use_local_synchronization=True)
    dist.distributed_c10d._get_default_store().set("made", "yes")
    dist.all_reduce(torch.ones(2))
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

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    dist.shrink_group([n - 1], shrink_flags=dist.distributed_c10d.SHRINK_ABORT)
    thread.join()
    assert len(errors) == 1
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    same(tensor, torch.full((2,), n - 1.0))
    store.set("over", "yes")


class Life(Ranks):
    """Each of these on 2 to 4 ranks, or on as many as it needs."""

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

    @unittest.skipUnless(_engine._FORGETS, "this PyTorch keeps both halves of a Work")
    def test_works_that_are_kept(self) -> None:
        self.each(works_that_are_kept, [2])

    def test_waits_with_a_limit(self) -> None:
        self.each(waits_with_a_limit, [2])

    def test_outputs_that_are_not_dense(self) -> None:
        self.each(outputs_that_are_not_dense, [3])

    def test_deadline_of_the_group(self) -> None:
        self.each(deadline_of_the_group, [2], timeout=10.0)

    def test_deadline_changed(self) -> None:
        self.each(deadline_changed, [2])

    def test_deadline_of_a_call(self) -> None:
        global ASYNC  # pylint: disable=global-statement
        for ASYNC in (True, False):
            self.each(deadline_of_a_call, [2])

    def test_deadline_of_init(self) -> None:
        self.each(deadline_of_init, [2])

    def test_init_that_fails(self) -> None:
        self.each(init_that_fails, [2])

    def test_init_with_a_plain_store(self) -> None:
        self.each(init_with_a_plain_store, [2, 3])

    def test_monitored_barrier(self) -> None:
        self.each(monitored_barrier, [3])

    def test_monitored_barrier_that_one_leaves(self) -> None:
        self.each(monitored_barrier_that_one_leaves, [3])

    @unittest.skipIf(OLD, "this PyTorch uses no store twice")
    def test_monitored_barriers_of_groups_in_turn(self) -> None:
        self.each(monitored_barriers_of_groups_in_turn, [2, 3])

    def test_death(self) -> None:
        for n in (2, 4):
            self.assertEqual(run(death, n), [0] * (n - 1) + [KILLED])

    def test_buffers_of_failed_calls(self) -> None:
        global ASYNC  # pylint: disable=global-statement
        for ASYNC in (True, False):
            self.each(buffers_of_failed_calls, [2])

    def test_error_of_the_group(self) -> None:
        self.each(error_of_the_group, [2])

    def test_mismatch(self) -> None:
        self.each(mismatch, [3])

    def test_aborted(self) -> None:
        self.each(aborted, [3])

    @unittest.skipUnless(HAS_BACKENDS, "in this PyTorch a group has no backend beside Tutti")
    def test_aborted_beside_another_backend(self) -> None:
        self.each(aborted_beside_another_backend, [2], backend="cpu:tutti,cuda:gloo")

    def test_aborted_before_the_call(self) -> None:
        self.each(aborted_before_the_call, [2])

    def test_destroyed_and_made_again(self) -> None:
        self.each(destroyed_and_made_again, [2, 3])

    @unittest.skipIf(OLD, "this PyTorch uses no store twice")
    def test_made_again_with_the_same_store(self) -> None:
        self.each(made_again_with_the_same_store, [2, 3])

    def test_destroyed_by_one(self) -> None:
        self.each(destroyed_by_one, [2, 3])

    def test_destroyed_beside_one_that_hangs(self) -> None:
        self.each(destroyed_beside_one_that_hangs, [3])

    def test_left_alone(self) -> None:
        self.each(left_alone, [2])

    def test_record(self) -> None:
        self.each(record, [2])

    def test_sequence_numbers(self) -> None:
        self.each(sequence_numbers, [3])

    def test_forked(self) -> None:
        self.each(forked, [2])

    def test_forked_beside_a_call(self) -> None:
        self.each(forked_beside_a_call, [2])

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
