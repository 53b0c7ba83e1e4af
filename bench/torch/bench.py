#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Gloo beside Tutti under PyTorch, in one run and in turns.

bench.py calls [-n RANKS] [--ops OP,...] [--sizes SIZE,...]   calls of torch.distributed
bench.py memory [-n RANKS] [--ops OP,...] [--sizes SIZE,...]  the same, and in memory that ranks share
bench.py steps [-n RANKS] [--models MODEL,...]                steps of training

Prints a row for each: the medians in microseconds, and how many times as long the others take as the
last one: Gloo as Tutti, or both as Tutti in the memory of tutti.torch.empty().
Blocks of calls of each follow each other, so whatever else the machine does meets both.
PYTHONPATH is to have the package tutti, if it is not installed.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist
from torch import nn

import tutti.torch  # noqa: F401 pylint: disable=unused-import

BLOCKS = 9
SECONDS = 0.02  # what a block takes at least
Call = Callable[[], Any]
Ones = Callable[[int], torch.Tensor]


# -- Calls ---------------------------------------------------------------------------------------


def all_reduce(count: int, group: Any, ones: Ones) -> Call:
    data = ones(count)
    return lambda: dist.all_reduce(data, op=dist.ReduceOp.MAX, group=group)


def asynchronous(count: int, group: Any, ones: Ones) -> Call:
    """16 calls under way at once; the time is that of all."""
    data = [ones(count) for _ in range(16)]

    def call() -> None:
        works = [dist.all_reduce(each, op=dist.ReduceOp.MAX, group=group, async_op=True)
                 for each in data]
        for work in works:
            work.wait()

    return call


def reduce(count: int, group: Any, ones: Ones) -> Call:
    data = ones(count)
    return lambda: dist.reduce(data, 0, op=dist.ReduceOp.MAX, group=group)


def broadcast(count: int, group: Any, ones: Ones) -> Call:
    data = ones(count)
    return lambda: dist.broadcast(data, 0, group=group)


