# SPDX-License-Identifier: BSD-3-Clause
"""What calls take, what they refuse, and what communicators are made of. Run by `tutti run -n N python`."""
import array
import contextlib
import ctypes
import gc
import os
import socket
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import weakref

import ml_dtypes
import numpy as np

import tutti
from tutti import _c, arrays

comm = tutti.init()
N, RANK = comm.size, comm.rank


def free_port():
    """One that the system gives to no connection."""
    for port in range(20000 + os.getpid() % 8000, 30000):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("no port is free")


class OnlyDLPack:
    """An array that has nothing but __dlpack__, of a given age."""

    def __init__(self, data, with_version=True):
        self.data, self.with_version = data, with_version

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()

    def __dlpack__(self, **wishes):
        if not self.with_version and wishes:
            raise TypeError("an unexpected argument")
        return self.data.__dlpack__(**wishes)


class Arrays(unittest.TestCase):
    def test_buffers(self):
        for code in "bBhHiIlLqQfd":
            if f"{np.dtype(code)}" not in arrays.TYPES:
                continue
            data = array.array(code, [1, 2, 3])
            comm.all_reduce(data)
            self.assertEqual(list(data), [N, 2 * N, 3 * N])
        data = bytearray(b"\1\2")
        comm.all_reduce(b"\1\1", data)
        self.assertEqual(data, bytes([N, N]))
        data = (ctypes.c_double * 2)(1, 2)
        comm.all_reduce(memoryview(data))
        self.assertEqual(list(data), [N, 2 * N])

    def test_dlpack(self):
        for with_version in (True, False):
            data = np.ones((2, 3), "float32")
            comm.all_reduce(OnlyDLPack(data, with_version))
            np.testing.assert_array_equal(data, N)
            with self.assertRaisesRegex(ValueError, "not contiguous"):
                comm.all_reduce(OnlyDLPack(data.T, with_version))

    def test_small_floats(self):
        for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            data = np.ones(4, dtype)
            comm.all_reduce(data)
            np.testing.assert_array_equal(data.astype("float32"), N)
        with self.assertRaisesRegex(TypeError, "no type of elements"):
            comm.all_reduce(np.ones(4, ml_dtypes.float8_e4m3))

    def test_tensors_that_are_not_what_their_memory_has(self):
        class Tensor:
            """What is asked of one of torch, which is not installed here."""

            device, dtype = types.SimpleNamespace(type="cpu"), "torch.float32"

            def __init__(self, data, conj=False, neg=False):
                self.data = data
                self.is_conj, self.is_neg, self.is_contiguous = lambda: conj, lambda: neg, lambda: True
                self.data_ptr, self.numel = lambda: data.ctypes.data, lambda: data.size

        Tensor.__module__ = "torch"
        data = np.ones(3, "float32")
        comm.all_reduce(Tensor(data))
        np.testing.assert_array_equal(data, N)
        for how in ({"conj": True}, {"neg": True}):
            with self.assertRaisesRegex(ValueError, "this Tensor is conjugated or negated only when"):
                comm.all_reduce(Tensor(data, **how))

    def test_what_is_refused(self):
        fixed = np.zeros(4)
        fixed.flags.writeable = False
        for error, problem, send, recv in [
                (ValueError, "recv: this ndarray is read-only", np.zeros(4), fixed),
                (ValueError, "recv: this bytes is read-only", bytearray(4), bytes(4)),
                (ValueError, "send: this ndarray is not contiguous", np.zeros((4, 4)).T, None),
                (ValueError, "send: this memoryview is not contiguous", memoryview(bytes(8))[::2], None),
                (TypeError, "foreign byte order", np.zeros(4, ">f4"), None),
                (TypeError, "no type of elements", np.zeros(4, object), None),
                (TypeError, "list is no array", [1.0], None),
                (ValueError, "send has 4 elements, recv 5", np.zeros(4), np.zeros(5)),
                (ValueError, "send is of float64, recv of float32", np.zeros(4), np.zeros(4, "f4"))]:
            with self.subTest(problem):
                with self.assertRaisesRegex(error, problem):
                    comm.all_reduce(send, recv)
        with self.assertRaisesRegex(tutti.ArgumentError, "op is 'xor'"):
            comm.all_reduce(np.zeros(4), op="xor")
        if N > 1:
            with self.assertRaisesRegex(ValueError, f"{N} times as many"):
                comm.all_gather(np.zeros(4), np.zeros(4))


