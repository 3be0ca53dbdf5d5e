# SPDX-License-Identifier: Apache-2.0
"""collet.h for ctypes: its structs and functions. The test sdk/python/tests/abi_test.py compares them with the header."""
from __future__ import annotations

import ctypes as c
import os
import threading
from typing import Any

from collet import _install
from collet._errors import Error

NONE = 0xFFFFFFFF

DoneFn = c.CFUNCTYPE(None, c.c_void_p)
LogFn = c.CFUNCTYPE(None, c.c_void_p, c.c_int32, c.c_char_p)
ProgressFn = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_double, c.c_char_p)


class Struct(c.Structure):
    """A struct that begins with struct_size, which is set when it is made."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        if self._fields_[0][0] == "struct_size":
            self.struct_size = c.sizeof(self)


class ErrorStruct(Struct):
    c_name = "collet_error"
    _fields_ = [("code", c.c_int32), ("reserved", c.c_uint32), ("message", c.c_char * 504)]


class ClientOptions(Struct):
    c_name = "collet_client_options"
    _fields_ = [("struct_size", c.c_uint32), ("device_count", c.c_uint32), ("backend", c.c_char_p), ("fallback", c.c_char_p),
                ("target", c.c_char_p), ("keys", c.POINTER(c.c_char_p)), ("values", c.POINTER(c.c_char_p)), ("pairs", c.c_uint32),
                ("runs_in_flight", c.c_uint32), ("log_user", c.c_void_p), ("log", LogFn), ("group", c.c_void_p)]


class ClientInfo(Struct):
    c_name = "collet_client_info"
    _fields_ = [("struct_size", c.c_uint32), ("device_count", c.c_uint32), ("backend", c.c_char_p), ("backend_version", c.c_char_p),
                ("backend_path", c.c_char_p), ("fallback", c.c_char_p), ("opset", c.c_uint32), ("functions", c.c_uint32),
                ("abi_major", c.c_uint32), ("abi_minor", c.c_uint32)]


class DeviceInfo(Struct):
    c_name = "collet_client_device_info"
    _fields_ = [("struct_size", c.c_uint32), ("traits", c.c_uint32), ("kind", c.c_char_p), ("fingerprint", c.c_char_p),
                ("space_count", c.c_uint32), ("default_space", c.c_uint32), ("coordinates", c.c_int32 * 4), ("bytes_in_use", c.c_uint64),
                ("peak_bytes", c.c_uint64), ("capacity", c.c_uint64), ("device_bytes_in_use", c.c_uint64),
                ("device_peak_bytes", c.c_uint64), ("device_bytes_limit", c.c_uint64), ("device_allocations", c.c_uint64)]


class ReadOptions(Struct):
    c_name = "collet_read_options"
    _fields_ = [("struct_size", c.c_uint32), ("format", c.c_uint32), ("file", c.c_char_p), ("elided", c.c_uint32),
                ("floats_as_f64", c.c_uint32), ("seed", c.c_uint64), ("max_errors", c.c_uint32), ("skip_verify", c.c_uint32),
                ("append_sizes", c.c_uint32), ("reserved", c.c_uint32)]


class ArrayTypeStruct(Struct):
    c_name = "collet_array_type"
    _fields_ = [("element", c.c_uint32), ("rank", c.c_uint32), ("dims", c.POINTER(c.c_int64))]


class HostCall(Struct):
    c_name = "collet_host_call"
    _fields_ = [("struct_size", c.c_uint32), ("participant", c.c_uint32), ("operand_count", c.c_uint32), ("result_count", c.c_uint32),
                ("operands", c.POINTER(c.c_void_p)), ("results", c.POINTER(c.c_void_p)), ("operand_types", c.POINTER(ArrayTypeStruct)),
                ("result_types", c.POINTER(ArrayTypeStruct)), ("run_id", c.c_uint64), ("target", c.c_char_p),
                ("config", c.c_void_p), ("config_size", c.c_uint64)]


HostFn = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.POINTER(HostCall), c.POINTER(ErrorStruct))


class HostFunction(Struct):
    c_name = "collet_host_function"
    _fields_ = [("target", c.c_char_p), ("user", c.c_void_p), ("call", HostFn)]


class CompileRequest(Struct):
    c_name = "collet_compile_request"
    _fields_ = [("struct_size", c.c_uint32), ("optimization", c.c_uint32), ("optimization_given", c.c_uint32),
                ("replica_count", c.c_uint32), ("partition_count", c.c_uint32), ("assignment_count", c.c_uint32),
                ("assignment", c.POINTER(c.c_uint32)), ("dump_to", c.c_char_p), ("no_fusion", c.c_uint32), ("no_cache", c.c_uint32),
                ("user", c.c_void_p), ("progress", ProgressFn), ("host_functions", c.POINTER(HostFunction)),
                ("host_function_count", c.c_uint32), ("partition", c.c_uint32), ("ignore_costs", c.c_uint32), ("reserved", c.c_uint32),
                ("dump_only", c.c_char_p), ("own_results", c.c_uint32)]


class FactsStruct(Struct):
    c_name = "collet_executable_facts"
    _fields_ = [("struct_size", c.c_uint32), ("argument_count", c.c_uint32), ("result_count", c.c_uint32), ("participants", c.c_uint32),
                ("device_ops", c.c_uint32), ("fallback_ops", c.c_uint32), ("host_ops", c.c_uint32), ("clusters", c.c_uint32),
                ("kernels", c.c_uint32), ("from_cache", c.c_uint32), ("traffic_bytes", c.c_uint64), ("workspace_bytes", c.c_uint64),
                ("crossing_bytes", c.c_uint64), ("compile_ns", c.c_uint64), ("flops", c.c_uint64), ("code_bytes", c.c_uint64),
                ("resident_bytes", c.c_uint64), ("local_participants", c.c_uint32), ("reserved", c.c_uint32),
                ("estimated_ns", c.c_double), ("energy_nj", c.c_double), ("cycles", c.c_uint64)]


class QuestionStruct(Struct):
    c_name = "collet_question"
    _fields_ = [("struct_size", c.c_uint32), ("kind", c.c_uint32), ("element", c.c_uint32), ("asked", c.c_uint32),
                ("accepted", c.c_uint32), ("placed", c.c_uint32), ("name", c.c_char_p)]


class HostArray(Struct):
    c_name = "collet_host_array"
    _fields_ = [("struct_size", c.c_uint32), ("element", c.c_uint32), ("dims", c.POINTER(c.c_int64)),
                ("byte_strides", c.POINTER(c.c_int64)), ("data", c.c_void_p), ("rank", c.c_uint32), ("semantics", c.c_uint32),
                ("user", c.c_void_p), ("done", DoneFn)]


class ExecuteOptions(Struct):
    c_name = "collet_execute_options"
    _fields_ = [("struct_size", c.c_uint32), ("keep_donated", c.c_uint32), ("run_id", c.c_uint64), ("non_donatable", c.POINTER(c.c_uint32)),
                ("non_donatable_count", c.c_uint32), ("synchronous", c.c_uint32), ("out_done", c.POINTER(c.c_void_p)),
                ("reshape_arguments", c.c_uint32), ("reserved", c.c_uint32)]


class SpanStruct(Struct):
    c_name = "collet_span"
    _fields_ = [("struct_size", c.c_uint32), ("kind", c.c_uint32), ("name", c.c_char_p), ("start_ns", c.c_uint64),
                ("duration_ns", c.c_uint64), ("thread", c.c_uint64), ("run_id", c.c_uint64), ("bytes", c.c_uint64),
                ("device", c.c_uint32), ("on_fallback", c.c_uint32), ("engine", c.c_char_p)]


TraceFn = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(SpanStruct))

_P, _S, _U32, _U64 = c.c_void_p, c.c_char_p, c.c_uint32, c.c_uint64
_ERROR = c.POINTER(ErrorStruct)
_OUT = c.POINTER(c.c_void_p)

# Result, then parameters. A status is an int32, and functions that return one take a collet_error last.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "collet_version": (_S,),
    "collet_blob_data": (_P, _P),
    "collet_blob_size": (_U64, _P),
    "collet_blob_release": (None, _P),
    "collet_client_open": (c.c_int32, c.POINTER(ClientOptions), _OUT, _ERROR),
    "collet_client_close": (None, _P),
    "collet_client_info_get": (c.c_int32, _P, c.POINTER(ClientInfo), _ERROR),
    "collet_client_device_info_get": (c.c_int32, _P, _U32, c.POINTER(DeviceInfo), _ERROR),
    "collet_client_space_kind": (_S, _P, _U32, _U32),
    "collet_client_pattern": (_S, _P, _U32, _U32, c.POINTER(c.c_char_p)),
    "collet_client_trim": (None, _P),
    "collet_module_read": (c.c_int32, _P, _U64, c.POINTER(ReadOptions), _OUT, _OUT, _ERROR),
    "collet_module_release": (None, _P),
    "collet_module_write": (c.c_int32, _P, _U32, _OUT, _ERROR),
    "collet_module_name": (_S, _P),
    "collet_module_parameter_count": (_U32, _P),
    "collet_module_parameter": (ArrayTypeStruct, _P, _U32),
    "collet_module_result_count": (_U32, _P),
    "collet_module_result": (ArrayTypeStruct, _P, _U32),
    "collet_compile": (c.c_int32, _P, _P, c.POINTER(CompileRequest), _OUT, _ERROR),
    "collet_executable_release": (None, _P),
    "collet_executable_serialize": (c.c_int32, _P, _OUT, _ERROR),
    "collet_executable_load": (c.c_int32, _P, _P, _U64, c.POINTER(CompileRequest), _OUT, _ERROR),
    "collet_executable_facts_get": (c.c_int32, _P, c.POINTER(FactsStruct), _ERROR),
    "collet_executable_question": (c.c_int32, _P, _U32, c.POINTER(QuestionStruct), _ERROR),
    "collet_executable_argument": (ArrayTypeStruct, _P, _U32),
    "collet_executable_result": (ArrayTypeStruct, _P, _U32),
    "collet_executable_donates": (_U32, _P, _U32),
    "collet_executable_program": (c.c_int32, _P, _U32, _OUT, _ERROR),
    "collet_executable_explain": (c.c_int32, _P, _U32, _OUT, _ERROR),
    "collet_buffer_from_host": (c.c_int32, _P, _U32, _U32, c.POINTER(HostArray), _OUT, _ERROR),
    "collet_buffer_release": (None, _P),
    "collet_buffer_type": (ArrayTypeStruct, _P),
    "collet_buffer_bytes": (_U64, _P),
    "collet_buffer_device": (_U32, _P),
    "collet_buffer_space": (_U32, _P),
    "collet_buffer_ready": (_P, _P),
    "collet_buffer_is_deleted": (_U32, _P),
    "collet_buffer_delete": (None, _P),
    "collet_buffer_to_host": (c.c_int32, _P, _P, _U64, _OUT, _ERROR),
    "collet_buffer_copy": (c.c_int32, _P, _U32, _U32, _OUT, _ERROR),
    "collet_buffer_host_pointer": (_P, _P),
    "collet_execute": (c.c_int32, _P, c.POINTER(ExecuteOptions), _OUT, _OUT, _ERROR),
    "collet_event_release": (None, _P),
    "collet_event_is_ready": (_U32, _P),
    "collet_event_wait": (c.c_int32, _P, _ERROR),
    "collet_event_wait_for": (c.c_int32, _P, _U64, _ERROR),
    "collet_trace": (None, TraceFn, _P),
}


def _load() -> Any:
    """Opens libcollet so that it uses its own libraries, whatever the process has of the same names."""
    loaded = c.CDLL(str(_install.library()), mode=os.RTLD_NOW | os.RTLD_LOCAL | getattr(os, "RTLD_DEEPBIND", 0))
    for name, (result, *parameters) in FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, parameters
    return loaded


lib: Any = _load()


def text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


class _Local(threading.local):
    in_callback = False
    host_functions = 0


_local = _Local()
_deferred: list[tuple[Any, int]] = []


class Callback:
    """A block in a function that the library calls where it must not be called itself. Python may collect garbage in it, and
    objects of the library with it: these are released later."""

    def __enter__(self) -> None:
        self.outer, _local.in_callback = _local.in_callback, True

    def __exit__(self, *_: object) -> None:
        _local.in_callback = self.outer


class HostFunctionCall:
    """A block in a host function, which may call the library; a close there does not wait for the run that calls."""

    def __enter__(self) -> None:
        _local.host_functions += 1

    def __exit__(self, *_: object) -> None:
        _local.host_functions -= 1


def is_in_host_function() -> bool:
    """Returns whether this thread is in a HostFunctionCall."""
    return _local.host_functions > 0


def release(function: Any, value: int) -> None:
    """Calls function(value), now or, in a Callback, before the next call."""
    if _local.in_callback:
        _deferred.append((function, value))
    else:
        function(value)


def release_deferred() -> None:
    while _deferred and not _local.in_callback:
        try:
            function, value = _deferred.pop()
        except IndexError:  # another thread was faster
            return
        function(value)


def check(status: int, error: ErrorStruct, details: str = "") -> None:
    """Raises Error unless the status is 0."""
    if status:
        raise Error(status, text(error.message) or "the library says no more", details)


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status and takes a collet_error last; raises Error."""
    release_deferred()
    error = ErrorStruct()
    check(getattr(lib, name)(*arguments, c.byref(error)), error)


def take_blob(blob: c.c_void_p) -> bytes:
    """Returns the bytes of a blob, and releases it."""
    try:
        return c.string_at(lib.collet_blob_data(blob), lib.collet_blob_size(blob))
    finally:
        lib.collet_blob_release(blob)


def blob_of(name: str, *arguments: Any) -> bytes:
    """Calls a function whose last parameter before the error receives a blob; returns the bytes."""
    blob = c.c_void_p()
    call(name, *arguments, c.byref(blob))
    return take_blob(blob)
