# SPDX-License-Identifier: BSD-3-Clause
"""The calls, their results compared with what numpy says. Run by `tutti run -n N python`."""
import gc
import subprocess
import sys
import threading
import time
import unittest
import weakref
from unittest import mock

import numpy as np

import tutti
from tutti import _c

comm = tutti.init()
N, RANK = comm.size, comm.rank
TYPES = ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


def of(rank, count=12, dtype="float64"):
    """What `rank` gives: small whole numbers, so that sums are exact."""
    return (np.arange(count) % 5 + rank + 1).astype(dtype)


def all_of(count=12, dtype="float64"):
    return np.stack([of(rank, count, dtype) for rank in range(N)])


class Collectives(unittest.TestCase):
    def same(self, got, expected):
        np.testing.assert_array_equal(got, expected)

    def test_all_reduce_has_all_types_and_operators(self):
        for dtype in TYPES:
            for op, reduce in [("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)]:
                with self.subTest(dtype=dtype, op=op):
                    got = np.zeros(12, dtype)
                    comm.all_reduce(of(RANK, dtype=dtype), got, op)
                    self.same(got, reduce(all_of(dtype=dtype), axis=0, dtype=dtype)
                              if op in ("sum", "prod") else reduce(all_of(dtype=dtype), axis=0))

    def test_all_reduce_in_place(self):
        for shape in [(1,), (3, 4), (2, 3, 2), (100000,)]:
            mine = of(RANK, int(np.prod(shape))).reshape(shape)
            comm.all_reduce(mine)
            self.same(mine, all_of(mine.size).sum(axis=0).reshape(shape))

    def test_empty(self):
        comm.all_reduce(np.zeros(0))
        comm.all_gather(np.zeros(0), np.zeros(0))

    def test_average_and_reproducible(self):
        mine = of(RANK)
        comm.all_reduce(mine, op=tutti.reproducible("avg"))
        np.testing.assert_allclose(mine, all_of().mean(axis=0), rtol=1e-14)

    def test_a_scalar_for_each_rank(self):
        op = comm.premul_sum(np.array([RANK + 1.0]))
        mine = of(RANK)
        comm.all_reduce(mine, op=op)
        self.same(mine, sum((rank + 1) * of(rank) for rank in range(N)))
        comm.all_reduce(mine, op=tutti.reproducible(op))
        op.destroy()
        with self.assertRaises(tutti.ArgumentError):
            comm.all_reduce(mine, op=op)
        with self.assertRaisesRegex(tutti.ArgumentError, "scalar has 2 elements"):
            comm.premul_sum(np.zeros(2))

    def test_reduce(self):
        for root in range(N):
            got = np.zeros(12)
            comm.reduce(of(RANK), got if RANK == root else None, "max", root)
            self.same(got, all_of().max(axis=0) if RANK == root else 0)
            mine = of(RANK)
            comm.reduce(mine, root=root)
            self.same(mine, all_of().sum(axis=0) if RANK == root else of(RANK))

    def test_broadcast(self):
        for root in range(N):
            mine = of(RANK)
            comm.broadcast(mine, root=root)
            self.same(mine, of(root))
            got = np.zeros(12)
            comm.broadcast(of(RANK) if RANK == root else None, got, root)
            self.same(got, of(root))

    def test_all_gather(self):
        got = np.zeros((N, 12))
        comm.all_gather(of(RANK), got)
        self.same(got, all_of())
        got = np.zeros((N, 12))
        got[RANK] = of(RANK)
        comm.all_gather(got)
        self.same(got, all_of())

    def test_reduce_scatter(self):
        got = np.zeros(3)
        comm.reduce_scatter(of(RANK, 3 * N), got)
        total = all_of(3 * N).sum(axis=0).reshape(N, 3)
        self.same(got, total[RANK])
        mine = of(RANK, 3 * N)
        comm.reduce_scatter(mine)
        self.same(mine.reshape(N, 3)[RANK], total[RANK])

    def test_all_to_all(self):
        got = np.zeros((N, 3))
        comm.all_to_all(of(RANK, 3 * N), got)
        expected = all_of(3 * N).reshape(N, N, 3)[:, RANK]
        self.same(got, expected)
        mine = of(RANK, 3 * N)
        comm.all_to_all(mine)
        self.same(mine.reshape(N, 3), expected)

    def test_gather_and_scatter(self):
        for root in range(N):
            got = np.zeros((N, 12)) if RANK == root else None
            comm.gather(of(RANK), got, root)
            if RANK == root:
                self.same(got, all_of())
                got[:] = 0
                got[RANK] = of(RANK)
            comm.gather(None if RANK == root else of(RANK), got, root)
            if RANK == root:
                self.same(got, all_of())
            mine = np.zeros(12)
            comm.scatter(got, mine, root)
            self.same(mine, of(RANK))
            mine[:] = 0
            comm.scatter(got, None if RANK == root else mine, root)
            self.same(mine, 0 if RANK == root else of(RANK))

    def test_barrier(self):
        comm.barrier()


class CountForEachRank(unittest.TestCase):
    counts = [rank % 3 + (rank == N - 1) for rank in range(N)]

    def test_all_to_all_v(self):
        # Rank r sends r + 1 elements to each.
        got = np.full(sum(range(1, N + 1)) + 1, -1.0)
        displs = [1 + sum(range(1, rank + 1)) for rank in range(N)]
        comm.all_to_all_v(np.full(N * (RANK + 1), float(RANK)), [RANK + 1] * N, got,
                          list(range(1, N + 1)), recv_displs=displs)
        np.testing.assert_array_equal(
            got, [-1] + [rank for rank in range(N) for _ in range(rank + 1)])

    def test_the_others(self):
        total, mine = sum(self.counts), self.counts[RANK]
        first = sum(self.counts[:RANK])
        whole = np.arange(total, dtype="int32")
        part = whole[first:first + mine].copy()
        for root in range(N):
            got = np.zeros(total, "int32") if RANK == root else None
            comm.gather_v(part, got, self.counts, root=root)
            if RANK == root:
                np.testing.assert_array_equal(got, whole)
            back = np.zeros(mine, "int32")
            comm.scatter_v(got, back, self.counts, root=root)
            np.testing.assert_array_equal(back, part)
        got = np.zeros(total, "int32")
        comm.all_gather_v(part, got, self.counts)
        np.testing.assert_array_equal(got, whole)
        got[:first], got[first + mine:] = 0, 0
        comm.all_gather_v(None, got, self.counts)
        np.testing.assert_array_equal(got, whole)
        comm.reduce_scatter_v(whole, back, self.counts)
        np.testing.assert_array_equal(back, N * part)
        comm.reduce_scatter_v(got, None, self.counts)
        np.testing.assert_array_equal(got[first:first + mine], N * part)

    def test_what_is_outside_of_the_buffer_is_refused(self):
        with self.assertRaisesRegex(tutti.ArgumentError, "not in recv, which has 3"):
            comm.all_gather_v(None, np.zeros(3), [2] * N, [2] * N)
        with self.assertRaisesRegex(tutti.ArgumentError, "of [0-9]* ranks"):
            comm.all_gather_v(None, np.zeros(3), [0] * (N + 1))


class SomeRanks(unittest.TestCase):
    def test_a_ring(self):
        got = np.zeros(12)
        after, before = (RANK + 1) % N, (RANK - 1) % N
        comm.send_recv(of(RANK), after, got, before)
        np.testing.assert_array_equal(got, of(before))
        got[:] = 0
        with tutti.group():
            comm.send(of(RANK), after)
            comm.recv(got, before)
        np.testing.assert_array_equal(got, of(before))

    def test_one_way(self):
        got = np.zeros(12)
        comm.send_recv(of(RANK), RANK + 1 if RANK + 1 < N else None, got, RANK - 1 if RANK else None)
        np.testing.assert_array_equal(got, of(RANK - 1) if RANK else 0)

    def test_handoff(self):
        if N < 2:
            self.skipTest("a handoff needs two ranks")
        parts = tutti.Side(range(N - 1), sharded=True)
        whole = of(7, 100)
        got = np.zeros(100)
        comm.handoff(whole[tutti.part(100, N - 1, RANK)].copy() if RANK < N - 1 else None,
                     got if RANK == N - 1 else None, parts, tutti.Side([N - 1]), count=100,
                     dtype="float64")
        np.testing.assert_array_equal(got, whole if RANK == N - 1 else 0)

    def test_a_group_that_an_exception_leaves_runs_nothing(self):
        got = of(RANK)
        with self.assertRaisesRegex(KeyError, "mine"):
            with tutti.group():
                comm.all_reduce(got)
                raise KeyError("mine")
        np.testing.assert_array_equal(got, of(RANK))
        comm.all_reduce(got)
        np.testing.assert_array_equal(got, all_of().sum(axis=0))

    def test_what_is_simulated_is_not_made(self):
        """Rank 0 alone asks; the others make no call."""
        if RANK == 0:
            got = of(RANK)
            with tutti.simulate() as short:
                comm.all_reduce(got)
            with tutti.simulate() as long, tutti.group():
                comm.all_reduce(np.zeros(1 << 20))
                comm.broadcast(np.zeros(1 << 20))
            np.testing.assert_array_equal(got, of(RANK))
            self.assertGreaterEqual(short.seconds, 0)
            self.assertTrue(N == 1 or long.seconds > 10 * short.seconds > 0)
            with tutti.group(), self.assertRaisesRegex(tutti.UsageError, "inside a group"):
                with tutti.simulate():
                    pass
            with self.assertRaises(KeyError), tutti.simulate() as left:
                comm.all_reduce(got)
                raise KeyError
            self.assertEqual(left.seconds, 0)
            np.testing.assert_array_equal(got, of(RANK))
        comm.barrier()


class Streams(unittest.TestCase):
    def test_what_a_queued_call_works_on_is_kept(self):
        with tutti.Stream() as stream:
            got = [np.zeros(12) for _ in range(1000)]
            for each in got:
                comm.all_reduce(of(RANK), each, stream=stream)
            stream.synchronize()
            self.assertTrue(stream.query())
        for each in got:
            np.testing.assert_array_equal(each, all_of().sum(axis=0))

    def await_end_of(self, refs):
        end = time.monotonic() + 60
        while any(ref() is not None for ref in refs):
            self.assertLess(time.monotonic(), end, "what calls have worked on is there still")
            time.sleep(0.01)
            gc.collect()

    @unittest.skipIf(N == 1, "one rank waits for nobody")
    def test_a_stream_that_is_dropped_keeps_what_it_works_on(self):
        def receive(other):
            stream, got = tutti.Stream(), np.zeros(1 << 16)
            other.recv(got, 1, stream=stream)
            return weakref.ref(got)

        with comm.dup() as other:
            if RANK == 0:
                got = receive(other)
                gc.collect()
                self.assertIsNotNone(got())
            comm.barrier()
            if RANK == 1:
                other.send(np.ones(1 << 16), 0)
            elif RANK == 0:
                self.await_end_of([got])
            comm.barrier()

    @unittest.skipIf(RANK, "once is enough")
    def test_a_program_that_ends_while_a_stream_works(self):
        program = """
import threading, tutti
one, other = tutti.Stream(), tutti.Stream()
one.call(lambda error: threading.Event().wait())
other.wait_event(one.record())
"""
        out = subprocess.run([sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True,
                             timeout=100, check=False)
        self.assertEqual((out.returncode, out.stderr), (0, ""))

    def queue(self, stream, count=1, size=12):
        """Calls on arrays that nobody else has; references to these."""
        refs = []
        for _ in range(count):
            got = np.zeros(size)
            refs.append(weakref.ref(got))
            comm.all_reduce(got, stream=stream)
        return refs

    def are_there(self, refs):
        gc.collect()
        return [ref() is not None for ref in refs] == [True] * len(refs)

    def test_what_a_group_queues_is_kept(self):
        with tutti.Stream() as stream:
            with tutti.group():
                # Of the first ones it is found out twice whether they are done.
                refs = self.queue(stream, 300) + self.queue(None)
                time.sleep(0.1)
                refs += self.queue(stream, 300)
                self.assertTrue(self.are_there(refs))
            stream.synchronize()
            self.await_end_of(refs)

    def test_what_another_thread_queues_after_a_wait_is_kept(self):
        gate, refs, wait = threading.Event(), [], _c.tutti_stream_synchronize

        def wait_and_queue(handle):
            status = wait(handle)
            stream.call(lambda error: gate.wait(60))
            refs.extend(self.queue(stream))
            return status

        with tutti.Stream() as stream:
            before = self.queue(stream)
            with mock.patch.object(_c, "tutti_stream_synchronize", wait_and_queue):
                stream.synchronize()
            self.await_end_of(before)
            self.assertTrue(self.are_there(refs))
            gate.set()

    def test_what_a_persistent_call_works_on_is_kept(self):
        def start():
            got = np.zeros(12)
            comm.persistent("all_reduce", got).start(stream)
            return [weakref.ref(got)]

        gate = threading.Event()
        with tutti.Stream() as stream:
            stream.call(lambda error: gate.wait(60))
            refs = start()
            self.assertTrue(self.are_there(refs))
            gate.set()
            stream.synchronize()
            self.await_end_of(refs)

    def test_large_buffers_of_calls_that_are_done_are_dropped(self):
        with tutti.Stream() as stream:
            refs = self.queue(stream, size=4 << 20)
            stream.record().synchronize()
            self.queue(stream, size=4 << 20)
            self.await_end_of(refs)

    def test_functions_that_a_stream_calls(self):
        told = []
        with tutti.Stream() as stream, comm.dup() as other:
            stream.call(told.append)
            other.all_reduce(of(RANK), stream=stream)
            stream.call(told.append)
            stream.synchronize()
            self.assertEqual(told, [None, None])
            if N > 1:
                # All have queued it before the first rank finds out.
                gate = threading.Event()
                stream.call(lambda error: gate.wait(60))
                other.all_reduce(np.zeros(1 + RANK), stream=stream)
                stream.call(told.append)
                comm.barrier()
                gate.set()
                with self.assertRaises(tutti.MismatchError):
                    stream.synchronize()
                self.assertIsInstance(told[2], tutti.MismatchError)
                with self.assertRaises(tutti.MismatchError):
                    stream.destroy()

    def test_events_order_streams(self):
        with tutti.Stream() as one, tutti.Stream() as other:
            got = np.zeros(12)
            comm.all_reduce(of(RANK), got, stream=one)
            other.wait_event(one.record())
            comm.all_reduce(got, stream=other)
            event = other.record()
            event.synchronize()
            self.assertTrue(event.query())
        np.testing.assert_array_equal(got, N * all_of().sum(axis=0))


if __name__ == "__main__":
    unittest.main()
