# SPDX-License-Identifier: BSD-3-Clause
"""Tensors in shared memory: what calls on them give, how long they live, and gradients there."""
import gc
import os
import unittest

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import tutti.torch
from tutti.torch._process_group import HAS_BACKENDS
from ranks import Ranks, bits, raises, run, same
from test_training import fully_shard, model, train, weights_of

LONG = 1 << 19


def calls(rank: int, n: int) -> None:
    data = tutti.torch.empty(n, LONG)
    same(data, torch.zeros(n, LONG))
    data.fill_(rank + 1)
    dist.all_reduce(data)
    same(data, torch.full((n, LONG), float(sum(range(1, n + 1)))))
    part = tutti.torch.empty(LONG, dtype=torch.int32).fill_(rank)
    whole = tutti.torch.empty(n, LONG, dtype=torch.int32)
    dist.all_gather(list(whole), part)
    for r in range(n):
        same(whole[r], torch.full((LONG,), r, dtype=torch.int32))
    # Some ranks have it, some have not.
    mixed = tutti.torch.empty(LONG) if rank else torch.empty(LONG)
    mixed.fill_(1)
    dist.all_reduce(mixed)
    same(mixed, torch.full((LONG,), float(n)))
    assert tutti.torch.empty(0, 3).shape == (0, 3)
    for shape in ((2, 3), [2, 3], torch.Size([2, 3]), (), (0, 3)):
        assert tutti.torch.empty(shape, dtype=torch.int32).shape == torch.Size(shape)


def outlives_its_group(rank: int, n: int) -> None:
    data = tutti.torch.empty(LONG).fill_(3)
    store = dist.distributed_c10d._get_default_store()
    dist.all_reduce(data)
    dist.destroy_process_group()
    gc.collect()
    same(data, torch.full((LONG,), 3.0 * n))
    dist.init_process_group("tutti", store=dist.PrefixStore("next", store), rank=rank,
                            world_size=n)
    dist.all_reduce(data)
    same(data, torch.full((LONG,), 3.0 * n * n))


def is_freed(rank: int, n: int) -> None:
    """More in all than the heap, of 1 GiB here, has at once."""
    raises(RuntimeError, "TUTTI_ENOMEM", lambda: tutti.torch.empty(1 << 29))
    for turn in range(20):
        data = tutti.torch.empty(1 << 27)
        data[0] = turn
        view = data[5:9]
        del data
        same(view, torch.zeros(4))
        del view


def buckets(rank: int, n: int) -> None:
    """The hook gives what there is without it, of two ranks to the last bit."""
    for options in ({}, {"bucket_cap_mb": 0.02}, {"gradient_as_bucket_view": True}):
        plain = train(DistributedDataParallel(model(), **options), rank)
        hooked = DistributedDataParallel(model(), **options)
        hooked.register_comm_hook(None, tutti.torch.shared_buckets())
        train(hooked, rank)
        for one, other in zip(weights_of(plain), weights_of(hooked)):
            if n == 2:
                assert bits(one) == bits(other), options
            torch.testing.assert_close(one, other)


def shared_parameters(rank: int, n: int) -> None:
    module, other = model(), model()
    tutti.torch.share(list(module.parameters()))
    for parameter in module.parameters():
        dist.broadcast(parameter.data, 0)
    for one, two in zip(weights_of(train(module, 0)), weights_of(train(other, 0))):
        assert bits(one) == bits(two)


def fsdp_allocates(rank: int, n: int) -> None:
    """FSDP2 takes its buffers from the group."""
    from torch.distributed.device_mesh import init_device_mesh  # pylint: disable=import-outside-toplevel

    mesh = init_device_mesh("cpu", (n,))
    got = []
    for asks in (False, True):
        module = model()
        fully_shard(module, mesh=mesh)
        module.set_allocate_memory_from_process_group_for_comm(asks)
        got.append([weight.to_local() for weight in weights_of(train(module, rank))])
    for one, two in zip(*got):
        assert bits(one) == bits(two)


class Memory(Ranks):
    def test_calls(self) -> None:
        self.each(calls)

    def test_outlives_its_group(self) -> None:
        self.each(outlives_its_group, [2])

    def test_is_freed(self) -> None:
        os.environ["TUTTI_SHM_HEAP"] = "1G"
        try:
            self.assertEqual(run(is_freed, 1), [0])
        finally:
            del os.environ["TUTTI_SHM_HEAP"]

    def test_buckets(self) -> None:
        self.each(buckets, [2, 3])

    def test_shared_parameters(self) -> None:
        self.each(shared_parameters, [2])

    @unittest.skipUnless(HAS_BACKENDS and fully_shard, "in this PyTorch a group allocates nothing")
    def test_fsdp_allocates(self) -> None:
        self.each(fsdp_allocates, [2])


if __name__ == "__main__":
    unittest.main()
