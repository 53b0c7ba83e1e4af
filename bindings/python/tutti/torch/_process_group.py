# SPDX-License-Identifier: BSD-3-Clause
"""What PyTorch is given for the name "tutti".

A process group whose backend is tutti alone is a TuttiGroup, PyTorch's ProcessGroup in Python: a
call of torch.distributed is a call of its methods, and each Work is its own. Where other devices
have other backends ("cpu:tutti,cuda:nccl") PyTorch makes the group and is given a TuttiBackend for
it; a Work is then wrapped by PyTorch, whose wrapper knows wait() and get_future() only.
"""
import ctypes
import time
import zlib
from datetime import timedelta
from typing import Any, List, Optional, Sequence, cast

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from .. import _c
from ._engine import Engine
from ._group import Operations
from ._join import CONFIG, OUT, becomes, join, make
from ._memory import empty
from ._messages import Channel, Message
from ._record import BackendError, error_of, milliseconds
from ._windows import Window

NAME = "tutti"
#: The prefix of events in profilers.
TITLE = NAME
_CPU = torch.device("cpu")
#: The class that backends derive from; PyTorch 1 has only groups.
_Backend: Any = getattr(c10d, "Backend", c10d.ProcessGroup)


def _can_be_made() -> bool:
    try:
        type("Probe", (c10d.Backend,), {})(0, 1)
    except (AttributeError, TypeError):
        return False
    return True


#: Whether Python can make a Backend, which came late in PyTorch 2. Where it cannot, a TuttiGroup has none.
HAS_BACKENDS = _can_be_made()


