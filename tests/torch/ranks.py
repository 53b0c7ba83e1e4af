# SPDX-License-Identifier: BSD-3-Clause
"""Ranks for tests: forked from a process that has PyTorch loaded, which is quicker than starting
it anew for each."""
import datetime
import os
import signal
import sys
import tempfile
import time
import traceback
import unittest
from typing import Any, Callable, Dict, List, Sequence

import torch
import torch.distributed as dist

import tutti.torch

#: Nothing here takes longer, on any machine.
DEADLINE = 180.0
KILLED = -int(signal.SIGKILL)


def join(rank: int, n: int, folder: str, backend: str = "tutti",
         timeout: float = DEADLINE, name: str = "store") -> None:
    """Make the default group."""
    dist.init_process_group(backend, store=dist.FileStore(os.path.join(folder, name), n), rank=rank,
                            world_size=n, timeout=datetime.timedelta(seconds=timeout))


def _be(body: Callable[..., None], rank: int, n: int, folder: str, options: Dict[str, Any]) -> None:
    status = 1
    try:
        torch.set_num_threads(1)
        join(rank, n, folder, **options)
        body(rank, n)
        if dist.is_initialized():
            dist.destroy_process_group()
        status = 0
    except BaseException:  # pylint: disable=broad-except
        sys.stderr.write(f"rank {rank} of {n}: {traceback.format_exc()}")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run(body: Callable[[int, int], None], n: int, **options: Any) -> List[int]:
    """Let n processes call body(rank, n) in a group of theirs; how each ended, as by subprocess."""
    with tempfile.TemporaryDirectory() as folder:
        children: Dict[int, int] = {}
        statuses = [0] * n
        sys.stdout.flush()
        for rank in range(n):
            child = os.fork()
            if child == 0:
                _be(body, rank, n, folder, options)
            children[child] = rank
        deadline = time.monotonic() + DEADLINE
        while children:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child:
                statuses[children.pop(child)] = (os.WEXITSTATUS(status) if os.WIFEXITED(status)
                                                 else -os.WTERMSIG(status))
            elif time.monotonic() > deadline:
                for child in children:
                    os.kill(child, signal.SIGKILL)
            else:
                time.sleep(0.002)
        return statuses


class Ranks(unittest.TestCase):
    """Tests that are run by several ranks."""

    def each(self, body: Callable[[int, int], None], sizes: Sequence[int] = (2, 3, 4),
             **options: Any) -> None:
        """body(rank, n) on 2, 3 and 4 ranks."""
        for n in sizes:
            with self.subTest(ranks=n):
                self.assertEqual(run(body, n, **options), [0] * n)


def same(got: torch.Tensor, expected: torch.Tensor, what: Any = "") -> None:
    """Whether both are alike to the last bit, NaN included."""
    assert got.dtype == expected.dtype and got.shape == expected.shape, (what, got, expected)
    assert got.layout == expected.layout, (what, got.layout)
    assert bits(got) == bits(expected), f"{what}: {got}, not {expected}"


def bits(tensor: torch.Tensor) -> bytes:
    """The bytes of the elements, in their order."""
    tensor = tensor.detach().contiguous().reshape(-1)
    return bytes(tensor.view(torch.uint8).tolist()) if tensor.numel() else b""


def meet(n: int) -> None:
    """Wait for all ranks, by the store, so that none is in a call of the group when this returns."""
    store = dist.distributed_c10d._get_default_store()
    store.add("meeting", 1)
    while store.add("meeting", 0) < n:
        time.sleep(0.01)


def raises(kinds: Any, text: str, call: Callable[[], Any]) -> BaseException:
    """The exception that `call` raises; it is one of `kinds` and says `text`."""
    try:
        call()
    except kinds as error:
        assert text in str(error), f"{error!r} does not say {text!r}"
        return error
    raise AssertionError(f"no {kinds} was raised")


assert tutti.torch.NAME == "tutti"