def all_gather(count: int, group: Any, ones: Ones) -> Call:
    n = dist.get_world_size()
    data = ones(max(count // n, 1))
    outs = [ones(data.numel()) for _ in range(n)]
    return lambda: dist.all_gather(outs, data, group=group)


def all_gather_into_tensor(count: int, group: Any, ones: Ones) -> Call:
    n = dist.get_world_size()
    data = ones(max(count // n, 1))
    out = ones(n * data.numel())
    return lambda: dist.all_gather_into_tensor(out, data, group=group)


def reduce_scatter_tensor(count: int, group: Any, ones: Ones) -> Call:
    n = dist.get_world_size()
    out = ones(max(count // n, 1))
    data = ones(n * out.numel())
    return lambda: dist.reduce_scatter_tensor(out, data, group=group)


def all_to_all_single(count: int, group: Any, ones: Ones) -> Call:
    n = dist.get_world_size()
    data = ones(max(count // n, 1) * n)
    out = ones(data.numel())
    return lambda: dist.all_to_all_single(out, data, group=group)


def gather(count: int, group: Any, ones: Ones) -> Call:
    n = dist.get_world_size()
    data = ones(max(count // n, 1))
    outs = [ones(data.numel()) for _ in range(n)] if dist.get_rank() == 0 else None
    return lambda: dist.gather(data, outs, group=group)


def scatter(count: int, group: Any, ones: Ones) -> Call:
    n = dist.get_world_size()
    out = ones(max(count // n, 1))
    given = [ones(out.numel()) for _ in range(n)] if dist.get_rank() == 0 else None
    return lambda: dist.scatter(out, given, group=group)


def send_recv(count: int, group: Any, ones: Ones) -> Call:
    """To the next rank, from the one before."""
    n, rank = dist.get_world_size(), dist.get_rank()
    data, got = ones(count), ones(count)

    def call() -> None:
        for work in [dist.isend(data, (rank + 1) % n, group=group),
                     dist.irecv(got, (rank - 1) % n, group=group)]:
            work.wait()

    return call


def barrier(count: int, group: Any, ones: Ones) -> Call:
    return lambda: dist.barrier(group=group)


CALLS = [all_reduce, asynchronous, reduce, broadcast, all_gather, all_gather_into_tensor,
         reduce_scatter_tensor, all_to_all_single, gather, scatter, send_recv, barrier]


# -- Steps -----------------------------------------------------------------------------------------


def network(width: int) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width),
                         nn.ReLU(), nn.Linear(width, 16))


def step_of(module: nn.Module, width: int) -> Call:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    batch = torch.randn(8, width)

    def step() -> None:
        optimizer.zero_grad()
        module(batch).square().mean().backward()
        optimizer.step()

    return step


def ddp(width: int, group: Any) -> Call:
    module = nn.parallel.DistributedDataParallel(network(width), process_group=group)
    return step_of(module, width)


def fsdp2(width: int, group: Any) -> Call:
    from torch.distributed.device_mesh import DeviceMesh  # pylint: disable=import-outside-toplevel
    from torch.distributed.fsdp import fully_shard  # pylint: disable=import-outside-toplevel

    mesh = DeviceMesh.from_group(group, "cpu")
    module = network(width)
    for part in (module[0], module[2], module):
        fully_shard(part, mesh=mesh)
    return step_of(module, width)


MODELS = {f"{body.__name__}_{name}": (body, width) for body in (ddp, fsdp2)
          for name, width in (("0.5M", 256), ("8M", 1024))}


# -- In turns ----------------------------------------------------------------------------------------


def block(call: Call, repeats: int) -> float:
    """Seconds of a call, of as many in a row."""
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begun) / repeats


def compare(calls: Dict[str, Call]) -> Dict[str, float]:
    """The median of each, in microseconds; all ranks take as many calls."""
    repeats: Dict[str, int] = {}
    for name, call in calls.items():
        block(call, 2)
        once = torch.tensor([block(call, 3)], dtype=torch.float64)
        dist.all_reduce(once, op=dist.ReduceOp.MAX)
        repeats[name] = max(1, min(2000, int(SECONDS / once.item())))
    times: Dict[str, List[float]] = {name: [] for name in calls}
    for _ in range(BLOCKS):
        for name, call in calls.items():
            times[name].append(block(call, repeats[name]))
    return {name: statistics.median(each) * 1e6 for name, each in times.items()}


def size_of(text: str) -> int:
    unit = {"K": 2**10, "M": 2**20}.get(text[-1], 1)
    return int(text.rstrip("KM")) * unit


def shared(count: int) -> torch.Tensor:
    return tutti.torch.empty(count).fill_(1)


def tasks(args: argparse.Namespace) -> List[Tuple[str, str, Callable[[Any, Ones], Call]]]:
    """What is to be compared: its name, its size, and what makes a call of it for a group, on tensors
    of a kind."""
    if args.what == "steps":
        return [(name, "", lambda group, ones, m=MODELS[name]: m[0](m[1], group))
                for name in args.models.split(",")]
    known = {each.__name__: each for each in CALLS}
    out = []
    for name in args.ops.split(","):
        for size in ["0"] if name == "barrier" else args.sizes.split(","):
            out.append((name, size, lambda group, ones, n=name, s=size:
                        known[n](max(size_of(s) // 4, 1), group, ones)))
    return out


def be(rank: int, args: argparse.Namespace, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("tutti", store=dist.FileStore(f"{folder}/store", args.n), rank=rank,
                            world_size=args.n)
    world = dist.group.WORLD
    sides: Dict[str, Tuple[Any, Ones]] = {"Gloo": (dist.new_group(backend="gloo"), torch.ones),
                                          "Tutti": (world, torch.ones)}
    if args.what == "memory":
        sides["shared"] = (world, shared)
    *others, last = sides
    ratios: Dict[str, List[float]] = {name: [] for name in others}
    if rank == 0:
        print(f"PyTorch {torch.__version__}, {args.n} ranks, {os.cpu_count()} cores, load average "
              f"{os.getloadavg()[0]:.1f}\n{'':24}{'bytes':>6}" +
              "".join(f"{name + ' us':>13}" for name in sides) +
              "".join(f"{name + '/' + last:>15}" for name in others), flush=True)
    for name, size, make in tasks(args):
        got = compare({which: make(*side) for which, side in sides.items()})
        for which in others:
            ratios[which].append(got[which] / got[last])
        if rank == 0:
            print(f"{name:24}{size:>6}" + "".join(f"{got[which]:13.1f}" for which in sides) +
                  "".join(f"{ratios[which][-1]:15.2f}" for which in others), flush=True)
    if rank == 0:
        for title, of in (("geometric mean", statistics.geometric_mean), ("least", min)):
            print(f"{title:30}{'':{13 * len(sides)}}" +
                  "".join(f"{of(ratios[which]):15.2f}" for which in others))
    dist.barrier()
    dist.destroy_process_group()


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["calls", "memory", "steps"])
    parser.add_argument("-n", type=int, default=2, help="ranks")
    parser.add_argument("--ops", default=",".join(each.__name__ for each in CALLS))
    parser.add_argument("--sizes", default="16,1K,16K,256K,1M,16M,64M")
    parser.add_argument("--models", default=",".join(MODELS))
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(args.n):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    be(rank, args, folder)
                    status = 0
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    if status:
                        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
                    os._exit(status)
            children.append(child)
        return max(os.waitpid(child, 0)[1] for child in children)


if __name__ == "__main__":
    sys.exit(main() != 0)
