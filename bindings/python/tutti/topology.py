# SPDX-License-Identifier: BSD-3-Clause
"""How a machine is wired, and the plan of a job over machines, as text."""
import ctypes
from typing import Any, Optional, Sequence

from . import _c
from .errors import ArgumentError, check

_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]
_free.restype = None


def text_of(call: Any, *args: Any, handle: Optional[int] = None) -> str:
    """The text that a call prints into its last argument."""
    out = ctypes.c_void_p()
    check(call(*args, ctypes.byref(out)), handle)
    try:
        return ctypes.string_at(out.value or 0).decode(errors="replace")
    finally:
        _free(out)


def _format(name: str, prefix: str, formats: Any) -> int:
    known = {each.name[len(prefix):].lower().replace("_", "-"): int(each) for each in formats}
    if name not in known:
        raise ArgumentError(f"the format is {name!r}: it is one of {', '.join(known)}")
    return known[name]


class Topology:
    """How a machine is wired: this machine, one that a file in NCCL's format describes, or a
    captured one."""

    def __init__(self, xml: Optional[str] = None, sysfs: Optional[str] = None) -> None:
        config = _c.tutti_topo_config.new()
        config.xml_file = xml.encode() if xml else None
        config.sysfs_root = sysfs.encode() if sysfs else None
        handle = ctypes.c_void_p()
        self._handle: Optional[int] = None
        check(_c.tutti_topo_load(ctypes.byref(config), ctypes.byref(handle)))
        self._handle = handle.value

    def text(self, format: str = "tree", utf8: bool = True) -> str:
        """Printed as a tree, xml, json, dot, paths, paths-json, lint or lint-json."""
        return text_of(_c.tutti_topo_print, self._handle,
                       _format(format, "TUTTI_TOPO_", _c.tutti_topo_format),
                       _c.TUTTI_TOPO_UTF8 if utf8 else 0)

    def __str__(self) -> str:
        return self.text()

    def __del__(self) -> None:
        if self._handle:
            _c.tutti_topo_free(self._handle)


class JobPlan:
    """The plan of a job over machines: for each pattern the channels, what they carry, and how much
    any others could."""

    def __init__(self, nodes: Sequence[Topology], patterns: Optional[str] = None) -> None:
        config = _c.tutti_plan_config.new()
        config.patterns = patterns.encode() if patterns else None
        handles = (ctypes.c_void_p * len(nodes))(*(node._handle for node in nodes))
        handle = ctypes.c_void_p()
        self._nodes = list(nodes)
        self._handle: Optional[int] = None
        check(_c.tutti_plan_make(handles, len(nodes), ctypes.byref(config), ctypes.byref(handle)))
        self._handle = handle.value

    def text(self, format: str = "table", utf8: bool = True) -> str:
        """Printed as a table, json, explain, dot, nccl or advice."""
        return text_of(_c.tutti_plan_print, self._handle,
                       _format(format, "TUTTI_PLAN_", _c.tutti_plan_format),
                       _c.TUTTI_TOPO_UTF8 if utf8 else 0)

    def __str__(self) -> str:
        return self.text()

    def __del__(self) -> None:
        if self._handle:
            _c.tutti_plan_free(self._handle)
