# SPDX-License-Identifier: BSD-3-Clause
"""Every operation with every type: what comes out is what it should be, to the last bit."""
import unittest
from typing import Any, Callable, List

import torch
import torch.distributed as dist

import tutti.torch
from ranks import Ranks, raises, same
from torch._C import _distributed_c10d as c10d

_NAMES = """bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64
float8_e4m3fn float8_e5m2 complex64 complex128""".split()
TYPES = [getattr(torch, name) for name in _NAMES if hasattr(torch, name)]
# These are moved only.
OTHERS = [getattr(torch, name) for name in ("complex32", "float8_e4m3fnuz") if hasattr(torch, name)]
SIZES = [(5,), (2, 3), (70000,)]
OP = dist.ReduceOp


def of(rank: int, dtype: torch.dtype, shape: Any = (6,), most: int = 97) -> torch.Tensor:
    """What `rank` gives: whole numbers from 0 to `most`, that are exact in all types."""
    count = 1
    for size in shape:
        count *= size
    most = 2 if dtype == torch.bool else min(most, 8) if "float8" in str(dtype) else most
    return ((torch.arange(count) * 3 + rank * 7 + 1) % most).reshape(shape).to(dtype)


def zeros(like: torch.Tensor) -> torch.Tensor:
    return torch.zeros(like.shape).to(like.dtype)


def expected_of(name: str, dtype: torch.dtype, inputs: List[torch.Tensor]) -> torch.Tensor:
    """The reduction by PyTorch, in a type that has room."""
    integer = not (dtype.is_floating_point or dtype.is_complex)
    wide = torch.int64 if integer else torch.complex128 if dtype.is_complex else torch.float64
    rows = torch.stack([row.to(wide) for row in inputs])
    if name in ("BAND", "BOR", "BXOR"):
        out = rows[0]
        for row in rows[1:]:
            out = {"BAND": out & row, "BOR": out | row, "BXOR": out ^ row}[name]
        return out.to(dtype)
    if name == "AVG":
        total = rows.sum(0)
        return (torch.div(total, len(inputs), rounding_mode="trunc") if integer
                else total / len(inputs)).to(dtype)
    return {"SUM": lambda: rows.sum(0), "PRODUCT": lambda: rows.prod(0),
            "MIN": lambda: rows.amin(0), "MAX": lambda: rows.amax(0)}[name]().to(dtype)


def operators(dtype: torch.dtype) -> List[str]:
    """Those that make sense for a type."""
    if dtype.is_complex:  # PyTorch has no others
        return ["SUM", "AVG"]
    out = ["SUM", "PRODUCT", "MIN", "MAX"]
    if dtype.is_floating_point:
        return out + ["AVG"]
    return out + ["BAND", "BOR", "BXOR"] + ([] if dtype == torch.bool else ["AVG"])


# On 2 and 4 ranks averages of small whole numbers are exact.
def for_each_reduction(n: int, check: Callable[[torch.dtype, str], None]) -> None:
    for dtype in TYPES:
        for name in operators(dtype):
            if name != "AVG" or n != 3 or not (dtype.is_floating_point or dtype.is_complex):
                check(dtype, name)


def all_reduce(rank: int, n: int) -> None:
    def check(dtype: torch.dtype, name: str) -> None:
        inputs = [of(r, dtype, most=3) for r in range(n)]
        mine = inputs[rank].clone()
        dist.all_reduce(mine, op=getattr(OP, name))
        same(mine, expected_of(name, dtype, inputs), (dtype, name))

    for_each_reduction(n, check)
    for shape in SIZES:
        inputs = [of(r, torch.float32, shape) for r in range(n)]
        mine = inputs[rank].clone()
        dist.all_reduce(mine)
        same(mine, expected_of("SUM", torch.float32, inputs))
        # Not contiguous: every second column.
        wide = torch.full(shape + (2,), -1.0)
        wide[..., 0] = inputs[rank]
        dist.all_reduce(wide[..., 0])
        same(wide[..., 0], expected_of("SUM", torch.float32, inputs))
        same(wide[..., 1], torch.full(shape, -1.0))
    empty = torch.empty(0)
    dist.all_reduce(empty)
    leaf = torch.ones(3, requires_grad=True)
    dist.all_reduce(leaf)
    same(leaf, torch.full((3,), float(n)))
    with torch.inference_mode():
        inference = torch.ones(4, 4)
    dist.all_reduce(inference)
    same(inference, torch.full((4, 4), float(n)))
    dist.all_reduce(inference.t())
    same(inference, torch.full((4, 4), float(n * n)))


