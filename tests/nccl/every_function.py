# SPDX-License-Identifier: BSD-3-Clause
"""Every function of libnccl.so.2 by ctypes, as vLLM calls it, on CUDA's memory and streams.

    tutti run -n 3 --gpus 3 python3 every_function.py FUNCTIONS FOLDER

FUNCTIONS is functions.def. In the folder rank 0 leaves what NCCL's programs have to tell the others.
"""
import ctypes
import os
import pathlib
import re
import sys
import time
from typing import Any, Callable, Dict, List, Set

from device_memory import Memory, Stream, cuda

RANK, N = int(os.environ["TUTTI_RANK"]), int(os.environ["TUTTI_NRANKS"])
NEXT, PREVIOUS = (RANK + 1) % N, (RANK - 1) % N
SUCCESS, INVALID_ARGUMENT, INVALID_USAGE, IN_PROGRESS = 0, 4, 5, 7
INT32, FLOAT32, SUM, MAX = 2, 7, 0, 2
UNDEFINED = -2**31
#: What vLLM looks for when it loads the library; the first one that is missing is an error there.
VLLM = """GetVersion GetErrorString GetUniqueId CommInitRank CommDestroy CommAbort CommSuspend CommResume
CommQueryProperties CommWindowRegister CommWindowDeregister AllReduce Broadcast Reduce AllGather ReduceScatter
Send Recv GroupStart GroupEnd""".split()


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_byte * 128)]


class Team(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("n", "rank", "stride")]


class Config(ctypes.Structure):
    """Of a communicator, as release 2.18 had it: what is not here is not set."""
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("blocking", ctypes.c_int), ("cga", ctypes.c_int), ("min", ctypes.c_int),
                ("max", ctypes.c_int), ("net", ctypes.c_char_p), ("share", ctypes.c_int)]

    def __init__(self, blocking: int) -> None:
        super().__init__(48, 0xcafebeef, 21800, blocking, UNDEFINED, UNDEFINED, UNDEFINED, None, UNDEFINED)


class CallConfig(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("ext", ctypes.c_void_p), ("integers", ctypes.c_int * 4), ("algorithms", ctypes.c_char_p),
                ("force", ctypes.c_int), ("policy", ctypes.c_int), ("tag", ctypes.c_uint64),
                ("event", ctypes.c_void_p)]

    def __init__(self, algorithms: bytes) -> None:
        super().__init__(72, 0xcafebeef, 23203, None, (UNDEFINED,) * 4, algorithms, 1, UNDEFINED, 0, None)


class Simulated(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("time", ctypes.c_float)]


class Encryption(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("mode", ctypes.c_int), ("key", ctypes.c_char_p)]


class Signal(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("n", "peer", "index", "context")]


class Properties(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("rank", ctypes.c_int), ("n", ctypes.c_int), ("rest", ctypes.c_byte * 128)]


# By letters: an address, an int, a size, an id and a team by value; what comes back, if no result.
LETTERS: Dict[str, Any] = {"p": ctypes.c_void_p, "i": ctypes.c_int, "z": ctypes.c_size_t, "U": UniqueId,
                           "T": Team, "s": ctypes.c_char_p, "-": None}
