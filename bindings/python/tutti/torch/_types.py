# SPDX-License-Identifier: BSD-3-Clause
"""Tensors and reductions as the library's calls see them."""
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from .. import _c

# Of equal names here and there; others are moved as bytes and cannot be reduced.
_NAMES = {"bool": "BOOL", "uint8": "UINT8", "int8": "INT8", "int16": "INT16", "uint16": "UINT16",
          "int32": "INT32", "uint32": "UINT32", "int64": "INT64", "uint64": "UINT64",
          "float16": "FLOAT16", "bfloat16": "BFLOAT16", "float32": "FLOAT32",
          "float64": "FLOAT64", "float8_e4m3fn": "FLOAT8_E4M3", "float8_e5m2": "FLOAT8_E5M2",
          "complex64": "COMPLEX64", "complex128": "COMPLEX128"}

TYPES: Dict[torch.dtype, int] = {
    getattr(torch, ours): int(getattr(_c.tutti_type, "TUTTI_" + theirs))
    for ours, theirs in _NAMES.items() if hasattr(torch, ours)}
_BYTES = int(_c.tutti_type.TUTTI_UINT8)

_OPERATORS = {"SUM": "SUM", "AVG": "AVG", "PRODUCT": "PROD", "MIN": "MIN", "MAX": "MAX",
              "BAND": "BAND", "BOR": "BOR", "BXOR": "BXOR"}
_RED = torch.distributed.ReduceOp
OPERATORS: Dict[Any, int] = {
    getattr(_RED, ours): int(getattr(_c.tutti_op, "TUTTI_" + theirs))
    for ours, theirs in _OPERATORS.items()}
_PREMULTIPLIED = _RED.PREMUL_SUM


class Move(NamedTuple):
    """How elements are moved: `factor` of the library's elements of `type` for each."""

    type: int
    factor: int


_moves: Dict[torch.dtype, Move] = {dtype: Move(kind, 1) for dtype, kind in TYPES.items()}


def move_of(tensor: torch.Tensor) -> Move:
    """How the elements of `tensor` are moved: as bytes, if the library has no such type."""
    found = _moves.get(tensor.dtype)
    if found is None:
        found = _moves[tensor.dtype] = Move(_BYTES, tensor.element_size())
    return found


def operator_of(tensor: torch.Tensor, reduction: Any) -> Tuple[int, int, Optional[Any]]:
    """The library's type and operator for reducing `tensor`. For a pre-multiplied sum the factor,
    of which the operator is still to be made."""
    kind = TYPES.get(tensor.dtype)
    if kind is None:
        raise RuntimeError(f"Invalid scalar type: tensors of {tensor.dtype} cannot be reduced")
    which = getattr(reduction, "op", reduction)
    operator = OPERATORS.get(which)
    if operator is None:
        if which != _PREMULTIPLIED:
            raise RuntimeError(f"{which} is no reduction that Tutti knows")
        state = reduction.__getstate__()
        if state is None:
            raise RuntimeError("PREMUL_SUM needs a PyTorch that tells the factor to Python")
        return kind, -1, state[1]
    return kind, operator, None


def scalar_of(factor: Any, like: torch.Tensor) -> torch.Tensor:
    """The factor of a pre-multiplied sum, as one element of the type of `like`."""
    return torch.as_tensor(factor, dtype=like.dtype).reshape(-1)[:1].contiguous()


# -- Checks --------------------------------------------------------------------------------


def check_tensor(tensor: torch.Tensor, call: str) -> None:
    """Check that calls can take `tensor`: it is on the host and dense."""
    if not tensor.is_cpu:
        raise RuntimeError(f"{call}: tensors must be on the CPU, not on {tensor.device}")
    if tensor.layout != torch.strided:
        raise RuntimeError(f"{call}: tensors must be dense, not {tensor.layout}")


