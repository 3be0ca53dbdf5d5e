# SPDX-License-Identifier: Apache-2.0
"""Clients, programs, executables and arrays."""
from __future__ import annotations

import ctypes as c
import enum
import json
import math
import os
import pathlib
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from collet import _abi, _host, _types
from collet._abi import call, lib, text
from collet._errors import Code, Error
from collet._plan import Plan
from collet._types import ArrayType

if TYPE_CHECKING:
    import numpy
    NumpyArray = numpy.ndarray[Any, Any]

FORMATS = {"auto": 0, "hlo": 1, "hlo_proto": 2, "stablehlo": 3, "stablehlo_artifact": 4}
ELIDED = {"refuse": 0, "zeros": 1, "random": 2, "counter": 3}
_COPIED, _ZERO_COPY = 0, 2
_MemoryView = memoryview  # Array has a method of this name

# What a program is given as: its text, its bytes, a file's path, or a Module.
Source = Union[str, bytes, "os.PathLike[str]", "Module"]


def _nanoseconds(timeout: float) -> int:
    """Returns a time in seconds, perhaps infinite, as the library takes it."""
    return int(min(max(timeout * 1e9, 0), 1.8e19))


class Severity(enum.IntEnum):
    """How severe a message of the log is."""
    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


def version() -> str:
    """Returns the version of the library."""
    return text(lib.collet_version())


def _choice(what: str, table: Mapping[str, int], value: str) -> int:
    if value not in table:
        raise ValueError(f"{what} is one of {', '.join(table)}, not {value!r}")
    return table[value]


class _Handle:
    """A reference to an object of the library, which is dropped with this object, or before the interpreter ends.

    `live` gets an element for as long as the library's object has not been released.
    """

    def __init__(self, value: int | None, release: Any, live: set[object] | None = None) -> None:
        self.value = value or 0
        if live is not None:
            release = _counted(release, live)
        self.release = weakref.finalize(self, _abi.release, release, self.value)


def _counted(release: Any, live: set[object]) -> Callable[[int], None]:
    token = object()
    live.add(token)

    def released(value: int) -> None:
        release(value)
        live.discard(token)

    return released


class _ClientHandle:
    """An open client, which is closed with this object, or before the interpreter ends.

    It holds the functions that C may call until the client has closed. A finalizer of weakref would hold them too, and with them for
    ever what they refer to, mostly the client itself; `__del__` holds nothing, and is called while all that it uses is intact.
    """

    def __init__(self, value: int, functions: list[Any], live: set[object]) -> None:
        self.value, self.functions, self.live = value, functions, live
        self._open = [value]  # what takes its element closes the client
        # The weak reference has a callback because only such ones are cleared before all finalizers are called.
        weakref.finalize(self, _close_at_exit, weakref.ref(self, lambda _: None))

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def close(self) -> None:
        try:
            value = self._open.pop()
        except IndexError:
            return
        _abi.release(self._close, value)

    def _close(self, value: int) -> None:
        _abi.release_deferred()
        # In these cases work may go on after the close, and call the functions at any time.
        goes_on = bool(self.live) or _abi.is_in_host_function()
        lib.collet_client_close(value)
        if goes_on and self.functions:
            _host.keep(self.functions)

    def __del__(self) -> None:
        self.close()


def _close_at_exit(handle: weakref.ref[_ClientHandle]) -> None:
    """Closes a client that is still there; one that has ended has closed itself."""
    found = handle()
    if found is not None:
        found.close()


