# SPDX-License-Identifier: BSD-3-Clause
"""NVIDIA's nccl4py: every function of its bindings that is not for kernels, on CUDA's memory and streams.

    tutti run -n 3 --gpus 3 python3 nccl4py.py FOLDER

In the folder rank 0 leaves what NCCL's programs have to tell the others. Ends with an error if the package
has a function that is not tried here.
"""
import ctypes
import os
import pathlib
import sys
import time
from typing import Any, Callable, List, Set

from cuda.core import Device
from nccl import core as nccl_core
from nccl.bindings import nccl as bindings

from device_memory import Memory, Stream, cuda

RANK, N = int(os.environ["TUTTI_RANK"]), int(os.environ["TUTTI_NRANKS"])
NEXT, PREVIOUS = (RANK + 1) % N, (RANK - 1) % N
FLOAT, SUM, MAX = 7, 0, 2
IN_PROGRESS = 7
#: What kernels need, and what is no function of NCCL.
NOT_HERE = {
    "dev_comm_create", "dev_comm_destroy", "get_cft_device_le_info", "get_lsa_multimem_device_pointer",
    "get_multimem_device_le_info", "get_multimem_device_pointer", "get_peer_device_le_info",
    "gin_barrier_create_requirement", "ll_a2a_calc_slots", "ll_a2a_create_requirement",
    "lsa_barrier_create_requirement", "check_status", "get_library_path",
}


class Recorded:
    """The bindings; which of their functions were called."""

    def __init__(self) -> None:
        self.called: Set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.called.add(name)
        return getattr(bindings, name)


nccl = Recorded()
stream: Stream
folder: pathlib.Path


def told(name: str, who: int, make: Callable[[], bytes]) -> bytes:
    """What rank `who` has made, on all ranks."""
    path = folder / name
    if RANK == who:
        (folder / "new").write_bytes(make())
        (folder / "new").rename(path)
    while not path.exists():
        time.sleep(0.001)
    return path.read_bytes()


def bytes_of(unique: Any) -> bytes:
    return ctypes.string_at(unique.ptr, 128)


def id_of(data: bytes) -> Any:
    return bindings.UniqueId.from_buffer(bytearray(data))


def new_id(name: str) -> Any:
    return id_of(told(name, 0, lambda: bytes_of(nccl.get_unique_id())))


def sums(comm: Any, n: int) -> None:
    send, got = Memory([1.0] * 8), Memory([0.0] * 8)
    nccl.all_reduce(send.at, got.at, 8, FLOAT, SUM, comm, stream.at)
    stream.synchronize()
    assert got.read() == [float(n)] * 8


def collectives(comm: Any) -> None:
    everyone = [float(rank) for rank in range(N)]
    root = N - 1
    to_all = [float(10 * RANK + peer) for peer in range(N)]
    of_all = [float(10 * peer + RANK) for peer in range(N)]
    for suffix, config in (("", []), ("_config", [bindings.CollConfig()])):
        def run(name: str, mine: List[float], wanted: List[float], *middle: int, on: int = -1,
                count: int = 1) -> None:
            send, got = Memory(mine), Memory([-1.0] * len(wanted))
            getattr(nccl, name + suffix)(send.at, got.at, count, FLOAT, *middle, comm, stream.at, *config)
            stream.synchronize()
            assert on not in (-1, RANK) or got.read() == wanted, (name + suffix, got.read(), wanted)

        run("all_reduce", [float(RANK)] * 2, [float(sum(everyone))] * 2, SUM, count=2)
        run("broadcast", [float(RANK)] * 2, [float(root)] * 2, root, count=2)
        run("reduce", [float(RANK)] * 2, [float(root)] * 2, MAX, root, on=root, count=2)
        run("all_gather", [float(RANK)], everyone)
        run("reduce_scatter", everyone, [float(N * RANK)], SUM)
        run("gather", [float(RANK)], everyone, root, on=root)
        run("scatter", everyone, [float(RANK)], 0)
        run("allto_all", to_all, of_all)
    both = Memory([float(RANK)])
    nccl.bcast(both.at, 1, FLOAT, 1, comm, stream.at)
    stream.synchronize()
    assert both.read() == [1.0]