def only(tensors: Sequence[torch.Tensor], call: str) -> torch.Tensor:
    """The one tensor of a list; several tensors of a rank in one call are not supported."""
    if len(tensors) != 1:
        raise RuntimeError(f"{call}: requires a single-element tensor list, not {len(tensors)}")
    check_tensor(tensors[0], call)
    return tensors[0]


def check_alike(tensors: Sequence[torch.Tensor], like: torch.Tensor, call: str,
                sizes: bool = True) -> None:
    """Check that calls can take `like`, and that all have its type and, if asked, as many elements."""
    check_tensor(like, call)
    for at, tensor in enumerate(tensors):
        check_tensor(tensor, call)
        if tensor.dtype != like.dtype:
            raise RuntimeError(f"{call}: invalid tensor type at index {at} "
                               f"(expected {like.dtype}, got {tensor.dtype})")
        if sizes and tensor.numel() != like.numel():
            raise RuntimeError(f"{call}: invalid tensor size at index {at} "
                               f"(expected {tuple(like.shape)}, got {tuple(tensor.shape)})")


def check_root(root: int, size: int, call: str) -> int:
    """Check that the group has rank `root`, and return it."""
    if not 0 <= root < size:
        raise RuntimeError(f"{call}: invalid root rank: {root}")
    return root


# -- Memory --------------------------------------------------------------------------------


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements lie one after the other, and none is conjugated or negated when it is read."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor`, or a copy that is dense."""
    if is_dense(tensor):
        return tensor
    return tensor.detach().contiguous().resolve_conj().resolve_neg()


def landing(tensor: torch.Tensor) -> torch.Tensor:
    """Where to receive what is for `tensor`: there, or beside it if it is not dense."""
    if is_dense(tensor):
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype)


def land(received: torch.Tensor, tensor: torch.Tensor) -> None:
    """Put what was received where it belongs; nothing if it is there. In whatever mode the thread
    is: PyTorch would refuse to write to leaves and to tensors of inference mode."""
    if received is not tensor:
        with torch.inference_mode():
            tensor.copy_(received)


class Places:
    """Tensors that one call reads or writes: an address, and how many elements of the library each
    has and how far behind the address. They lie wherever they do, so nothing is packed, but for
    tensors that are not dense, and where the caller needs them one after the other."""

    def __init__(self, tensors: Sequence[torch.Tensor], packed: bool, reads: bool) -> None:
        self.tensors = tensors
        self.move = move_of(tensors[0])
        self.counts = [tensor.numel() * self.move.factor for tensor in tensors]
        size = tensors[0].element_size() // self.move.factor
        self.held: List[torch.Tensor] = [
            dense(tensor) if reads else landing(tensor) for tensor in tensors]
        addresses = [tensor.data_ptr() for tensor in self.held]
        there = [address for address, count in zip(addresses, self.counts) if count]
        self.address = min(there) if there else 0
        self.displacements = [max(address - self.address, 0) // size for address in addresses]
        at = 0
        for displacement, count in zip(self.displacements, self.counts):
            if count and displacement != at:
                self.consecutive = False
                break
            at += count
        else:
            self.consecutive = True
        odd = any((address - self.address) % size for address in there)
        if (packed and not self.consecutive) or odd:
            self._pack(reads)
        self.even = self.consecutive and len(set(self.counts)) == 1

    def _pack(self, reads: bool) -> None:
        numbers = [tensor.numel() for tensor in self.tensors]
        buffer = torch.empty(sum(numbers), dtype=self.tensors[0].dtype)
        with torch.inference_mode():
            parts = [part.view(tensor.shape)
                     for part, tensor in zip(buffer.split(numbers), self.tensors)]
            if reads:
                for part, tensor in zip(parts, self.tensors):
                    part.copy_(tensor)
        self.held = parts
        self.address = buffer.data_ptr()
        at = 0
        for index, count in enumerate(self.counts):
            self.displacements[index] = at
            at += count
        self.consecutive = True

    def unpack(self) -> None:
        """After a call that wrote: put what was received elsewhere where it belongs."""
        for received, tensor in zip(self.held, self.tensors):
            land(received, tensor)
