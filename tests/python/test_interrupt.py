# SPDX-License-Identifier: BSD-3-Clause
"""Signals while a call waits. Run by `tutti run -n N python`."""
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np

import tutti
from tutti import _c, interrupts

world = tutti.init()
N, RANK = world.size, world.rank
LAST = RANK == N - 1
SIGINT = signal.SIGINT
MAIN = threading.main_thread().ident
# What the library has called once.
kept = []
# A shell has what it runs in the background ignore it, and Python leaves that so.
signal.signal(SIGINT, signal.default_int_handler)


def soon(number):
    """Send this process a signal once its main thread waits in a call, which that shows by giving Python
    its first turn; says when. Earlier it would interrupt something else."""
    sent, waits = [], threading.Event()

    def turn(_):
        interrupts.install()
        waits.set()
        return 0

    first = _c.tutti_interrupt_fn(turn)
    kept.append(first)

    def is_in_turn():
        frame = sys._current_frames()[MAIN]
        while frame and frame.f_code is not turn.__code__:
            frame = frame.f_back
        return frame

    def send():
        # The main thread is out of the turn, in which an exception would be lost, and does not come back.
        while not waits.is_set() or is_in_turn():
            time.sleep(0.001)
        sent.append(time.monotonic())
        os.kill(os.getpid(), number)

    _c.tutti_set_interrupt(first, None)
    threading.Thread(target=send, daemon=True).start()
    return sent


def together():
    """Whoever comes first aborts nothing that another rank is still about to leave."""
    world.barrier()


class Interrupts(unittest.TestCase):
    def setUp(self):
        # What one rank has said, others see here.
        name = np.zeros(200, np.uint8)
        if LAST:
            self.dir = tempfile.mkdtemp().encode()
            name[:len(self.dir)] = bytearray(self.dir)
        world.broadcast(name, root=N - 1)
        self.said = pathlib.Path(bytes(name).rstrip(b"\0").decode()) / "said"
        self.comm = tutti.init()
        together()

    def tearDown(self):
        self.comm.abort()
        world.barrier()
        if LAST:
            self.said.unlink(missing_ok=True)
            self.said.parent.rmdir()

    def await_word(self):
        end = time.monotonic() + 60
        while not self.said.exists():
            self.assertLess(time.monotonic(), end, "the last rank has not said anything")
            time.sleep(0.01)

    def barriers(self):
        """The last rank has come to one before it was interrupted, and comes to no other."""
        for _ in range(2):
            self.comm.barrier()

    def end_by_ctrl_c(self, call):
        """The last rank alone makes the call, and is interrupted in it."""
        if not LAST:
            self.await_word()
            with self.assertRaisesRegex(tutti.PeerError, "was interrupted"):
                self.barriers()
            return
        sent = soon(SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            call()
        print(f"Ctrl-C took {1000 * (time.monotonic() - sent[0]):.0f} ms")
        with self.assertRaisesRegex(tutti.AbortedError, "was interrupted"):
            self.comm.barrier()
        self.said.touch()

    @unittest.skipIf(N == 1, "one rank waits for nobody")
    def test_a_collective(self):
        self.end_by_ctrl_c(self.comm.barrier)

    @unittest.skipIf(N == 1, "one rank waits for nobody")
    def test_a_receive(self):
        self.end_by_ctrl_c(lambda: self.comm.recv(np.zeros(1 << 20), 0))

    @unittest.skipIf(N == 1, "one rank waits for nobody")
    def test_a_handler_that_raises_nothing_ends_nothing(self):
        if not LAST:
            self.await_word()
        else:
            before = signal.signal(signal.SIGUSR1, lambda *_: self.said.touch())
            self.addCleanup(signal.signal, signal.SIGUSR1, before)
            soon(signal.SIGUSR1)
        self.comm.barrier()
        together()

    @unittest.skipIf(N == 1, "one rank waits for nobody")
    def test_a_stream_can_be_waited_for_again(self):
        if not LAST:
            self.await_word()
            self.comm.barrier()
        else:
            with tutti.Stream() as stream:
                self.comm.barrier(stream=stream)
                for wait in (stream.synchronize, stream.record().synchronize):
                    soon(SIGINT)
                    with self.assertRaises(KeyboardInterrupt):
                        wait()
                self.assertFalse(stream.query())
                self.said.touch()
                stream.synchronize()
        together()

    def test_a_message_can_be_waited_for_again(self):
        with self.comm.channel() as channel:
            soon(SIGINT)
            with self.assertRaises(KeyboardInterrupt):
                channel.recv(bytearray(8), RANK)
            soon(SIGINT)
            with self.assertRaises(KeyboardInterrupt):
                channel.probe()
            channel.send(b"12345678", RANK)
            self.assertEqual(channel.recv(bytearray(8)).bytes, 8)
        together()

    @unittest.skipIf(N == 1, "one rank waits for nobody")
    def test_blocks_end_while_calls_are_queued(self):
        if not LAST:
            self.await_word()
            with self.assertRaises(tutti.PeerError):
                self.barriers()
            return
        soon(SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            with self.comm as comm, tutti.Stream() as stream:
                comm.barrier(stream=stream)
                stream.synchronize()
        self.said.touch()

    def interrupted(self, name, status=None):
        """While this lasts, the call `name` is interrupted, and ends by something else at the same time."""
        call = getattr(_c, name)

        def then_interrupted(*args):
            mine = call(*args) if status is None else status
            interrupts._raised.append(KeyboardInterrupt())
            return mine

        return mock.patch.object(_c, name, then_interrupted)

    def test_what_ends_a_call_at_the_same_time_hides_no_interrupt(self):
        with self.interrupted("tutti_barrier", _c.tutti_status.TUTTI_EPEER):
            self.assertRaises(KeyboardInterrupt, self.comm.barrier)
        with tutti.Stream() as stream, self.comm.channel() as channel:
            with self.interrupted("tutti_stream_synchronize"):
                self.assertRaises(KeyboardInterrupt, stream.synchronize)
            with self.interrupted("tutti_event_synchronize"):
                self.assertRaises(KeyboardInterrupt, stream.record().synchronize)
            channel.isend(b"1234", RANK)
            request = channel.irecv(bytearray(4))
            with self.interrupted("tutti_message_wait"):
                self.assertRaises(KeyboardInterrupt, request.wait)
            self.assertEqual(request.wait(), (RANK, 0, 4))
        with self.comm.persistent("barrier") as barrier:
            barrier.start()
            with self.interrupted("tutti_persistent_wait"):
                self.assertRaises(KeyboardInterrupt, barrier.wait)
        other = self.comm.dup()
        with self.interrupted("tutti_comm_destroy"):
            self.assertRaises(KeyboardInterrupt, other.destroy)
        together()
        self.assertEqual(interrupts._raised, [])

    def test_making_a_communicator(self):
        # A rank waits for it between its calls, in Python.
        with self.assertRaises(KeyboardInterrupt):
            threading.Timer(0.1, os.kill, (os.getpid(), SIGINT)).start()
            tutti.Communicator(2, tutti.UniqueId(), 0)

    def test_another_thread_is_not_interrupted(self):
        ended = []

        def call():
            self.comm.barrier()
            ended.append(True)

        if LAST:
            thread = threading.Thread(target=call)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                threading.Timer(0.1, os.kill, (os.getpid(), SIGINT)).start()
                time.sleep(60)
            self.said.touch()
            thread.join()
            self.assertTrue(ended)
        else:
            self.await_word()
            call()
        together()


if __name__ == "__main__":
    unittest.main()
