#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds other implementations of elementary functions and conversions against the conformance suite.

`run` has the cases of each op that an implementation has computed by it, behind the test backend by_process. What the suite accuses must stand
in a file of known differences, each with its reason: exit code 1 if something else is accused, or a known difference no longer is,
2 if the program cannot run. `serve` is the process that
by_process starts. An implementation is one of those that `list` names, or the path of a shared library (.so) that has functions of C's
math.h by their names, `sin` and `sinf`, or with the prefix of CORE-MATH, `cr_sin`; it is named by its file. What it calls itself must be
bound to itself (-Wl,-Bsymbolic). Or it is the path of a Python file with

    NAME = "mine 1.0"            # of one line
    FLUSHES = False              # denormals become zero
    def find(op, source, target):
        # Returns None, or a function that takes the operands' arrays as a list of bytes and returns those of the result.
        # op: a name of HLO text, "cosine"; source, target: element types, "f32". Elements of less than a byte take one.
"""

import argparse
import ctypes
import fnmatch
import importlib.util
import json
import math
import os
import shlex
import struct
import subprocess
import sys
import tempfile
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
KNOWN = os.path.join(HERE, "known_differences.toml")

# Ops whose cases are run: functions of one and two operands, and the conversions.
UNARY = ("acos acosh asin asinh atanh cbrt ceil cosh cosine erf exponential exponential-minus-one floor is-finite log log-plus-one logistic negate "
         "round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh abs").split()
BINARY = "add atan2 divide maximum minimum multiply power remainder subtract".split()
OPS = sorted(UNARY + BINARY + ["convert"])

# The names that mathematical libraries give the ops; an implementation says what differs.
COMMON = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atanh": "arctanh", "cbrt": "cbrt", "ceil": "ceil", "cosh": "cosh",
          "cosine": "cos", "exponential": "exp", "exponential-minus-one": "expm1", "floor": "floor", "is-finite": "isfinite", "log": "log",
          "log-plus-one": "log1p", "negate": "negative", "round-nearest-even": "round", "sign": "sign", "sine": "sin", "sinh": "sinh", "sqrt": "sqrt",
          "tan": "tan", "tanh": "tanh", "abs": "abs", "add": "add", "atan2": "arctan2", "divide": "divide", "maximum": "maximum", "minimum": "minimum",
          "multiply": "multiply", "power": "power", "remainder": "fmod", "subtract": "subtract"}
NARROW = ("f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "f8e4m3", "f8e3m4", "f4e2m1fn", "f8e8m0fnu")
FLOATS = ("f16", "bf16", "f32", "f64") + NARROW
INTEGERS = ("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "s4", "u4", "s2", "u2")


def is_float(name):
    return name in FLOATS


class Python:
    """The module math of Python, which calls the C library for f64, and struct for conversions of floats."""

    CODES = {"f16": "e", "f32": "f", "f64": "d"}
    NAMES = {"acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atanh": "atanh", "cbrt": "cbrt", "cosh": "cosh", "cosine": "cos", "erf": "erf",
             "exponential": "exp", "exponential-minus-one": "expm1", "log": "log", "log-plus-one": "log1p", "sine": "sin", "sinh": "sinh", "sqrt": "sqrt",
             "tan": "tan", "tanh": "tanh", "atan2": "atan2", "abs": "fabs"}
    flushes = False

    def __init__(self):
        self.name = "python " + sys.version.split()[0]

    def find(self, op, source, target):
        if op == "convert":
            # struct refuses what is too large, which the caller wants to see as infinity.
            narrows = source == "f64" and target in ("f32", "f16") or source == "f32" and target == "f16"
            return self.convert(source, target) if narrows or (source, target) == ("f16", "f32") else None
        function = getattr(math, self.NAMES.get(op, ""), None)
        if function is None or source != "f64" or target != "f64":
            return None
        return lambda operands: self.apply(op, function, operands)

    @staticmethod
    def apply(op, function, operands):
        count = len(operands[0]) // 8
        columns = [struct.unpack(f"{count}d", one) for one in operands]
        out = []
        for values in zip(*columns):
            try:
                out.append(function(*values))
            except OverflowError:
                out.append(math.copysign(math.inf, values[0]) if op == "sinh" else math.inf)
            except ValueError:  # outside of the domain, or a pole
                poles = {"log": (0, -math.inf), "log-plus-one": (-1, -math.inf), "atanh": (1, math.copysign(math.inf, values[0]))}
                at, value = poles.get(op, (None, 0))
                out.append(value if abs(values[0]) == abs(at or 0) and op in poles and (op == "atanh" or values[0] == at) else math.nan)
        return struct.pack(f"{count}d", *out)

    def convert(self, source, target):
        def run(operands):
            size = struct.calcsize(self.CODES[source])
            out = []
            for (value,) in struct.iter_unpack("=" + self.CODES[source], operands[0]):
                try:
                    out.append(struct.pack("=" + self.CODES[target], value))
                except OverflowError:
                    out.append(struct.pack("=" + self.CODES[target], math.copysign(math.inf, value)))
            assert len(operands[0]) == size * len(out)
            return b"".join(out)
        return run


class Library:
    """A shared library with functions of C's math.h, of f32 and f64."""

    NAMES = {"acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atanh": "atanh", "cbrt": "cbrt", "ceil": "ceil", "cosh": "cosh",
             "cosine": "cos", "erf": "erf", "exponential": "exp", "exponential-minus-one": "expm1", "floor": "floor", "log": "log",
             "log-plus-one": "log1p", "round-nearest-afz": "round", "round-nearest-even": "rint", "rsqrt": "rsqrt", "sine": "sin", "sinh": "sinh",
             "sqrt": "sqrt", "tan": "tan", "tanh": "tanh", "abs": "fabs", "atan2": "atan2", "power": "pow", "remainder": "fmod"}
    TYPES = {"f32": ("f", ctypes.c_float), "f64": ("", ctypes.c_double)}
    flushes = False

    class Found(ctypes.Structure):
        """What dladdr says of an address: Dl_info."""
        _fields_ = [("path", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("address", ctypes.c_void_p)]

    def __init__(self, path):
        self.path = os.path.realpath(path)
        try:
            self.library = ctypes.CDLL(self.path)
        except OSError as error:
            refuse(str(error))
        self.name = os.path.basename(path).removesuffix(".so")
        self.dladdr = ctypes.CDLL(None).dladdr
        self.dladdr.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    def own(self, name):
        """Returns a function that this library has, and not one that it is linked with; else None."""
        function = getattr(self.library, name, None)
        found = self.Found()
        if function is None or not self.dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(found)):
            return None
        return function if os.path.realpath(os.fsdecode(found.path)) == self.path else None

    def find(self, op, source, target):
        if op not in self.NAMES or source != target or source not in self.TYPES:
            return None
        suffix, kind = self.TYPES[source]
        function = self.own("cr_" + self.NAMES[op] + suffix) or self.own(self.NAMES[op] + suffix)
        if function is None:
            return None
        function.restype, function.argtypes = kind, [kind] * (2 if op in BINARY else 1)

        def run(operands):
            count = len(operands[0]) // ctypes.sizeof(kind)
            columns = [(kind * count).from_buffer_copy(one) for one in operands]
            return bytes((kind * count)(*map(function, *columns)))
        return run


