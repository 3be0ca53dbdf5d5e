#!/usr/bin/env python3
"""check.py --collet COLLET --backend LIBRARY

Runs the programs in this folder on the example backend, with scratchpads of several sizes. Each has to run as a whole, in one launch,
with the interpreter's results. Then it puts a fault into the machine, one after the other: a program, or `collet conform`,
has to find it."""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FAULTS = ["rounding", "zero_point", "saturation", "halo", "address"]
# Program, types and sizes of its parameters, and the standard deviation of what stands in them.
PROGRAMS = {
    "mlp.mlir": [("f32", 37 * 64, 3), ("s8", 64 * 96, 25), ("s8", 96 * 10, 25)],
    "cnn.mlir": [("s8", 33 * 35 * 3, 50), ("s8", 9 * 3 * 16, 25), ("s8", 9 * 16, 25), ("s8", 256, 30), ("s8", 512, 30)],
    "transformer.hlo": [("f32", 24 * 64, 1)] + [("s8", 64 * 64, 40)] * 4 + [("s8", 64 * 128, 40)] * 2 + [("f32", 64, 1)] * 2,
    "large_layer.hlo": [("s8", 16 * 2048, 12), ("s8", 2048 * 4096, 12), ("s32", 4096, 20000)],
    "pools.hlo": [("s8", 33 * 35 * 24, 60), ("f16", 70 * 90, 1), ("f16", 90 * 50, 1)],
}


def write_inputs(folder, program):
    """Writes the arguments of a program, and returns the names of the files."""
    draw = random.Random(program)
    names = []
    for i, (kind, count, deviation) in enumerate(PROGRAMS[program]):
        block = [draw.gauss(0, deviation) for _ in range(min(count, 65521))]
        numbers = (block * (count // len(block) + 1))[:count]
        if kind in ("s8", "s32"):
            low, high = (-128, 127) if kind == "s8" else (-2**31, 2**31 - 1)
            numbers = [max(low, min(high, round(x))) for x in numbers]
        form = {"s8": "b", "s32": "i", "f32": "f", "f16": "e"}[kind]
        names.append(os.path.join(folder, f"{program}.{i}"))
        with open(names[-1], "wb") as file:
            file.write(struct.pack(f"<{count}{form}", *numbers))
    return names


def run(args, program, inputs, options):
    """Runs a program beside the interpreter, and returns the exit code and the facts."""
    command = [args.collet, "run", os.path.join(HERE, program), "--backend", args.backend, "--no-fallback",
               "--compare", "interpreter", "--json", "-", "--inputs", *inputs]
    for option in options:
        command += ["--option", option]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}")
    return done.returncode, json.loads(done.stdout)


def conform(args, fault):
    command = [args.collet, "conform", "--backend", args.backend, "--no-fallback", "--profile", "quantized",
               "--filter", "integer_*", "--option", f"fault={fault}"]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collet", required=True)
    parser.add_argument("--backend", required=True)
    args = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        inputs = {program: write_inputs(folder, program) for program in PROGRAMS}
        for program in PROGRAMS:
            for kib in (16, 1024):
                code, facts = run(args, program, inputs[program], [f"scratchpad_kib={kib}"])
                varied = all(out["min"] < out["max"] for out in facts["outputs"])
                whole = facts["clusters"] == facts["kernels"] == 1 and facts["fallback_ops"] == facts["host_ops"] == 0
                print(f"{program}, {kib} KiB: {'agrees' if code == 0 else 'DIFFERS'}, {facts['device_ops']} ops in "
                      f"{facts['kernels']} launch(es), {facts['traffic_bytes']} bytes")
                if code != 0 or not varied or not whole:
                    wrong.append(f"{program} with {kib} KiB")
        for fault in FAULTS:
            found = [program for program in PROGRAMS
                     if program != "large_layer.hlo" or fault == "rounding"
                     if run(args, program, inputs[program], ["scratchpad_kib=16", f"fault={fault}"])[0] == 1]
            by_suite = conform(args, fault) == 1
            print(f"{fault}: found by {', '.join(found + ['conform'] * by_suite) or 'NOTHING'}")
            in_layer = fault in ("rounding", "zero_point", "saturation")
            if not found or (in_layer and not by_suite):
                wrong.append(f"the fault {fault}")
    for one in wrong:
        print(f"wrong: {one}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
