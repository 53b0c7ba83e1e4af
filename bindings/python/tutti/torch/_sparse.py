# SPDX-License-Identifier: BSD-3-Clause
"""Sums of sparse tensors: all gather what each has, and add it up."""
import ctypes
from typing import Any, List

import torch
import torch.distributed as dist

from .. import _c
from ._engine import Engine
from ._record import Entry
from ._types import move_of


# So that newer PyTorch does not warn that it trusts us.
_TRUSTED: Any = {} if torch.__version__.startswith("1.") else {"check_invariants": False}


def _all_gather_rows(engine: Engine, entry: Entry, rows: torch.Tensor,
                     numbers: List[int]) -> torch.Tensor:
    """The rows of all ranks, numbers[r] of rank r, one after the other."""
    kind, factor = move_of(rows)
    width = factor
    for size in rows.shape[1:]:
        width *= size
    out = torch.empty((sum(numbers),) + tuple(rows.shape[1:]), dtype=rows.dtype)
    counts = [number * width for number in numbers]
    begins = [sum(counts[:at]) for at in range(len(counts))]
    array = ctypes.c_size_t * len(counts)
    engine.run_now(entry, _c.tutti_all_gather_v, rows.data_ptr(), out.data_ptr(), array(*counts),
                   array(*begins), kind, engine.comm, None, held=(rows, out))
    return out


def all_reduce(engine: Engine, tensor: torch.Tensor, reduction: Any) -> None:
    """Replace the sparse `tensor` by the sum of all ranks'; `tensor` is coalesced afterwards."""
    if reduction != dist.ReduceOp.SUM:
        raise RuntimeError("allreduce: of sparse tensors there is only the sum: unsupported "
                           "reduction operation")
    # A tensor of inference mode can be read and written in that mode alone, and another outside of it.
    with torch.inference_mode(tensor.is_inference()), torch.no_grad():
        mine = tensor.detach().coalesce()
        indices, values = mine.indices().t().contiguous(), mine.values().contiguous()
        entry = engine.note("sparse_all_reduce", values.numel(), [mine])
        stored = (ctypes.c_int64 * engine.size)()
        own = ctypes.c_int64(values.shape[0])
        engine.run_now(entry, _c.tutti_all_gather, ctypes.addressof(own), ctypes.addressof(stored),
                       1, int(_c.tutti_type.TUTTI_INT64), engine.comm, None, held=(own, stored))
        numbers = list(stored)
        indices = _all_gather_rows(engine, entry, indices, numbers)
        values = _all_gather_rows(engine, entry, values, numbers)
        total = torch.sparse_coo_tensor(indices.t(), values, tensor.shape, **_TRUSTED).coalesce()
        tensor.copy_(total)
        entry.end(None)