def all_reduce_coalesced(rank: int, n: int) -> None:
    inputs = [[of(r, torch.int32, (k + 1,)) for k in range(3)] for r in range(n)]
    mine = [tensor.clone() for tensor in inputs[rank]]
    dist.all_reduce_coalesced(mine)
    for k in range(3):
        same(mine[k], expected_of("SUM", torch.int32, [row[k] for row in inputs]))
    # One behind the other: nothing is packed.
    flat = torch.cat([tensor.reshape(-1) for tensor in inputs[rank]])
    dist.all_reduce_coalesced(list(flat.split([1, 2, 3])))
    same(flat, torch.cat(mine))


def all_reduce_sparse(rank: int, n: int) -> None:
    def sparse(r: int) -> torch.Tensor:
        indices = torch.tensor([[r, 0, n], [0, r, 1]])
        return torch.sparse_coo_tensor(indices, torch.arange(6.0).reshape(3, 2) + r, (n + 1, n + 1, 2))

    mine = sparse(rank)
    dist.all_reduce(mine)
    same(mine.to_dense(), sum(sparse(r).to_dense() for r in range(n)))
    mine = sparse(rank)
    dist.all_reduce(mine, async_op=True).wait()
    same(mine.to_dense(), sum(sparse(r).to_dense() for r in range(n)))
    # One that has nothing.
    with torch.inference_mode():
        mine = sparse(rank)
    dist.all_reduce(mine)
    with torch.inference_mode():
        same(mine.to_dense(), sum(sparse(r).to_dense() for r in range(n)))
    mine = sparse(rank)
    with torch.inference_mode():
        dist.all_reduce(mine)
    same(mine.to_dense(), sum(sparse(r).to_dense() for r in range(n)))
    if rank == 0:
        mine = torch.sparse_coo_tensor(torch.zeros(2, 0), torch.zeros(0, 2), (n + 1, n + 1, 2))
    else:
        mine = sparse(rank)
    dist.all_reduce(mine)
    same(mine.to_dense(), sum(sparse(r).to_dense() for r in range(1, n)))


def reduce(rank: int, n: int) -> None:
    def check(dtype: torch.dtype, name: str) -> None:
        inputs = [of(r, dtype, most=3) for r in range(n)]
        mine = inputs[rank].clone()
        dist.reduce(mine, n - 1, op=getattr(OP, name))
        same(mine, expected_of(name, dtype, inputs) if rank == n - 1 else inputs[rank],
             (dtype, name))

    for_each_reduction(n, check)
    for dtype in (torch.complex64, torch.complex128):
        check(dtype, "PRODUCT")


def reduce_scatter(rank: int, n: int) -> None:
    def check(dtype: torch.dtype, name: str) -> None:
        inputs = [[of(r + k, dtype, most=3) for k in range(n)] for r in range(n)]
        out = zeros(inputs[0][0])
        dist.reduce_scatter(out, inputs[rank], op=getattr(OP, name))
        same(out, expected_of(name, dtype, [row[rank] for row in inputs]), (dtype, name))

    for_each_reduction(n, check)
    # Of different sizes, and not contiguous.
    inputs = [[of(r + k, torch.float32, (3, k + 1)) for k in range(n)] for r in range(n)]
    out = zeros(inputs[0][rank])
    dist.reduce_scatter(out, [tensor.t().contiguous().t() for tensor in inputs[rank]])
    same(out, expected_of("SUM", torch.float32, [row[rank] for row in inputs]))


def reduce_scatter_single(rank: int, n: int) -> None:
    single = getattr(dist, "reduce_scatter_tensor", None) or getattr(dist, "_reduce_scatter_base")
    for dtype in (torch.float32, torch.int64):
        inputs = [of(r, dtype, (n * 2, 3)) for r in range(n)]
        out = torch.zeros(2, 3).to(dtype)
        single(out, inputs[rank])
        same(out, expected_of("SUM", dtype, inputs)[2 * rank:2 * rank + 2])
        column = torch.zeros(2, 3, 2).to(dtype)
        single(column[..., 1], inputs[rank].t().contiguous().t())
        same(column[..., 1], out)


def broadcast(rank: int, n: int) -> None:
    for dtype in TYPES + OTHERS:
        for root in (0, n - 1):
            for shape in SIZES[:2]:
                mine = of(rank, dtype, shape)
                dist.broadcast(mine, root)
                same(mine, of(root, dtype, shape), dtype)
    wide = of(rank, torch.float32, (4, 4))
    dist.broadcast(wide.t(), 1)
    same(wide, of(1, torch.float32, (4, 4)))


