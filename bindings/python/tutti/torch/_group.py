# SPDX-License-Identifier: BSD-3-Clause
"""The operations of c10d, as calls of the library."""
import ctypes
from datetime import timedelta
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import torch
from torch._C import _distributed_c10d as c10d

from .. import _c
from . import _sparse
from ._engine import Engine
from ._record import Entry
from ._types import (Places, check_alike, check_root, dense, land, landing, move_of,
                     only, operator_of, scalar_of)
from ._work import Work, finished

Tensors = List[torch.Tensor]


def _options(kind: type, given: Any, timeout: Optional[timedelta] = None, **fields: Any) -> Any:
    """Return `given` if it has the options already, as in most calls; else options with these
    fields, as PyTorch's shorter forms of calls mean them."""
    if isinstance(given, kind):
        return given
    options = kind()
    if timeout is None and isinstance(given, timedelta):
        timeout = given
    if timeout is not None:
        options.timeout = timeout
    for name, value in fields.items():
        if value is not None:
            setattr(options, name, value)
    return options


def _as_list(tensors: Any) -> Any:
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def _sizes(numbers: Sequence[int]) -> Any:
    return (ctypes.c_size_t * len(numbers))(*numbers)


class Operations:
    """Every collective of c10d on an Engine. Each may be called as PyTorch's own groups are: with
    lists and options, or shorter."""

    _engine: Engine

    # -- Reductions ---------------------------------------------------------------------------

    def _reduce(self, entry: Entry, function: Any, arguments: Tuple[Any, ...], like: torch.Tensor,
                options: Any, outputs: Tensors, held: Any, after: Any) -> Work:
        """Run a reduction. `arguments` has None in the places of type and operator."""
        engine = self._engine
        kind, operator, factor = operator_of(like, options.reduceOp)
        at = arguments.index(None, 2)
        if factor is None:
            full = arguments[:at] + (kind, operator) + arguments[at + 1:]
            return engine.run(entry, function, full, options, outputs, held, after)
        scalar, made = scalar_of(factor, like), ctypes.c_int()
        engine.run_now(entry, _c.tutti_op_create_premul_sum, ctypes.byref(made), scalar.data_ptr(),
                       kind, int(_c.tutti_scalar_when.TUTTI_SCALAR_NOW), engine.comm)
        full = arguments[:at] + (kind, made.value) + arguments[at + 1:]
        try:
            return engine.run(entry, function, full, options, outputs, held, after)
        finally:
            engine.run_now(entry, _c.tutti_op_destroy, made.value, engine.comm)

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Optional[timedelta] = None,
                  op: Any = None) -> Work:
        """Combine the tensors of all ranks, in place."""
        tensors = _as_list(tensors)
        opts = _options(c10d.AllreduceOptions, opts, timeout, reduceOp=op or opts)
        if len(tensors) == 1 and tensors[0].layout == torch.sparse_coo:
            return self.allreduce_sparse(tensors, opts)
        tensor = only(tensors, "allreduce")
        place = dense(tensor)
        address, count = place.data_ptr(), place.numel()
        return self._reduce(self._engine.note("all_reduce", count, tensors),
                            _c.tutti_all_reduce, (address, address, count, None), tensor, opts,
                            tensors, place,
                            None if place is tensor else lambda: land(place, tensor))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        """Combine several tensors in one call."""
        if not tensors:
            raise RuntimeError("allreduce_coalesced: requires non-empty tensor list")
        opts = _options(c10d.AllreduceCoalescedOptions, opts)
        check_alike(tensors, tensors[0], "allreduce_coalesced", sizes=False)
        places = Places(tensors, packed=True, reads=True)
        count = sum(places.counts)
        return self._reduce(self._engine.note("all_reduce", count, tensors),
                            _c.tutti_all_reduce, (places.address, places.address, count, None),
                            tensors[0], opts, tensors, places, places.unpack)

    def allreduce_sparse(self, tensors: Tensors, opts: Any = None) -> Work:
        """Sum sparse tensors. It is done when it returns, whatever the options say, because only a
        first exchange tells how much there is to send."""
        opts = _options(c10d.AllreduceOptions, opts)
        _sparse.all_reduce(self._engine, tensors[0], opts.reduceOp)
        return self._engine.keep(finished(self._engine, tensors))

    def reduce(self, tensors: Any, opts: Any = None, op: Any = None,
               timeout: Optional[timedelta] = None, root: Optional[int] = None) -> Work:
        """Combine the tensors of all ranks into that of the root."""
        tensors = _as_list(tensors)
        root = opts if isinstance(opts, int) else root
        opts = _options(c10d.ReduceOptions, opts, timeout, rootRank=root, reduceOp=op)
        tensor = only(tensors, "reduce")
        root = check_root(opts.rootRank, self._engine.size, "reduce")
        check_root(opts.rootTensor, 1, "reduce: root tensor")
        here = root == self._engine.rank
        place = dense(tensor)
        count = place.numel()
        return self._reduce(self._engine.note("reduce", count, tensors, root),
                            _c.tutti_reduce,
                            (place.data_ptr(), place.data_ptr() if here else 0, count, None, root),
                            tensor, opts, tensors, place,
                            (lambda: land(place, tensor)) if here and place is not tensor else None)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None,
                       timeout: Optional[timedelta] = None, op: Any = None) -> Work:
        """Combine lists of tensors. Each rank gets the result for its place in the list."""
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        opts = _options(c10d.ReduceScatterOptions, opts, timeout, reduceOp=op or opts)
        output = only(outputs, "reduce_scatter")
        engine = self._engine
        if len(inputs) != 1 or len(inputs[0]) != engine.size:
            raise RuntimeError(f"reduce_scatter: invalid input tensor list: it must have "
                               f"{engine.size} tensors")
        check_alike(inputs[0], output, "reduce_scatter", sizes=False)
        if inputs[0][engine.rank].numel() != output.numel():
            raise RuntimeError("reduce_scatter: invalid tensor size: what this rank gets is not of "
                               "the size of the output")
        places, place = Places(inputs[0], packed=True, reads=True), landing(output)
        entry = engine.note("reduce_scatter", sum(places.counts), inputs[0])
        after = None if place is output else lambda: land(place, output)
        if len(set(places.counts)) == 1:
            return self._reduce(entry, _c.tutti_reduce_scatter,
                                (places.address, place.data_ptr(), place.numel(), None), output,
                                opts, outputs, (places, place), after)
        return self._reduce(entry, _c.tutti_reduce_scatter_v,
                            (places.address, place.data_ptr(), _sizes(places.counts), None),
                            output, opts, outputs, (places, place), after)

    def reduce_scatter_single(self, output: torch.Tensor, source: torch.Tensor,
                              opts: Any = None) -> Work:
        """Combine tensors. Each rank gets its part of the result."""
        return self.reduce_scatter_single_coalesced([output], [source], opts)

    def reduce_scatter_single_coalesced(self, outputs: Tensors, inputs: Tensors,
                                        opts: Any = None) -> Work:
        """reduce_scatter_single() of several tensors."""
        opts = _options(c10d.ReduceScatterOptions, opts)
        works = [self._reduce(
            entry, _c.tutti_reduce_scatter, (given.data_ptr(), place.data_ptr(), place.numel(), None),
            output, opts, outputs, (place, given), _lander(place, output))
            for entry, output, place, given in self._singles("reduce_scatter", outputs, inputs, False)]
        # The last one of calls in a row is done last.
        return works[-1]

    def _singles(self, call: str, outputs: Tensors, inputs: Tensors,
                 gathers: bool) -> Iterator[Tuple[Entry, torch.Tensor, torch.Tensor, torch.Tensor]]:
        """For each part of a coalesced call its entry, its output, where to receive, and what to
        send. One has as many elements as the other times the number of ranks."""
        engine = self._engine
        names = ("output", "input") if gathers else ("input", "output")
        for output, source in zip(outputs, inputs):
            whole, part = (output, source) if gathers else (source, output)
            check_alike([whole], part, call, sizes=False)
            if whole.numel() != part.numel() * engine.size:
                raise RuntimeError(f"{call}: the {names[0]} tensor must have as many elements as the "
                                   f"{names[1]} tensor times the number of ranks")
        entries = engine.parts(engine.note(call, sum(map(torch.numel, inputs)), inputs), len(inputs))
        for entry, output, source in zip(entries, outputs, inputs):
            yield entry, output, landing(output), dense(source)

    # -- One gives, or gets ----------------------------------------------------------------------

    def broadcast(self, tensors: Any, opts: Any = None, timeout: Optional[timedelta] = None,
                  root: Optional[int] = None) -> Work:
        """Give the tensor of the root to all ranks."""
        tensors = _as_list(tensors)
        root = opts if isinstance(opts, int) else root
        opts = _options(c10d.BroadcastOptions, opts, timeout, rootRank=root)
        tensor = only(tensors, "broadcast")
        engine = self._engine
        root = check_root(opts.rootRank, engine.size, "broadcast")
        check_root(opts.rootTensor, 1, "broadcast: root tensor")
        here = root == engine.rank
        place = dense(tensor) if here else landing(tensor)
        kind, factor = move_of(tensor)
        count = place.numel() * factor
        return engine.run(engine.note("broadcast", count, tensors, root), _c.tutti_broadcast,
                          (place.data_ptr(), place.data_ptr(), count, kind, root), opts, tensors,
                          place, None if here else _lander(place, tensor))

    def gather(self, outputs: Any, inputs: Any, opts: Any = None,
               timeout: Optional[timedelta] = None, root: Optional[int] = None) -> Work:
        """Collect the tensors of all ranks on the root, in a tensor for each."""
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs] if outputs else [], [inputs]
        root = opts if isinstance(opts, int) else root
        opts = _options(c10d.GatherOptions, opts, timeout, rootRank=root)
        source = only(inputs, "gather")
        engine = self._engine
        root = check_root(opts.rootRank, engine.size, "gather")
        here = root == engine.rank
        if not here and outputs and outputs[0]:
            raise RuntimeError("gather: requires empty output on non-root")
        if here and (len(outputs) != 1 or len(outputs[0]) != engine.size):
            raise RuntimeError(f"gather: Incorrect output list size: the root must give one "
                               f"list of {engine.size} tensors")
        given = dense(source)
        kind, factor = move_of(source)
        count = given.numel() * factor
        entry = engine.note("gather", count, [source], root)
        if not here:
            return engine.run(entry, _c.tutti_gather_v,
                              (given.data_ptr(), count, None, None, None, kind, root), opts, [],
                              given)
        check_alike(outputs[0], source, "gather")
        places = Places(outputs[0], packed=False, reads=False)
        return engine.run(entry, _c.tutti_gather_v,
                          (given.data_ptr(), count, places.address, _sizes(places.counts),
                           _sizes(places.displacements), kind, root), opts, outputs[0],
                          (given, places), places.unpack)

    def gather_single(self, output: torch.Tensor, source: torch.Tensor, opts: Any = None) -> Work:
        """Collect the tensors of all ranks on the root, one after the other in one tensor."""
        opts = _options(c10d.GatherOptions, opts)
        engine = self._engine
        root = check_root(opts.rootRank, engine.size, "gather")
        here = root == engine.rank
        check_alike([output] if here else [], source, "gather", sizes=False)
        if here and output.numel() != source.numel() * engine.size:
            raise RuntimeError("gather: the output tensor must have as many elements as the input "
                               "tensor times the number of ranks")
        given, place = dense(source), landing(output) if here else source
        kind, factor = move_of(source)
        count = given.numel() * factor
        return engine.run(engine.note("gather", count, [source], root), _c.tutti_gather,
                          (given.data_ptr(), place.data_ptr() if here else 0, count, kind, root),
                          opts, [output] if here else [], (given, place),
                          _lander(place, output) if here else None)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None,
                timeout: Optional[timedelta] = None, root: Optional[int] = None) -> Work:
        """Give each rank its tensor of the root's list."""
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs] if inputs else []
        root = opts if isinstance(opts, int) else root
        opts = _options(c10d.ScatterOptions, opts, timeout, rootRank=root)
        output = only(outputs, "scatter")
        engine = self._engine
        root = check_root(opts.rootRank, engine.size, "scatter")
        here = root == engine.rank
        if not here and inputs and inputs[0]:
            raise RuntimeError("scatter: requires empty input on non-root")
        if here and (len(inputs) != 1 or len(inputs[0]) != engine.size):
            raise RuntimeError(f"scatter: Incorrect input list size: the root must give one list "
                               f"of {engine.size} tensors")
        place = landing(output)
        kind, factor = move_of(output)
        count = place.numel() * factor
        entry = engine.note("scatter", count, inputs[0] if here else outputs, root)
        if not here:
            return engine.run(entry, _c.tutti_scatter_v,
                              (None, None, None, place.data_ptr(), count, kind, root), opts,
                              outputs, place, _lander(place, output))
        check_alike(inputs[0], output, "scatter")
        places = Places(inputs[0], packed=False, reads=True)
        return engine.run(entry, _c.tutti_scatter_v,
                          (places.address, _sizes(places.counts), _sizes(places.displacements),
                           place.data_ptr(), count, kind, root), opts, outputs, (place, places),
                          _lander(place, output))

    # -- All give and get --------------------------------------------------------------------------

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None,
                  timeout: Optional[timedelta] = None) -> Work:
        """Give all ranks the tensors of all ranks, in a tensor for each; their sizes may differ."""
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        opts = _options(c10d.AllgatherOptions, opts, timeout)
        source = only(inputs, "allgather")
        engine = self._engine
        if len(outputs) != 1 or len(outputs[0]) != engine.size:
            raise RuntimeError(f"allgather: invalid output tensor list: it must have one list of "
                               f"{engine.size} tensors")
        check_alike(outputs[0], source, "allgather", sizes=False)
        if outputs[0][engine.rank].numel() != source.numel():
            raise RuntimeError("allgather: invalid tensor size: the output for this rank's input "
                               "is not of its size")
        entry = engine.note("all_gather", sum(map(torch.numel, outputs[0])), inputs)
        return self._all_gather(entry, outputs[0], source, opts)

    def _all_gather(self, entry: Entry, outputs: Tensors, source: torch.Tensor,
                    opts: Any) -> Work:
        engine = self._engine
        given, places = dense(source), Places(outputs, packed=False, reads=False)
        return engine.run(entry, _c.tutti_all_gather_v,
                          (given.data_ptr(), places.address, _sizes(places.counts),
                           _sizes(places.displacements), places.move.type), opts, outputs,
                          (given, places), places.unpack)

    def allgather_coalesced(self, outputs: List[Tensors], inputs: Tensors,
                            opts: Any = None) -> Work:
        """Give all ranks several tensors of all ranks: outputs[r] are those of rank r."""
        opts = _options(c10d.AllgatherOptions, opts)
        if not inputs:
            raise RuntimeError("allgather_coalesced: requires non-empty input tensor list")
        if len(outputs) != self._engine.size:
            raise RuntimeError("allgather_coalesced: output lists should be equal to world size")
        for row in outputs:
            if len(row) != len(inputs):
                raise RuntimeError(f"allgather_coalesced: invalid output size: (expected length "
                                   f"{len(inputs)}, got {len(row)})")
            for output, source in zip(row, inputs):
                check_alike([output], source, "allgather_coalesced")
        engine = self._engine
        parts = engine.parts(engine.note("all_gather", sum(map(torch.numel, inputs)), inputs),
                             len(inputs))
        works = [self._all_gather(entry, [row[at] for row in outputs], source, opts)
                 for at, (entry, source) in enumerate(zip(parts, inputs))]
        return works[-1]

    def all_gather_single(self, output: torch.Tensor, source: torch.Tensor,
                          opts: Any = None) -> Work:
        """Give all ranks the tensors of all ranks, one after the other in one tensor."""
        return self.all_gather_single_coalesced([output], [source], opts)

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors,
                                    opts: Any = None) -> Work:
        """all_gather_single() of several tensors."""
        opts = _options(c10d.AllgatherOptions, opts)
        works = []
        for entry, output, place, given in self._singles("all_gather", outputs, inputs, True):
            kind, factor = move_of(given)
            works.append(self._engine.run(
                entry, _c.tutti_all_gather,
                (given.data_ptr(), place.data_ptr(), given.numel() * factor, kind), opts, outputs,
                (place, given), _lander(place, output)))
        return works[-1]

    def all_to_all_single(self, output: torch.Tensor, source: torch.Tensor,
                          output_split_sizes: Sequence[int] = (),
                          input_split_sizes: Sequence[int] = (), opts: Any = None,
                          timeout: Optional[timedelta] = None) -> Work:
        """Give each rank its part of the tensor. Splits are in rows; without them the parts are
        equal."""
        opts = _options(c10d.AllToAllOptions, opts, timeout)
        engine = self._engine
        check_alike([output], source, "all_to_all", sizes=False)
        kind, factor = move_of(source)
        sent = self._splits(source, input_split_sizes, factor)
        got = self._splits(output, output_split_sizes, factor)
        place, given = landing(output), dense(source)
        even = not output_split_sizes and not input_split_sizes
        if even and got != sent:
            raise RuntimeError(f"all_to_all: without split sizes the output tensor must have as many "
                               f"elements as the input tensor, {source.numel()}, not {output.numel()}")
        entry = engine.note("all_to_all", given.numel() * factor, [source])
        if even:
            return engine.run(entry, _c.tutti_all_to_all,
                              (given.data_ptr(), place.data_ptr(), sent[0][0], kind), opts,
                              [output], (place, given), _lander(place, output))
        return engine.run(entry, _c.tutti_all_to_all_v,
                          (given.data_ptr(), _sizes(sent[0]), _sizes(sent[1]), place.data_ptr(),
                           _sizes(got[0]), _sizes(got[1]), kind), opts, [output], (place, given),
                          _lander(place, output))

    def _splits(self, tensor: torch.Tensor, splits: Sequence[int],
                factor: int) -> Tuple[List[int], List[int]]:
        """How many elements of a tensor each rank has, and where they begin."""
        size = self._engine.size
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % size:
                raise RuntimeError("all_to_all: Tensor's dim 0 does not divide equally across "
                                   "group size")
            splits = [rows // size] * size
        if len(splits) != size:
            raise RuntimeError("all_to_all: Number of tensor splits not equal to group size")
        if sum(splits) != rows:
            raise RuntimeError("all_to_all: Split sizes doesn't match total dim 0 size")
        row = tensor.numel() // rows * factor if rows else 0
        counts = [split * row for split in splits]
        begins, at = [], 0
        for count in counts:
            begins.append(at)
            at += count
        return counts, begins

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None,
                 timeout: Optional[timedelta] = None) -> Work:
        """Give each rank its tensor of the list; their sizes may differ."""
        opts = _options(c10d.AllToAllOptions, opts, timeout)
        engine = self._engine
        if len(outputs) != engine.size or len(inputs) != engine.size:
            raise RuntimeError("all_to_all: the lists must have as many tensors as the group has "
                               "ranks")
        check_alike(inputs + outputs, inputs[0], "all_to_all", sizes=False)
        sent = Places(inputs, packed=False, reads=True)
        got = Places(outputs, packed=False, reads=False)
        return engine.run(engine.note("all_to_all", sum(sent.counts), inputs),
                          _c.tutti_all_to_all_v,
                          (sent.address, _sizes(sent.counts), _sizes(sent.displacements),
                           got.address, _sizes(got.counts), _sizes(got.displacements),
                           sent.move.type), opts, outputs, (sent, got), got.unpack)

    def barrier(self, opts: Any = None, timeout: Optional[timedelta] = None) -> Work:
        """Wait for all ranks."""
        opts = _options(c10d.BarrierOptions, opts, timeout)
        engine = self._engine
        return engine.run(engine.note("barrier"), _c.tutti_barrier, (), opts, [])

    # Older and newer names that PyTorch has for the same.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
    gather_into_tensor = gather_single


def _lander(place: torch.Tensor, tensor: torch.Tensor) -> Any:
    """The function to call after a call that wrote `place` for `tensor`, or None."""
    return None if place is tensor else lambda: land(place, tensor)
