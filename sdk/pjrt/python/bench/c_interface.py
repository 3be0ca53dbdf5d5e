# SPDX-License-Identifier: Apache-2.0
"""Runs programs through Collet's C interface (sdk/include/collet/collet.h), without a framework between caller and library."""
import ctypes
import os
import pathlib

# COLLET_TYPE_* by the name of numpy's type
ELEMENTS = {"bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
            "float16": 10, "float32": 11, "float64": 12, "bfloat16": 16}
NONE = 0xFFFFFFFF  # COLLET_NONE
HOST_COPIED = 0  # COLLET_HOST_COPIED


class Failure(Exception):
    """A call of the library failed, with its message."""


class _Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32), ("reserved", ctypes.c_uint32), ("message", ctypes.c_char * 504)]


class _Type(ctypes.Structure):
    _fields_ = [("element", ctypes.c_uint32), ("rank", ctypes.c_uint32), ("dims", ctypes.POINTER(ctypes.c_int64))]


class _HostArray(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("element", ctypes.c_uint32), ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("byte_strides", ctypes.c_void_p), ("data", ctypes.c_void_p), ("rank", ctypes.c_uint32), ("semantics", ctypes.c_uint32),
                ("user", ctypes.c_void_p), ("done", ctypes.c_void_p)]


class _ExecuteOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("keep_donated", ctypes.c_uint32), ("run_id", ctypes.c_uint64),
                ("non_donatable", ctypes.c_void_p), ("non_donatable_count", ctypes.c_uint32), ("synchronous", ctypes.c_uint32),
                ("out_done", ctypes.c_void_p)]


_POINTER, _PLACES = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
_ARGUMENTS = {
    "collet_client_open": [_POINTER, _PLACES, _POINTER],
    "collet_client_close": [_POINTER],
    "collet_module_read": [ctypes.c_char_p, ctypes.c_uint64, _POINTER, _PLACES, _PLACES, _POINTER],
    "collet_module_release": [_POINTER],
    "collet_compile": [_POINTER, _POINTER, _POINTER, _PLACES, _POINTER],
    "collet_executable_result": [_POINTER, ctypes.c_uint32],
    "collet_executable_release": [_POINTER],
    "collet_execute": [_POINTER, _POINTER, _PLACES, _PLACES, _POINTER],
    "collet_buffer_from_host": [_POINTER, ctypes.c_uint32, ctypes.c_uint32, _POINTER, _PLACES, _POINTER],
    "collet_buffer_to_host": [_POINTER, _POINTER, ctypes.c_uint64, _PLACES, _POINTER],
    "collet_buffer_release": [_POINTER],
}
_RESULTS = {"collet_executable_result": _Type, **{name: None for name in _ARGUMENTS if name.endswith(("_release", "_close"))}}


class Client:
    """A backend, opened by the library that lies beside the PJRT library. The environment chooses the backend."""

    def __init__(self):
        self.library = ctypes.CDLL(str(pathlib.Path(os.environ["COLLET_PJRT_LIBRARY"]).with_name("libcollet.so")))
        for name, arguments in _ARGUMENTS.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = arguments, _RESULTS.get(name, ctypes.c_int32)
        self.handle = ctypes.c_void_p()
        self.check("collet_client_open", None, ctypes.byref(self.handle))

    def check(self, name, *arguments):
        error = _Error()
        if getattr(self.library, name)(*arguments, ctypes.byref(error)) != 0:
            raise Failure(f"{name}: {error.message.decode()}")

    def buffer(self, array):
        """Returns the address of a buffer with a copy of a dense array."""
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        host = _HostArray(ctypes.sizeof(_HostArray), ELEMENTS[array.dtype.name], dims, None, array.ctypes.data, array.ndim, HOST_COPIED)
        buffer = ctypes.c_void_p()
        self.check("collet_buffer_from_host", self.handle, 0, NONE, ctypes.byref(host), ctypes.byref(buffer))
        return buffer.value

    def close(self):
        self.library.collet_client_close(self.handle)


class Program:
    """A StableHLO program of one result, compiled, with its arguments. Not for several threads."""

    def __init__(self, client, text, arrays):
        self.client, self.library = client, client.library
        source, module, self.executable = text.encode(), ctypes.c_void_p(), ctypes.c_void_p()
        client.check("collet_module_read", source, len(source), None, ctypes.byref(module), None)
        try:
            client.check("collet_compile", client.handle, module, None, ctypes.byref(self.executable))
        finally:
            self.library.collet_module_release(module)
        self.arguments = (ctypes.c_void_p * len(arrays))(*(client.buffer(array) for array in arrays))
        self.results = (ctypes.c_void_p * 1)()
        self.error = _Error()
        self.where = ctypes.byref(self.error)
        self.options = ctypes.byref(_ExecuteOptions(ctypes.sizeof(_ExecuteOptions), synchronous=1))
        self.execute, self.release = self.library.collet_execute, self.library.collet_buffer_release

    def run(self):
        """Computes the result. The one before is released afterwards, as a caller does that assigns results to a variable."""
        before = self.results[0]
        self.results[0] = None
        failed = self.execute(self.executable, self.options, self.arguments, self.results, self.where)
        self.release(before)
        if failed:
            raise Failure(f"collet_execute: {self.error.message.decode()}")

    def result(self):
        """Returns a copy of the result of the last run."""
        import ml_dtypes  # gives numpy the type bfloat16
        import numpy as np
        kind = self.library.collet_executable_result(self.executable, 0)
        name = next(name for name, element in ELEMENTS.items() if element == kind.element)
        out = np.empty(kind.dims[:kind.rank], np.dtype(getattr(ml_dtypes, name, name)))
        self.client.check("collet_buffer_to_host", self.results[0], out.ctypes.data, out.nbytes, None)
        return out

    def close(self):
        for buffer in (*self.arguments, *self.results):
            self.release(buffer)
        self.library.collet_executable_release(self.executable)