SIGNATURES = {name: arguments for names, arguments in [
    ("GetVersion GetUniqueId SetEncryption GroupSimulateEnd MemFree", "p"),
    ("GroupStart GroupEnd", ""), ("GetErrorString", "i>s"), ("GetLastError", "p>s"),
    ("ResetDebugInit ResetDebugInitInternal ParamDumpAll", ">-"),
    ("CommInitRank", "piUi"), ("CommInitRankConfig", "piUip"), ("CommInitRankScalable", "piiipp"),
    ("CommInitAll", "pip"), ("CommSplit", "piipp"), ("CommShrink", "ppippi"), ("CommGrow", "pipipp"),
    ("CommFinalize CommDestroy CommAbort CommResume", "p"), ("CommRevoke CommSuspend", "pi"),
    ("CommGetUniqueId CommGetAsyncError CommCount CommUserRank CommCuDevice CommQueryProperties", "pp"),
    ("CommMemStats", "pip"), ("MemAlloc", "pz"), ("CommRegister", "ppzp"),
    ("CommDeregister CommWindowDeregister", "pp"), ("CommWindowRegister", "ppzpi"), ("WinGetUserPtr", "ppp"),
    ("RedOpCreatePreMulSum", "ppiip"), ("RedOpDestroy", "ip"),
    ("AllReduce ReduceScatter", "ppziipp"), ("Broadcast Gather Scatter", "ppziipp"), ("Bcast", "pziipp"),
    ("Reduce", "ppziiipp"), ("AllGather AlltoAll", "ppzipp"),
    ("AllReduceConfig ReduceScatterConfig BroadcastConfig GatherConfig ScatterConfig", "ppziippp"),
    ("ReduceConfig", "ppziiippp"), ("AllGatherConfig AlltoAllConfig", "ppzippp"),
    ("Send Recv", "pziipp"), ("PutSignal", "pziipziiipp"), ("Signal", "iiiipp"), ("WaitSignal", "ippp"),
    ("ParamBind", "ps"), ("ParamGet", "ppip"), ("ParamGetParameter", "spp"), ("ParamGetAllParameterKeys", "pp"),
    ("ParamGetI8 ParamGetI16 ParamGetI32 ParamGetI64 ParamGetU8 ParamGetU16 ParamGetU32 ParamGetU64 "
     "ParamGetStr", "pp"),
    ("TeamWorld TeamLsa TeamRail TeamCftMultimem", "p>T"), ("TeamCft", "pi>T"),
    ("TeamRankToWorld TeamRankToLsa", "pTi>i"),
    ("GetLsaDevicePointer GetPeerDevicePointer", "pzip"),
] for name in names.split()}


class Nccl:
    """The library; which of its functions were called."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libnccl.so.2")
        self.called: Set[str] = set()

    def call(self, name: str, *arguments: Any) -> Any:
        self.called.add("nccl" + name)
        function = getattr(self.lib, "nccl" + name)
        takes, _, gives = SIGNATURES[name].partition(">")
        function.argtypes = [LETTERS[letter] for letter in takes]
        function.restype = LETTERS[gives] if gives else ctypes.c_int
        return function(*arguments)

    def ok(self, name: str, *arguments: Any) -> None:
        self.gives(SUCCESS, name, *arguments)

    def gives(self, result: int, name: str, *arguments: Any) -> None:
        got = self.call(name, *arguments)
        text = self.call("GetLastError", None).decode()
        assert got == result, f"{name}: {got}, not {result}: {text}"
        assert result in (SUCCESS, IN_PROGRESS) or text, f"{name} has no text"

    def number(self, name: str, *arguments: Any) -> int:
        out = ctypes.c_int(-1)
        self.ok(name, *arguments, ctypes.byref(out))
        return out.value

    def address(self, name: str, *arguments: Any) -> int:
        """What a function writes to its last argument."""
        out = ctypes.c_void_p()
        self.ok(name, *arguments, ctypes.byref(out))
        return out.value or 0

    def made(self, name: str, *arguments: Any) -> int:
        """What a function writes to its first argument."""
        out = ctypes.c_void_p()
        self.ok(name, ctypes.byref(out), *arguments)
        return out.value or 0


nccl = Nccl()
stream: Stream
folder: pathlib.Path


def told(name: str, who: int, make: Callable[[], bytes]) -> UniqueId:
    """What rank `who` has made, on all ranks."""
    path = folder / name
    if RANK == who:
        (folder / "new").write_bytes(make())
        (folder / "new").rename(path)
    while not path.exists():
        time.sleep(0.001)
    return UniqueId.from_buffer_copy(path.read_bytes())


def new_id() -> bytes:
    out = UniqueId()
    nccl.ok("GetUniqueId", ctypes.byref(out))
    return bytes(out)


def sums(comm: int, n: int) -> None:
    send, got = Memory([1.0] * 8), Memory([0.0] * 8)
    nccl.ok("AllReduce", send.at, got.at, 8, FLOAT32, SUM, comm, stream.at)
    stream.synchronize()
    assert got.read() == [float(n)] * 8, got.read()


def collectives(comm: int) -> None:
    """Each as NCCL's page of it says, then with the settings of a call."""
    everyone = [float(rank) for rank in range(N)]
    total = float(sum(range(N)))
    root = N - 1
    for suffix, config in (("", []), ("Config", [ctypes.byref(CallConfig(b""))])):
        def run(name: str, mine: List[float], room: int, wanted: List[float], *middle: int, on: int = -1) -> None:
            send, got = Memory(mine), Memory([-1.0] * room)
            count = min(len(mine), room)
            nccl.ok(name + suffix, send.at, got.at, count, FLOAT32, *middle, comm, stream.at, *config)
            stream.synchronize()
            if on in (-1, RANK):
                assert got.read() == wanted, (name + suffix, got.read(), wanted)

        run("AllReduce", [float(RANK)] * 2, 2, [total] * 2, SUM)
        run("Broadcast", [float(RANK)] * 2, 2, [float(root)] * 2, root)
        run("Reduce", [float(RANK)] * 2, 2, [float(root)] * 2, MAX, root, on=root)
        run("AllGather", [float(RANK)], N, everyone)
        run("ReduceScatter", everyone, 1, [float(N * RANK)], SUM)
        run("Gather", [float(RANK)], N, everyone, root, on=root)
        run("Scatter", everyone, 1, [float(RANK)], 0)
        # `count` is that of one part.
        send, got = Memory([float(10 * RANK + peer) for peer in range(N)]), Memory([-1.0] * N)
        nccl.ok("AlltoAll" + suffix, send.at, got.at, 1, FLOAT32, comm, stream.at, *config)
        stream.synchronize()
        assert got.read() == [float(10 * peer + RANK) for peer in range(N)]
    both = Memory([float(RANK)])
    nccl.ok("Bcast", both.at, 1, FLOAT32, 1, comm, stream.at)
    stream.synchronize()
    assert both.read() == [1.0]
    ring = CallConfig(b"RING")
    nccl.ok("AllReduceConfig", both.at, both.at, 1, FLOAT32, SUM, comm, stream.at, ctypes.byref(ring))
    stream.synchronize()
    assert both.read() == [float(N)]


