# SPDX-License-Identifier: Apache-2.0
"""Trains the programs of templates/torch on torch's own cpu and through the plugin, and compares the losses step by step.

Programs reach the plugin as HloModuleProto and, with XLA_STABLEHLO_COMPILE=1, as StableHLO; both ways are tested. Exit code 1
if a program fails, or a loss differs by more than the tolerance.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FORMATS = {"HloModuleProto": "0", "StableHLO": "1"}  # format -> value of XLA_STABLEHLO_COMPILE
FRONTENDS_OWN = ("PJRT_DEVICE", "PJRT_DYNAMIC_PLUGINS", "XLA_STABLEHLO_COMPILE")


def losses(program, options, settings, device):
    """Returns (losses, seconds) of one training run; raises RuntimeError with the last output of the program."""
    environment = {k: v for k, v in os.environ.items() if k not in FRONTENDS_OWN} | settings
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "losses"
        command = [sys.executable, str(program), "--steps", str(options.steps), "--losses", str(file)]
        begun = time.perf_counter()
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=options.timeout)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"still running after {options.timeout} s") from None
        seconds = time.perf_counter() - begun
        if done.returncode or not file.is_file():
            raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
        if f"device: {device}" not in done.stdout:
            raise RuntimeError(f"it did not run on {device}")
        found = [float(line) for line in file.read_text().split()]
        if len(found) != options.steps:
            raise RuntimeError(f"{len(found)} losses, not {options.steps}")
        return found, seconds


def worst_difference(found, expected):
    """Returns the largest relative difference; infinite if only one of two values is NaN."""
    worst = 0.0
    for a, b in zip(found, expected):
        difference = abs(a - b) / max(abs(b), 1e-30)
        worst = difference if not difference <= worst else worst
    return worst if worst == worst else float("inf")


def check(name, options):
    """Prints the rows of one program; returns true if all are right."""
    program = options.programs / f"{name}.py"
    expected, seconds = losses(program, options, {}, "cpu")
    print(f"{name:<14}{'torch, cpu':<18}{expected[0]:>10.5f}{expected[-1]:>10.5f}{'':>12}{seconds:>9.1f}", flush=True)
    good = True
    for kind, value in FORMATS.items():
        settings = {"PJRT_DEVICE": options.device.upper(), "XLA_STABLEHLO_COMPILE": value}
        try:
            found, seconds = losses(program, options, settings, "xla:0")
        except RuntimeError as problem:
            print(f"{name:<14}{kind:<18}failed: {problem}", flush=True)
            good = False
            continue
        worst = worst_difference(found, expected)
        good = good and worst <= options.tolerance
        print(f"{name:<14}{kind:<18}{found[0]:>10.5f}{found[-1]:>10.5f}{worst:>12.1e}{seconds:>9.1f}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=HERE.parents[3] / "templates" / "torch",
                        help="a folder of programs with --steps and --losses (%(default)s)")
    parser.add_argument("--device", default="collet", help="PJRT_DEVICE (%(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="of each training run (%(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="relative (%(default)s)")
    parser.add_argument("--timeout", type=int, default=900, help="seconds for one run (%(default)s)")
    parser.add_argument("names", nargs="*", default=["cnn", "transformer"], help="cnn, transformer")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps: at least 1")
    print(f"{'program':<14}{'as':<18}{'first':>10}{'last loss':>10}{'difference':>12}{'seconds':>9}", flush=True)
    try:
        good = [check(name, options) for name in options.names]
    except RuntimeError as problem:
        sys.exit(f"torch_check.py: on torch's own cpu: {problem}")
    print(f"{'all' if all(good) else 'NOT all'} losses are within {options.tolerance:g} of torch's own cpu")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
