# SPDX-License-Identifier: BSD-3-Clause
"""CUDA's runtime by ctypes, as much as the programs here need: memory of a device, and streams."""
import array
import ctypes
from typing import Any, Sequence

_lib = ctypes.CDLL("libcudart.so.12")
_lib.cudaGetErrorString.restype = ctypes.c_char_p
_TO_DEVICE, _TO_HOST = 1, 2


def cuda(name: str, *arguments: Any) -> None:
    """Call a function of CUDA's runtime, whose error is an exception."""
    error = getattr(_lib, name)(*arguments)
    if error:
        raise RuntimeError(f"{name}: {_lib.cudaGetErrorString(error).decode()}")


class Memory:
    """Floats on the current device, which Python's garbage collector frees."""

    def __init__(self, values: Sequence[float]) -> None:
        self.n = len(values)
        memory = ctypes.c_void_p()
        cuda("cudaMalloc", ctypes.byref(memory), ctypes.c_size_t(4 * self.n))
        self.at = memory.value or 0
        self.write(values)

    def __del__(self) -> None:
        cuda("cudaFree", ctypes.c_void_p(self.at))

    def write(self, values: Sequence[float]) -> None:
        host = array.array("f", values)
        cuda("cudaMemcpy", ctypes.c_void_p(self.at), ctypes.c_void_p(host.buffer_info()[0]),
             ctypes.c_size_t(4 * len(host)), _TO_DEVICE)

    def read(self) -> Sequence[float]:
        host = array.array("f", bytes(4 * self.n))
        cuda("cudaMemcpy", ctypes.c_void_p(host.buffer_info()[0]), ctypes.c_void_p(self.at),
             ctypes.c_size_t(4 * self.n), _TO_HOST)
        return list(host)


class Stream:
    """A stream of the current device."""

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        cuda("cudaStreamCreate", ctypes.byref(handle))
        self.at = handle.value or 0

    def synchronize(self) -> None:
        cuda("cudaStreamSynchronize", ctypes.c_void_p(self.at))

    def destroy(self) -> None:
        cuda("cudaStreamDestroy", ctypes.c_void_p(self.at))
