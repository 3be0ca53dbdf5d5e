# SPDX-License-Identifier: Apache-2.0
"""Host memory: arrays of others as the library takes them, and views of the library's memory for others, by the buffer protocol
and by DLPack, without copies."""
from __future__ import annotations

import ctypes as c
import itertools
import sys
import threading
from typing import Any, NamedTuple

from collet import _types
from collet._abi import Callback, DoneFn
from collet._types import ArrayType, Element


class HostView(NamedTuple):
    """An array in host memory. `owner` keeps the memory; `strides` are in bytes, None for dense row-major data."""
    type: ArrayType
    address: int
    strides: tuple[int, ...] | None
    owner: Any


class _PyBuffer(c.Structure):
    _fields_ = [("buf", c.c_void_p), ("obj", c.py_object), ("len", c.c_ssize_t), ("itemsize", c.c_ssize_t), ("readonly", c.c_int),
                ("ndim", c.c_int), ("format", c.c_char_p), ("shape", c.POINTER(c.c_ssize_t)), ("strides", c.POINTER(c.c_ssize_t)),
                ("suboffsets", c.POINTER(c.c_ssize_t)), ("internal", c.c_void_p)]


_FULL_READ_ONLY = 0x0100 | 0x0010 | 0x0008 | 0x0004  # PyBUF_FULL_RO: strides, shape, format
_get_buffer = c.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = [c.py_object, c.c_void_p, c.c_int], c.c_int
_release_buffer = c.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = [c.c_void_p], None


class _Buffer:
    """Holds the buffer of an object until it is dropped."""

    def __init__(self, value: Any) -> None:
        self.view = _PyBuffer()
        self.held = False
        _get_buffer(value, c.addressof(self.view), _FULL_READ_ONLY)  # raises BufferError or TypeError
        self.held = True

    def __del__(self, release: Any = _release_buffer, address_of: Any = c.addressof) -> None:  # the module may be gone
        if self.held:
            release(address_of(self.view))


def _from_buffer(value: Any, element: Element | None) -> HostView:
    holder = _Buffer(value)
    view = holder.view
    if element is None:
        name = (view.format or b"B").decode().lstrip("@=" if c.sizeof(c.c_long) == 8 else "@")
        if name[:1] == "<":  # the machine's own order
            name = name[1:]
        element = _types.BY_FORMAT.get(name)
        if element is None or element.size != view.itemsize:
            raise TypeError(f"elements of format '{name}' with {view.itemsize} bytes have no type here")
    if view.suboffsets:
        raise TypeError("an array of pointers to rows has no dense memory")
    shape = tuple(view.shape[i] for i in range(view.ndim))
    strides = tuple(view.strides[i] for i in range(view.ndim)) if view.strides else None
    return HostView(ArrayType(element.name, shape), view.buf or 0, strides, (holder, value))


# DLPack, of its version 1.0.
class _Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32), ("code", c.c_uint8),
                ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
                ("byte_offset", c.c_uint64)]


_Deleter = c.CFUNCTYPE(None, c.c_void_p)


class _Managed(c.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c.c_void_p), ("deleter", _Deleter)]


class _Versioned(c.Structure):
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("context", c.c_void_p), ("deleter", _Deleter), ("flags", c.c_uint64),
                ("tensor", _Tensor)]


_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"
_USED = {_PLAIN: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}
_READ_ONLY = 1
_HOST_DEVICES = (1, 3)  # CPU, and its memory that CUDA has pinned
CPU = (1, 0)


def _python(name: str, result: Any, *parameters: Any) -> Any:
    function = getattr(c.pythonapi, name)
    function.restype, function.argtypes = result, list(parameters)
    return function


_capsule_new = _python("PyCapsule_New", c.py_object, c.c_void_p, c.c_char_p, c.c_void_p)
_is_valid = _python("PyCapsule_IsValid", c.c_int, c.py_object, c.c_char_p)
_get_pointer = _python("PyCapsule_GetPointer", c.c_void_p, c.py_object, c.c_char_p)
_set_name = _python("PyCapsule_SetName", c.c_int, c.py_object, c.c_char_p)


class _Imported:
    """Holds the tensor of a capsule until it is dropped."""

    def __init__(self, pointer: int, deleter: Any) -> None:
        self.pointer, self.deleter = pointer, deleter

    def __del__(self) -> None:
        if self.deleter:
            self.deleter(self.pointer)


def _from_dlpack(value: Any) -> HostView:
    device = tuple(value.__dlpack_device__())
    if device[0] not in _HOST_DEVICES:
        raise TypeError(f"the array is on a device of DLPack's type {int(device[0])}: copy it to the host first")
    try:
        capsule = value.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = value.__dlpack__()
    for name, kind in ((_VERSIONED, _Versioned), (_PLAIN, _Managed)):
        if _is_valid(capsule, name):
            break
    else:
        raise TypeError(f"{type(value).__name__}.__dlpack__() has given no DLPack capsule")
    pointer = _get_pointer(capsule, name)
    managed: Any = kind.from_address(pointer)
    _set_name(capsule, _USED[name])
    owner = _Imported(pointer, managed.deleter)
    if kind is _Versioned and managed.major != 1:
        raise TypeError(f"DLPack {managed.major} is not known here")
    tensor = managed.tensor
    element = _types.BY_DLPACK.get((tensor.code, tensor.bits))
    if element is None or tensor.lanes != 1:
        raise TypeError(f"elements of DLPack's type {tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes have no type here")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] * element.size for i in range(tensor.ndim)) if tensor.strides else None
    return HostView(ArrayType(element.name, shape), (tensor.data or 0) + tensor.byte_offset, strides, (owner, capsule))