class _Group(Operations):
    """What TuttiGroup and TuttiBackend have in common."""

    _engine: Engine
    _store: Any

    def _adopt(self, engine: Engine, store: Any) -> None:
        self._engine = engine
        self._store = store
        if engine.channel is None:
            # Here, where all ranks are. Later only those would come that send or receive.
            engine.channel = Channel(engine)

    def getBackendName(self) -> str:  # pylint: disable=invalid-name
        """As PyTorch shows it."""
        return NAME

    name = getBackendName

    # -- Messages ---------------------------------------------------------------------------------

    def send(self, tensors: List[torch.Tensor], peer: int, tag: int = 0) -> Message:
        """Send a tensor, which goes beside the collectives and in no order with them."""
        return self._engine.channel.send(self._engine, tensors, peer, tag)

    def recv(self, tensors: List[torch.Tensor], peer: int, tag: int = 0) -> Message:
        """Receive a tensor that a rank sends with a tag."""
        return self._engine.channel.receive(self._engine, tensors, peer, tag)

    def recv_anysource(self, tensors: List[torch.Tensor], tag: int = 0) -> Message:
        """Receive a tensor from whichever rank sends one with a tag."""
        return self._engine.channel.receive(self._engine, tensors, -1, tag)

    # -- Memory -----------------------------------------------------------------------------------

    def supports_tensor_alloc(self, _device: Any = None) -> bool:
        """True: FSDP2, among others, may allocate by allocate_tensor()."""
        return True

    def allocate_tensor(self, size: int, *, dtype: torch.dtype,
                        device: Any = None) -> torch.Tensor:
        """A tensor of `size` elements in memory that all ranks of the host address."""
        del device  # the host's
        return empty(size, dtype=dtype)

    # -- Windows ----------------------------------------------------------------------------------

    supports_window = True

    def new_window(self, tensor: Optional[torch.Tensor] = None) -> Window:
        """A window of all ranks, on a tensor of each: see Window. All ranks call this."""
        return Window(self._engine, tensor)

    # -- Deadlines, the end -------------------------------------------------------------------

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the deadline of later calls."""
        self._engine.set_timeout(timeout)

    _set_default_timeout = set_timeout

    def get_error(self) -> Any:
        """The state of the group, as one of PyTorch's ErrorType."""
        kinds = c10d.ErrorType
        status = self._engine.get_error()
        if status is None:
            return kinds.SUCCESS
        if status == _c.tutti_status.TUTTI_ETIMEOUT:
            return kinds.TIMEOUT
        return kinds.REMOTE_ERROR if status == _c.tutti_status.TUTTI_EPEER else kinds.COMM_ERROR

    def abort(self) -> None:
        """End the group on all ranks; what is under way here fails. Any thread."""
        self._engine.abort()

    def shutdown(self) -> None:
        """Wait for what was begun on this rank, then free the group's resources. Waits for no other
        rank."""
        self._engine.shutdown()

    def _get_sequence_number_for_group(self) -> int:
        return self._engine.ncollectives

    def _set_sequence_number_for_group(self) -> None:
        """Numbers begin at 0 on all ranks."""

    def eager_connect_single_device(self, device: Any) -> None:
        """Nothing: the group is connected."""

    # -- Who does not come ----------------------------------------------------------------------

    def monitored_barrier(self, opts: Any = None, wait_all_ranks: bool = False,
                          timeout: Optional[timedelta] = None) -> None:
        """A barrier in which rank 0 names the ranks that did not come in time. It goes through the
        store, since a rank that does not come answers nobody."""
        limit = opts if isinstance(opts, timedelta) else getattr(opts, "timeout", timeout)
        if limit is None or limit < timedelta(0):
            limit = self._engine.timeout
        engine = self._engine
        entry = engine.note("monitored_barrier")
        deadline = time.monotonic() + limit.total_seconds()
        try:
            if engine.rank == 0:
                self._let_pass(deadline, limit, wait_all_ranks)
            else:
                self._pass(deadline, limit)
        except BaseException as error:
            entry.end(error)
            raise
        entry.end(None)

    # Rank 0 takes back the 1 that each other rank adds to a number of its own: so nothing is left for the
    # next barrier, nor for the group that uses this store next. If that rank's time was over before, and it
    # took its 1 back, a -1 is left. Only that rank makes up for it, when it comes next: it waits for 0, so it
    # must not see that the number is 0 in between.
    def _waits(self, rank: int, number: int = 0) -> int:
        return int(self._store.add(f"{NAME}/barrier/{rank}", number))

    def _comes(self, rank: int, deadline: float) -> bool:
        return becomes(lambda: self._waits(rank) > 0, deadline)

    def _let_pass(self, deadline: float, limit: timedelta, wait_all_ranks: bool) -> None:
        missing: List[int] = []
        for rank in range(1, self._engine.size):
            if missing and not wait_all_ranks:
                break
            if not missing and time.monotonic() >= deadline:
                raise RuntimeError(f"Rank 0 timed out in monitoredBarrier after "
                                   f"{milliseconds(limit)} ms, before rank {rank} was asked")
            if not self._comes(rank, deadline):
                missing.append(rank)
        if missing:
            who = "Ranks " if wait_all_ranks else "Rank "
            raise RuntimeError(f"{who}{', '.join(map(str, missing))} failed to pass "
                               f"monitoredBarrier in {milliseconds(limit)} ms")
        left = [rank for rank in range(1, self._engine.size) if self._waits(rank, -1) < 0]
        if left:
            raise RuntimeError(f"Ranks {', '.join(map(str, left))} failed to pass monitoredBarrier: they "
                               f"came, and their time was over before all had come")

    def _pass(self, deadline: float, limit: timedelta) -> None:
        rank = self._engine.rank
        while self._waits(rank, 1) <= 0:
            pass
        passes = False
        try:
            passes = becomes(lambda: self._waits(rank) == 0, deadline)
        finally:
            # Less than 0: rank 0 has let this one pass just now.
            if not passes and self._waits(rank, -1) < 0:
                self._waits(rank, 1)
                passes = True
        if not passes:
            # In the words that PyTorch's users, and tests, look for.
            raise RuntimeError(f"Rank {rank} successfully reached monitoredBarrier, but received "
                               f"errors while waiting for send/recv from rank 0: it let nobody pass "
                               f"in {milliseconds(limit)} ms")

    # -- Groups made of this one -------------------------------------------------------------

    @property
    def supports_splitting(self) -> bool:
        """True: see split()."""
        return True

    @property
    def supports_shrinking(self) -> bool:
        """True: see shrink()."""
        return True

    def _child(self, function: Any, arguments: Sequence[Any],
               timeout: timedelta) -> Optional[Engine]:
        """An Engine of the communicator that `function` makes of this group's; None if it makes
        none here."""
        engine = self._engine
        entry = engine.note(function.__name__)
        try:
            with engine.lock:
                comm = make(entry.call, function, (engine.comm, *arguments), timeout)
        except BaseException as error:
            entry.end(error)
            raise
        entry.end(None)
        if comm is None:
            return None
        rank, size = ctypes.c_int(), ctypes.c_int()
        for ask, out in ((_c.tutti_comm_rank, rank), (_c.tutti_comm_count, size)):
            status = ask(comm, ctypes.byref(out))
            if status < 0:
                raise error_of(status, "split_group")
        return Engine(comm, rank.value, size.value, timeout, f"{engine.name}:child", TITLE)

    def _split(self, ranks: Sequence[int], timeout: timedelta) -> Optional[Engine]:
        mine = self._engine.rank
        here = mine in ranks
        return self._child(_c.tutti_comm_split,
                           (min(ranks) if here else _c.TUTTI_NOCOLOR,
                            list(ranks).index(mine) if here else 0, OUT, CONFIG), timeout)

    def split(self, store: Any, ranks: Sequence[int], opts: Any) -> Optional["TuttiBackend"]:
        """Make a backend of some ranks, in the given order. All ranks call this, each with the
        ranks of its own new group."""
        engine = self._split(ranks, getattr(opts, "_timeout", self._engine.timeout))
        return None if engine is None else TuttiBackend(engine, store)

    def shrink(self, ranks_to_exclude: Sequence[int], shrink_flags: int = 0,
               opts_override: Any = None) -> "TuttiBackend":
        """Make a backend of the ranks that are left. With SHRINK_ABORT ranks that died are left
        out, too."""
        if shrink_flags and self._engine.comm is not None:
            # Any thread may do this, because one that waits in a call has the lock that shrinking
            # takes.
            status = _c.tutti_comm_revoke(self._engine.comm)
            if status < 0:
                raise error_of(status, "shrink_group", self._engine.comm)
        timeout = getattr(opts_override, "_timeout", self._engine.timeout)
        excluded = (ctypes.c_int * len(ranks_to_exclude))(*ranks_to_exclude)
        flag = _c.TUTTI_SHRINK_FAILED if shrink_flags else _c.TUTTI_SHRINK_DEFAULT
        engine = self._child(_c.tutti_comm_shrink,
                             (excluded, len(ranks_to_exclude), OUT, CONFIG, flag), timeout)
        if engine is None:
            raise BackendError("shrink_group: no communicator was made")
        # What dead ranks have left in the store does not belong to this one.
        return TuttiBackend(engine, c10d.PrefixStore(f"{NAME}/{engine.size}", self._store))