class Module:
    """A program as it was read. Immutable; any thread may use it."""

    def __init__(self, source: Source, *, format: str = "auto", file: str | None = None, elided: str = "refuse", seed: int = 0,
                 verify: bool = True) -> None:
        """Reads a program; raises Error with the place of its first error.

        `source` is the text of HLO or StableHLO, the bytes of an artifact or proto, or an os.PathLike of a file. `elided` says what
        becomes of constants that are printed as {...}: refuse, zeros, random (by `seed`) or counter.
        """
        self.file: str
        self._handle: _Handle
        if isinstance(source, Module):
            self._handle, self.file = source._handle, source.file
            return
        if isinstance(source, (str, bytes)):
            data = source.encode() if isinstance(source, str) else source
        else:
            path = pathlib.Path(source)
            data, file = path.read_bytes(), file or str(path)
        self.file = file or "<program>"
        options = _abi.ReadOptions(format=_choice("format", FORMATS, format), file=self.file.encode(),
                                   elided=_choice("elided", ELIDED, elided), seed=seed, skip_verify=not verify)
        module, messages, error = c.c_void_p(), c.c_void_p(), _abi.ErrorStruct()
        status = lib.collet_module_read(data, len(data), c.byref(options), c.byref(module), c.byref(messages), c.byref(error))
        details = _abi.take_blob(messages).decode("utf-8", "replace").rstrip() if messages else ""
        _abi.check(status, error, details)
        self._handle = _Handle(module.value, lib.collet_module_release)

    @property
    def name(self) -> str:
        return text(lib.collet_module_name(self._handle.value))

    @property
    def parameters(self) -> list[ArrayType]:
        """The types of the parameters, with tuples flattened."""
        count = lib.collet_module_parameter_count(self._handle.value)
        return [_types.from_struct(lib.collet_module_parameter(self._handle.value, i)) for i in range(count)]

    @property
    def results(self) -> list[ArrayType]:
        """The types of the results, with tuples flattened."""
        count = lib.collet_module_result_count(self._handle.value)
        return [_types.from_struct(lib.collet_module_result(self._handle.value, i)) for i in range(count)]

    def write(self, format: str = "hlo") -> bytes:
        """Returns the program in a format: hlo, hlo_proto, stablehlo or stablehlo_artifact."""
        return _abi.blob_of("collet_module_write", self._handle.value, _choice("format", FORMATS, format))

    def __str__(self) -> str:
        return self.write("hlo").decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"<collet.Module {self.name}: {', '.join(map(str, self.parameters))} -> {', '.join(map(str, self.results))}>"


def read(source: Source, *, format: str = "auto", file: str | None = None, elided: str = "refuse", seed: int = 0,
         verify: bool = True) -> Module:
    """Reads a program: see Module."""
    return Module(source, format=format, file=file, elided=elided, seed=seed, verify=verify)


class Device(NamedTuple):
    """A device of a client, as it was when it was asked for. Sizes are in bytes; 0 for what is not known."""
    number: int
    kind: str
    fingerprint: str
    spaces: tuple[str, ...]
    default_space: int
    coordinates: tuple[int, ...]
    bytes_in_use: int
    peak_bytes: int
    capacity: int


class Facts(NamedTuple):
    """Facts about an executable: see collet_executable_facts."""
    argument_count: int
    result_count: int
    participants: int
    device_ops: int
    fallback_ops: int
    host_ops: int
    clusters: int
    kernels: int
    from_cache: bool
    traffic_bytes: int
    workspace_bytes: int
    crossing_bytes: int
    compile_ns: int
    flops: int
    code_bytes: int
    resident_bytes: int
    local_participants: int
    estimated_ns: float
    energy_nj: float
    cycles: int


class Question(NamedTuple):
    """What the compilation asked the device about all ops of one name and element type: see collet_question."""
    kind: str  # op, pattern or fusion
    name: str
    element: str
    asked: bool
    accepted: bool
    placed: int


