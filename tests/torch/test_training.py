# SPDX-License-Identifier: BSD-3-Clause
"""Models trained over Tutti and over Gloo: on two ranks, where sums have one order, all weights
are alike to the last bit. Of four ranks they are near."""
import unittest
from typing import Any, Callable, List

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ranks import Ranks, bits

try:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
except ImportError:  # as in PyTorch 1
    fully_shard = None  # type: ignore[assignment]

WIDTH = 48
Weights = List[torch.Tensor]


def model() -> nn.Module:
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH),
                         nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10))


def batches(rank: int, number: int = 5) -> List[torch.Tensor]:
    generator = torch.Generator().manual_seed(100 + rank)
    return [torch.randn(16, WIDTH, generator=generator) for _ in range(number)]


def weights_of(module: nn.Module) -> Weights:
    return [parameter.detach().clone() for parameter in module.parameters()]


def train(module: nn.Module, rank: int) -> nn.Module:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
    for batch in batches(rank):
        optimizer.zero_grad()
        module(batch).square().mean().backward()
        optimizer.step()
    return module


def ddp(rank: int, n: int) -> Weights:
    return weights_of(train(DistributedDataParallel(model(), bucket_cap_mb=0.02), rank))


def ddp_views(rank: int, n: int) -> Weights:
    return weights_of(train(DistributedDataParallel(model(), gradient_as_bucket_view=True,
                                                    static_graph=True), rank))


def ddp_unused(rank: int, n: int) -> Weights:
    """Each rank leaves out another layer."""

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.rest = model(), nn.ModuleList(nn.Linear(10, 10) for _ in range(n))

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return self.rest[rank](self.first(batch))

    module = DistributedDataParallel(Branches(), find_unused_parameters=True)
    return weights_of(train(module, rank))


def sparse(rank: int, n: int) -> Weights:
    """Gradients of an embedding are sparse tensors."""
    torch.manual_seed(3)
    module = nn.Sequential(nn.Embedding(20, 8, sparse=True), nn.Linear(8, 4))
    module = DistributedDataParallel(module)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        module(torch.tensor([rank, step + 5, rank + step])).sum().backward()
        optimizer.step()
    return weights_of(module)


def accumulate(rank: int, n: int) -> Weights:
    """Gradients of two batches, each reduced while the next is computed."""
    module = model()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    given = batches(rank, 8)
    for step in range(0, 8, 2):
        sums = [torch.zeros_like(parameter) for parameter in module.parameters()]
        begun: List[Any] = []
        for batch in given[step:step + 2]:
            optimizer.zero_grad()
            module(batch).square().mean().backward()
            grads = [parameter.grad.clone() for parameter in module.parameters()]
            begun.append((grads, [dist.all_reduce(grad, async_op=True) for grad in grads]))
        for grads, works in begun:
            for total, grad, work in zip(sums, grads, works):
                work.wait()
                total += grad / n
        for parameter, total in zip(module.parameters(), sums):
            parameter.grad = total
        optimizer.step()
    return weights_of(module)


class _Exchange(torch.autograd.Function):
    """Rows to the ranks that are to have them, and gradients back."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, sent: List[int], got: List[int]) -> torch.Tensor:
        ctx.sent, ctx.got = sent, got
        out = rows.new_empty((sum(got),) + rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), got, sent)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        out = grad.new_empty((sum(ctx.sent),) + grad.shape[1:])
        dist.all_to_all_single(out, grad.contiguous(), ctx.sent, ctx.got)
        return out, None, None


def moe(rank: int, n: int) -> Weights:
    """A mixture of experts, one on each rank, to which rows go by a router."""
    router = model()
    torch.manual_seed(50 + rank)
    expert = nn.Linear(10, 10)
    parameters = list(router.parameters()) + list(expert.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.05)
    for batch in batches(rank):
        optimizer.zero_grad()
        rows = router(batch)
        to = rows.detach().abs().sum(1).mul(1000).long() % n
        sent = [int((to == r).sum()) for r in range(n)]
        got_tensor = torch.empty(n, dtype=torch.int64)
        dist.all_to_all_single(got_tensor, torch.tensor(sent))
        got = got_tensor.tolist()
        there = _Exchange.apply(rows[to.argsort(stable=True)], sent, got)
        _Exchange.apply(expert(there), got, sent).square().mean().backward()
        for parameter in router.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    return [parameter.detach().clone() for parameter in parameters]


def tensor_parallel(rank: int, n: int) -> Weights:
    mesh = init_device_mesh("cpu", (n,))
    module = parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return [getattr(weight, "to_local", lambda w=weight: w)()
            for weight in weights_of(train(module, 0))]


def fsdp2(rank: int, n: int) -> Weights:
    mesh = init_device_mesh("cpu", (n,))
    module = model()
    fully_shard(module[0], mesh=mesh)
    fully_shard(module[2], mesh=mesh)
    fully_shard(module, mesh=mesh)
    return [weight.to_local() for weight in weights_of(train(module, rank))]


def compared(body: Callable[[int, int], Weights], exact: bool) -> Callable[[int, int], None]:
    """A test of ranks: the weights that `body` gives over Tutti and over Gloo."""

    def test(rank: int, n: int) -> None:
        ours = body(rank, n)
        store = dist.distributed_c10d._get_default_store()
        dist.destroy_process_group()
        dist.init_process_group("gloo", store=dist.PrefixStore("gloo", store), rank=rank,
                                world_size=n)
        theirs = body(rank, n)
        assert len(ours) == len(theirs) > 0
        for at, (one, other) in enumerate(zip(ours, theirs)):
            if exact:
                assert bits(one) == bits(other), f"weight {at} differs by {(one - other).abs().max()}"
            else:
                torch.testing.assert_close(one, other)

    return test


class Training(Ranks):
    def both(self, body: Callable[[int, int], Weights]) -> None:
        self.each(compared(body, exact=True), [2])
        self.each(compared(body, exact=False), [4])

    def test_ddp(self) -> None:
        self.both(ddp)

    def test_ddp_views(self) -> None:
        self.both(ddp_views)

    def test_ddp_unused(self) -> None:
        self.both(ddp_unused)

    def test_sparse(self) -> None:
        self.both(sparse)

    def test_accumulate(self) -> None:
        self.both(accumulate)

    def test_moe(self) -> None:
        self.both(moe)

    @unittest.skipIf(fully_shard is None, "this PyTorch has no such tensors")
    def test_tensor_parallel(self) -> None:
        self.both(tensor_parallel)

    @unittest.skipIf(fully_shard is None, "this PyTorch has no fully_shard()")
    def test_fsdp2(self) -> None:
        self.both(fsdp2)


if __name__ == "__main__":
    unittest.main()