def all_gather(rank: int, n: int) -> None:
    for dtype in TYPES + OTHERS:
        mine = of(rank, dtype)
        outs = [zeros(mine) for _ in range(n)]
        dist.all_gather(outs, mine)
        for r in range(n):
            same(outs[r], of(r, dtype), dtype)
    # Parts of one tensor, in another order; columns; sizes that differ.
    whole = torch.zeros(n, 6)
    dist.all_gather([whole[n - 1 - r] for r in range(n)], of(rank, torch.float32))
    same(whole, torch.stack([of(n - 1 - r, torch.float32) for r in range(n)]))
    whole = torch.zeros(6, n)
    dist.all_gather(list(whole.t()), of(rank, torch.float32))
    same(whole.t(), torch.stack([of(r, torch.float32) for r in range(n)]))
    outs = [torch.zeros(r + 1) for r in range(n)]
    dist.all_gather(outs, of(rank, torch.float32, (rank + 1,)))
    for r in range(n):
        same(outs[r], of(r, torch.float32, (r + 1,)))
    outs = [torch.zeros(4) if r else torch.zeros(0) for r in range(n)]
    dist.all_gather(outs, of(rank, torch.float32, (4 if rank else 0,)))
    same(outs[1], of(1, torch.float32, (4,)))


def all_gather_single(rank: int, n: int) -> None:
    single = getattr(dist, "all_gather_into_tensor", None) or getattr(dist, "_all_gather_base")
    for dtype in TYPES + OTHERS:
        out = torch.zeros(n, 6).to(dtype)
        single(out, of(rank, dtype))
        for r in range(n):
            same(out[r], of(r, dtype), dtype)
    out = torch.zeros(n, 3, 2)
    single(out[..., 1], of(rank, torch.float32, (3,)))
    same(out[..., 1], torch.stack([of(r, torch.float32, (3,)) for r in range(n)]))


def all_gather_coalesced(rank: int, n: int) -> None:
    mine = [of(rank + k, torch.float64, (k + 1,)) for k in range(3)]
    outs = [[zeros(tensor) for tensor in mine] for _ in range(n)]
    dist.all_gather_coalesced(outs, mine)
    for r in range(n):
        for k in range(3):
            same(outs[r][k], of(r + k, torch.float64, (k + 1,)))


def gather(rank: int, n: int) -> None:
    for dtype in TYPES + OTHERS:
        mine = of(rank, dtype)
        outs = [zeros(mine) for _ in range(n)] if rank == 1 else None
        dist.gather(mine, outs, dst=1)
        for r in range(n if outs else 0):
            same(outs[r], of(r, dtype), dtype)
    whole = torch.zeros(3, n)
    dist.gather(of(rank, torch.float32, (3,)), list(whole.t()) if rank == 0 else None)
    if rank == 0:
        same(whole.t(), torch.stack([of(r, torch.float32, (3,)) for r in range(n)]))


def scatter(rank: int, n: int) -> None:
    for dtype in TYPES + OTHERS:
        out = zeros(of(rank, dtype))
        dist.scatter(out, [of(r, dtype) for r in range(n)] if rank == 1 else None, src=1)
        same(out, of(rank, dtype), dtype)
    out = torch.zeros(3, 2)
    given = torch.stack([of(r, torch.float32, (3,)) for r in range(n)]).t().contiguous().t()
    dist.scatter(out[:, 0], list(given) if rank == 0 else None)
    same(out[:, 0], of(rank, torch.float32, (3,)))


def all_to_all(rank: int, n: int) -> None:
    for dtype in TYPES + OTHERS:
        inputs = [of(10 * rank + r, dtype, (r + 1, 2)) for r in range(n)]
        outs = [zeros(of(0, dtype, (rank + 1, 2))) for _ in range(n)]
        dist.all_to_all(outs, inputs)
        for r in range(n):
            same(outs[r], of(10 * r + rank, dtype, (rank + 1, 2)), dtype)
    inputs = list(torch.arange(3 * n, dtype=torch.float32).add(100 * rank).reshape(3, n).t())
    whole = torch.zeros(3, n)
    dist.all_to_all(list(whole.t()), inputs)
    for r in range(n):
        same(whole[:, r], torch.arange(3) * n + rank + 100.0 * r)


def all_to_all_single(rank: int, n: int) -> None:
    for dtype in (torch.float32, torch.int16, torch.bool):
        mine = torch.cat([of(10 * rank + r, dtype, (2, 3)) for r in range(n)])
        out = zeros(mine)
        dist.all_to_all_single(out, mine)
        same(out, torch.cat([of(10 * r + rank, dtype, (2, 3)) for r in range(n)]))
        # r + 1 rows for rank r, and none for rank 0.
        splits = [r + 1 if r else 0 for r in range(n)]
        mine = torch.cat([of(10 * rank + r, dtype, (splits[r], 3)) for r in range(n)])
        out = torch.zeros(n * splits[rank], 3).to(dtype)
        dist.all_to_all_single(out, mine, [splits[rank]] * n, splits)
        same(out, torch.cat([of(10 * r + rank, dtype, (splits[rank], 3)) for r in range(n)]))