class Array:
    """An array in a memory space of a device. Any thread may use it.

    Its data may still be computed; what reads it waits, and raises Error if the computation failed. Where the host can
    read the memory, numpy(), memoryview(), `numpy.asarray` and DLPack give views without a copy. A view keeps the memory, and an
    array with views is not donated to a program: it is copied instead.
    """

    def __init__(self, client: "Client", handle: int) -> None:
        """Not for users: Client.array and Executable make arrays."""
        self._client = client
        self._handle = _Handle(handle, lib.collet_buffer_release, client._live)
        self._views: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def type(self) -> ArrayType:
        return _types.from_struct(lib.collet_buffer_type(self._handle.value))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def element(self) -> str:
        return self.type.element

    @property
    def dtype(self) -> "numpy.dtype[Any]":
        return self.type.dtype

    @property
    def nbytes(self) -> int:
        return int(lib.collet_buffer_bytes(self._handle.value))

    @property
    def device(self) -> int:
        """The number of the device."""
        return int(lib.collet_buffer_device(self._handle.value))

    @property
    def space(self) -> int:
        """The number of the memory space."""
        return int(lib.collet_buffer_space(self._handle.value))

    @property
    def is_deleted(self) -> bool:
        """Whether it was donated or deleted; every further use is an error."""
        return bool(lib.collet_buffer_is_deleted(self._handle.value))

    @property
    def is_ready(self) -> bool:
        """Whether the data, or the failure, is there."""
        event = lib.collet_buffer_ready(self._handle.value)
        try:
            return bool(lib.collet_event_is_ready(event))
        finally:
            lib.collet_event_release(event)

    def wait(self, timeout: float | None = None) -> "Array":
        """Waits until the data is there, at most `timeout` seconds; raises Error, with DEADLINE_EXCEEDED if it is not there then."""
        event = lib.collet_buffer_ready(self._handle.value)
        try:
            if timeout is None:
                call("collet_event_wait", event)
            else:
                call("collet_event_wait_for", event, _nanoseconds(timeout))
        finally:
            lib.collet_event_release(event)
        return self

    def delete(self) -> None:
        """Frees the memory as soon as running work allows. Raises BufferError if there are views of it."""
        _host.drop_refused()
        if len(self._views):
            raise BufferError("the array has views; they would refer to memory that is gone")
        lib.collet_buffer_delete(self._handle.value)

    def to(self, device: int, space: int | None = None) -> "Array":
        """Returns a copy on another device, or in another memory space."""
        out = c.c_void_p()
        call("collet_buffer_copy", self._handle.value, device, _abi.NONE if space is None else space, c.byref(out))
        return Array(self._client, out.value or 0)

    def _data(self, copy: bool = False) -> memoryview:
        """Returns the bytes: a view where the host can read the memory, unless `copy`."""
        self.wait()
        size = self.nbytes
        address = None if copy or not size else lib.collet_buffer_host_pointer(self._handle.value)
        if address:
            view = _View(self._handle)
            self._views.add(view)
            self._handle.release.atexit = False  # whoever has a view may read it until the very end
            return _host.memory_of(address, size, view)
        data = (c.c_char * size)()
        call("collet_buffer_to_host", self._handle.value, data, size, None)
        return memoryview(data).cast("B")

    @property
    def is_host_readable(self) -> bool:
        """Whether views need no copy."""
        self.wait()
        return bool(lib.collet_buffer_host_pointer(self._handle.value))

    def memoryview(self) -> _MemoryView:
        """Returns the data as a memoryview with the array's shape and, where the buffer protocol has a name for it, its
        element type; else its bytes. Read-only where it is no copy."""
        return _types.cast(self._data(), self.type)

    def tobytes(self) -> bytes:
        """Returns the dense row-major data."""
        return bytes(self._data())

    def numpy(self) -> "NumpyArray":
        """Returns the data as an array of numpy; read-only where it is no copy."""
        import numpy
        kind = self.type
        return numpy.frombuffer(self._data(), dtype=kind.dtype).reshape(kind.shape)

    def item(self) -> Any:
        """Returns the only element, as a Python number."""
        if self.type.size != 1:
            raise ValueError(f"{self.type} has {self.type.size} elements")
        name: Any = _types.format_of(self.element)
        return self._data().cast(name)[0] if name else self.numpy().item()

    def tolist(self) -> Any:
        """Returns the elements as nested lists of Python numbers."""
        name = _types.format_of(self.element)
        return self.memoryview().tolist() if name and self.type.size else self.numpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "NumpyArray":
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"an array of {array.dtype} does not become one of {dtype} without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __buffer__(self, flags: int) -> _MemoryView:  # Python 3.12 and newer
        return self.memoryview()

    def __dlpack_device__(self) -> tuple[int, int]:
        return _host.CPU

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        """Returns a DLPack capsule of the data in host memory. Consumers that know DLPack 1.0 get a read-only view; for older
        ones, to which that cannot be said, it is a copy."""
        if stream is not None:
            raise BufferError("host memory has no streams")
        if dl_device is not None and tuple(dl_device) != _host.CPU:
            raise BufferError("the data can be had in host memory only")
        versioned = max_version is not None and max_version[0] >= 1
        if copy is False and not versioned:
            raise BufferError("a view is read-only, which DLPack before 1.0 cannot say")
        data = self._data(copy=bool(copy) or not versioned)
        if copy is False and not data.readonly:
            raise BufferError("the host cannot read the device's memory without a copy")
        exported = _host.view_of(data, None)
        return _host.capsule_of(self.type, exported.address, exported.owner, versioned, data.readonly)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __repr__(self) -> str:
        state = "deleted" if self.is_deleted else f"on device {self.device}" if self.is_ready else "being computed"
        return f"<collet.Array {self.type} {state}>"