def operators(comm: int) -> None:
    half = ctypes.c_float(0.5)
    op = ctypes.c_int()
    nccl.ok("RedOpCreatePreMulSum", ctypes.byref(op), ctypes.byref(half), FLOAT32, 1, comm)
    send, got = Memory([2.0]), Memory([0.0])
    nccl.ok("AllReduce", send.at, got.at, 1, FLOAT32, op.value, comm, stream.at)
    nccl.ok("RedOpDestroy", op.value, comm)
    stream.synchronize()
    assert got.read() == [float(N)]


def messages(comm: int) -> None:
    send, got = Memory([float(RANK)] * 3), Memory([-1.0] * 3)
    nccl.ok("GroupStart")
    nccl.ok("Send", send.at, 3, FLOAT32, NEXT, comm, stream.at)
    nccl.ok("Recv", got.at, 3, FLOAT32, PREVIOUS, comm, stream.at)
    nccl.ok("GroupEnd")
    stream.synchronize()
    assert got.read() == [float(PREVIOUS)] * 3
    simulated = Simulated(24, 0x74685283, 23203, -1.0)
    nccl.ok("GroupStart")
    nccl.ok("AllReduce", send.at, got.at, 3, FLOAT32, SUM, comm, stream.at)
    nccl.ok("GroupSimulateEnd", ctypes.byref(simulated))
    assert simulated.time > 0 and got.read() == [float(PREVIOUS)] * 3