def _scalar(value: Any, expected: ArrayType) -> HostView:
    element = _types.BY_NAME[expected.element]
    if element.name in ("c64", "c128"):
        part = c.c_float if element.name == "c64" else c.c_double
        data: Any = (part * 2)(complex(value).real, complex(value).imag)
    elif element.format:
        import struct
        try:
            packed = struct.pack(element.format, bool(value) if element.name == "pred" else value)
        except (struct.error, OverflowError) as error:
            raise TypeError(f"{value!r} is no {element.name}: {error}") from None
        data = c.create_string_buffer(packed, len(packed))
    else:
        raise TypeError(f"a Python number cannot be made a {element.name} here: pass an array")
    return HostView(ArrayType(element.name, ()), c.addressof(data), None, data)


def view_of(value: Any, expected: ArrayType | None) -> HostView:
    """Returns `value` as an array in host memory: an object with the buffer protocol (numpy, array, memoryview), with DLPack
    (torch, jax on the cpu), a number, or, with numpy, a list. `expected` gives numbers and lists their type. Raises TypeError."""
    if isinstance(value, (bool, int, float, complex)) and not hasattr(value, "dtype"):  # numpy's scalars have a type
        if expected is None:
            raise TypeError("a Python number has no element type: pass an array")
        return _scalar(value, expected)
    if isinstance(value, (list, tuple)):
        import numpy
        value = numpy.asarray(value, dtype=expected.dtype if expected is not None else None)
    name = getattr(getattr(value, "dtype", None), "name", None)
    if hasattr(value, "__array_interface__") and name in _types.BY_NUMPY:
        element = _types.BY_NUMPY[name]
        if not value.dtype.isnative:
            raise TypeError("the elements have the other byte order: use value.astype(value.dtype.newbyteorder('='))")
        # ml_dtypes' arrays have no buffer; their bytes have.
        return _from_buffer(value if element.format or element.name in ("c64", "c128") else value.view(f"u{element.size}"), element)
    try:
        memoryview(value).release()
    except (TypeError, BufferError):  # jax has no buffers of types that the protocol does not know
        if hasattr(value, "__dlpack__"):
            return _from_dlpack(value)
        raise TypeError(f"a {type(value).__name__} is no array: it has neither the buffer protocol nor __dlpack__") from None
    return _from_buffer(value, None)


# What others still use of our memory, and what the library still uses of others'.
_kept: dict[int, Any] = {}
_tokens = itertools.count(1)
_tokens_lock = threading.Lock()


def keep(value: Any) -> int:
    """Keeps `value` until drop(token) is called; returns the token."""
    with _tokens_lock:
        token = next(_tokens)
    _kept[token] = value
    return token


def drop(token: int) -> None:
    _kept.pop(token, None)


def _done(token: int | None) -> None:
    with Callback():
        drop(token or 0)


# The library calls it, on any thread, when it no longer needs the memory of a host array.
done_function = DoneFn(_done)


# The capsules of which it is not known yet whether a consumer takes them, by their pointers. They have no destructor: it would run while
# the error of a consumer that refuses the array is set, and Python code cannot run then without losing that error.
_offered: dict[int, Any] = {}
_offered_lock = threading.RLock()  # a finalizer may come here while it is held


def _delete(pointer: int | None) -> None:
    _offered.pop(pointer or 0, None)
    _kept.pop(-(pointer or 0), None)


_deleter = _Deleter(_delete)


def drop_refused() -> None:
    """Drops what is kept for capsules that nobody has taken and nobody can take any more."""
    if not _offered:
        return
    dropped = []
    with _offered_lock:
        for pointer in list(_offered):
            # The references are those of _offered and of the call. If there is no other one, nobody can take it from here on.
            is_alone = sys.getrefcount(_offered.get(pointer)) == 2
            is_taken = not any(_is_valid(_offered.get(pointer), name) for name in _USED)
            if is_taken or is_alone:
                dropped.append(_offered.pop(pointer, None))
            if is_alone and not is_taken:
                dropped.append(_kept.pop(-pointer, None))
    del dropped  # without the lock: it may end owners


def capsule_of(kind: ArrayType, address: int, owner: Any, versioned: bool, read_only: bool) -> Any:
    """Returns a DLPack capsule of dense row-major data; whoever takes it keeps `owner`. Raises BufferError."""
    element = _types.BY_NAME[kind.element]
    if element.dlpack is None:
        raise BufferError(f"DLPack has no type for {element.name}")
    rank = len(kind.shape)
    shape, strides = (c.c_int64 * rank)(*kind.shape), (c.c_int64 * rank)()
    step = 1
    for i in reversed(range(rank)):
        strides[i] = step
        step *= kind.shape[i]
    code, bits = element.dlpack
    tensor = _Tensor(address, *CPU, rank, code, bits, 1, shape, strides, 0)
    managed: Any = (_Versioned(1, 0, None, _deleter, _READ_ONLY if read_only else 0, tensor) if versioned else
                    _Managed(tensor, None, _deleter))
    pointer = c.addressof(managed)
    drop_refused()
    capsule = _capsule_new(pointer, _VERSIONED if versioned else _PLAIN, None)
    with _offered_lock:
        _kept[-pointer] = (managed, shape, strides, owner)
        _offered[pointer] = capsule
    return capsule


def memory_of(address: int, size: int, owner: Any) -> memoryview:
    """Returns a read-only view of bytes that are `owner`'s; the view keeps `owner`."""
    array_type: Any = type("Memory", (c.c_char * size,), {})  # a subclass, because its objects can have attributes
    array = array_type.from_address(address) if size else array_type()
    array.owner = owner
    return memoryview(array).cast("B").toreadonly()
