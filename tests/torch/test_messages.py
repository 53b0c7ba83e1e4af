# SPDX-License-Identifier: BSD-3-Clause
"""Send and receive: with tags, from any source, many at once, beside collectives."""
import datetime
import gc
import os
import signal
import time
import unittest
import weakref

import torch
import torch.distributed as dist

import tutti.torch
from tutti import _c
from ranks import KILLED, Ranks, meet, raises, run, same
from test_operations import OTHERS, TYPES, of, zeros

LONG = 300000  # elements: more than a message that is kept until it is asked for


def pairs(rank: int, n: int) -> None:
    for dtype in TYPES + OTHERS:
        for shape in [(6,), (0,), (2, 3)]:
            if rank == 0:
                dist.send(of(0, dtype, shape), 1)
            elif rank == 1:
                got = zeros(of(0, dtype, shape))
                assert dist.recv(got, 0) == 0
                same(got, of(0, dtype, shape), dtype)
    if rank == 0:
        dist.send(torch.arange(float(LONG)), n - 1, tag=3)
        dist.send(torch.arange(12.0).reshape(3, 4).t(), n - 1)
    if rank == n - 1:
        got = torch.zeros(LONG)
        dist.recv(got, 0, tag=3)
        same(got, torch.arange(float(LONG)))
        wide = torch.zeros(4, 3, 2)
        dist.recv(wide[..., 1], 0)
        same(wide[..., 1].t(), torch.arange(12.0).reshape(3, 4))
        same(wide[..., 0], torch.zeros(4, 3))


def tags(rank: int, n: int) -> None:
    """Messages are told apart by their tags, whatever comes first."""
    if rank == 0:
        begun = [dist.isend(torch.full((4,), float(tag)), 1, tag=tag) for tag in range(10)]
        for work in begun:
            work.wait()
    elif rank == 1:
        for tag in reversed(range(10)):
            got = torch.zeros(4)
            dist.recv(got, 0, tag=tag)
            same(got, torch.full((4,), float(tag)))


def any_source(rank: int, n: int) -> None:
    if rank == 0:
        seen = set()
        for _ in range(2 * (n - 1)):
            got = torch.zeros(3)
            source = dist.recv(got)
            same(got, torch.full((3,), float(source)))
            seen.add(source)
        assert seen == set(range(1, n)), seen
    else:
        dist.send(torch.full((3,), float(rank)), 0)
        dist.isend(torch.full((3,), float(rank)), 0).wait()


def all_at_once(rank: int, n: int) -> None:
    """Each sends to each and to itself, receives are posted before and after."""
    for count in (5, LONG):
        gots = [torch.zeros(count) for _ in range(n)]
        works = [dist.irecv(gots[r], r) for r in range(n) if r > rank]
        # Collectives go on meanwhile.
        dist.barrier()
        works += [dist.isend(torch.full((count,), float(rank)), r) for r in range(n) if r != rank]
        works += [dist.irecv(gots[r], r) for r in range(n) if r < rank]
        total = torch.ones(4)
        dist.all_reduce(total)
        for work in works:
            assert work.wait() is True
            assert work.is_completed() and work.is_success()
        for r in range(n):
            same(gots[r], torch.full((count,), float(r if r != rank else 0)))


def batches(rank: int, n: int) -> None:
    mine, got = torch.full((LONG,), float(rank)), torch.zeros(LONG)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, (rank + 1) % n),
                                    dist.P2POp(dist.irecv, got, (rank - 1) % n)])
    for work in works:
        work.wait()
    same(got, torch.full((LONG,), float((rank - 1) % n)))


def futures(rank: int, n: int) -> None:
    if rank == 0:
        got = torch.zeros(2)
        future = dist.irecv(got, 1).get_future().then(lambda done: done.value()[0] + 1)
        dist.send(torch.ones(1), 1)
        same(future.wait(), torch.full((2,), 8.0))
    elif rank == 1:
        dist.recv(torch.zeros(1), 0)
        dist.send(torch.full((2,), 7.0), 0)