def operators(comm: Any) -> None:
    half = ctypes.c_float(0.5)
    op = nccl.red_op_create_pre_mul_sum(ctypes.addressof(half), FLOAT, 1, comm)
    both = Memory([2.0])
    nccl.all_reduce(both.at, both.at, 1, FLOAT, op, comm, stream.at)
    nccl.red_op_destroy(op, comm)
    stream.synchronize()
    assert both.read() == [float(N)]


def messages(comm: Any) -> None:
    send, got = Memory([float(RANK)] * 3), Memory([-1.0] * 3)
    nccl.group_start()
    nccl.send(send.at, 3, FLOAT, NEXT, comm, stream.at)
    nccl.recv(got.at, 3, FLOAT, PREVIOUS, comm, stream.at)
    nccl.group_end()
    stream.synchronize()
    assert got.read() == [float(PREVIOUS)] * 3
    nccl.group_start()
    nccl.all_reduce(send.at, got.at, 3, FLOAT, SUM, comm, stream.at)
    assert nccl.group_simulate_end().estimated_time > 0
    assert got.read() == [float(PREVIOUS)] * 3


def memory(comm: Any) -> None:
    at = nccl.mem_alloc(8192)
    nccl.comm_deregister(comm, nccl.comm_register(comm, at, 8192))
    window = nccl.comm_window_register(comm, at, 4096, 1)
    assert nccl.win_get_user_ptr(comm, window) == at
    assert nccl.get_lsa_device_pointer(window, 16, 0) == at + 16
    assert nccl.get_peer_device_pointer(window, 16, RANK) == at + 16
    send, wait = Memory([float(RANK), 7.0]), bindings.WaitSignalDesc()
    wait.op_cnt, wait.peer, wait.sig_idx, wait.ctx = 2, PREVIOUS, 0, 0
    nccl.put_signal(send.at, 2, FLOAT, NEXT, window, 64, 0, 0, 0, comm, stream.at)
    nccl.signal(NEXT, 0, 0, 0, comm, stream.at)
    nccl.wait_signal(1, wait, comm, stream.at)
    stream.synchronize()
    assert list((ctypes.c_float * 2).from_address(at + 64)) == [float(PREVIOUS), 7.0]
    nccl.comm_window_deregister(comm, window)
    # Who frees the memory waits until no other rank writes to it any more.
    sums(comm, N)
    nccl.mem_free(at)


def facts(comm: Any) -> None:
    assert (nccl.comm_count(comm), nccl.comm_user_rank(comm), nccl.comm_cu_device(comm)) == (N, RANK, RANK)
    assert nccl.comm_get_async_error(comm) == 0
    properties = nccl.comm_query_properties(comm)
    assert (properties.rank, properties.n_ranks, properties.device_api_support) == (RANK, N, False)
    assert nccl.comm_mem_stats(comm, 3) == 0
    nccl.comm_suspend(comm, 1)
    nccl.comm_resume(comm)
    world = nccl.team_world(comm)
    assert (world.n_ranks, world.rank, world.stride) == (N, RANK, 1)
    assert nccl.team_rail(comm).n_ranks == N
    for team in (nccl.team_lsa(comm), nccl.team_cft(comm, 0), nccl.team_cft_multimem(comm)):
        assert team.n_ranks == 1
    assert [nccl.team_rank_to_world(comm, world, rank) for rank in range(N)] == list(range(N))
    assert nccl.team_rank_to_lsa(comm, world, RANK) == 0
    try:
        nccl.all_reduce(0, 0, 1, FLOAT, SUM, comm, stream.at)
        raise AssertionError("no buffer is no error")
    except bindings.NCCLError:
        assert "NULL" in nccl.get_last_error(comm)


