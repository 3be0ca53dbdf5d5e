# SPDX-License-Identifier: Apache-2.0
"""Python callbacks in programs: pure_callback, io_callback, debug.print and similar functions.

JAX lowers callbacks differently for each platform that it knows. For this platform a callback becomes a custom call whose
target is a unique name; the PJRT library calls the Python function that was registered under it.
"""
import ctypes
import dataclasses
import itertools
import uuid
import weakref

import numpy as np
from jax.interpreters import mlir

from . import extensions, private

_EXTENSION = 0x436F6C  # the number of the extension in sdk/pjrt/host_functions.h
_INTERNAL = 13


class _Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("reserved", ctypes.c_uint32), ("message", ctypes.c_char * 504)]


class _Call(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("participant", ctypes.c_uint32), ("operand_count", ctypes.c_uint32),
                ("result_count", ctypes.c_uint32), ("operands", ctypes.POINTER(ctypes.c_void_p)),
                ("results", ctypes.POINTER(ctypes.c_void_p)), ("operand_types", ctypes.c_void_p),
                ("result_types", ctypes.c_void_p), ("run_id", ctypes.c_uint64)]


_Function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(_Call), ctypes.POINTER(_Error))


class _Extension(ctypes.Structure):
    _fields_ = [*extensions.BASE,
                ("add", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, _Function)),
                ("remove", ctypes.CFUNCTYPE(None, ctypes.c_char_p)),
                ("take_unused", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)))]


def _message(error):
    """Returns the message of a failing callback; the kind of error and its text come first, because the message may be truncated."""
    try:
        said = str(error)
    except BaseException:  # converting the error to text runs code of the program, which may fail
        said = "(without a text)"
    text = f"CpuCallback error calling callback: {type(error).__name__}: {said}"
    return text.encode(errors="replace").replace(b"\0", b"?")[:500].decode(errors="ignore").encode()


class _Callback:
    """Wraps a Python function so that the library can call it."""

    def __init__(self, function, operands, results):
        self.function, self.operands, self.results = function, operands, results

    def __call__(self, call):
        arguments = [_read(call.operands[i], aval) for i, aval in enumerate(self.operands) if aval is not None]
        values = iter(self.function(*arguments))
        for i, aval in enumerate(self.results):
            if aval is None:
                continue
            value = np.ascontiguousarray(next(values))
            if value.nbytes:
                ctypes.memmove(call.results[i], value.ctypes.data, value.nbytes)


def _read(address, aval):
    size = aval.dtype.itemsize * aval.size
    data = ctypes.string_at(address, size) if size else b""
    return np.frombuffer(data, aval.dtype).reshape(aval.shape)


_numbers = itertools.count(1)
_callbacks: dict[int, _Callback] = {}
_process = uuid.uuid4().hex


@_Function
def _trampoline(user, call, error):
    try:
        _callbacks[user](call.contents)
        return 0
    except BaseException as e:  # no exception may propagate into the library
        error.contents.code, error.contents.message = _INTERNAL, _message(e)
        return _INTERNAL


class _Registration:
    """Holds a callback as long as a program may call it."""

    def __init__(self, extension, callback):
        number = next(_numbers)
        self.target = f"collet_python_callback_{_process}_{number}"
        _drop_unused(extension)
        _callbacks[number] = callback
        extension.add(self.target.encode(), number, _trampoline)
        weakref.finalize(self, _forget, extension, self.target).atexit = False


def _forget(extension, target):
    """Removes a function after its program was destroyed; queued runs of the program may still call it."""
    extension.remove(target.encode())
    _drop_unused(extension)


def _drop_unused(extension):
    number = ctypes.c_void_p()
    while extension.take_unused(ctypes.byref(number)):
        _callbacks.pop(number.value, None)


def _physical(aval):
    """Returns the abstract value with a physical type; None for tokens, which have no data."""
    return None if aval is private.abstract_token else private.physical_aval(aval)


