# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own "nccl" backend, of its CUDA wheel, on Tutti's libnccl.so.2 and CUDA on host memory.

    tutti run -n 4 --gpus 4 python3 tests/torch/nccl_backend.py
    tutti run -n 4 --keep-going --gpus 4 python3 tests/torch/nccl_backend.py die
    tutti run -n 4 --gpus 4 python3 tests/torch/nccl_backend.py abort

The ranks meet at MASTER_ADDR and MASTER_PORT. Arithmetic of tensors on a device takes kernels, which
are errors here, so it is done before and after.
"""
import os
import signal
import sys
import time
import unittest

import torch
import torch.distributed as dist

RANK = int(os.environ["TUTTI_RANK"])
SIZE = int(os.environ["TUTTI_NRANKS"])
COUNT = 1000


def own(rank=RANK):
    return torch.arange(COUNT, dtype=torch.float32) + rank


SUM = sum(own(rank) for rank in range(SIZE))


class Backend(unittest.TestCase):
    def same(self, device_tensor, wanted):
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(device_tensor.cpu(), wanted))

    def test_all_reduce(self):
        tensor = own().cuda()
        dist.all_reduce(tensor)
        self.same(tensor, SUM)

    def test_all_reduce_later(self):
        tensor = own().cuda()
        work = dist.all_reduce(tensor, op=dist.ReduceOp.MAX, async_op=True)
        work.wait()
        self.same(tensor, own(SIZE - 1))

    def test_broadcast(self):
        tensor = own().cuda()
        dist.broadcast(tensor, SIZE - 1)
        self.same(tensor, own(SIZE - 1))

    def test_reduce(self):
        tensor = own().cuda()
        dist.reduce(tensor, 1)
        if RANK == 1:
            self.same(tensor, SUM)

    def test_all_gather(self):
        outs = [torch.empty(COUNT, device="cuda") for _ in range(SIZE)]
        dist.all_gather(outs, own().cuda())
        for rank, out in enumerate(outs):
            self.same(out, own(rank))

    def test_all_gather_into_tensor(self):
        out = torch.empty(SIZE * COUNT, device="cuda")
        dist.all_gather_into_tensor(out, own().cuda())
        self.same(out, torch.cat([own(rank) for rank in range(SIZE)]))

    def test_reduce_scatter_tensor(self):
        out = torch.empty(COUNT, device="cuda")
        whole = torch.cat([own() + 10 * part for part in range(SIZE)])
        dist.reduce_scatter_tensor(out, whole.cuda())
        self.same(out, SUM + 10 * SIZE * RANK)

    def test_all_to_all_single(self):
        out = torch.empty(SIZE * COUNT, device="cuda")
        whole = torch.cat([own() + 10 * part for part in range(SIZE)])
        dist.all_to_all_single(out, whole.cuda())
        self.same(out, torch.cat([own(rank) + 10 * RANK for rank in range(SIZE)]))

    def test_gather(self):
        outs = [torch.empty(COUNT, device="cuda") for _ in range(SIZE)] if RANK == 0 else None
        dist.gather(own().cuda(), outs, 0)
        for rank, out in enumerate(outs or []):
            self.same(out, own(rank))

    def test_scatter(self):
        out = torch.empty(COUNT, device="cuda")
        parts = [own(rank).cuda() for rank in range(SIZE)] if RANK == 0 else None
        dist.scatter(out, parts, 0)
        self.same(out, own())

    def test_send_recv(self):
        out = torch.empty(COUNT, device="cuda")
        requests = [dist.P2POp(dist.isend, own().cuda(), (RANK + 1) % SIZE),
                    dist.P2POp(dist.irecv, out, (RANK - 1) % SIZE)]
        for work in dist.batch_isend_irecv(requests):
            work.wait()
        self.same(out, own((RANK - 1) % SIZE))

    def test_barrier(self):
        dist.barrier()

    def test_group_of_some(self):
        group = dist.new_group(list(range(SIZE - 1)))
        if RANK < SIZE - 1:
            tensor = own().cuda()
            dist.all_reduce(tensor, group=group)
            self.same(tensor, sum(own(rank) for rank in range(SIZE - 1)))

    def test_split(self):
        group = dist.split_group(split_ranks=[list(range(0, SIZE, 2)), list(range(1, SIZE, 2))])
        tensor = own().cuda()
        dist.all_reduce(tensor, group=group)
        self.same(tensor, sum(own(rank) for rank in range(RANK % 2, SIZE, 2)))

    def test_kernels_are_errors(self):
        with self.assertRaisesRegex(RuntimeError, "device function|kernel"):
            print(own().cuda() + 1)

    def test_graph(self):
        tensor, graph = own().cuda(), torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            dist.all_reduce(tensor)
        for _ in range(3):
            graph.replay()
        self.same(tensor, SUM * SIZE * SIZE)


def die():
    """The last rank dies in a call of all: an error on the others."""
    tensor = own().cuda()
    dist.barrier()
    torch.cuda.synchronize()
    if RANK == SIZE - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    try:
        dist.all_reduce(tensor)
        torch.cuda.synchronize()
    except RuntimeError as error:
        print(f"rank {RANK}: error after {time.monotonic() - begun:.3f} s: {error}", flush=True)
        os._exit(0)
    print(f"rank {RANK}: no error", flush=True)
    os._exit(1)


def abort():
    """All ranks abort what the first one does not come to."""
    tensor = own().cuda()
    dist.barrier()
    torch.cuda.synchronize()
    try:
        if RANK != 0:
            dist.all_reduce(tensor, async_op=True)
    except RuntimeError as error:
        if "aborted" not in str(error):
            raise
    begun = time.monotonic()
    dist.distributed_c10d._abort_process_group()
    print(f"rank {RANK}: aborted after {time.monotonic() - begun:.3f} s", flush=True)
    os._exit(0)


if __name__ == "__main__":
    torch.cuda.set_device(RANK % torch.cuda.device_count())
    dist.init_process_group("nccl", rank=RANK, world_size=SIZE,
                            device_id=torch.device("cuda", RANK % torch.cuda.device_count()))
    for name in sys.argv[1:]:
        {"die": die, "abort": abort}[name]()
    result = unittest.main(exit=False, verbosity=2 if RANK == 0 else 0).result
    dist.destroy_process_group()
    sys.exit(not result.wasSuccessful())
