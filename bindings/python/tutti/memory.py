# SPDX-License-Identifier: BSD-3-Clause
"""Memory that the other ranks of a host reach, so that large calls on it move each byte once."""
import ctypes
import math
import weakref
from typing import Any, Sequence, Union

from . import _c
from .arrays import SIZES, type_of
from .errors import check


def empty(shape: Union[int, Sequence[int]], dtype: Any = "float32") -> Any:
    """An array of zeros in memory that all ranks of the host can address, in calls of any
    communicator. It is an array of numpy, if that is installed, else a memoryview of bytes. The
    memory belongs to the process and is freed when nobody has the array any more."""
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    nbytes = math.prod(dims) * SIZES[type_of(dtype)]
    address = ctypes.c_void_p()
    check(_c.tutti_mem_alloc(ctypes.byref(address), max(nbytes, 1), None))
    assert address.value is not None
    raw = (ctypes.c_char * nbytes).from_address(address.value)
    # Other code that runs when the program ends may still use the array.
    weakref.finalize(raw, _c.tutti_mem_free, address.value, None).atexit = False
    try:
        import numpy
    except ImportError:
        return memoryview(raw).cast("B")
    return numpy.ndarray(dims, numpy.dtype(dtype), memoryview(raw))