def memory(comm: int) -> None:
    """Registered, and a window that others write to and signal."""
    # A window begins at a page.
    alloc = nccl.made("MemAlloc", 8192)
    handle = nccl.address("CommRegister", comm, alloc, 8192)
    nccl.ok("CommDeregister", comm, handle)
    window = window_of(comm, alloc)
    assert nccl.address("WinGetUserPtr", comm, window) == alloc
    assert nccl.address("GetLsaDevicePointer", window, 16, 0) == alloc + 16
    assert nccl.address("GetPeerDevicePointer", window, 16, RANK) == alloc + 16
    send = Memory([float(RANK), 7.0])
    nccl.ok("PutSignal", send.at, 2, FLOAT32, NEXT, window, 64, 0, 0, 0, comm, stream.at)
    nccl.ok("Signal", NEXT, 0, 0, 0, comm, stream.at)
    nccl.ok("WaitSignal", 1, ctypes.byref(Signal(2, PREVIOUS, 0, 0)), comm, stream.at)
    stream.synchronize()
    got = (ctypes.c_float * 2).from_address(alloc + 64)
    assert list(got) == [float(PREVIOUS), 7.0]
    nccl.ok("CommWindowDeregister", comm, window)
    # Who frees the memory waits until no other rank writes to it any more.
    sums(comm, N)
    nccl.ok("MemFree", alloc)


def window_of(comm: int, at: int) -> int:
    out = ctypes.c_void_p()
    nccl.ok("CommWindowRegister", comm, at, 4096, ctypes.byref(out), 1)
    return out.value or 0


def facts(comm: int, version: int) -> None:
    assert nccl.number("CommCount", comm) == N and nccl.number("CommUserRank", comm) == RANK
    assert nccl.number("CommCuDevice", comm) == RANK
    assert nccl.number("CommGetAsyncError", comm) == SUCCESS
    properties = Properties(152, 0xcafebeef, version, -1, -1)
    nccl.ok("CommQueryProperties", comm, ctypes.byref(properties))
    assert (properties.rank, properties.n) == (RANK, N)
    nbytes = ctypes.c_uint64(1)
    nccl.ok("CommMemStats", comm, 3, ctypes.byref(nbytes))
    assert nbytes.value == 0
    nccl.ok("CommSuspend", comm, 1)
    nccl.ok("CommResume", comm)
    world = nccl.call("TeamWorld", comm)
    assert (world.n, world.rank, world.stride) == (N, RANK, 1)
    for name in ("TeamLsa", "TeamCftMultimem"):
        assert nccl.call(name, comm).n == 1
    assert nccl.call("TeamRail", comm).n == N and nccl.call("TeamCft", comm, 0).n == 1
    assert [nccl.call("TeamRankToWorld", comm, world, rank) for rank in range(N)] == list(range(N))
    assert nccl.call("TeamRankToLsa", comm, world, RANK) == 0


def families(comm: int) -> None:
    """Communicators of communicators."""
    out = ctypes.c_void_p()
    nccl.ok("CommSplit", comm, 0 if RANK < 2 else -1, -RANK, ctypes.byref(out), None)
    assert bool(out.value) == (RANK < 2)
    pair = out.value
    if pair:
        assert nccl.number("CommUserRank", pair) == 1 - RANK
        sums(pair, 2)
    # The last rank comes again, to the two.
    def growing() -> bytes:
        made = UniqueId()
        nccl.ok("CommGetUniqueId", pair, ctypes.byref(made))
        return bytes(made)

    grown = told("grown", 0, growing)
    mine = ctypes.byref(grown) if RANK in (0, N - 1) else None
    nccl.ok("CommGrow", pair, N, mine, RANK if RANK == N - 1 else -1, ctypes.byref(out), None)
    all_again = out.value or 0
    sums(all_again, N)
    if pair:
        nccl.ok("CommDestroy", pair)
    without = (ctypes.c_int * 1)(N - 1)
    # In all_again rank 0 is the second of the pair, and rank 1 the first.
    if RANK != N - 1:
        nccl.ok("CommShrink", all_again, without, 1, ctypes.byref(out), None, 0)
        sums(out.value or 0, N - 1)
        nccl.ok("CommFinalize", out.value)
        nccl.ok("CommDestroy", out.value)
    told("shrunk", 0, lambda: bytes(128))
    nccl.ok("CommRevoke", all_again, 0)
    nccl.ok("CommAbort", all_again)