def families(comm: Any) -> None:
    config = bindings.Config()
    pair = nccl.comm_split(comm, 0 if RANK < 2 else -1, RANK, config)
    if RANK < 2:
        sums(pair, 2)
    grown_id = id_of(told("grown", 0, lambda: bytes_of(nccl.comm_get_unique_id(pair))))
    grown = nccl.comm_grow(pair, N, 0 if RANK == 1 else grown_id.ptr, RANK if RANK == N - 1 else -1, config)
    sums(grown, N)
    if RANK < 2:
        rest = nccl.comm_shrink(grown, [N - 1], 1, config, 0)
        sums(rest, 2)
        nccl.comm_finalize(rest)
        nccl.comm_destroy(rest)
        nccl.comm_destroy(pair)
    told("shrunk", 0, lambda: b"yes")
    nccl.comm_revoke(grown, 0)
    nccl.comm_abort(grown)


def inits() -> None:
    config = bindings.Config()
    config.blocking = 0
    comm = nccl.comm_init_rank_config(N, new_id("config"), RANK, config)
    while nccl.comm_get_async_error(comm) == IN_PROGRESS:
        time.sleep(0.001)
    sums(comm, N)
    nccl.comm_destroy(comm)
    comm = nccl.comm_init_rank_scalable(N, RANK, 1, new_id("scalable"), bindings.Config())
    sums(comm, N)
    nccl.comm_destroy(comm)
    (comm,) = nccl.comm_init_all(1, [RANK])
    sums(comm, 1)
    nccl.comm_destroy(comm)


def core() -> None:
    """The objects above the bindings, which use CUDA's driver by cuda.core."""
    device = Device(RANK)
    device.set_current()
    made = device.create_stream()
    unique = nccl_core.UniqueId.from_bytes(told("core", 0, lambda: nccl_core.get_unique_id().as_bytes))
    comm = nccl_core.Communicator.init(nranks=N, rank=RANK, unique_id=unique)
    mine, got = device.allocate(64, stream=made), device.allocate(64 * N, stream=made)

    def gives(n: int, wanted: bytes) -> None:
        made.sync()
        host = ctypes.create_string_buffer(n)
        cuda("cudaMemcpy", host, ctypes.c_void_p(int(got.handle)), ctypes.c_size_t(n), 2)
        assert host.raw == wanted, host.raw

    mine.fill(RANK + 1, stream=made)
    comm.allgather(mine, got, stream=made)
    gives(64 * N, b"".join(bytes([rank + 1]) * 64 for rank in range(N)))
    comm.broadcast(mine, mine, N - 1, stream=made)
    comm.allgather(mine, got, stream=made)
    gives(64 * N, bytes([N]) * (64 * N))
    assert comm.rank == RANK and comm.nranks == N and comm.device.device_id == RANK
    comm.destroy()


def library() -> None:
    assert nccl.get_version() == 23203
    assert len({nccl.get_error_string(result) for result in range(9)}) == 9
    nccl.set_encryption(bindings.EncryptionConfig())
    assert "TUTTI_SHM_SLOTS" in nccl.param_get_all_keys()
    assert nccl.param_get_parameter("TUTTI_SHM_SLOTS") == "2"
    nccl.param_dump_all()


def tried() -> int:
    """How many functions; by rank 0, of all ranks."""
    (folder / f"calls-{RANK}.new").write_text("\n".join(nccl.called))
    (folder / f"calls-{RANK}.new").rename(folder / f"calls-{RANK}")
    for rank in range(N if RANK == 0 else 0):
        while not (folder / f"calls-{rank}").exists():
            time.sleep(0.001)
        nccl.called.update((folder / f"calls-{rank}").read_text().split())
    known = {name for name, thing in vars(bindings).items()
             if callable(thing) and not isinstance(thing, type) and not name.startswith("_")}
    left = {name for name in known - NOT_HERE - nccl.called if not name.endswith("_dtype")}
    assert RANK or not left, left
    return len(nccl.called)


def main() -> None:
    global stream, folder
    folder = pathlib.Path(sys.argv[1])
    library()
    cuda("cudaSetDevice", RANK)
    stream = Stream()
    comm = nccl.comm_init_rank(N, new_id("first"), RANK)
    for part in (collectives, operators, messages, memory, families, facts):
        part(comm)
    nccl.comm_destroy(comm)
    inits()
    core()
    stream.destroy()
    n = tried()
    if RANK == 0:
        print(f"{n} functions")


main()