def negated(rank: int, n: int) -> None:
    """Tensors whose memory is not what they read: PyTorch negates and conjugates lazily, and refuses the
    latter itself, but for windows."""
    inputs = [torch._neg_view(torch.tensor([1.0 + r, -3.0])) for r in range(n)]
    got = [torch.zeros(2) for _ in range(n)]
    dist.all_gather(got, inputs[rank])
    for r in range(n):
        same(got[r], torch.tensor([-1.0 - r, 3.0]))
    view = torch._neg_view(torch.zeros(2))
    if rank == 0:
        dist.send(got[n - 1], 1)
    elif rank == 1:
        dist.recv(view, 0)
        same(view.resolve_neg(), got[n - 1])
    mine = inputs[0] if rank == 0 else got[0]
    dist.all_reduce(mine)
    same(mine.resolve_neg(), torch.tensor([-1.0 * n, 3.0 * n]))
    for view in (inputs[0], torch.ones(2, dtype=torch.complex64).conj()):
        raises(RuntimeError, "conjugated", lambda: tutti.torch.new_window(view))


def objects(rank: int, n: int) -> None:
    got: List[Any] = [None] * n
    dist.all_gather_object(got, {"rank": rank, "text": "x" * rank})
    assert [each["rank"] for each in got] == list(range(n)), got
    given = [rank, "a"] if rank == 1 else [None, None]
    dist.broadcast_object_list(given, src=1)
    assert given == [1, "a"], given


def premultiplied(rank: int, n: int) -> None:
    make = getattr(dist, "_make_nccl_premul_sum")
    if make(1.0).__getstate__() is None:
        raises(RuntimeError, "PREMUL_SUM",
               lambda: dist.all_reduce(torch.ones(2), op=make(0.5)))
        return
    inputs = [of(r, torch.float32) for r in range(n)]
    for factor in (0.5, torch.tensor([0.5])):
        mine = inputs[rank].clone()
        dist.all_reduce(mine, op=make(factor))
        same(mine, 0.5 * expected_of("SUM", torch.float32, inputs))
        mine = inputs[rank].clone()
        dist.all_reduce(mine, op=make(factor), async_op=True).wait()
        same(mine, 0.5 * expected_of("SUM", torch.float32, inputs))


def refused(rank: int, n: int) -> None:
    """What is wrong by itself is said at once, and the group goes on."""
    one, cuda = torch.ones(3), torch.empty(3, device="meta")
    calls = [
        ("TUTTI_EINVAL", lambda: dist.reduce(torch.ones(2, dtype=torch.complex64), 0,
                                             op=OP.MAX)),
        ("TUTTI_EINVAL", lambda: dist.all_reduce(one.clone(), op=OP.BAND)),
        ("TUTTI_EINVAL", lambda: dist.all_reduce(torch.ones(2, dtype=torch.bool), op=OP.AVG)),
        ("on the CPU", lambda: dist.all_reduce(cuda)),
        ("different dtypes", lambda: dist.all_gather([torch.ones(3, dtype=torch.int32)] * n, one)),
        ("invalid tensor size", lambda: dist.all_gather([torch.ones(4)] * n, one)),
        ("as many", lambda: dist.all_to_all([one], [one])),
    ]
    for text, call in calls:
        raises((RuntimeError, ValueError), text, call)
    # As PyTorch calls the group: its own checks are not there for all of these.
    group, options = dist.distributed_c10d._get_default_group(), c10d.GatherOptions()
    options.rootRank = rank
    wide = torch.ones(3 * n)
    calls = [
        ("without split sizes", lambda: group.alltoall_base(torch.ones(n), torch.ones(2 * n), [], [])),
        ("on the CPU", lambda: group.alltoall_base(wide, wide.to("meta"), [], [])),
        ("on the CPU", lambda: group._allgather_base(wide, cuda)),
        ("on the CPU", lambda: group._reduce_scatter_base(cuda, wide)),
        ("on the CPU", lambda: group.gather_single(wide.to("meta"), one, options)),
        ("on the CPU", lambda: group.gather_single(wide, cuda, options)),
        ("invalid tensor type", lambda: group.gather_single(wide.to(torch.int16), one, options)),
    ]
    for text, call in calls:
        raises(RuntimeError, text, call)
    dist.all_reduce(one)
    same(one, torch.full((3,), float(n)))


class Operations(Ranks):
    pass


def _test(body: Callable[[int, int], None]) -> Callable[[Operations], None]:
    return lambda self: self.each(body)


for _body in (all_reduce, all_reduce_coalesced, all_reduce_sparse, reduce, reduce_scatter,
              reduce_scatter_single, broadcast, all_gather, all_gather_single, all_gather_coalesced,
              gather, scatter, all_to_all, all_to_all_single, negated, objects, premultiplied, refused):
    setattr(Operations, f"test_{_body.__name__}", _test(_body))

if __name__ == "__main__":
    unittest.main()