class _View:
    """Lives as long as somebody sees an array's memory."""

    def __init__(self, handle: _Handle) -> None:
        self.handle = handle


class Run:
    """A run that was started: `results` are its arrays, one list for each participant. They can be used at once."""

    def __init__(self, client: "Client", results: list[list[Array]], event: int | None) -> None:
        """Not for users: Executable.start makes runs."""
        self._client = client
        self.results = results
        self._event = _Handle(event, lib.collet_event_release, client._live)

    @property
    def is_done(self) -> bool:
        return bool(lib.collet_event_is_ready(self._event.value))

    def wait(self, timeout: float | None = None) -> list[list[Array]]:
        """Waits for the end, at most `timeout` seconds, and returns the results; raises Error if the run failed."""
        if timeout is None:
            call("collet_event_wait", self._event.value)
        else:
            call("collet_event_wait_for", self._event.value, _nanoseconds(timeout))
        return self.results


class Executable:
    """A program compiled for devices of a client. Any thread may run it, several at the same time."""

    def __init__(self, client: "Client", handle: int, used: Any = None) -> None:
        """Not for users: Client.compile and Client.load make executables."""
        self._client = client
        self._used = used
        self._handle = _Handle(handle, lib.collet_executable_release, client._live)
        facts = self.facts
        self._participants, self._result_count = facts.local_participants, facts.result_count
        self._parameters = tuple(_types.from_struct(lib.collet_executable_argument(handle, i)) for i in range(facts.argument_count))

    @property
    def facts(self) -> Facts:
        facts = _abi.FactsStruct()
        call("collet_executable_facts_get", self._handle.value, c.byref(facts))
        values = [getattr(facts, name) for name in Facts._fields]
        values[Facts._fields.index("from_cache")] = bool(facts.from_cache)
        return Facts(*values)

    @property
    def parameters(self) -> list[ArrayType]:
        """The types of the arguments of one participant."""
        return list(self._parameters)

    @property
    def results(self) -> list[ArrayType]:
        """The types of the results of one participant."""
        return [_types.from_struct(lib.collet_executable_result(self._handle.value, i)) for i in range(self._result_count)]

    @property
    def donates(self) -> list[bool]:
        """For each argument, whether the program takes over its memory."""
        return [bool(lib.collet_executable_donates(self._handle.value, i)) for i in range(len(self._parameters))]

    def explain(self) -> str:
        """Returns what runs where, and why, for readers."""
        return _abi.blob_of("collet_executable_explain", self._handle.value, 0).decode("utf-8", "replace")

    @property
    def plan(self) -> Plan:
        """The same as an object, with a picture for notebooks."""
        return Plan(json.loads(_abi.blob_of("collet_executable_explain", self._handle.value, 1)))

    @property
    def questions(self) -> list[Question]:
        """What the compilation asked the device, and what became of it. Empty for an executable that was loaded."""
        found: list[Question] = []
        while True:
            question = _abi.QuestionStruct()
            try:
                call("collet_executable_question", self._handle.value, len(found), c.byref(question))
            except Error as error:
                if error.code == Code.OUT_OF_RANGE:
                    return found
                raise
            element = _types.BY_NUMBER.get(question.element)
            found.append(Question(("op", "pattern", "fusion")[question.kind] if question.kind < 3 else str(question.kind),
                                  text(question.name), element.name if element else "", bool(question.asked), bool(question.accepted),
                                  question.placed))

    def program(self, format: str = "hlo") -> bytes:
        """Returns the program that each participant runs."""
        return _abi.blob_of("collet_executable_program", self._handle.value, _choice("format", FORMATS, format))

    def serialize(self) -> bytes:
        """Returns the executable as bytes for Client.load. They hold code that is run as it is: keep them where nobody else can write."""
        return _abi.blob_of("collet_executable_serialize", self._handle.value)

    def __call__(self, *arguments: Any) -> list[Array]:
        """Runs a program of one participant, and returns its results when they are there.

        An argument is an Array, or what Client.array takes, which the library copies to the device once; no thread may change it
        during the call.
        """
        if self._participants != 1:
            raise ValueError(f"the program has {self._participants} participants: use start([arguments of 0, arguments of 1, ...])")
        return self._run([arguments], True)[0][0]

    def start(self, arguments: Sequence[Sequence[Any]], *, run_id: int = 0) -> Run:
        """Starts a run of all participants: arguments[p] are those of participant p = replica * partitions + partition.

        Arrays must be on the participant's device. Whatever else is passed is copied before this returns.
        """
        results, event = self._run(arguments, False, run_id)
        return Run(self._client, results, event)

    def _run(self, arguments: Sequence[Sequence[Any]], synchronous: bool, run_id: int = 0) -> tuple[list[list[Array]], int | None]:
        if len(arguments) != self._participants:
            raise ValueError(f"the program has {self._participants} participants, and there are arguments for {len(arguments)}")
        _host.drop_refused()
        parameters, flat, not_donated = self._parameters, [], set()
        for participant, given in enumerate(arguments):
            if len(given) != len(parameters):
                raise ValueError(f"the program has {len(parameters)} parameters ({', '.join(map(str, parameters))}), "
                                 f"and {len(given)} arguments were given")
            for index, (value, kind) in enumerate(zip(given, parameters)):
                if not isinstance(value, Array):
                    value = self._argument(value, index, kind, self._client._device_of(self, participant), synchronous)
                elif len(value._views):
                    not_donated.add(index)
                flat.append(value)
        count = self._result_count * self._participants
        handles = (c.c_void_p * max(1, len(flat)))(*(value._handle.value for value in flat))
        results = (c.c_void_p * max(1, count))()
        kept = (c.c_uint32 * max(1, len(not_donated)))(*sorted(not_donated))
        event = c.c_void_p()
        options = _abi.ExecuteOptions(run_id=run_id, synchronous=synchronous, non_donatable=kept, non_donatable_count=len(not_donated))
        if not synchronous:
            options.out_done = c.pointer(event)
        call("collet_execute", self._handle.value, c.byref(options), handles, results)
        arrays = [Array(self._client, results[i] or 0) for i in range(count)]
        if synchronous:
            for array in arrays:
                array.wait()
        step = self._result_count
        return [arrays[p * step:(p + 1) * step] for p in range(self._participants)], event.value

    def _argument(self, value: Any, index: int, kind: ArrayType, device: int, borrow: bool) -> Array:
        try:
            array = self._client.array(value, device=device, borrow=borrow, type=kind)
        except TypeError as error:
            raise TypeError(f"argument {index}: {error}") from None
        if array.type != kind:
            raise TypeError(f"argument {index} is {array.type}, and the program's parameter is {kind}")
        return array

    def __repr__(self) -> str:
        return f"<collet.Executable {', '.join(map(str, self.parameters))} -> {', '.join(map(str, self.results))}>"

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()