def left(rank: int, n: int) -> None:
    """What nobody waits for arrives all the same."""
    if rank == 0:
        for turn in range(20):
            dist.isend(torch.full((LONG // 10,), float(turn)), 1)
    elif rank == 1:
        for turn in range(20):
            got = torch.zeros(LONG // 10)
            dist.recv(got, 0)
            same(got, torch.full((LONG // 10,), float(turn)))
    dist.barrier()


def left_and_lost(rank: int, n: int) -> None:
    """Memory of receives that nobody waits for stays when the group is lost, as long as the group."""
    engine = tutti.torch.engine_of()
    place = torch.zeros(LONG)
    reference = weakref.ref(place)
    dist.irecv(place, (rank + 1) % n)
    del place
    meet(n)
    engine.run_now(engine.note("revoke"), _c.tutti_comm_revoke, engine.comm)
    for _ in range(2):
        raises(tutti.torch.BackendError, "TUTTI_", lambda: dist.recv(torch.zeros(2), (rank + 1) % n))
    gc.collect()
    assert reference() is not None and not engine.channel._left
    assert any(held is reference() for held in engine.held_by_failed)
    engine.shutdown()
    gc.collect()
    assert reference() is None


def mistakes(rank: int, n: int) -> None:
    """A receive that does not fit is an error, and the group goes on."""
    if rank == 0:
        dist.send(torch.ones(3), 1)
        dist.send(torch.ones(5), 1)
    elif rank == 1:
        raises(RuntimeError, "12 bytes", lambda: dist.recv(torch.zeros(4), 0))
        raises(RuntimeError, "20", lambda: dist.recv(torch.zeros(4), 0))
        dist.recv(torch.zeros(5), 0)
        work = dist.irecv(torch.zeros(2), 0)
        assert not work.is_completed()
        raises(tutti.torch.BackendError, "Timed out",
               lambda: work.wait(datetime.timedelta(milliseconds=200)))
    total = torch.ones(2)
    dist.all_reduce(total)
    same(total, torch.full((2,), float(n)))


def deadline_beside_a_future(rank: int, n: int) -> None:
    """The future's thread waits, too."""
    if rank == 0:
        work = dist.irecv(torch.zeros(2), 1)
        future = work.get_future()
        time.sleep(0.1)
        raises(tutti.torch.BackendError, "Timed out waiting 200 ms",
               lambda: work.wait(datetime.timedelta(milliseconds=200)))
        raises(Exception, "", future.wait)
        assert work.is_completed() and not work.is_success()
        # What comes in time does so beside a future, too.
        got = torch.zeros(2)
        work = dist.irecv(got, 1, tag=1)
        work.get_future()
        dist.barrier()
        work.wait(datetime.timedelta(seconds=100))
        same(got, torch.ones(2))
    else:
        dist.barrier()
        dist.send(torch.ones(2), 0, tag=1)


def death(rank: int, n: int) -> None:
    dist.barrier()
    # Else some may still be in the barrier when it dies.
    meet(n)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    error = raises(tutti.torch.BackendError, "rank 1", lambda: dist.recv(torch.zeros(2), 1))
    assert "TUTTI_EPEER" in str(error)


def subgroups(rank: int, n: int) -> None:
    """Ranks of a group are its own."""
    group = dist.new_group([0, n - 1])
    if rank == 0:
        dist.send(torch.full((2,), 5.0), n - 1, group=group)
    elif rank == n - 1:
        got = torch.zeros(2)
        assert dist.recv(got, group=group) == 0
        same(got, torch.full((2,), 5.0))
    dist.barrier()


class Messages(Ranks):
    def test_pairs(self) -> None:
        self.each(pairs)

    def test_tags(self) -> None:
        self.each(tags, [2])

    def test_any_source(self) -> None:
        self.each(any_source)

    def test_all_at_once(self) -> None:
        self.each(all_at_once)

    def test_batches(self) -> None:
        self.each(batches)

    def test_futures(self) -> None:
        self.each(futures, [2])

    def test_left(self) -> None:
        self.each(left, [2])

    def test_left_and_lost(self) -> None:
        self.each(left_and_lost, [2])

    def test_mistakes(self) -> None:
        self.each(mistakes, [2])

    def test_deadline_beside_a_future(self) -> None:
        self.each(deadline_beside_a_future, [2], timeout=20.0)

    def test_death(self) -> None:
        self.assertEqual(run(death, 3), [0, KILLED, 0])

    def test_subgroups(self) -> None:
        self.each(subgroups, [3])


if __name__ == "__main__":
    unittest.main()
