# SPDX-License-Identifier: Apache-2.0
"""Runs JAX's tests of several processes (tests/multiprocess) on JAX's own cpu and through the plugin, and compares them.

A test passes if it passes in each process. Exit code 1: less than 95 % of what passes on JAX's cpu passes through the plugin.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

DEVICES = 8  # of all processes; most of the tests need so many
SHARE = 0.95
# JAX's limits are for a machine that does nothing else.
LIMITS = ("--heartbeat_timeout=100", "--initialization_timeout=120", "--barrier_timeout=100", "--shutdown_timeout=60")
RESULT = re.compile(r"^\[\s*(OK|FAILED|SKIPPED)\s*\] (\S+)", re.MULTILINE)
BEGIN = re.compile(r"^\[ RUN\s*\] (\S+)", re.MULTILINE)
ERROR = re.compile(r"^(?:ERROR|FAIL): (\w+)(?:.*?)\((?:__main__\.)?(\w+)", re.MULTILINE)


def states(text):
    """Returns a map from test to passed, failed or skipped of what absl has written in one process."""
    found = {test: "failed" for test in BEGIN.findall(text)}  # it has begun, and not ended
    for word, test in RESULT.findall(text):
        found[test] = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[word]
    return found


def of_all(texts):
    """Returns a map from test to its state over all processes, whose outputs are `texts`."""
    each = [states(text) for text in texts]
    out = {}
    for test in sorted({test for one in each for test in one}):
        words = {one.get(test, "failed") for one in each}
        out[test] = "failed" if "failed" in words else "passed" if "passed" in words else "skipped"
    return out


def reason(texts, test):
    """Returns the last line of a test's error in the first process that has one."""
    name = test.rsplit(".", 1)[-1]
    for text in texts:
        parts = re.split(r"^=+$", text, flags=re.MULTILINE)
        for part in parts:
            head = ERROR.search(part)
            if head and (head[1] == name or part.find(name) in range(0, 200)):
                errors = [line for line in part.splitlines() if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
                return errors[-1][:200] if errors else "an error without a text"
    return "the process ended, or did not end in time"


def run_file(path, processes, variables, options, folder, *more):
    """Runs a file in so many processes, with more arguments; returns what of_all() does, and the outputs."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, TEST_UNDECLARED_OUTPUTS_DIR=str(folder), **variables)
    command = [sys.executable, str(path), f"--num_processes={processes}", *LIMITS, *more]
    with (folder / "log").open("w") as log:
        child = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            child.wait(options.timeout)
        except subprocess.TimeoutExpired:
            print(f"{path.stem}: {processes} processes did not end within {options.timeout} s", file=sys.stderr, flush=True)
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
    texts = [file.read_text(errors="replace") if file.is_file() else ""
             for file in (folder / f"jax_{i}_stderr.log" for i in range(processes))]
    return of_all(texts), texts


def variables_of(side, processes):
    """Returns the environment in which a test runs: with JAX's own cpu, or through the plugin."""
    devices = str(DEVICES // processes)
    if side == "cpu":
        return {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": devices}
    return {"JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "collet"), "COLLET_DEVICES": devices}


def baseline(path, file, processes, options, folder):
    """Returns what passes on JAX's cpu, measured unless it is stored in `path`."""
    stored = json.loads(path.read_text()) if path.is_file() else {}
    key = f"{file} {processes}"
    if key not in stored:
        stored[key], _ = run_file(options.jax_source / "tests/multiprocess" / f"{file}.py", processes,
                                  variables_of("cpu", processes), options, folder / f"{file}-{processes}-cpu")
        path.write_text(json.dumps(stored, indent=1))
    return stored[key]


def run_here(file, processes, expected, options, folder):
    """Runs a file through the plugin. Tests that JAX keeps for its cpu are run as if the platform were the cpu."""
    path, variables = options.jax_source / "tests/multiprocess" / f"{file}.py", variables_of("collet", processes)
    found, texts = run_file(path, processes, variables, options, folder / f"{file}-{processes}")
    kept = [test for test, state in found.items() if state == "skipped" and expected.get(test) == "passed"]
    if kept:
        again, more = run_file(path, processes, variables, options, folder / f"{file}-{processes}-kept", "--extra_test_args=--jax_test_dut=cpu", *kept)
        found |= {test: again.get(test, "failed") for test in kept}
        texts = [text + another for text, another in zip(texts, more)]
    return found, texts


def numbers(text):
    """Reads numbers that are separated by commas."""
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(prog="./dev frontends --multiprocess", description=__doc__)
    parser.add_argument("--jax-source", type=pathlib.Path, required=True, help="jax-ml/jax at the tag of the version")
    parser.add_argument("--processes", type=numbers, default=[2, 4, 8], metavar="N,...", help="how many processes, one run each (2,4,8)")
    parser.add_argument("--timeout", type=int, default=600, help="seconds that a file may take")
    parser.add_argument("--baseline", type=pathlib.Path, metavar="FILE", help="results of JAX's cpu: read, and completed")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="all results")
    parser.add_argument("--output", type=pathlib.Path, help="a folder for logs")
    parser.add_argument("files", nargs="*", help="all_reduce_test ...; all without")
    options = parser.parse_args()
    for number in options.processes:
        if number < 1 or DEVICES % number:
            parser.error(f"--processes {number}: {DEVICES} devices are spread over the processes evenly")
    options.jax_source = options.jax_source.resolve()
    there = sorted(path.stem for path in (options.jax_source / "tests/multiprocess").glob("*_test.py"))
    if not there:
        parser.error(f"--jax-source {options.jax_source} has no tests/multiprocess")
    if wrong := sorted(set(options.files) - set(there)):
        parser.error(f"there is no tests/multiprocess/{wrong[0]}.py")
    folder = (options.output or pathlib.Path(tempfile.mkdtemp(prefix="multiprocess-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    stored = options.baseline or folder / "baseline.json"
    report, total, failures = [], collections.defaultdict(collections.Counter), []
    print(f"{'file':<24}{'processes':>10}{'baseline':>10}{'passed':>8}{'failed':>8}{'beyond':>8}{'seconds':>9}", flush=True)
    for processes in options.processes:
        for file in options.files or there:
            expected = baseline(stored, file, processes, options, folder)
            begun = time.monotonic()
            found, texts = run_here(file, processes, expected, options, folder)
            count = collections.Counter()
            for test in sorted(set(expected) | set(found)):
                before, now = expected.get(test, "missing"), found.get(test, "missing")
                row = {"file": file, "test": test, "processes": processes, "cpu": before, "here": now}
                if now != "passed" and (before == "passed" or now == "failed"):
                    row["reason"] = reason(texts, test)
                    failures.append(row)
                report.append(row)
                if before == "passed":
                    count["baseline"] += 1
                    count["passed" if now == "passed" else "failed"] += 1
                elif now == "passed":
                    count["beyond"] += 1
            total[processes] += count
            print(f"{file:<24}{processes:>10}{count['baseline']:>10}{count['passed']:>8}{count['failed']:>8}{count['beyond']:>8}"
                  f"{time.monotonic() - begun:>9.0f}", flush=True)
            if options.json:
                options.json.write_text(json.dumps(report, indent=1))
    good = True
    for processes, count in total.items():
        share = count["passed"] / count["baseline"] if count["baseline"] else 1.0
        good &= share >= SHARE
        print(f"{processes} processes: {count['passed']} of {count['baseline']} that pass on JAX's cpu, {100 * share:.1f} %; "
              f"{count['beyond']} more pass here")
    for row in failures:
        print(f"{row['file']} {row['test']}, {row['processes']} processes: {row['here']}, on JAX's cpu {row['cpu']}: {row.get('reason', '')}")
    print(f"logs: {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