def _is_for_each_device(context):
    """Returns whether the operations that are lowered now are those of one device: it is the only one, or all axes are manual."""
    mesh = getattr(context, "mesh", None)
    if mesh is not None and hasattr(context, "manual_axes"):
        return set(context.manual_axes) >= set(mesh.axis_names)
    return getattr(context, "num_devices", 1) == 1


def _emit(extension, ctx, callback, token, operands, operand_avals, result_avals, *, has_side_effect, returns_token=True,
          partitioned=False, sharding=None):
    del returns_token
    if partitioned and result_avals:
        raise ValueError("Partitioned callback not supported with return values.")
    if partitioned and not _is_for_each_device(ctx.module_context.axis_context):
        # How the operands are sharded is decided after the lowering, and a call gathers them.
        platform, = ctx.module_context.platforms
        raise NotImplementedError(f"Partitioned callback not implemented on {platform} backend for programs of several devices: "
                                  "call it in a jax.shard_map over all axes of the mesh, which needs no `partitioned`.")

    def checked(*arguments):
        values = callback(*arguments)
        if len(values) != len(result_avals):
            raise RuntimeError("Mismatched number of outputs from callback. "
                               f"Expected: {len(result_avals)}, Actual: {len(values)}")
        values = [private.canonicalize_value(np.asarray(value)) for value in values]
        for i, (value, aval) in enumerate(zip(values, result_avals)):
            if value.shape != aval.shape:
                raise RuntimeError(f"Incorrect output shape for return value #{i}: "
                                   f"Expected: {aval.shape}, Actual: {value.shape}")
            if value.dtype != aval.dtype:
                raise RuntimeError(f"Incorrect output dtype for return value #{i}: "
                                   f"Expected: {aval.dtype}, Actual: {value.dtype}")
        return values

    tokens = [private.abstract_token] if token else []
    ctx = dataclasses.replace(ctx, avals_in=[*tokens, *operand_avals], avals_out=[*tokens, *result_avals])
    registration = _Registration(extension, _Callback(checked, [_physical(a) for a in ctx.avals_in],
                                                      [_physical(a) for a in ctx.avals_out]))
    ctx.module_context.add_keepalive(registration)
    call = private.build_ffi_lowering_function(registration.target, has_side_effect=has_side_effect)
    op = call(ctx, *([token] if token else []), *operands)
    if sharding is not None:
        if token and result_avals and isinstance(sharding, private.SdyArrayList):  # one more sharding, for the token
            of_token = private.SdyArray(mesh_shape=(), dim_shardings=(),
                                logical_device_ids=sharding.shardings[0].logical_device_ids)
            sharding = private.SdyArrayList((of_token, *sharding.shardings))
        private.shard(ctx.module_context, op, sharding)
    results = list(op.results)
    if token:
        token = results.pop(0)
    return results, token, None


_libraries: dict[str, _Extension] = {}


def _wrap(original):
    def emit_python_callback(ctx, callback, token, operands, operand_avals, result_avals, **options):
        platforms = ctx.module_context.platforms
        arguments = (ctx, callback, token, operands, operand_avals, result_avals)
        if len(platforms) == 1 and platforms[0] in _libraries:
            return _emit(_libraries[platforms[0]], *arguments, **options)
        return original(*arguments, **options)

    return emit_python_callback


def register(platform: str, library) -> None:
    """Enables Python callbacks in programs for `platform`, which uses the PJRT library at the path `library`."""
    if not _libraries:
        private.callback.emit_python_callback = _wrap(private.callback.emit_python_callback)
        mlir.emit_python_callback = private.callback.emit_python_callback
    _libraries[platform] = extensions.Library(library).find(_EXTENSION, _Extension)
    for what, primitive, lowering in (("jax.debug.callback", "debug_callback_p", "debug_callback_lowering"),
                                      ("jax.debug.print", "debug_print_p", "debug_print_lowering")):
        private.attempt(what, lambda: mlir.register_lowering(private.find(primitive), private.find(lowering), platform=platform))
