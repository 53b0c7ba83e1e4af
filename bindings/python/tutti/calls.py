# SPDX-License-Identifier: BSD-3-Clause
"""The calls of a communicator that move data."""
import ctypes
from typing import Any, Dict, NamedTuple, NoReturn, Optional, Sequence, Tuple

from . import _c, groups, interrupts
from .arrays import NAMES, SIZES, Place, read, type_of
from .errors import ArgumentError, UsageError, error_of
from .streams import Stream

#: The operators by their names.
OPS: Dict[Any, int] = {_c.tutti_op_name(op).decode(): int(op) for op in _c.tutti_op}
_NOTHING: Place = (0, 0, -1, None)


def op_number(op: Any) -> int:
    """The number of an operator, which is given by its name or as an object that has a number."""
    number = OPS.get(op)
    if number is None:
        if isinstance(op, str):
            raise ArgumentError(f"op is {op!r}: it is one of {', '.join(OPS)}")
        number = int(op.__index__())
    return number


def reproducible(op: Any) -> int:
    """The same operator, for a call whose result has the same bits however it is carried out."""
    return int(_c.tutti_op_reproducible(op_number(op)))


class Operator:
    """An operator of one communicator, which premul_sum() makes. All ranks make and destroy their
    operators in the same order."""

    def __init__(self, comm: "Calls", number: int) -> None:
        self._comm, self._number = comm, number

    def __index__(self) -> int:
        return self._number

    def destroy(self) -> None:
        self._comm._after(_c.tutti_op_destroy(self._number, self._comm._handle), None)


class Side(NamedTuple):
    """One side of a handoff. Each of these ranks holds, or gets, the whole vector, or (sharded) its
    part, as part() cuts it."""

    ranks: Sequence[int]
    sharded: bool = False


def part(count: int, n: int, index: int) -> slice:
    """The elements that part `index` of `n` parts of a vector of `count` elements has."""
    first, length = ctypes.c_size_t(), ctypes.c_size_t()
    _c.tutti_part(count, n, index, ctypes.byref(first), ctypes.byref(length))
    return slice(first.value, first.value + length.value)


def _sizes(values: Sequence[int]) -> Any:
    return (ctypes.c_size_t * len(values))(*values)


def _rows(place: Place, what: str, counts: Sequence[int], displs: Optional[Sequence[int]],
          size: int) -> Any:
    """Counts and displacements as the library takes them. They must be for this number of ranks
    and lie in the buffer. Without displacements each rank's elements follow those of the rank
    before."""
    if displs is None:
        displs, at = [], 0
        for count in counts:
            displs.append(at)
            at += count
    if len(counts) != size or len(displs) != size:
        raise ArgumentError(f"{len(counts)} counts and {len(displs)} displacements of {what}, of {size} ranks")
    for count, first in zip(counts, displs):
        if count < 0 or first < 0 or (count and first + count > place[1]):
            raise ArgumentError(f"{count} elements at {first} are not in {what}, which has {place[1]}")
    return _sizes(counts), _sizes(displs)


def _differ(one: Place, other: Place, name: str = "send", other_name: str = "recv",
            ratio: int = 1) -> NoReturn:
    if one[2] != other[2]:
        raise ArgumentError(f"{name} is of {NAMES[one[2]]}, {other_name} of {NAMES[other[2]]}: they must "
                            "be of one type")
    raise ArgumentError(f"{name} has {one[1]} elements, {other_name} {other[1]}: they must have " +
                        ("as many" if ratio == 1 else f"{ratio} times as many, for as many ranks"))


def _one_type(mine: Place, into: Place) -> int:
    if mine is not _NOTHING and into is not _NOTHING and mine[2] != into[2]:
        _differ(mine, into)
    return max(mine[2], into[2], 0)


def _share(place: Place, what: str, size: int) -> int:
    if place[1] % size:
        raise ArgumentError(f"{what} has {place[1]} elements, which is no multiple of {size} ranks")
    return place[1] // size


