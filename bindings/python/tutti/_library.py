# SPDX-License-Identifier: BSD-3-Clause
"""Where the parts of the package are that are not Python; the libraries are loaded here."""
import ctypes
import functools
import os

HERE = os.path.dirname(os.path.abspath(__file__))

lib = ctypes.CDLL(os.path.join(HERE, "lib", "libtutti.so.0"))


@functools.lru_cache(maxsize=None)
def insight() -> ctypes.CDLL:
    """The library for tools, which is loaded when something of it is first used."""
    return ctypes.CDLL(os.path.join(HERE, "lib", "libtutti_insight.so.0"))


def get_include() -> str:
    """The directory for `cc -I`: it has tutti/tutti.h."""
    return os.path.join(HERE, "include")


def get_library_dir() -> str:
    """The directory for `cc -L`: it has libtutti."""
    return os.path.join(HERE, "lib")


def get_tool() -> str:
    """The program `tutti`, which is also what `python -m tutti` runs."""
    return os.path.join(HERE, "bin", "tutti")