class HostCall(NamedTuple):
    """A call of a function of the host by a program: its operands, read-only, as memoryviews with shape and element type where the
    buffer protocol has a name for it; the results' memory, to be filled before the function returns, likewise; their types. The memory is
    not the program's: operands are copied for the call, and results after it."""
    participant: int
    run_id: int
    target: str
    config: bytes
    operands: tuple[memoryview, ...]
    results: tuple[memoryview, ...]
    operand_types: tuple[ArrayType, ...]
    result_types: tuple[ArrayType, ...]


def _call_memory(kind: ArrayType, address: int | None) -> Any:
    """Returns the memory of an operand or a result, which the library takes back after the call."""
    size = kind.nbytes
    return (c.c_char * size).from_address(address) if address and size else bytearray(size)


def _host_function(function: Callable[[HostCall], None]) -> Any:
    """Returns the C function that calls `function`."""

    def called(_user: int | None, pointer: Any, error: Any) -> int:
        with _abi.HostFunctionCall():
            return answer(pointer, error)

    def answer(pointer: Any, error: Any) -> int:
        try:
            made = pointer.contents
            operand_types = tuple(_types.from_struct(made.operand_types[i]) for i in range(made.operand_count))
            result_types = tuple(_types.from_struct(made.result_types[i]) for i in range(made.result_count))
            operands = [bytes(_call_memory(kind, made.operands[i])) for i, kind in enumerate(operand_types)]
            results = [bytearray(kind.nbytes) for kind in result_types]
            function(HostCall(
                made.participant, made.run_id, text(made.target), c.string_at(made.config, made.config_size) if made.config else b"",
                tuple(_types.cast(memoryview(data), kind) for data, kind in zip(operands, operand_types)),
                tuple(_types.cast(memoryview(data), kind) for data, kind in zip(results, result_types)), operand_types, result_types))
            for i, (data, kind) in enumerate(zip(results, result_types)):
                memoryview(_call_memory(kind, made.results[i])).cast("B")[:] = data
            return 0
        except BaseException as raised:  # an exception must not leave the function that C calls
            code = int(raised.code) if isinstance(raised, Error) else int(Code.INTERNAL)
            if error:
                message = f"{type(raised).__name__}: {raised}".encode()[:503].decode("utf-8", "ignore")
                error.contents.code, error.contents.message = code, message.encode()
            return code

    return _abi.HostFn(called)