def inits() -> None:
    """The other ways to begin."""
    config = Config(0)
    out = ctypes.c_void_p()
    shared = told("config", 0, new_id)
    result = nccl.call("CommInitRankConfig", ctypes.byref(out), N, shared, RANK, ctypes.byref(config))
    assert result in (SUCCESS, IN_PROGRESS)
    while nccl.number("CommGetAsyncError", out) == IN_PROGRESS:
        time.sleep(0.001)
    sums(out.value or 0, N)
    nccl.ok("CommDestroy", out)
    ids = (UniqueId * 2)(told("one", 0, new_id), told("two", 1, new_id))
    sums(comm := nccl.made("CommInitRankScalable", N, RANK, 2, ids, None), N)
    nccl.ok("CommDestroy", comm)
    nccl.ok("CommInitAll", ctypes.byref(out), 1, None)
    sums(out.value or 0, 1)
    nccl.ok("CommDestroy", out)


def parameters() -> None:
    slots = nccl.made("ParamBind", b"TUTTI_SHM_SLOTS")
    for letter in "IU":
        for nbits in (8, 16, 32, 64):
            number = ctypes.c_int64(0)
            nccl.ok(f"ParamGet{letter}{nbits}", slots, ctypes.byref(number))
            assert number.value == 2, (letter, nbits)
    text, length = ctypes.c_char_p(), ctypes.c_int()
    nccl.ok("ParamGetStr", slots, ctypes.byref(text))
    assert text.value == b"2"
    room = ctypes.create_string_buffer(8)
    nccl.ok("ParamGet", slots, room, 8, ctypes.byref(length))
    assert room.value == b"2" and length.value == 2
    nccl.ok("ParamGetParameter", b"TUTTI_SHM_SLOTS", ctypes.byref(text), ctypes.byref(length))
    assert text.value == b"2" and length.value == 1
    names = ctypes.POINTER(ctypes.c_char_p)()
    nccl.ok("ParamGetAllParameterKeys", ctypes.byref(names), ctypes.byref(length))
    assert b"TUTTI_SHM_SLOTS" in names[:length.value]
    nccl.call("ParamDumpAll")
    nccl.gives(INVALID_ARGUMENT, "ParamBind", ctypes.byref(ctypes.c_void_p()), b"NCCL_NO_SUCH_THING")


def library() -> int:
    version = nccl.number("GetVersion")
    assert version == 23203
    assert len({nccl.call("GetErrorString", result) for result in range(9)}) == 9
    nccl.call("ResetDebugInit")
    nccl.call("ResetDebugInitInternal")
    encryption = Encryption(32, 0xcafebeef, version, 0, None)
    nccl.ok("SetEncryption", ctypes.byref(encryption))
    encryption.mode, encryption.key = 1, b"a key"
    nccl.gives(INVALID_USAGE, "SetEncryption", ctypes.byref(encryption))
    return version


def main() -> None:
    global stream, folder
    functions, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for name in VLLM:
        assert hasattr(nccl.lib, "nccl" + name), f"vLLM misses nccl{name}"
    version = library()
    cuda("cudaSetDevice", RANK)
    stream = Stream()
    comm = nccl.made("CommInitRank", N, told("first", 0, new_id), RANK)
    for part in (collectives, operators, messages, memory, families):
        part(comm)
    facts(comm, version)
    nccl.gives(INVALID_ARGUMENT, "AllReduce", None, None, 1, FLOAT32, SUM, comm, stream.at)
    nccl.ok("CommDestroy", comm)
    inits()
    parameters()
    stream.destroy()
    (folder / f"calls-{RANK}").write_text(" ".join([*nccl.called, "ncclEND"]))
    if RANK == 0:
        for rank in range(1, N):
            told_by = folder / f"calls-{rank}"
            while not told_by.exists() or not told_by.read_text().endswith("ncclEND"):
                time.sleep(0.001)
            nccl.called.update(told_by.read_text().split())
        known = re.findall(r"^(?:FUNCTION|UNPROFILED)\((\w+), +\d+, +(\w+)", functions.read_text(), re.M)
        left = [name for name, how in known if how != "GPU" and name not in nccl.called]
        assert len(known) == 97 and not left, left
        print(f"{len(known) - sum(how == 'GPU' for _, how in known)} functions")


main()
