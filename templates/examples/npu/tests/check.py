#!/usr/bin/env python3
"""check.py --collet COLLET --backend LIBRARY [--corpus]

Runs the programs in this folder on the example backend, with scratchpads of several sizes. Each has to run as a whole, in one launch,
with the interpreter's results. Then it puts a fault into the machine, one after the other: a program, or `collet conform`,
has to find it. With --corpus, it quantizes networks of the folder
COLLET_CORPUS_DIR (models/NAME/program.hlo and case.json), and runs these instead."""
import argparse
import json
import math
import os
import random
import re
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
# Integer code of JAX, written by make_models.py. Its layers have s8 weights, s32 biases, and vectors of scales.
JAX_PROGRAMS = ["jax_mobilenet.mlir", "jax_transformer.mlir", "jax_scan.mlir"]
# Programs whose layers and residual sums are each one op for the device, and how many ops they have then.
OPS = {"cnn.mlir": 27}
# Programs, scratchpads in KiB, and the arguments that are packed because pieces read several rows of them.
PACKED = [("large_layer.hlo", 1024, ["w"]), ("transformer.hlo", 8, ["v2", "v3", "v4", "v5", "v6", "v7"])]
# Networks for --corpus, and their parameters that are weights.
MODELS = {"mobilenet_block": "1-3", "torch_transformer_encoder": "0-9,11,12", "torch_resnet18_small": "0-11,13-42",
          "tf_mobilenet_v2": "1-262"}


def parameters(program):
    """Returns what PROGRAMS has, for a program of JAX."""
    with open(os.path.join(HERE, program), encoding="utf-8") as file:
        [signature] = re.findall(r"func public @main\((.*?)\) ->", file.read(), re.DOTALL)
    out = []
    for dims, kind in re.findall(r": tensor<([0-9x]*)x(f32|i8|i32)>", signature):
        sizes = [int(size) for size in dims.split("x")]
        deviation = {"i8": 40, "i32": 500, "f32": 1 if len(sizes) > 1 else 0.002}[kind]
        out.append((kind.replace("i", "s"), math.prod(sizes), deviation))
    return out


def write_inputs(folder, program):
    """Writes the arguments of a program, and returns the names of the files."""
    draw = random.Random(program)
    names = []
    for i, (kind, count, deviation) in enumerate(PROGRAMS.get(program) or parameters(program)):
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


def run(args, program, inputs, options, more=()):
    """Runs a program beside the interpreter, and returns the exit code and the facts. `inputs` are files, or a rule."""
    command = [args.collet, "run", os.path.join(HERE, program), "--backend", args.backend, "--no-fallback",
               "--compare", "interpreter", "--json", "-", "--inputs", *inputs, *more]
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


def check(args, program, inputs, options):
    """Runs a program, says how, and returns whether it ran as a whole with the right results."""
    code, facts = run(args, program, inputs, options)
    varied = all(out["min"] < out["max"] for out in facts["outputs"])
    grouped = facts["device_ops"] == OPS.get(program, facts["device_ops"])
    whole = grouped and facts["clusters"] == facts["kernels"] == 1 and facts["fallback_ops"] == facts["host_ops"] == 0
    print(f"{os.path.basename(program)}, {' '.join(options)}: {'agrees' if code == 0 else 'DIFFERS'}, {facts['device_ops']} ops in "
          f"{facts['kernels']} launch(es), {facts['fallback_ops'] + facts['host_ops']} elsewhere, {facts['traffic_bytes']} bytes, "
          f"{facts['cycles']} cycles{'' if varied else ', ALL RESULTS EQUAL'}", flush=True)
    return code == 0 and varied and whole


def check_packing(args, folder, program, inputs, kib, weights):
    """Runs a program as often as it takes until its weights are packed, and returns whether these were, with the right results."""
    trace = os.path.join(folder, "trace.json")
    code, _ = run(args, program, inputs, [f"scratchpad_kib={kib}"], ["--repeat", "4", "--trace", trace])
    with open(trace, encoding="utf-8") as file:
        packed = {event["name"] for event in json.load(file)["traceEvents"] if event["name"].startswith("pack ")}
    print(f"{program}, {kib} KiB, four times: {'agrees' if code == 0 else 'DIFFERS'}, {len(packed)} arguments packed", flush=True)
    return code == 0 and packed == {f"pack {name}" for name in weights}


def write_data(folder, model):
    """Writes a file for each parameter of a network, with numbers as its case.json says, in an order of their own."""
    os.makedirs(folder)
    draw = random.Random(folder)
    with open(os.path.join(model, "case.json"), encoding="utf-8") as file:
        inputs = json.load(file)["inputs"]
    for i, one in enumerate(inputs):
        [dims] = re.findall(r"^f32\[([0-9,]*)\]$", one["shape"])
        sizes = [int(size) for size in dims.split(",") if size]
        count = math.prod(sizes)
        header = str({"descr": "<f4", "fortran_order": False, "shape": tuple(sizes)})
        header += " " * (-(len(header) + 11) % 64) + "\n"
        block = [one.get("offset", 0) + one.get("scale", 1) * draw.uniform(-1, 1) for _ in range(min(count, 65521))]
        data = struct.pack(f"<{len(block)}f", *block)
        with open(os.path.join(folder, f"{i:04}.npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            file.write((data * (count // len(block) + 1))[:4 * count])


def check_models(args, folder):
    """Returns the networks that do not run as they should."""
    wrong = []
    corpus = os.environ.get("COLLET_CORPUS_DIR")
    if not corpus:
        print(f"not run: {len(MODELS)} networks (COLLET_CORPUS_DIR is not set)")
        return ["COLLET_REQUIRE_CORPUS is set"] if os.environ.get("COLLET_REQUIRE_CORPUS") else []
    for model, weights in MODELS.items():
        quantized, data, source = os.path.join(folder, model + ".mlir"), os.path.join(folder, model), os.path.join(corpus, "models", model)
        write_data(os.path.join(data, "0"), source)
        subprocess.run([args.collet, "quantize", os.path.join(source, "program.hlo"), "--calibrate", data, "--weights", weights,
                        "-o", quantized], stdout=subprocess.DEVNULL, check=True)
        if not check(args, quantized, ["random:1"], ["scratchpad_kib=1024"]):
            wrong.append(model)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collet", required=True)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--corpus", action="store_true", help="run networks of COLLET_CORPUS_DIR")
    args = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        if args.corpus:
            wrong = check_models(args, folder)
        inputs = {} if args.corpus else {program: write_inputs(folder, program) for program in [*PROGRAMS, *JAX_PROGRAMS]}
        for program, files in inputs.items():
            for kib in (16, 1024):
                if not check(args, program, files, [f"scratchpad_kib={kib}"]):
                    wrong.append(f"{program} with {kib} KiB")
        for program, kib, weights in [] if args.corpus else PACKED:
            if not check_packing(args, folder, program, inputs[program], kib, weights):
                wrong.append(f"packing {program}")
        for fault in [] if args.corpus else FAULTS:
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
