# SPDX-License-Identifier: BSD-3-Clause
"""What ends calls and groups: deadlines, deaths, ends, forks."""
import datetime
import gc
import os
import signal
import threading
import time
import traceback
import unittest
import weakref

import torch
import torch.distributed as dist

import tutti.torch
from tutti import _c
from tutti.torch import _engine, _work
from tutti.torch._process_group import HAS_BACKENDS
from ranks import KILLED, Ranks, meet, raises, run, same
from torch._C import _distributed_c10d as c10d

SECOND = datetime.timedelta(seconds=1)
# For what is to be in time on any machine.
LONG = 100 * SECOND
ASYNC = True
# Whether calls say that they are waited for.
NEW = hasattr(c10d.BarrierOptions(), "asyncOp")
OLD = torch.__version__.startswith("1.")


# -- Deadlines -----------------------------------------------------------------------------


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
    group.set_timeout(LONG)
    dist.all_reduce(torch.ones(2))
    group.set_timeout(SECOND)
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
    options.timeout = LONG
    for asynchronous in (True, False):
        if NEW:
            options.asyncOp = asynchronous
        group.allreduce([torch.ones(2)], options).wait()
    dist.barrier()
    if rank == 0:
        options.timeout = SECOND
        if NEW:
            options.asyncOp = ASYNC
        raises(tutti.torch.BackendError, "Timed out",
               lambda: group.allreduce([torch.ones(2)], options).wait())
        dist.distributed_c10d._get_default_store().set("over", "yes")
    else:
        dist.distributed_c10d._get_default_store().get("over")


def monitored_barrier(rank: int, n: int) -> None:
    group = dist.distributed_c10d._get_default_group()
    for _ in range(3):
        group.monitored_barrier(LONG)
    if rank == n - 1:
        return
    if rank == 0:
        # The others have come, and are there when it looks.
        backend = group._get_backend(torch.device("cpu")) if HAS_BACKENDS else group
        while any(backend._waits(other) <= 0 for other in range(1, n - 1)):
            time.sleep(0.01)
        raises(RuntimeError, f"Rank {n - 1} failed to pass", lambda: group.monitored_barrier(SECOND))
    else:
        raises(RuntimeError, "let nobody pass", lambda: group.monitored_barrier(10 * SECOND))


def monitored_barrier_that_one_leaves(rank: int, n: int) -> None:
    """It came, and its time is over before the last one comes: nobody passes the next barrier too early."""
    group = dist.distributed_c10d._get_default_group()
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        store.set("comes", "yes")
        raises(RuntimeError, "Ranks 1 failed to pass", lambda: group.monitored_barrier(LONG))
    elif rank == 1:
        store.get("comes")
        raises(RuntimeError, "let nobody pass", lambda: group.monitored_barrier(10 * SECOND))
        store.set("left", "yes")
    else:
        store.get("left")
        group.monitored_barrier(LONG)
    dist.barrier()
    for turn in range(1, 3):
        if rank == 0:
            time.sleep(0.5)
            store.add("coming", 1)
        group.monitored_barrier(LONG)
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
            barrier(LONG)
        elif alone == rank:
            raises(RuntimeError, "let nobody pass" if rank else "Rank 1 failed to pass",
                   lambda: barrier(SECOND))


# -- Deaths, ends --------------------------------------------------------------------------


def death(rank: int, n: int) -> None:
    """Who is killed is named at once on all others, in calls that wait and in others."""
    dist.barrier()
    work = dist.all_reduce(torch.ones(2), async_op=True) if rank == 0 else None
    # Else some may still be in the barrier when it dies, and that call would be refused at once.
    meet(n)
    if rank == n - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    if work is not None:
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
        with engine.lock, engine._queue, engine.channel.lock, engine.callbacks._lock, _work._futures:
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


class Life(Ranks):
    """On 2 to 4 ranks."""

    def test_deadline_of_the_group(self) -> None:
        self.each(deadline_of_the_group, [2], timeout=10.0)

    def test_deadline_changed(self) -> None:
        self.each(deadline_changed, [2])

    def test_deadline_of_a_call(self) -> None:
        global ASYNC  # pylint: disable=global-statement
        for ASYNC in (True, False):
            self.each(deadline_of_a_call, [2])

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


if __name__ == "__main__":
    unittest.main()
