# SPDX-License-Identifier: BSD-3-Clause
"""Tutti as a backend of torch.distributed.

    import torch.distributed as dist

    dist.init_process_group("tutti")

That is all with a PyTorch that looks for backends by itself; before an older one is told to use
"tutti", `import tutti.torch` registers it. docs/pytorch.md says more.
"""
from typing import Any, List, Optional

import torch as _torch
import torch.distributed as _dist

from ._record import BackendError, Entry
from ._work import Work
from ._memory import empty, share, shared_buckets
from ._process_group import NAME, TuttiBackend, TuttiGroup, create, engine_of, shrink_group
from ._windows import Window

__all__ = ["BackendError", "Entry", "TuttiBackend", "TuttiGroup", "Window", "Work", "empty",
           "flight_record", "new_window", "register", "share", "shared_buckets", "shrink_group"]


def register() -> None:
    """Register the backend with PyTorch. To call it again does nothing."""
    if NAME.upper() in _dist.Backend._plugins:  # pylint: disable=protected-access
        return
    try:
        _dist.Backend.register_backend(NAME, create, extended_api=True, devices=["cpu"])
    except TypeError:  # PyTorch 1 has backends without devices
        _dist.Backend.register_backend(NAME, create, extended_api=True)


def flight_record(group: Optional[Any] = None) -> List[Entry]:
    """The last calls of this rank on a group, oldest first: which call, with how many elements, and
    whether it is done. The record is also logged when a group is lost."""
    return engine_of(group).record()


def new_window(tensor: Optional[_torch.Tensor] = None, group: Optional[Any] = None) -> Window:
    """Make a window on a tensor of each rank of a group: see Window. All of its ranks call this. A
    rank without a tensor calls tensor_register() next."""
    return Window(engine_of(group), tensor)


register()