class Numpy:
    """NumPy's universal functions, and astype."""

    TYPES = {"pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
             "f16": "float16", "f32": "float32", "f64": "float64"}
    flushes = False

    def __init__(self):
        import numpy
        self.numpy = numpy
        self.name = "numpy " + numpy.__version__
        numpy.seterr(all="ignore")
        import warnings
        warnings.simplefilter("ignore")

    def find(self, op, source, target):
        if source not in self.TYPES or target not in self.TYPES:
            return None
        a, b = self.numpy.dtype(self.TYPES[source]), self.numpy.dtype(self.TYPES[target])
        if op == "convert":
            return lambda operands: self.numpy.frombuffer(operands[0], a).astype(b).tobytes()
        name = {"round-nearest-even": "rint"}.get(op, COMMON.get(op))
        function = getattr(self.numpy, name or "", None)
        if function is None or not is_float(source) or (source != target and op != "is-finite"):
            return None
        return lambda operands: function(*(self.numpy.frombuffer(one, a) for one in operands)).astype(b, copy=False).tobytes()


class Torch:
    """PyTorch's functions on the processor, and Tensor.to."""

    TYPES = {"pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
             "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "f8e5m2": "float8_e5m2", "f8e4m3fn": "float8_e4m3fn",
             "f8e5m2fnuz": "float8_e5m2fnuz", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e8m0fnu": "float8_e8m0fnu"}
    NAMES = {"erf": "erf", "logistic": "sigmoid", "rsqrt": "rsqrt", "cbrt": None, "power": "pow"}
    flushes = False

    def __init__(self):
        import torch
        self.torch = torch
        torch.set_num_threads(1)
        self.name = "torch " + torch.__version__

    def find(self, op, source, target):
        a, b = (getattr(self.torch, self.TYPES.get(one, "?"), None) for one in (source, target))
        if a is None or b is None:
            return None
        function = (lambda x: x.to(b)) if op == "convert" else getattr(self.torch, self.NAMES.get(op, COMMON.get(op)) or "", None)
        if function is None or (op != "convert" and (not is_float(source) or source in NARROW or (source != target and op != "is-finite"))):
            return None

        def run(operands):
            result = function(*(self.torch.frombuffer(bytearray(one), dtype=a) for one in operands))
            if result.dtype != b:
                raise TypeError(f"{op} of {source} gave {result.dtype}")
            return result.contiguous().view(self.torch.uint8).numpy().tobytes()
        try:  # a kernel may be missing for the type
            run([bytes(self.torch.empty(1, dtype=a).element_size())] * (2 if op in BINARY else 1))
        except (RuntimeError, TypeError, NotImplementedError):
            return None
        return run


class Xla:
    """XLA:CPU, through jax.lax. Arrays are filled up to powers of two, since each size is compiled."""

    NAMES = {"acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atanh": "atanh", "cosine": "cos", "negate": "neg",
             "round-nearest-afz": "round", "round-nearest-even": "round", "sine": "sin", "is-finite": "is_finite", "abs": "abs", "add": "add", "atan2": "atan2",
             "divide": "div", "maximum": "max", "minimum": "min", "multiply": "mul", "power": "pow", "remainder": "rem", "subtract": "sub", "erf": "erf",
             "logistic": "logistic", "rsqrt": "rsqrt"}

    def __init__(self):
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        import ml_dtypes
        import numpy
        jax.config.update("jax_enable_x64", True)
        self.jax, self.numpy = jax, numpy
        self.name = "XLA:CPU of jaxlib " + jax.lib.__version__
        self.types = dict(Numpy.TYPES)
        for name in NARROW:
            self.types[name] = {"f": "float"}[name[0]] + name[1:].replace("e", "_e", 1)
        self.types |= {"bf16": "bfloat16", "s4": "int4", "u4": "uint4", "s2": "int2", "u2": "uint2"}
        self.dtypes = {}
        for name, text in self.types.items():
            kind = getattr(ml_dtypes, text, None)
            try:
                self.dtypes[name] = numpy.dtype(kind if kind is not None else text)
            except TypeError:
                pass
        least = self.run(lambda x: x + x, "f32", "f32")([struct.pack("f", 1e-40)])
        self.flushes = struct.unpack("f", least)[0] == 0

    def run(self, function, source, target):
        a, b, np = self.dtypes[source], self.dtypes[target], self.numpy
        compiled = self.jax.jit(function)

        def call(operands):
            arrays = [np.frombuffer(one, a) for one in operands]
            count = len(arrays[0])
            filled = [np.concatenate([x, np.zeros((1 << max(count - 1, 0).bit_length()) - count, a)]) for x in arrays]
            result = np.asarray(compiled(*filled))[:count]
            if result.dtype != b:
                raise TypeError(f"the result is {result.dtype}")
            return result.tobytes()
        return call

    def find(self, op, source, target):
        lax = self.jax.lax
        if source not in self.dtypes or target not in self.dtypes:
            return None
        if op == "convert":
            made = self.run(lambda x: lax.convert_element_type(x, self.dtypes[target]), source, target)
        else:
            function = getattr(lax, self.NAMES.get(op, COMMON.get(op)) or "", None)
            if function is None or not is_float(source) or source in NARROW or (source != target and op != "is-finite"):
                return None
            if op.startswith("round"):
                way = lax.RoundingMethod.TO_NEAREST_EVEN if op.endswith("even") else lax.RoundingMethod.AWAY_FROM_ZERO
                made = self.run(lambda x: lax.round(x, way), source, target)
            else:
                made = self.run(function, source, target)
        try:
            made([bytes(self.dtypes[source].itemsize)] * (2 if op in BINARY else 1))
        except Exception:  # what JAX refuses has many types of errors
            return None
        return made


OWN = {"python": Python, "numpy": Numpy, "torch": Torch, "xla": Xla}


class Of:
    """An implementation in a file of the user."""

    def __init__(self, path):
        spec = importlib.util.spec_from_file_location("implementation", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.name, self.flushes, self.find = module.NAME, getattr(module, "FLUSHES", False), module.find


def refuse(message):
    """Ends the program because of what it was given."""
    print(f"implementations.py: {message}", file=sys.stderr)
    sys.exit(2)


def is_path(name):
    return name.endswith((".py", ".so"))


def check_name(name):
    if name not in OWN and not is_path(name):
        refuse(f"there is no implementation '{name}'; there are {', '.join(OWN)}, and paths of shared libraries (.so) and Python files (.py)")
    if name not in OWN and not os.path.exists(name):
        refuse(f"there is no file '{name}'")


def load(name):
    check_name(name)
    if name in OWN:
        return OWN[name]()
    return Library(name) if name.endswith(".so") else Of(name)


def serve(name):
    """Answers the backend by_process until the input ends."""
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get among the answers
    implementation = load(name)
    found = {}

    def answer(line, data=b""):
        writer.write(line.encode() + b"\n" + data)
        writer.flush()

    answer(f"collet implementation 1 {implementation.name}" + (" flushes" if implementation.flushes else ""))
    while line := reader.readline():
        verb, *words = line.decode().split()
        key = tuple(words[:3])
        if key not in found:
            found[key] = implementation.find(*key)
        if verb == "has":
            answer("yes" if found[key] else "no")
            continue
        count, operands = int(words[3]), int(words[4])
        size = BYTES[key[0 if len(key) < 2 else 1]]
        arrays = [reader.read(count * size) for _ in range(operands)]
        try:
            result = found[key](arrays)
            expected = count * BYTES[key[2]]
            if len(result) != expected:
                raise ValueError(f"{len(result)} bytes, expected {expected}")
        except Exception as error:  # the backend reports it as the failure of the case
            answer("error " + f"{type(error).__name__}: {error}".replace("\n", " ")[:300])
            continue
        answer("done", result)


BYTES = {"pred": 1, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "c64": 8, "c128": 16}
BYTES |= {name: 1 for name in NARROW + ("s1", "u1")}
BYTES |= {name: max(1, int(name[1:]) // 8) for name in INTEGERS}


def read_known(path):
    """Returns the known differences: dictionaries with implementations and cases, which are lists of globs, and reason."""
    try:
        with open(path, "rb") as file:
            entries = tomllib.load(file).get("difference", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        refuse(f"{path}: {error}")
    for number, entry in enumerate(entries, 1):
        for key in ("implementations", "cases", "reason"):
            if key not in entry:
                refuse(f"{path}: difference {number} has no '{key}'")
    return entries


def run_cases(arguments, name):
    """Runs the suite; returns its report of --json."""
    command = [sys.executable, os.path.abspath(__file__), "serve", os.path.abspath(name) if is_path(name) else name]
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        line = [os.path.join(arguments.build, "bin", "collet"), "conform", "--backend",
                os.path.join(arguments.build, "lib", "collet", "test_backends", "libcollet_backend_by_process.so"), "--no-fallback", "--jobs", str(arguments.jobs),
                "--timeout", str(arguments.timeout), "--failures", "0", "--json", report, "--option", "command=" + shlex.join(command)]
        line += [f"--filter={op}/*" for op in arguments.ops] + (["--full"] if arguments.full else [])
        ran = subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if not os.path.exists(report):
            refuse(f"{name}: {ran.stderr.strip()[-500:]}")
        with open(report) as file:
            return json.load(file)


def matches(name, globs):
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def summarise(report, known):
    """Returns what became of the cases of one implementation."""
    name = report["version"]
    mine = [entry | {"met": 0} for entry in known if matches(name, entry["implementations"])]
    out = {"implementation": name, "passed": 0, "not_there": 0, "accused": [], "known": [], "types": {}}
    for case in report["cases"]:
        if case["status"] == "pass" and case["device_ops"] == 0:  # the SDK has reduced it to nothing
            continue
        row = out["types"].setdefault(case["type"], {"passed": 0, "known": 0, "accused": 0, "not_there": 0})
        if case["status"] == "pass":
            out["passed"] += 1
            row["passed"] += 1
        elif case["status"] == "unsupported":
            out["not_there"] += 1
            row["not_there"] += 1
        else:
            entry = next((one for one in mine if matches(case["name"], one["cases"])), None)
            which = "known" if entry else "accused"
            if entry:
                entry["met"] += 1
            out[which].append({"case": case["name"], "detail": case.get("detail", ""), "reason": entry["reason"] if entry else None})
            row[which] += 1
    out["stale"] = [entry["reason"] for entry in mine if entry["met"] == 0]
    return out


def show(summary, most):
    print(f"{summary['implementation']}: {summary['passed']} cases passed, {len(summary['known'])} known differences, "
          f"{len(summary['accused'])} accusations, {summary['not_there']} cases of what it does not have")
    for kind, row in sorted(summary["types"].items()):
        if row["passed"] + row["known"] + row["accused"]:
            print(f"  {kind:<14} {row['passed']:>5} passed, {row['known']:>4} known, {row['accused']:>4} accused")
    for one in summary["accused"][:most]:
        print(f"  accused: {one['case']}\n    {one['detail']}")
    if len(summary["accused"]) > most:
        print(f"  and {len(summary['accused']) - most} more; --json has them all")
    for reason in summary["stale"]:
        print(f"  no longer met: {reason}")


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="print the names of the implementations")
    serving = verbs.add_parser("serve", help="answer the test backend by_process on standard input and output")
    serving.add_argument("name")
    running = verbs.add_parser("run", help="run the suite's cases")
    running.add_argument("names", nargs="+", metavar="NAME", help=f"{', '.join(OWN)}, or the path of a shared library or a Python file")
    running.add_argument("--build", default="build/release", help="the build folder with the tool and the test backends (default: %(default)s)")
    running.add_argument("--ops", default=",".join(OPS), help="the ops, separated by commas (default: all)")
    running.add_argument("--full", action="store_true", help="the cases of the full set")
    running.add_argument("--jobs", type=int, default=1, metavar="N", help="worker processes (default: %(default)s)")
    running.add_argument("--timeout", type=float, default=60, metavar="SECONDS", help="seconds a case may take (default: %(default)s)")
    running.add_argument("--known", default=KNOWN, metavar="FILE", help="the known differences, with reasons (default: the file beside this program)")
    running.add_argument("--failures", type=int, default=20, metavar="N", help="accusations to show for each implementation (default: %(default)s)")
    running.add_argument("--json", metavar="FILE", help="write the results to this file")
    arguments = parser.parse_args(words)
    if arguments.verb == "run":
        arguments.ops = arguments.ops.split(",")
        wrong = [op for op in arguments.ops if op not in OPS]
        if wrong:
            parser.error(f"--ops: there is no '{wrong[0]}'; there are {', '.join(OPS)}")
    return arguments


def main(words):
    arguments = parse(words)
    if arguments.verb == "list":
        for name, kind in OWN.items():
            print(f"{name:<8} {kind.__doc__}")
        return 0
    if arguments.verb == "serve":
        serve(arguments.name)
        return 0
    known = read_known(arguments.known)
    for name in arguments.names:
        check_name(name)
    summaries = []
    for name in arguments.names:
        summaries.append(summarise(run_cases(arguments, name), known))
        show(summaries[-1], arguments.failures)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(summaries, file, indent=1)
            file.write("\n")
    # Of a part of the ops not all known differences are met.
    whole = arguments.ops == OPS
    return 1 if any(one["accused"] or (whole and one["stale"]) for one in summaries) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