class TuttiBackend(_Group, _Backend):  # type: ignore[misc]
    """c10d's Backend on an Engine."""

    def __init__(self, engine: Engine, store: Any) -> None:
        _Backend.__init__(self, engine.rank, engine.size)
        self._adopt(engine, store)
        engine.owner = self

    # PyTorch asks for these without end unless they are said here. What it makes of a Backend's window
    # is of C++.
    supports_coalescing = supports_window = supports_reconfigure = False
    _supports_time_estimate = False

    @property
    def options(self) -> Any:
        """The backend's options: its deadline."""
        return _Backend.Options(NAME, self._engine.timeout)


def _make_default(group: Any, backend: TuttiBackend) -> None:
    kind = c10d.ProcessGroup.BackendType.CUSTOM
    group._register_backend(_CPU, kind, backend)
    group._set_default_backend(kind)


class _NamedGroup(c10d.ProcessGroup):  # type: ignore[misc]
    """A group that has no backends, where PyTorch 2 looks for the names of one."""

    group_name = group_desc = ""

    def _set_group_name(self, name: str) -> None:
        self.group_name = name

    def _set_group_desc(self, text: str) -> None:
        self.group_desc = text


_ProcessGroup: Any = c10d.ProcessGroup if HAS_BACKENDS else _NamedGroup


