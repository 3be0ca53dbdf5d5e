# SPDX-License-Identifier: Apache-2.0
"""Collet: reads programs of XLA's frontends, compiles them for any backend, and runs them.

    import collet, numpy
    with collet.Client("cpu") as client:
        double = client.compile("HloModule m\\nENTRY e { x = f32[3] parameter(0)  ROOT y = f32[3] add(x, x) }")
        [y] = double(numpy.float32([1, 2, 3]))
        print(y.numpy(), double.explain())

Threads: any thread may use any object. Calls of the library let other Python threads run. Functions that are given to it
(log, progress, host functions) are called on its threads.

Lifetimes: an array or executable keeps its client, and a view (numpy, memoryview, DLPack) keeps the array's memory. Closing a client
waits for running work; what was made by it can be read afterwards.

Errors of the library are Error, with a code and, for a program's text, the place.
"""
from collet._client import (Array, Client, Device, Executable, Facts, HostCall, Module, Question, Run, Severity, read, version)
from collet._errors import Code, Error, Place, ToolError
from collet._plan import Plan
from collet._profile import Profile, Span, profile
from collet._tool import (BenchCase, BenchReport, Case, ConformReport, bench, cmake_dir, conform, prefix, run_tool)
from collet._types import ArrayType

__all__ = [
    "Array", "ArrayType", "BenchCase", "BenchReport", "Case", "Client", "Code", "ConformReport", "Device", "Error", "Executable", "Facts",
    "HostCall", "Module", "Place", "Plan", "Profile", "Question", "Run", "Severity", "Span", "ToolError", "bench", "cmake_dir",
    "conform", "prefix", "profile", "read", "run_tool", "version",
]
__version__ = version()
for _name in __all__:  # users see them as collet.NAME
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = "collet"