class Client:
    """A backend, opened, with its fallback. Any thread may use it.

    As a context manager it is closed at the end of the block. It must not be closed by the functions that are given to it. What
    was made by a client keeps it; arrays can be read after it was closed.
    """

    def __init__(self, backend: str | os.PathLike[str] | None = None, *, fallback: str | None = None,
                 options: Mapping[str, object] | None = None, devices: int = 0, target: str | None = None, runs_in_flight: int = 0,
                 log: Callable[[Severity, str], None] | None = None) -> None:
        """Loads and opens a backend.

        `backend` is a name ('cpu') or a library's path; None: $COLLET_BACKEND, else cpu. `fallback` runs what the backend
        declines; 'none' for none. `options` are the backend's. `devices` is how many virtual devices are wanted. `target`
        names a device to compile for without hardware. `log` gets the library's messages, on any thread; without it they go to stderr.
        """
        self._functions: list[Any] = []  # what C may call as long as the client is open
        self._live: set[object] = set()  # an element for each object of the library that is the client's
        self._lock = threading.Lock()
        pairs = [(str(key).encode(), str(value).encode()) for key, value in (options or {}).items()]
        opened = _abi.ClientOptions(device_count=devices, runs_in_flight=runs_in_flight, pairs=len(pairs),
                                    backend=None if backend is None else os.fsencode(os.fspath(backend)),
                                    fallback=None if fallback is None else fallback.encode(), target=None if target is None else target.encode())
        opened.keys = (c.c_char_p * max(1, len(pairs)))(*(key for key, _ in pairs))
        opened.values = (c.c_char_p * max(1, len(pairs)))(*(value for _, value in pairs))
        if log is not None:
            function = _abi.LogFn(_logger(log))
            self._functions.append(function)
            opened.log = function
        handle = c.c_void_p()
        call("collet_client_open", c.byref(opened), c.byref(handle))
        self._handle = _ClientHandle(handle.value or 0, self._functions, self._live)
        self._assignments: weakref.WeakKeyDictionary[Executable, list[int]] = weakref.WeakKeyDictionary()

    def _open(self) -> int:
        if not self._handle.is_open:
            raise ValueError("the client is closed")
        return self._handle.value

    def close(self) -> None:
        """Waits for what was started, and closes the backend. If there still are arrays or executables, the backend is closed when
        the last of them is gone."""
        _host.drop_refused()
        self._handle.close()

    @property
    def is_closed(self) -> bool:
        return not self._handle.is_open

    def __enter__(self) -> "Client":
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _info(self) -> _abi.ClientInfo:
        info = _abi.ClientInfo()
        call("collet_client_info_get", self._open(), c.byref(info))
        return info

    @property
    def backend(self) -> str:
        """The backend's name."""
        return text(self._info().backend)

    @property
    def backend_version(self) -> str:
        return text(self._info().backend_version)

    @property
    def backend_path(self) -> pathlib.Path:
        return pathlib.Path(os.fsdecode(self._info().backend_path))

    @property
    def fallback(self) -> str:
        """The fallback's name; '' for none."""
        return text(self._info().fallback)

    @property
    def opset(self) -> int:
        return int(self._info().opset)

    @property
    def devices(self) -> list[Device]:
        found = []
        for number in range(self._info().device_count):
            info = _abi.DeviceInfo()
            call("collet_client_device_info_get", self._open(), number, c.byref(info))
            spaces = tuple(text(lib.collet_client_space_kind(self._open(), number, i)) for i in range(info.space_count))
            found.append(Device(number, text(info.kind), text(info.fingerprint), spaces, info.default_space, tuple(info.coordinates),
                                info.bytes_in_use, info.peak_bytes, info.capacity))
        return found

    def trim(self) -> None:
        """Gives pooled memory that nothing uses back to the backend."""
        lib.collet_client_trim(self._open())

    def array(self, value: Any, *, device: int = 0, space: int | None = None, borrow: bool = False, type: ArrayType | None = None) -> Array:
        """Makes an array on a device.

        `value` is an array with the buffer protocol (numpy, array.array, memoryview) or DLPack (torch, jax on the cpu), or an Array of
        another client; with `type` also a number, and with numpy a list. The data is copied to the device's memory once, before this
        returns. `borrow=True`: it may be read later, and possibly be used as it is, so it must not change while the array lives.
        """
        if isinstance(value, Array):
            if type is not None and type != value.type:
                raise TypeError(f"the array is {value.type}, not {type}")
            view = _host.view_of(value._data(), None)._replace(type=value.type, strides=None)  # its bytes
        else:
            view = _host.view_of(value, type)
        rank = len(view.type.shape)
        array = _abi.HostArray(element=_types.BY_NAME[view.type.element].number, rank=rank, data=view.address,
                               semantics=_ZERO_COPY if borrow else _COPIED)
        array.dims = (c.c_int64 * max(1, rank))(*view.type.shape)
        if view.strides is not None and rank:
            array.byte_strides = (c.c_int64 * rank)(*view.strides)
        token = 0
        if borrow:
            token = _host.keep(view.owner)
            array.user, array.done = token, _host.done_function
        out = c.c_void_p()
        try:
            call("collet_buffer_from_host", self._open(), device, _abi.NONE if space is None else space, c.byref(array), c.byref(out))
        except BaseException:
            _host.drop(token)
            raise
        return Array(self, out.value or 0)

    def _request(self, optimization: int | None, replicas: int, partitions: int, assignment: Sequence[int] | None,
                 dump_to: str | os.PathLike[str] | None, fusion: bool, cache: bool, partition: bool, ignore_costs: bool,
                 progress: Callable[[int | None, float, bytes], int] | None,
                 functions: Mapping[str, Callable[[HostCall], None]] | None) -> tuple[_abi.CompileRequest, list[Any]]:
        request = _abi.CompileRequest(replica_count=replicas, partition_count=partitions, no_fusion=not fusion, no_cache=not cache,
                                      partition=partition, ignore_costs=ignore_costs)
        if optimization is not None:
            if not 0 <= optimization <= 3:
                raise ValueError(f"optimization is 0 to 3, not {optimization}")
            request.optimization, request.optimization_given = optimization, 1
        if assignment is not None:
            request.assignment, request.assignment_count = (c.c_uint32 * max(1, len(assignment)))(*assignment), len(assignment)
        if dump_to is not None:
            request.dump_to = os.fsencode(os.fspath(dump_to))
        used: list[Any] = []
        if progress is not None:
            request.progress = _abi.ProgressFn(progress)
        if functions:
            table = (_abi.HostFunction * len(functions))()
            for entry, (target, function) in zip(table, functions.items()):
                entry.target, entry.call = target.encode(), _host_function(function)
            # Equal programs share an executable, so its functions stay as long as the client.
            used.append(table)
            with self._lock:
                self._functions.append((table, [entry.call for entry in table]))
            request.host_functions, request.host_function_count = table, len(functions)
        return request, used

    def compile(self, source: Source, *, format: str = "auto", optimization: int | None = None, replicas: int = 0, partitions: int = 0,
                assignment: Sequence[int] | None = None, dump_to: str | os.PathLike[str] | None = None, fusion: bool = True,
                cache: bool = True, partition: bool = False, ignore_costs: bool = False,
                progress: Callable[[float, str], bool | None] | None = None,
                functions: Mapping[str, Callable[[HostCall], None]] | None = None) -> Executable:
        """Compiles a program: a Module, or what Module takes.

        `dump_to` is a folder for the module before and after each stage, the plan, and what the backend shows of its code.
        `progress` is called with the share that is done and the stage; if it returns True, or raises, the compilation is given up.
        `functions` implement custom-calls by their targets, and infeed and outfeed: see HostCall. `partition`: the program is
        written for whole arrays, and its shardings say how they are cut. The others are those of collet_compile_request.
        """
        module = Module(source, format=format)
        raised: list[BaseException] = []
        request, used = self._request(optimization, replicas, partitions, assignment, dump_to, fusion, cache, partition, ignore_costs,
                                      None if progress is None else _progress(progress, raised), functions)
        out = c.c_void_p()
        try:
            call("collet_compile", self._open(), module._handle.value, c.byref(request), c.byref(out))
        except Error:
            if not raised:
                raise
        executable = self._made(out.value, used, assignment) if out.value else None
        if raised:
            raise raised[0]
        assert executable is not None
        return executable

    def load(self, data: bytes, *, assignment: Sequence[int] | None = None,
             functions: Mapping[str, Callable[[HostCall], None]] | None = None) -> Executable:
        """Makes an executable of the bytes of Executable.serialize. They hold code that is run as it is."""
        request, used = self._request(None, 0, 0, assignment, None, True, True, False, False, None, functions)
        out = c.c_void_p()
        call("collet_executable_load", self._open(), data, len(data), c.byref(request) if assignment or functions else None,
             c.byref(out))
        return self._made(out.value, used, assignment)

    def _made(self, handle: int | None, used: list[Any], assignment: Iterable[int] | None) -> Executable:
        executable = Executable(self, handle or 0, used)
        if assignment is not None:
            self._assignments[executable] = list(assignment)
        return executable

    def _device_of(self, executable: Executable, participant: int) -> int:
        """Returns the device of a participant; without an assignment, participant i is on device i."""
        return self._assignments.get(executable, range(1 << 32))[participant]

    def __repr__(self) -> str:
        return "<collet.Client closed>" if self.is_closed else f"<collet.Client {self.backend}, {self._info().device_count} devices>"


def _logger(log: Callable[[Severity, str], None]) -> Callable[[int | None, int, bytes], None]:
    severities = {int(severity): severity for severity in Severity}

    def called(_user: int | None, severity: int, message: bytes) -> None:
        with _abi.Callback():
            log(severities.get(severity, Severity.ERROR), text(message))

    return called


def _progress(progress: Callable[[float, str], bool | None], raised: list[BaseException]) -> Callable[[int | None, float, bytes], int]:
    """`raised` gets what the function raises, which must not go through the library; it may be a KeyboardInterrupt."""

    def called(_user: int | None, done: float, stage: bytes) -> int:
        try:
            return 1 if progress(done if math.isfinite(done) else 0.0, text(stage)) else 0
        except BaseException as error:
            raised.append(error)
            return 1

    return called
