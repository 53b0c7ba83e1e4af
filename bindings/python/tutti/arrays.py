# SPDX-License-Identifier: BSD-3-Clause
"""What a call reads and writes: where an object's elements are, how many, and of which type.

Calls take whatever has a reader below: arrays of numpy, tensors of torch, objects with
`__dlpack__`, objects with the buffer protocol. All must be in host memory, contiguous in C's order,
and writable if a call writes to them. Nothing is ever copied.
"""
import ctypes
from typing import Any, Callable, Dict, Tuple

from . import _c

# Address, number of elements, type, and the object that must live as long as the address is used.
Place = Tuple[int, int, int, Any]

#: The types of elements by the library's names for them.
TYPES: Dict[str, int] = {_c.tutti_type_name(kind).decode(): int(kind) for kind in _c.tutti_type}
NAMES: Dict[int, str] = {kind: name for name, kind in TYPES.items()}
SIZES: Dict[int, int] = {kind: _c.tutti_type_size(kind) for kind in NAMES}

# Other libraries' names of Tutti's types. What they call float8_e4m3 has infinities and is not
# here.
_ALIASES = {"float8_e4m3fn": "float8_e4m3", "float8_e4m3": ""}
# Types of numpy and torch, as they were found.
_known: Dict[Any, int] = {}


def type_of(name: Any) -> int:
    """The number of a type that is given as "float32", as a type of numpy or torch, or as the
    number itself."""
    kind = _known.get(name)
    if kind is None:
        if isinstance(name, int) and name in NAMES:
            return int(name)
        text = name if isinstance(name, str) else str(
            name.__name__ if isinstance(name, type) else getattr(name, "name", name))
        text = text.rsplit(".", 1)[-1]
        kind = TYPES.get(text if isinstance(name, str) else _ALIASES.get(text, text))
        if kind is None:
            raise TypeError(f"{name!r} is no type of elements: they are {', '.join(TYPES)}")
        _known[name] = kind
    return kind


def _refuse(what: str, obj: Any, problem: str, error: Callable[[str], Exception] = ValueError) -> Exception:
    return error(f"{what}: this {type(obj).__name__} {problem}")


_STRIDED = "is not contiguous: pass a contiguous copy of it"
_READ_ONLY = "is read-only, and the call writes to it"


# -- numpy -----------------------------------------------------------------------------


def _read_numpy(obj: Any, what: str, written: bool) -> Place:
    flags = obj.flags
    if not flags.c_contiguous:
        raise _refuse(what, obj, _STRIDED)
    if written and not flags.writeable:
        raise _refuse(what, obj, _READ_ONLY)
    dtype = obj.dtype
    kind = _known.get(dtype)
    if kind is None:
        if not dtype.isnative:
            raise _refuse(what, obj, f"has elements of foreign byte order ({dtype})", TypeError)
        kind = type_of(dtype)
    try:
        # The fastest way; not for arrays that are empty, read-only, or of another library's type.
        address = ctypes.addressof(ctypes.c_char.from_buffer(obj))
    except (TypeError, ValueError, BufferError):
        address = obj.ctypes.data
    return address, obj.size, kind, obj


# -- torch -----------------------------------------------------------------------------


def _read_torch(obj: Any, what: str, written: bool) -> Place:
    if obj.device.type != "cpu":
        raise _refuse(what, obj, f"is on the device {obj.device}, not in the host's memory")
    if not obj.is_contiguous():
        raise _refuse(what, obj, _STRIDED)
    if obj.is_conj() or obj.is_neg():
        raise _refuse(what, obj, "is conjugated or negated only when it is read: pass what its "
                                 "resolve_conj() and resolve_neg() return")
    kind = _known.get(obj.dtype)
    if kind is None:
        kind = type_of(obj.dtype)
    return obj.data_ptr(), obj.numel(), kind, obj


# -- The buffer protocol -----------------------------------------------------------------


class _Buffer(ctypes.Structure):
    """Py_buffer, which is the same in all versions of Python."""

    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int),
                ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_Buffer)]
