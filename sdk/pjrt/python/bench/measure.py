# SPDX-License-Identifier: Apache-2.0
"""Measures programs on two platforms of JAX in one process, alternately, and compares their results."""
import contextlib
import json
import math
import statistics
import subprocess
import time

import jax
import numpy as np

SHORTEST_SAMPLE = 200e-6  # seconds: programs that take less run several times in one sample
FEWEST_SAMPLES = 5


class Limits:
    """The machine's limits for a number of threads, as `collet bench` measures them."""

    def __init__(self, collet, threads):
        done = subprocess.run([collet, "bench", "--limits", "--option", f"threads={threads}", "--json", "-"], check=True,
                              capture_output=True, text=True)
        self.machine = json.loads(done.stdout)

    def seconds(self, flops, moved):
        """Returns the least time for `flops` operations (a multiply-add counts as two) and `moved` bytes read and written, and whether moving takes longer."""
        computing, moving = flops / self.machine["gflops"] / 1e9, moved / self.bandwidth(moved) / 1e9
        return max(computing, moving), moving >= computing

    def bandwidth(self, size):
        """Returns the bandwidth in GB/s for data of `size` bytes: that of the next larger size that was measured."""
        rows = self.machine["bandwidth"]
        return next((row["gbytes"] for row in rows if row["bytes"] >= size), rows[-1]["gbytes"])


def precision(point):
    """Returns a context in which JAX keeps 64-bit types; otherwise it converts them to 32 bits."""
    return jax.enable_x64(True) if point.dtype in ("float64", "complex128") else contextlib.nullcontext()


class Side:
    """One program, compiled for one platform, with its arguments there."""

    def __init__(self, program, device):
        self.arguments = jax.block_until_ready(jax.device_put(program.arguments, device))
        begun = time.perf_counter()
        self.run = jax.jit(program.function).lower(*self.arguments).compile()
        self.compile_seconds = time.perf_counter() - begun
        self.results = jax.block_until_ready(self.run(*self.arguments))
        self.times, self.samples = 1, []

    def sample(self, clock=time.perf_counter):
        begun = clock()
        for _ in range(self.times):
            results = self.run(*self.arguments)
        jax.block_until_ready(results)
        return (clock() - begun) / self.times

    def warm(self):
        once = min(self.sample() for _ in range(3))
        self.times = max(1, min(1000, math.ceil(SHORTEST_SAMPLE / once)))

    @property
    def seconds(self):
        return statistics.median(self.samples)


def size_of(trees):
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(trees))


def difference(ours, theirs, magnitudes):
    """Returns the largest difference between two trees of arrays, relative to each array's largest magnitude; infinite if NaNs or shapes differ."""
    worst = 0.0
    left, right = jax.tree.leaves(ours), jax.tree.leaves(theirs)
    if len(left) != len(right):
        return math.inf
    for a, b in zip(left, right):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return math.inf
        wide = np.complex128 if np.iscomplexobj(b) else np.float64
        a, b = a.astype(wide), b.astype(wide)
        if magnitudes:
            a, b = np.abs(a), np.abs(b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if same.all():
            continue
        apart, largest = np.abs(a - b)[~same].max(), np.abs(b[np.isfinite(b)]).max(initial=0)
        if not np.isfinite(apart):
            return math.inf
        worst = max(worst, float(apart / largest) if largest > 0 else math.inf)
    return worst


def first_line(problem):
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)[:300]


def compare(point, build, ours, peer, limits, seconds):
    """Returns a row for one point; None if its variant is not defined for its type. `build` makes the point's program, or None; `ours`
    and `peer` are devices. A program that one side cannot run has an error, and `failed` says which side: the peer where neither can."""
    row = {"name": point.name, "family": point.family, "variant": point.variant, "type": point.dtype} | point.facts
    with precision(point):
        program = build(point)
        if program is None:
            return None
        try:
            sides, error = [Side(program, ours)], {}
        except Exception as problem:  # an error of one program must not prevent measuring the others
            sides, error = [], {"error": f"ours: {first_line(problem)}", "failed": "ours"}
        try:
            sides.append(Side(program, peer))
        except Exception as problem:
            error = {"error": f"the peer: {first_line(problem)}", "failed": "peer"}
        if error:
            return row | error
        apart = difference(sides[0].results, sides[1].results, program.magnitudes)
        moved = size_of(program.arguments) + size_of(sides[0].results)
        for side in sides:
            del side.results
            side.warm()
        end, turn = time.perf_counter() + seconds, 0
        while time.perf_counter() < end or turn < FEWEST_SAMPLES:
            for side in (sides if turn % 2 == 0 else reversed(sides)):
                side.samples.append(side.sample())
            turn += 1
    return row | figures(*sides, program, moved, apart, limits)


def figures(ours, peer, program, moved, apart, limits):
    least, by_memory = limits.seconds(program.flops, moved)
    quartiles = statistics.quantiles(ours.samples, n=4)
    return {"seconds": ours.seconds, "peer_seconds": peer.seconds, "ratio": peer.seconds / ours.seconds,
            "spread": (quartiles[2] - quartiles[0]) / ours.seconds, "samples": len(ours.samples),
            "flops": program.flops, "bytes": moved, "limit_seconds": least, "bound": "memory" if by_memory else "flops",
            "of_limit": least / ours.seconds, "peer_of_limit": least / peer.seconds,
            "compile_seconds": ours.compile_seconds, "peer_compile_seconds": peer.compile_seconds,
            "difference": apart, "tolerance": program.tolerance, "agrees": apart <= program.tolerance}