class TuttiGroup(_Group, _ProcessGroup):  # type: ignore[misc]
    """c10d's ProcessGroup on an Engine."""

    def __init__(self, engine: Engine, store: Any) -> None:
        if HAS_BACKENDS:
            c10d.ProcessGroup.__init__(self, store, engine.rank, engine.size)
            # PyTorch asks the backend of the device for the name of the group and the like.
            self._backend = TuttiBackend(engine, store)
            _make_default(self, self._backend)
        else:
            c10d.ProcessGroup.__init__(self, engine.rank, engine.size)
        self._adopt(engine, store)

    def split_group(self, new_ranks: Sequence[int], timeout: Optional[timedelta] = None,
                    opts: Any = None, group_name: Optional[str] = None,
                    group_desc: Optional[str] = None,
                    device_types: Any = None) -> Optional["TuttiGroup"]:
        """Make a group of some ranks. All ranks call this, each with the ranks of its own new
        group. A rank that is not in its list gets None."""
        if timeout is None:
            timeout = getattr(opts, "_timeout", self._engine.timeout)
        engine = self._split(new_ranks, timeout)
        if engine is None:
            return None
        group = TuttiGroup(engine, c10d.PrefixStore(f"{group_name}/", self._store))
        if group_name is not None:
            group._set_group_name(group_name)
        group._set_group_desc(group_desc or "undefined")
        return group


def shrink_group(ranks_to_exclude: Sequence[int], group: Optional[Any] = None, shrink_flags: int = 0,
                 pg_options: Any = None) -> Any:
    """As dist.shrink_group(), but DistributedDataParallel can use the group: PyTorch registers
    the backend as Gloo there, and calls it as if it were Gloo. RuntimeError: the group is not
    Tutti's."""
    engine_of(group)
    new = dist.shrink_group(list(ranks_to_exclude), group, shrink_flags, pg_options)
    _make_default(new, engine_of(new).owner)
    return new


def engine_of(group: Optional[Any] = None) -> Engine:
    """The Engine of a group, of the default group if it is None. RuntimeError: the group is not
    Tutti's, or there is none."""
    if group is None:
        group = dist.GroupMember.WORLD
    if not hasattr(group, "_engine") and hasattr(group, "_get_backend"):
        group = group._get_backend(_CPU)
    engine = getattr(group, "_engine", None)
    if engine is None:
        raise RuntimeError(f"{group} is no process group of Tutti's")
    return cast(Engine, engine)


def _world() -> Optional[Engine]:
    """The Engine of the default group, if that has one and is not lost."""
    try:
        engine = engine_of()
    except RuntimeError:
        return None
    return None if engine.get_error() is not None else engine


def _join(options: Any, name: str) -> int:
    """Make a communicator of the ranks of a new group from that of the default group. Only these
    ranks call it, so it works whether all ranks call new_group() or only these. If the default
    group is lost, or is not Tutti's, the communicator is a new one, made as that of the default
    group is."""
    world, ranks = _world(), list(options.global_ranks_in_group)
    if world is not None and len(ranks) == options.group_size:
        try:
            # A rank is in one of these calls at a time, unless its threads make groups at once.
            tag = zlib.crc32(name.encode()) >> 1
            comm = make("new_group", _c.tutti_comm_create_group,
                        (world.comm, (ctypes.c_int * len(ranks))(*ranks), len(ranks), tag, OUT,
                         CONFIG), options.timeout, name)
            assert comm is not None
            return comm
        except BackendError:
            if world.get_error() is None:
                raise
    return join(options.store, "tutti", options.group_rank, options.group_size, options.timeout,
                name)


def _engine_for(options: Any) -> Engine:
    name = str(getattr(options, "group_id", "") or "default")
    return Engine(_join(options, name), options.group_rank, options.group_size, options.timeout,
                  name, TITLE)


def create_group(options: Any, _backend_options: Any = None) -> TuttiGroup:
    """A group whose only backend is this one."""
    return TuttiGroup(_engine_for(options), options.store)


def create(options: Any, backend_options: Any = None) -> Any:
    """What PyTorch calls for a new group."""
    group = getattr(options, "process_group", None)
    if group is not None and group._get_backend_name() != "custom":
        return TuttiBackend(_engine_for(options), options.store)
    return create_group(options, backend_options)
