# SPDX-License-Identifier: BSD-3-Clause
"""Tensors in memory that the other ranks of the host address: large calls on them move each byte
once, where other memory is copied into slots and out of them."""
import ctypes
import weakref
from typing import Any, Callable, Dict, Optional, Sequence

import torch
import torch.distributed as dist

from .. import _c
from ._record import error_of


def empty(*shape: Any, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """A tensor of zeros in shared memory. Its shape is numbers, or a sequence of them. It may
    outlive groups; its memory is freed with the last tensor that uses it. Calls of every group gain
    from it, if all ranks give such memory. RuntimeError: there is not so much of it
    (TUTTI_SHM_HEAP)."""
    dtype = dtype or torch.get_default_dtype()
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    count = 1
    for size in shape:
        count *= size
    if count == 0:
        return torch.empty(*shape, dtype=dtype)
    size = count * torch.empty(0, dtype=dtype).element_size()
    address = ctypes.c_void_p()
    status = _c.tutti_mem_alloc(ctypes.byref(address), size, None)
    if status < 0:
        raise error_of(status, "empty")
    # A tensor holds the buffer that it was made of.
    buffer = (ctypes.c_char * size).from_address(address.value or 0)
    weakref.finalize(buffer, _c.tutti_mem_free, address.value, None).atexit = False
    return torch.frombuffer(buffer, dtype=dtype).reshape(shape)


def shared_buckets(group: Optional[Any] = None) -> Callable[..., Any]:
    """A hook for DistributedDataParallel that reduces gradients in shared memory:

        model.register_comm_hook(None, tutti.torch.shared_buckets())

    Each bucket is copied there once, and gradients are read from there. On two ranks the results
    have the same bits as without the hook; on more the order of the sums may be another one.
    `group` is that of the model; None: the default group."""
    places: Dict[int, torch.Tensor] = {}

    # PyTorch looks at the annotations.
    def hook(_state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        given = bucket.buffer()
        place = places.get(bucket.index())
        if place is None or place.numel() != given.numel() or place.dtype != given.dtype:
            place = places[bucket.index()] = empty(given.numel(), dtype=given.dtype)
        torch.mul(given, 1 / dist.get_world_size(group), out=place)
        work = dist.all_reduce(place, group=group, async_op=True)
        return work.get_future().then(lambda done: done.value()[0])

    return hook


def share(tensors: Sequence[torch.Tensor]) -> None:
    """Move tensors, as parameters of a model or buffers, into shared memory, with what they hold.
    Before anything else keeps their memory: an optimizer, or a wrapper of the model."""
    with torch.no_grad():
        for tensor in tensors:
            tensor.data = empty(*tensor.shape, dtype=tensor.dtype).copy_(tensor)
