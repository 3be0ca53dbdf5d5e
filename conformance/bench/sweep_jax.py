#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of `collet bench --sweep --json FILE` with XLA:CPU of jaxlib, and shows both: ./dev bench --sweep --jax.

  sweep_jax.py FILE     adds XLA's times and temporary memory to the report in FILE, and prints where Collet takes more

Exit code 1: Collet takes more than 3 times the time or the temporary memory."""
import argparse
import json
import os
import pathlib
import re
import select
import statistics
import subprocess
import sys
import time

import jax
import ml_dtypes
import numpy as np
from jax._src.lib import _jax

JUMP = 3  # how many times XLA's time or memory is worth a line
LIMIT_S = 60  # of one program
FREE = 1 << 20  # bytes of temporary memory that need no reason
PARAMETER = re.compile(r"= (\w+)\[([\d,]*)\] parameter\(\d+\)")
TYPES = {name: np.dtype(kind) for name, kind in {
    "pred": np.bool_, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
    "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "c64": np.complex64,
    "c128": np.complex128, "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}.items()}
CALL_NS = 10000  # what a call may take whatever it does: Python's calls take longer than C's


def array_of(dtype, dims, point, random):
    """Returns an argument like those of the tool: small numbers, positions below `modulo`, or matrices whose diagonal dominates."""
    if dtype == np.bool_:
        return random.integers(0, 2, dims).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        most = min(point["modulo"] or 10, 1 << min(8 * dtype.itemsize - 1, 40))
        return random.integers(0, most, dims).astype(dtype)
    values = random.uniform(-0.25, 0.25, dims)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * random.uniform(-0.25, 0.25, dims)
    if point["definite"] and len(dims) >= 2 and dims[-1] == dims[-2]:
        values = (values + np.swapaxes(values, -1, -2)) * 0.125 + np.eye(dims[-1]) * dims[-1]
    return values.astype(dtype)


def measure(client, point, seconds):
    """Returns (ns of an execution, bytes of temporary memory)."""
    proto = subprocess.run([os.environ["COLLET_TOOL"], "opt", "-", "--emit", "hlo-proto"], input=point["program"].encode(), check=True,
                           capture_output=True).stdout
    device = client.local_devices()[0]
    compiled = client.compile_and_load(_jax.mlir.hlo_to_stablehlo(proto), _jax.DeviceList((device,)), _jax.CompileOptions())
    random = np.random.default_rng(0)
    shapes = PARAMETER.findall(point["program"].split("ENTRY")[1])
    arguments = [jax.device_put(array_of(TYPES[element], tuple(map(int, filter(None, dims.split(",")))), point, random), device)
                 for element, dims in shapes]

    def run(times):
        begun = time.perf_counter_ns()
        for _ in range(times):
            results = compiled.execute(arguments)
        for result in results:
            result.block_until_ready()
        return (time.perf_counter_ns() - begun) / times

    best = run(1)
    end, samples = time.perf_counter() + seconds, 0
    while best < 5e9 and (time.perf_counter() < end or samples < 3):
        best = min(best, run(int(min(max(2e6 / best, 1), 1000))))
        samples += 1
    return best, compiled.get_compiled_memory_stats().temp_size_in_bytes


def work():
    """Measures the points that come as lines of JSON, each with its number of seconds, and answers with a line for each."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # XLA's own messages must not be taken for answers
    jax.config.update("jax_enable_x64", True)
    client = jax.devices("cpu")[0].client
    for line in sys.stdin:
        try:
            answer = measure(client, *json.loads(line))
        except Exception as problem:  # XLA:CPU does not have every type and op; the others must be measured
            answer = next(iter(str(problem).strip().splitlines()), type(problem).__name__)[:200]
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """A process that measures with XLA. It is started again after a program that XLA does not survive, or that takes too long."""

    def __init__(self):
        self.process = None

    def measure(self, point, seconds):
        """Returns (ns, bytes), or a text that says why not."""
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, __file__, "--work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        print(json.dumps((point, seconds)), file=self.process.stdin, flush=True)
        ready, _, _ = select.select([self.process.stdout], [], [], LIMIT_S)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.close()
        return "XLA's process ended" if ready else f"it took longer than {LIMIT_S} s"

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.process = None


def main():
    parser = argparse.ArgumentParser(prog="./dev bench --sweep --jax", description=__doc__.splitlines()[0])
    parser.add_argument("report", type=pathlib.Path, nargs="?")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0.05, help="measuring time of a program (%(default)s)")
    options = parser.parse_args()
    if options.work:
        work()
        return 0
    if options.report is None:
        parser.error("no report")
    report = json.loads(options.report.read_text())
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:report["threads"]])
    worker = Worker()
    points = [(family, point) for family in report["families"] for point in family["points"]]
    more = []
    for number, (family, point) in enumerate(points):
        name = family["family"] + (f" {point['parameter']}={point['value']}" if point["parameter"] else "")
        if sys.stderr.isatty():
            print(f"\r\x1b[Kxla {number}/{len(points)} {name}", end="", file=sys.stderr, flush=True)
        point.pop("xla_error", None)
        measured = worker.measure({key: point[key] for key in ("program", "modulo", "definite")}, options.seconds)
        if isinstance(measured, str):
            point["xla_error"] = measured
            continue
        point["xla_ns"], point["xla_temporary_bytes"] = measured
        if "error" in point:
            continue
        point["ratio"] = (point["xla_ns"] + CALL_NS) / (point["ns"] + CALL_NS)
        if point["ratio"] < 1 / JUMP:
            more.append((point["ratio"], f"{name}: {1 / point['ratio']:.1f} times XLA's time ({point['ns'] / 1e6:.3f} ms)"))
        beside = max(point["xla_temporary_bytes"], point["bytes"] / 4) + FREE
        if point["temporary_bytes"] > JUMP * beside:
            more.append((beside / point["temporary_bytes"],
                         f"{name}: {point['temporary_bytes'] >> 20} MiB of temporary memory, XLA {point['xla_temporary_bytes'] >> 20}"))
    worker.close()
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    if not any("xla_ns" in point for _, point in points):
        print(f"XLA ran no program: {points[0][1]['xla_error']}", file=sys.stderr)
        return 1
    print(f"\n{'family':<24} {'programs':>8} {'XLA / Collet':>13} {'lowest':>8}   of the times; above 1 Collet is faster")
    for family in report["families"]:
        ratios = [point["ratio"] for point in family["points"] if "ratio" in point]
        if ratios:
            print(f"{family['family']:<24} {len(ratios):>8} {statistics.geometric_mean(ratios):>13.2f} {min(ratios):>8.2f}")
    print(f"\n{len(more)} programs take more than {JUMP} times XLA's time or temporary memory" + (":" if more else ""))
    for _, line in sorted(more):
        print(line)
    options.report.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