class Calls:
    """See Communicator."""

    size: int
    rank: int
    _handle: Optional[int]
    _held: Tuple[Place, ...] = ()

    def _after(self, status: int, stream: Optional[Stream], *places: Place) -> None:
        """Handle a call that has failed, or was only queued."""
        if status:
            self._hold(status, places)
            self._fail(status)
        if groups.is_open():
            groups.keep(self, stream, places)
        elif stream is not None:
            stream._keep(places)

    def _hold(self, status: int, places: Tuple[Place, ...]) -> None:
        """Keep the buffers of the call that lost the communicator as long as this object lives:
        other ranks may write to them until their calls have returned."""
        if status <= _c.TUTTI_STATUS_LOST and not self._held:
            self._held = places

    def _fail(self, status: int) -> NoReturn:
        # First, because an interrupted call may end with another rank's failure that came at the
        # same time.
        interrupts.reraise()
        if status == _c.tutti_status.TUTTI_AGAIN:
            raise KeyboardInterrupt
        if self._handle is None:
            raise UsageError("the communicator was destroyed")
        raise error_of(status, self._handle)

    # -- All ranks -------------------------------------------------------------------------

    def all_reduce(self, send: Any, recv: Any = None, op: Any = "sum", *,
                   stream: Optional[Stream] = None) -> None:
        """Combine all ranks' send on every rank: recv = op over all ranks of send. Without recv the
        result goes into send."""
        mine = read(send, "send", recv is None)
        into = mine if recv is None else read(recv, "recv", True)
        if mine[1] != into[1] or mine[2] != into[2]:
            _differ(mine, into)
        status = _c.tutti_all_reduce(mine[0], into[0], mine[1], mine[2], op_number(op), self._handle,
                                     stream and stream._handle)
        if status or stream or groups.n_open:
            self._after(status, stream, mine, into)

    def reduce(self, send: Any, recv: Any = None, op: Any = "sum", root: int = 0, *,
               stream: Optional[Stream] = None) -> None:
        """Combine all ranks' send on the root: recv = op over all ranks of send. Other ranks need
        no recv. Without recv on the root the result goes into send."""
        at_root = self.rank == root
        mine = read(send, "send", at_root and recv is None)
        into = mine if recv is None or not at_root else read(recv, "recv", True)
        if mine[1] != into[1] or mine[2] != into[2]:
            _differ(mine, into)
        self._after(_c.tutti_reduce(mine[0], into[0], mine[1], mine[2], op_number(op), root,
                                    self._handle, stream and stream._handle), stream, mine, into)

    def broadcast(self, send: Any, recv: Any = None, root: int = 0, *,
                  stream: Optional[Stream] = None) -> None:
        """Give every rank the root's send, in recv. Without recv, send is written on all ranks but
        the root."""
        if recv is None:
            mine = into = read(send, "send", self.rank != root)
        else:
            into = read(recv, "recv", True)
            mine = read(send, "send", False) if self.rank == root else into
        if mine[1] != into[1] or mine[2] != into[2]:
            _differ(mine, into)
        self._after(_c.tutti_broadcast(mine[0], into[0], mine[1], mine[2], root, self._handle,
                                       stream and stream._handle), stream, mine, into)

    def all_gather(self, send: Any, recv: Any = None, *, stream: Optional[Stream] = None) -> None:
        """Give every rank all ranks' send, one after the other, in recv. Without recv, send is the
        whole buffer, in which this rank has filled its part."""
        mine, into = self._part_and_whole(send, recv, "send", "recv")
        self._after(_c.tutti_all_gather(mine[0], into[0], mine[1], mine[2], self._handle,
                                        stream and stream._handle), stream, mine, into)

    def reduce_scatter(self, send: Any, recv: Any = None, op: Any = "sum", *,
                       stream: Optional[Stream] = None) -> None:
        """Combine all ranks' send and give each rank its part: recv = op over all ranks of this
        rank's part of send. Without recv the result goes into that part of send."""
        into, mine = self._part_and_whole(recv, send, "recv", "send", recv is None)
        self._after(_c.tutti_reduce_scatter(mine[0], into[0], into[1], mine[2], op_number(op),
                                            self._handle, stream and stream._handle), stream, mine, into)

    def all_to_all(self, send: Any, recv: Any = None, *, stream: Optional[Stream] = None) -> None:
        """Exchange a part with each rank: part r of recv = this rank's part of rank r's send.
        Without recv it works in place."""
        mine = read(send, "send", recv is None)
        into = mine if recv is None else read(recv, "recv", True)
        if mine[1] != into[1] or mine[2] != into[2]:
            _differ(mine, into)
        self._after(_c.tutti_all_to_all(mine[0], into[0], _share(mine, "send", self.size), mine[2],
                                        self._handle, stream and stream._handle), stream, mine, into)

    def gather(self, send: Any, recv: Any = None, root: int = 0, *,
               stream: Optional[Stream] = None) -> None:
        """Collect all ranks' send on the root, one after the other, in recv. If the root's send is
        None, its part is in recv already."""
        if self.rank == root:
            mine, into = (self._part_and_whole(recv, None, "recv", "") if send is None else
                          self._part_and_whole(send, recv, "send", "recv"))
        else:
            mine = into = read(send, "send", False)
        self._after(_c.tutti_gather(mine[0], into[0], mine[1], mine[2], root, self._handle,
                                    stream and stream._handle), stream, mine, into)

    def scatter(self, send: Any, recv: Any = None, root: int = 0, *,
                stream: Optional[Stream] = None) -> None:
        """Give each rank its part of the root's send, in recv. Without recv on the root, its part
        stays in send."""
        if self.rank == root:
            into, mine = self._part_and_whole(recv, send, "recv", "send", False)
        else:
            into = mine = read(recv, "recv", True)
        self._after(_c.tutti_scatter(mine[0], into[0], into[1], into[2], root, self._handle,
                                     stream and stream._handle), stream, mine, into)

    def barrier(self, *, stream: Optional[Stream] = None) -> None:
        """Wait until all ranks have called it."""
        self._after(_c.tutti_barrier(self._handle, stream and stream._handle), stream)

    def premul_sum(self, scalar: Any) -> Operator:
        """The operator of a sum in which each rank's input is multiplied by its scalar: an array of
        one element, of the type of the calls with it."""
        place = read(scalar, "scalar", False)
        if place[1] != 1:
            raise ArgumentError(f"scalar has {place[1]} elements: it is one")
        number = ctypes.c_int()
        self._after(_c.tutti_op_create_premul_sum(ctypes.byref(number), place[0], place[2],
                                                  _c.tutti_scalar_when.TUTTI_SCALAR_NOW, self._handle),
                    None)
        return Operator(self, number.value)

    def _part_and_whole(self, part: Any, whole: Any, part_name: str, whole_name: str,
                        whole_is_written: bool = True) -> Tuple[Place, Place]:
        """A buffer for one rank's part and one for all parts. If only one is given, it is that for
        all, in place."""
        if part is None or whole is None:
            all_of_it = read(whole if part is None else part, whole_name or part_name, whole_is_written)
            share = _share(all_of_it, whole_name or part_name, self.size)
            at = all_of_it[0] + self.rank * share * SIZES[all_of_it[2]]
            return (at, share, all_of_it[2], all_of_it[3]), all_of_it
        one = read(part, part_name, part_name == "recv")
        everyone = read(whole, whole_name, whole_name == "recv")
        if one[1] * self.size != everyone[1] or one[2] != everyone[2]:
            _differ(one, everyone, part_name, whole_name, self.size)
        return one, everyone

    def _buffers(self, name: str, send: Any, recv: Any, root: int) -> Tuple[Place, Place, int]:
        """The buffers and the count of the call `name`."""
        if name == "all_gather":
            mine, into = self._part_and_whole(send, recv, "send", "recv")
            return mine, into, mine[1]
        if name == "reduce_scatter":
            into, mine = self._part_and_whole(recv, send, "recv", "send", recv is None)
            return mine, into, into[1]
        mine = read(send, "send", recv is None and (name != "broadcast" or self.rank != root))
        into = mine if recv is None else read(recv, "recv", True)
        if mine[1] != into[1] or mine[2] != into[2]:
            _differ(mine, into)
        return mine, into, _share(mine, "send", self.size) if name == "all_to_all" else mine[1]

    # -- A count for each rank ----------------------------------------------------------------

    def all_to_all_v(self, send: Any, send_counts: Sequence[int], recv: Any,
                     recv_counts: Sequence[int], *, send_displs: Optional[Sequence[int]] = None,
                     recv_displs: Optional[Sequence[int]] = None,
                     stream: Optional[Stream] = None) -> None:
        """all_to_all() with counts: send_counts[r] elements from send_displs[r] go to rank r, and
        recv_counts[r] come from it."""
        mine, into = read(send, "send", False), read(recv, "recv", True)
        if mine[2] != into[2]:
            _differ(mine, into)
        self._after(_c.tutti_all_to_all_v(
            mine[0], *_rows(mine, "send", send_counts, send_displs, self.size), into[0],
            *_rows(into, "recv", recv_counts, recv_displs, self.size), mine[2], self._handle,
            stream and stream._handle), stream, mine, into)

    def gather_v(self, send: Any, recv: Any = None, counts: Sequence[int] = (),
                 displs: Optional[Sequence[int]] = None, root: int = 0, *,
                 stream: Optional[Stream] = None) -> None:
        """gather() of counts[r] elements of rank r. Only the root passes recv, counts and displs."""
        mine = read(send, "send", False)
        into, rows = mine, (None, None)
        if self.rank == root:
            into = read(recv, "recv", True)
            rows = _rows(into, "recv", counts, displs, self.size)
        self._after(_c.tutti_gather_v(mine[0], mine[1], into[0], *rows, mine[2], root, self._handle,
                                      stream and stream._handle), stream, mine, into)

    def scatter_v(self, send: Any, recv: Any, counts: Sequence[int] = (),
                  displs: Optional[Sequence[int]] = None, root: int = 0, *,
                  stream: Optional[Stream] = None) -> None:
        """scatter() of counts[r] elements for rank r. Only the root passes send, counts and displs."""
        into = read(recv, "recv", True)
        mine, rows = into, (None, None)
        if self.rank == root:
            mine = read(send, "send", False)
            rows = _rows(mine, "send", counts, displs, self.size)
        self._after(_c.tutti_scatter_v(mine[0], *rows, into[0], into[1], into[2], root, self._handle,
                                       stream and stream._handle), stream, mine, into)

    def all_gather_v(self, send: Any, recv: Any, counts: Sequence[int],
                     displs: Optional[Sequence[int]] = None, *,
                     stream: Optional[Stream] = None) -> None:
        """all_gather() of counts[r] elements of rank r. If send is None, they are in recv already."""
        into = read(recv, "recv", True)
        rows = _rows(into, "recv", counts, displs, self.size)
        if send is None:
            mine = (into[0] + rows[1][self.rank] * SIZES[into[2]], counts[self.rank], into[2], into[3])
        else:
            mine = read(send, "send", False)
        if mine[1] != counts[self.rank] or mine[2] != into[2]:
            _differ(mine, (0, counts[self.rank], into[2], None), "send", "this rank's part of recv")
        self._after(_c.tutti_all_gather_v(mine[0], into[0], *rows, mine[2], self._handle,
                                          stream and stream._handle), stream, mine, into)

    def reduce_scatter_v(self, send: Any, recv: Any, counts: Sequence[int], op: Any = "sum", *,
                         stream: Optional[Stream] = None) -> None:
        """reduce_scatter() with counts[r] elements for rank r. If recv is None, the result goes
        into this rank's part of send."""
        mine = read(send, "send", recv is None)
        sizes, displs = _rows(mine, "send", counts, None, self.size)
        if recv is None:
            into = (mine[0] + displs[self.rank] * SIZES[mine[2]], counts[self.rank], mine[2], mine[3])
        else:
            into = read(recv, "recv", True)
        if into[1] != counts[self.rank] or into[2] != mine[2]:
            _differ(into, (0, counts[self.rank], mine[2], None), "recv", "this rank's part of send")
        self._after(_c.tutti_reduce_scatter_v(mine[0], into[0], sizes, mine[2], op_number(op),
                                              self._handle, stream and stream._handle),
                    stream, mine, into)

    # -- Some ranks ------------------------------------------------------------------------------

    def send(self, send: Any, peer: int, *, stream: Optional[Stream] = None) -> None:
        """Send to one rank, which receives as many elements of the same type."""
        mine = read(send, "send", False)
        self._after(_c.tutti_send(mine[0], mine[1], mine[2], peer, self._handle,
                                  stream and stream._handle), stream, mine)

    def recv(self, recv: Any, peer: int, *, stream: Optional[Stream] = None) -> None:
        """Receive from one rank what it sends."""
        into = read(recv, "recv", True)
        self._after(_c.tutti_recv(into[0], into[1], into[2], peer, self._handle,
                                  stream and stream._handle), stream, into)

    def send_recv(self, send: Any, to: Optional[int], recv: Any, from_: Optional[int], *,
                  stream: Optional[Stream] = None) -> None:
        """Send and receive at once, which cannot deadlock. A rank of None: no send, or no receive."""
        mine = _NOTHING if to is None else read(send, "send", False)
        into = _NOTHING if from_ is None else read(recv, "recv", True)
        self._after(_c.tutti_send_recv(mine[0], mine[1], -1 if to is None else to, into[0], into[1],
                                       -1 if from_ is None else from_, _one_type(mine, into),
                                       self._handle, stream and stream._handle), stream, mine, into)

    def handoff(self, send: Any, recv: Any, source: Side, target: Side, *, count: int, dtype: Any,
                stream: Optional[Stream] = None) -> None:
        """Hand a vector of `count` elements of `dtype` from the ranks of one side to those of
        the other. All ranks call it. A rank that is not on a side passes None for that side's
        buffer."""
        kind = type_of(dtype)
        mine = self._on_side(send, "send", source, count, kind)
        into = self._on_side(recv, "recv", target, count, kind)
        sides = [_c.tutti_side((ctypes.c_int * len(side.ranks))(*side.ranks), len(side.ranks),
                               side.sharded) for side in (source, target)]
        self._after(_c.tutti_handoff(mine[0], into[0], count, kind, ctypes.byref(sides[0]),
                                     ctypes.byref(sides[1]), self._handle, stream and stream._handle),
                    stream, mine, into)

    def _on_side(self, buffer: Any, what: str, side: Side, count: int, kind: int) -> Place:
        if self.rank not in side.ranks:
            return _NOTHING
        place = read(buffer, what, what == "recv")
        if side.sharded:
            mine = part(count, len(side.ranks), list(side.ranks).index(self.rank))
            count = mine.stop - mine.start
        if place[1] != count or place[2] != kind:
            _differ(place, (0, count, kind, None), what, "this rank's part of the vector")
        return place