_release_buffer.restype = None
_FORMATS = {"b": "int", "h": "int", "i": "int", "l": "int", "q": "int", "n": "int",
            "B": "uint", "H": "uint", "I": "uint", "L": "uint", "Q": "uint", "N": "uint",
            "c": "uint", "e": "float", "f": "float", "d": "float", "Zf": "complex", "Zd": "complex"}


def _type_of_format(view: memoryview) -> int:
    code = view.format.lstrip("@=<")
    if code == "?":
        return type_of("bool")
    if code not in _FORMATS:
        raise TypeError(f"elements of the format {view.format!r} are of no type that calls know")
    return type_of(f"{_FORMATS[code]}{8 * view.itemsize}")


def _read_buffer(obj: Any, what: str, written: bool) -> Place:
    view = memoryview(obj)
    if not view.c_contiguous:
        raise _refuse(what, obj, _STRIDED)
    if written and view.readonly:
        raise _refuse(what, obj, _READ_ONLY)
    raw = _Buffer()
    _get_buffer(view, ctypes.byref(raw), 0)
    address = raw.buf
    # From here on `view` keeps the memory.
    _release_buffer(ctypes.byref(raw))
    return address, view.nbytes // view.itemsize, _type_of_format(view), view


# -- DLPack ------------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer_of.restype = ctypes.c_void_p
_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
_HOST = (1, 3)  # host memory, and host memory that CUDA has pinned
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool", 10: "float8_e4m3fn",
          12: "float8_e5m2"}


def _read_dlpack(obj: Any, what: str, written: bool) -> Place:
    if obj.__dlpack_device__()[0] not in _HOST:
        raise _refuse(what, obj, "is on another device, not in the host's memory")
    try:
        capsule = obj.__dlpack__(max_version=(1, 0))
    except TypeError:  # from before DLPack had versions
        capsule = obj.__dlpack__()
    read_only = False
    if _is_capsule(capsule, b"dltensor_versioned"):
        head = _Versioned.from_address(_pointer_of(capsule, b"dltensor_versioned"))
        tensor, read_only = head.tensor, bool(head.flags & 1)
    else:
        tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    if written and read_only:
        raise _refuse(what, obj, _READ_ONLY)
    count = 1
    for axis in reversed(range(tensor.ndim)):
        if tensor.strides and tensor.shape[axis] > 1 and tensor.strides[axis] != count:
            raise _refuse(what, obj, _STRIDED)
        count *= tensor.shape[axis]
    name = _CODES.get(tensor.code, "")
    if tensor.code < 6:
        name = f"{name}{tensor.bits}"
    kind = TYPES.get(_ALIASES.get(name, name))
    if kind is None or tensor.lanes != 1:
        raise _refuse(what, obj, "has elements of a type that calls do not know", TypeError)
    return (tensor.data or 0) + tensor.byte_offset, count, kind, capsule


# -- Whatever it is ------------------------------------------------------------------------

_readers: Dict[type, Callable[[Any, str, bool], Place]] = {}


def _find_reader(obj: Any) -> Callable[[Any, str, bool], Place]:
    modules = {base.__module__.split(".")[0] + "." + base.__name__ for base in type(obj).__mro__}
    if "numpy.ndarray" in modules:
        return _read_numpy
    if "torch.Tensor" in modules:
        return _read_torch
    try:
        memoryview(obj)
        return _read_buffer
    except TypeError:
        if hasattr(obj, "__dlpack__"):
            return _read_dlpack
    raise TypeError(f"{type(obj).__name__} is no array: calls take what numpy or torch make, what has "
                    "__dlpack__, and what has the buffer protocol")


def read(obj: Any, what: str, written: bool) -> Place:
    """Where the elements of `obj` are. Errors call it `what`; `written` says that the call writes
    to it."""
    reader = _readers.get(type(obj))
    if reader is None:
        reader = _readers[type(obj)] = _find_reader(obj)
    return reader(obj, what, written)