class Communicators(unittest.TestCase):
    def test_split_dup_and_threads(self):
        with comm.split(RANK % 2, key=-RANK) as part, comm.dup(name="another") as other:
            self.assertEqual(part.size, len(range(RANK % 2, N, 2)))
            self.assertEqual(part.rank, part.size - 1 - RANK // 2)
            sums = np.ones((2, 1))
            threads = [threading.Thread(target=each.all_reduce, args=(row,))
                       for each, row in ((part, sums[0]), (other, sums[1]))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(list(sums[:, 0]), [part.size, N])
        self.assertIsNone(comm.split(None))
        with self.assertRaisesRegex(tutti.UsageError, "destroyed"):
            other.barrier()

    def test_a_group_that_its_members_make(self):
        members = [rank for rank in reversed(range(N)) if rank != 1]
        if RANK in members:
            with comm.create_group(members, tag=3) as group:
                self.assertEqual((group.rank, group.size), (members.index(RANK), len(members)))
                group.barrier()

    def test_in_a_group(self):
        with tutti.group():
            halves = comm.split(RANK % 2)
            copy = comm.dup()
        self.assertEqual((copy.rank, copy.size), (RANK, N))
        halves.destroy()
        copy.finalize()
        copy.destroy()

    def test_shrink_and_grow(self):
        if N == 1:
            self.skipTest("nobody to leave out")
        own_id = np.zeros(128, np.uint8)
        if RANK == 0:
            own_id[:] = bytearray(bytes(tutti.UniqueId()))
        comm.broadcast(own_id)
        if RANK == N - 1:
            again = tutti.Communicator(N, bytes(own_id), RANK)
        else:
            with comm.shrink([N - 1]) as rest:
                self.assertEqual(rest.size, N - 1)
                again = rest.grow(N, bytes(own_id))
        with again:
            self.assertEqual((again.rank, again.size), (RANK, N))
            again.barrier()

    def test_threads_of_one_process(self):
        comms = tutti.init_all(3)
        sums = np.ones((3, 5))
        threads = [threading.Thread(target=each.all_reduce, args=(sums[each.rank],)) for each in comms]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(sums, 3)
        for each in comms:
            each.destroy()

    def test_errors_have_their_class(self):
        def classes(base):
            return [base] + [each for sub in base.__subclasses__() for each in classes(sub)]
        known = {int(each.status) for each in classes(tutti.Error)}
        self.assertEqual(known - {0},
                         {int(status) for status in _c.tutti_status if status < 0})
        with comm.dup() as lost:
            # All ranks have it before one of them ends it.
            lost.barrier()
            if N > 1:
                with self.assertRaisesRegex(tutti.MismatchError, "all_reduce") as caught:
                    lost.all_reduce(np.zeros(2 if RANK == 0 else 3))
                self.assertEqual(caught.exception.status, _c.tutti_status.TUTTI_EMISMATCH)
                self.assertIsInstance(lost.error, tutti.MismatchError)
        with self.assertRaisesRegex(TypeError, "no setting 'timeot': there are .*timeout"):
            tutti.init(timeot=1)
        with self.assertRaisesRegex(tutti.ArgumentError, "nranks"):
            tutti.Communicator(0, bytes(128), 0)

    def test_a_timeout(self):
        if N == 1:
            self.skipTest("one rank waits for nobody")
        slow = tutti.init(timeout=0.3)
        if RANK == 0:
            with self.assertRaises((tutti.Timeout, TimeoutError)):
                slow.recv(np.zeros(1), 1)
        comm.barrier()
        slow.abort()

    def test_a_timeout_that_is_set_later(self):
        if N == 1:
            self.skipTest("one rank waits for nobody")
        slow = comm.dup()
        with self.assertRaisesRegex(tutti.ArgumentError, "-1000"):
            slow.set_timeout(-1)
        slow.set_timeout(0.3)
        slow.set_timeout(None)
        slow.barrier()
        if RANK == 0:
            slow.set_timeout(0.3)
            with self.assertRaises(tutti.Timeout):
                slow.recv(np.zeros(1), 1)
        comm.barrier()
        slow.abort()

    def test_an_algorithm_that_is_set_later(self):
        own = comm.dup()
        for algo in ("all_reduce:ring", "all_reduce:tree,direct", "", None):
            own.set_algorithm(algo)
            got = np.full(5, RANK)
            own.all_reduce(got)
            np.testing.assert_array_equal(got, sum(range(N)))
        with self.assertRaisesRegex(tutti.ArgumentError, "nonsense"):
            own.set_algorithm("nonsense")
        own.destroy()

    def test_what_a_failed_call_worked_on_is_kept(self):
        if N == 1:
            self.skipTest("one rank's call does not fail")
        for context in (contextlib.nullcontext, tutti.group):
            slow = comm.dup()
            if RANK == 0:
                _c.tutti_comm_set_timeout(slow._handle, 300)
                data, late = tutti.empty(1 << 20), tutti.empty(10)
                refs = weakref.ref(data), weakref.ref(late)
                with self.assertRaises(tutti.Timeout), context():
                    slow.all_reduce(data)
                with self.assertRaises(tutti.LostError):
                    slow.all_reduce(late)
                del data, late
                gc.collect()
                self.assertEqual([ref() is None for ref in refs], [False, True])
            comm.barrier()
            slow.abort()
            del slow
            gc.collect()
            self.assertTrue(RANK or refs[0]() is None)

    @unittest.skipIf(RANK, "once is enough")
    def test_hosts_with_secrets_of_their_own(self):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
        port = free_port()
        with tempfile.TemporaryDirectory() as folder:
            started = [subprocess.Popen(
                [sys.executable, "-c", "import tutti; tutti.init(boot_timeout=20)"], stderr=subprocess.PIPE, text=True,
                env={**clean, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": str(port), "TUTTI_MASTER_PORT": str(port), "XDG_CONFIG_HOME": f"{folder}/{rank}"})
                for rank in range(2)]
            for rank, each in enumerate(started):
                self.assertIn(f"the ranks prove the secret in {folder}/{rank}/tutti/secret, of which all hosts need "
                              "the same copy", each.communicate(timeout=100)[1])

    @unittest.skipIf(RANK, "once is enough")
    def test_programs_that_end_without_a_word(self):
        program = """
import sys, numpy, tutti
comm = tutti.init()
comm.all_reduce(numpy.zeros(1))
if sys.argv[1] == "raise" and comm.rank == 0:
    raise RuntimeError("by intent")
if sys.argv[1] == "raise":
    try:
        comm.barrier()
    except tutti.PeerError as error:
        print("heard:", error)
"""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
        for how, code, word in (("end", 0, ""), ("raise", 1, "heard: TUTTI_EPEER")):
            out = subprocess.run([tutti.get_tool(), "run", "-n", "2", "--keep-going", sys.executable, "-c", program,
                                  how], env=clean, capture_output=True, text=True, timeout=100, check=False)
            self.assertEqual(out.returncode != 0, code != 0, out)
            self.assertIn(word, out.stdout)
            self.assertNotIn("without goodbye", out.stderr)

    @unittest.skipIf(RANK, "once is enough")
    def test_programs_that_end_while_a_thread_waits(self):
        program = """
import sys, threading, time, tutti
comm = tutti.init()
channel, window = comm.channel(), comm.window(bytearray(8))
calls = {"barrier": comm.barrier, "wait": lambda: channel.recv(bytearray(8)), "probe": channel.probe,
         "wait_signal": lambda: window.wait_signal(1)}
if comm.rank == 0:
    thread = threading.Thread(target=calls[sys.argv[1]], daemon=True)
    thread.start()
    while sys._current_frames()[thread.ident].f_code.co_name != sys.argv[1]:
        time.sleep(0.01)
    time.sleep(0.5)
else:
    while comm.error is None:
        time.sleep(0.01)
    print("heard:", comm.error)
"""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
        for call in ("barrier", "wait", "probe", "wait_signal"):
            with self.subTest(call):
                out = subprocess.run([tutti.get_tool(), "run", "-n", "2", sys.executable, "-c", program, call],
                                     env=clean, capture_output=True, text=True, timeout=100, check=False)
                self.assertEqual(out.returncode, 0, out)
                self.assertIn("heard: TUTTI_EPEER", out.stdout)
                self.assertNotIn("Traceback", out.stderr)

    @unittest.skipIf(RANK, "once is enough")
    def test_arrays_that_ranks_address(self):
        program = """
import numpy, tutti
comm = tutti.init()
array = numpy.full(1 << 20, comm.rank + 1.0)
comm.all_reduce(array)
assert (array == 3).all()
for line in open("/proc/self/maps"):
    first, last = (int(end, 16) for end in line.split()[0].split("-"))
    if first <= array.ctypes.data < last:
        print("shared" if "tutti-heap" in line else "private")
"""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
        for options, kind in (([], "private"), (["--shared-malloc"], "shared")):
            out = subprocess.run([tutti.get_tool(), "run", "-n", "2", *options, sys.executable, "-c", program],
                                 env=clean, capture_output=True, text=True, timeout=100, check=False)
            self.assertEqual((out.returncode, out.stdout.split()), (0, [kind, kind]), out)


class Memory(unittest.TestCase):
    def test_an_array_outlives_communicators(self):
        with comm.dup() as other:
            data = tutti.empty((N, 1 << 18), "float64")
            self.assertEqual(data.shape, (N, 1 << 18))
            self.assertFalse(data.any())
            data[RANK] = RANK + 1
            other.all_gather(data)
        part = data[:, 7]
        del data
        gc.collect()
        np.testing.assert_array_equal(part, np.arange(N) + 1)
        self.assertEqual(tutti.empty(0).size, 0)

    def test_it_is_freed(self):
        # More than there is room for, if none were.
        for _ in range(40):
            tutti.empty(1 << 30, "int8")

    @unittest.skipIf(RANK, "once is enough")
    def test_it_is_there_until_the_program_ends(self):
        program = """
import atexit
arrays = []
# Registered first, so it runs last.
atexit.register(lambda: print(arrays[0].sum()))
import tutti
arrays.append(tutti.empty(1 << 24, "int8"))
arrays[0][:] = 1
"""
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                             timeout=100, check=False)
        self.assertEqual((out.returncode, out.stdout), (0, f"{1 << 24}\n"), out.stderr)

    def test_types_have_many_names(self):
        for dtype in ("float32", np.float32, np.dtype("float32"), arrays.TYPES["float32"]):
            self.assertEqual(arrays.type_of(dtype), arrays.TYPES["float32"])
        for dtype in ("floatt", float, object, ml_dtypes.float8_e4m3, 1000):
            with self.assertRaisesRegex(TypeError, "no type of elements: they are int8"):
                arrays.type_of(dtype)
        self.assertEqual(tutti.empty((2, 3), ml_dtypes.bfloat16).dtype, ml_dtypes.bfloat16)

    def test_without_numpy(self):
        program = "import sys; sys.modules['numpy'] = None; import tutti; print(len(tutti.empty(10)))"
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                             timeout=100, check=False)
        self.assertEqual(out.stdout, "40\n", out.stderr)


class OneSided(unittest.TestCase):
    def test_put_get_and_signals(self):
        mine = np.full(4, float(RANK))
        after, before = (RANK + 1) % N, (RANK - 1) % N
        with comm.window(mine) as window:
            window.put(np.array([10.0 + RANK]), after, offset=1)
            window.signal(after)
            window.wait_signal(before)
            self.assertEqual(mine[1], 10 + before)
            got = np.zeros(2)
            window.get(got, after)
            np.testing.assert_array_equal(got, [after, 10 + RANK])
            window.flush()
            with self.assertRaisesRegex(tutti.ArgumentError, "offset|window"):
                window.put(np.zeros(1), after, offset=4)
            with tutti.Stream() as stream:
                window.put(np.array([20.0 + RANK]), after, offset=2, stream=stream)
                window.signal(after, stream=stream)
                window.wait_signal(before, stream=stream)
                stream.synchronize()
            self.assertEqual(mine[2], 20 + before)
            with self.assertRaisesRegex(tutti.ArgumentError, "no signal 1"):
                window.signal(after, 1)

    def test_signals_of_several_indices(self):
        after, before = (RANK + 1) % N, (RANK - 1) % N
        with self.assertRaisesRegex(tutti.ArgumentError, "signals is 0"):
            comm.window(None, signals=0)
        with comm.window(None, signals=3) as window, tutti.Stream() as stream:
            window.wait_signals([(before, 2, 2), (before, 0, 1)], stream=stream)
            window.signal(after, 1)
            window.wait_signal(before, index=1)
            window.signal(after)
            for _ in range(2):
                window.signal(after, 2)
            stream.synchronize()

    def test_a_window_that_is_not_destroyed_in_a_group(self):
        mine = bytearray(8)
        window = comm.window(mine)
        with tutti.group(), self.assertRaisesRegex(tutti.UsageError, "inside a group"):
            window.destroy()
        window.put(b"\1", (RANK + 1) % N)
        window.destroy()
        self.assertEqual(mine[0], 1)
        with self.assertRaises(tutti.ArgumentError):
            window.flush()


class Messages(unittest.TestCase):
    def test_any_source_and_tag(self):
        with comm.channel() as channel:
            self.assertIsNone(channel.probe(tag=5, timeout=0))
            got = np.zeros(4, "int32")
            request = channel.irecv(got, tag=3)
            channel.send(np.full(3, RANK, "int32"), (RANK + 1) % N, tag=3)
            message = request.wait()
            before = (RANK - 1) % N
            self.assertEqual(message, (before, 3, 12))
            np.testing.assert_array_equal(got[:3], before)
            channel.send(np.zeros(10), RANK, tag=4)
            self.assertEqual(channel.probe(), (RANK, 4, 80))
            with self.assertRaisesRegex(tutti.ArgumentError, "80"):
                channel.recv(bytearray(8))
            self.assertEqual(channel.recv(bytearray(80), RANK).bytes, 80)

    def test_a_request_can_be_cancelled(self):
        with comm.channel() as channel:
            request = channel.irecv(np.zeros(1), source=RANK, tag=1)
            self.assertIsNone(request.wait(timeout=0.01))
            self.assertTrue(request.cancel())
            with self.assertRaises(tutti.CancelledError):
                request.wait()


class Dropped(unittest.TestCase):
    def test_what_other_ranks_write_to_is_kept(self):
        def begin(other):
            arrays = [np.zeros(12), np.zeros(12)]
            other.window(arrays[0])
            other.channel().irecv(arrays[1])
            return [weakref.ref(array) for array in arrays]

        for end in (tutti.Communicator.destroy, tutti.Communicator.abort):
            other = comm.dup()
            refs = begin(other)
            gc.collect()
            self.assertFalse(any(ref() is None for ref in refs))
            comm.barrier()
            end(other)
            gc.collect()
            self.assertEqual([ref() for ref in refs], [None, None])


class PersistentCalls(unittest.TestCase):
    def test_persistent_calls(self):
        mine = np.ones(4)
        with comm.persistent("all_reduce", mine, op="sum") as call, tutti.Stream() as stream:
            call.start()
            call.start(stream)
            call.wait()
            np.testing.assert_array_equal(mine, N * N)
        whole = np.zeros((N, 2))
        with comm.persistent("all_gather", np.full(2, RANK + 1.0), whole) as call, comm.persistent("barrier") as wait:
            call.start()
            wait.start()
        np.testing.assert_array_equal(whole[:, 0], np.arange(N) + 1)
        part = np.zeros(2)
        with comm.persistent("reduce_scatter", whole, part) as call:
            call.start()
        np.testing.assert_array_equal(part, N * (RANK + 1))
        with self.assertRaisesRegex(tutti.ArgumentError, "'send' cannot be made persistent"):
            comm.persistent("send", part)

    def test_old_names_warn(self):
        mine = np.ones(4)
        with self.assertWarnsRegex(DeprecationWarning, "persistent"):
            call = comm.plan("all_reduce", mine)
        with self.assertWarnsRegex(DeprecationWarning, "PersistentCall"):
            self.assertIsInstance(call, tutti.Plan)
        call.start()
        call.destroy()
        np.testing.assert_array_equal(mine, N)


class Wiring(unittest.TestCase):
    def test_topologies_and_plans_are_text(self):
        here = os.path.dirname(os.path.abspath(__file__))
        topology = tutti.Topology(xml=os.path.join(here, "../data/topologies/oci-hpc__H100-topology.xml"))
        self.assertIn("NUMA", str(topology))
        self.assertTrue(topology.text("json").startswith("{"))
        self.assertIn("ring", str(tutti.JobPlan([topology, topology])))
        with self.assertRaisesRegex(tutti.ArgumentError, "'picture': it is one of tree, xml"):
            topology.text("picture")
        with self.assertRaisesRegex(tutti.ArgumentError, "nowhere.xml"):
            tutti.Topology(xml="/nowhere.xml")

    def test_of_a_communicator(self):
        self.assertTrue(comm.channels())
        self.assertEqual(comm.transport(RANK), "self")
        if N > 1:
            self.assertEqual(comm.transport((RANK + 1) % N), "shm")


if __name__ == "__main__":
    unittest.main()
