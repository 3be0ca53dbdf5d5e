# SPDX-License-Identifier: Apache-2.0
"""Runs TensorFlow's tests of its compiler (tensorflow/compiler/tests) on TensorFlow's device XLA_CPU and on the plugin's device.

The tests place single operations on a device, so TensorFlow is asked to compile each of them for it
(COLLET_TENSORFLOW_ON_DEMAND=1). What passes on XLA_CPU is counted on the plugin's device, per file. Where the process dies in a
test, the tests after it run in a new one. Exit code 1: less than --share of what passes on XLA_CPU passes on the device.
"""
import argparse
import collections
import concurrent.futures
import importlib
import json
import os
import pathlib
import queue
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from multiprocess import BEGIN, ERROR, reason, states

TESTS = "tensorflow/compiler/tests"
# What TensorFlow's own build gives the tests of its CPU (build_defs.bzl there).
TYPES = ("DT_HALF,DT_FLOAT,DT_DOUBLE,DT_UINT8,DT_QUINT8,DT_INT8,DT_QINT8,DT_INT32,DT_QINT32,DT_INT64,DT_BOOL,DT_COMPLEX64,"
         "DT_COMPLEX128")
REFERENCE = "XLA_CPU"
HELPERS = ("test_session", "test_scope", "test_benchmark")  # methods of the base classes, which test nothing


def run_test_file(source, file, arguments):
    """Runs a file as its own main program. The package of the tests, which no wheel of TensorFlow has, is that of `source`."""
    compiler = importlib.import_module("tensorflow.compiler")
    compiler.__path__.append(str(source / "tensorflow/compiler"))
    path = source / TESTS / f"{file}.py"
    sys.argv = [str(path), *arguments]
    runpy.run_path(str(path), run_name="__main__")


def serve(source):
    """Runs files in forked processes, one at a time: a line of JSON says what to run, and one says how it ended. TensorFlow, whose import
    takes longer than most files, is imported once; it opens no device before a test does."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    importlib.import_module("tensorflow")
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            os.setsid()
            out = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(out, 1)
            os.dup2(out, 2)
            try:
                run_test_file(source, asked["file"], asked["arguments"])
            except SystemExit:
                pass
            except BaseException:  # pylint: disable=broad-exception-caught
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)  # without the ends of libraries, which may wait for threads
        end = time.monotonic() + asked["timeout"]
        while not (done := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
            time.sleep(0.02)
        ended = None
        if not done[0]:
            ended = f"did not end within {asked['timeout']} s"
        elif os.WIFSIGNALED(done[1]):
            ended = signal.Signals(os.WTERMSIG(done[1])).name
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if not done[0]:
            os.waitpid(child, 0)
        print(json.dumps(ended), file=answers, flush=True)


class Server:
    """A process that runs files on a device."""

    def __init__(self, device, options):
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2")
        # The plugin, which is loaded in any case, would set the flag, with which XLA_CPU does not work.
        environment |= {"TF_XLA_FLAGS": "--tf_xla_use_device_api=false"} if device == REFERENCE else {"COLLET_TENSORFLOW_ON_DEMAND": "1"}
        self.arguments, self.timeout = [f"--test_device={device}", f"--types={TYPES}", "--undefok=test_device,types"], options.timeout
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--tensorflow-source", str(options.tensorflow_source), "--serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True)

    def run(self, file, tests, log):
        """Runs the named tests of a file, all of them without names; appends its output to `log`. Returns its output and how it ended: None
        if it ran to its end."""
        with self.lock, tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "output"
            asked = {"file": file, "arguments": self.arguments + tests, "output": str(output), "timeout": self.timeout}
            print(json.dumps(asked), file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
            if not answer:
                raise RuntimeError(f"the process that runs {file} ended; is TensorFlow installed?")
            text = output.read_text(encoding="utf-8", errors="replace") if output.is_file() else ""
        with log.open("a", encoding="utf-8") as kept:
            kept.write(text)
        return text, json.loads(answer)

    def close(self):
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()


def why(text, test):
    """Returns the reason for which a test failed, from the output of its process. Where several operations failed, the first counts."""
    name = test.rsplit(".", 1)[-1]
    for part in re.split(r"^=+$", text, flags=re.MULTILINE):
        head = ERROR.search(part)
        if head and head[1] == name:
            root = re.search(r"^\s+\(0\) (.*)", part, re.MULTILINE)
            errors = re.findall(r"^[\w.]+(?:Error|Exception): (?!Graph execution error)(\S.*)", part, re.MULTILINE)
            if root or errors:
                return (root[1] if root else errors[0])[:200]
    return reason([text], test)


def end_of_process(text, ended):
    """Returns how a process died: the signal, and the innermost function of TensorFlow's trace or the check that failed."""
    number = re.search(r"\*\*\* Received signal (\d+)", text)
    check = re.findall(r"Check failed: .*", text)
    trace = re.search(r"Begin stack trace \*\*\*\n(?:.*\n)*?\s*(tensorflow::[^\n]*)", text)
    where = f", {check[-1]}" if check else f" in {trace[1]}" if trace else ""
    return f"the process ended: {signal.Signals(int(number[1])).name if number else ended}{where}"[:200]


def run_file(file, server, expected, log):
    """Returns a map from test to its state on a server's device, and one from failed test to the reason. `expected` are tests that the file is
    known to have. What a process that died left out, and what failed in it before, runs in another one, since absl writes
    reasons only at the end."""
    log.unlink(missing_ok=True)
    known, found, reasons, left = set(expected), {}, {}, []
    while True:
        text, ended = server.run(file, left, log)
        here = {test: state for test, state in states(text).items() if test.rsplit(".", 1)[-1] not in HELPERS}
        begun = BEGIN.findall(text)
        if ended:
            here = {test: state for test, state in here.items() if state != "failed" or test == begun[-1]}
        known |= set(begun) - {test for test in begun if test.rsplit(".", 1)[-1] in HELPERS}
        for test, state in here.items():
            if state == "failed":
                reasons[test] = end_of_process(text, ended) if ended else why(text, test)
        if not begun:
            lines = [line for line in text.splitlines() if line.strip()]
            reasons[""] = lines[-1][:200] if lines else str(ended)
        found |= here
        left = sorted(known - set(found))
        if not left or not here or not ended:
            return found, reasons


def check_file(file, reference, ours, folder):
    """Returns the rows of a file: what each test does on XLA_CPU and on the device, each by its server."""
    stored = folder / f"{file}-{REFERENCE}.json"
    if stored.is_file():
        before = json.loads(stored.read_text(encoding="utf-8"))
    else:
        states_there, reasons = run_file(file, reference, {}, folder / f"{file}-{REFERENCE}.log")
        before = {"states": states_there, "reasons": reasons}
        stored.write_text(json.dumps(before, indent=1), encoding="utf-8")
    begun = time.monotonic()
    found, reasons = run_file(file, ours, before["states"], folder / f"{file}.log")
    rows = []
    for test in sorted(set(before["states"]) | set(found)) or [""]:
        there, here = before["states"].get(test, "missing"), found.get(test, "missing")
        rows.append({"file": file, "test": test, "cpu": there, "here": here, "cpu_reason": before["reasons"].get(test, ""),
                     "reason": reasons.get(test, "") or ("" if here != "missing" else reasons.get("", "not run"))})
    return rows, time.monotonic() - begun


def counts(rows):
    """Counts what passes on XLA_CPU, of that what passes here, what does not, and what passes only here."""
    count = collections.Counter()
    for row in rows:
        if row["cpu"] == "passed":
            count["baseline"] += 1
            count["passed" if row["here"] == "passed" else "failed"] += 1
        elif row["here"] == "passed":
            count["beyond"] += 1
        elif row["cpu"] == "failed":
            count["neither"] += 1
    return count


def plugin_device():
    """Returns the type of the plugin's device, as TensorFlow shows it."""
    listing = "import tensorflow as tf; print(*{d.device_type for d in tf.config.list_physical_devices()} - {'CPU', 'GPU'})"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=False,
                          env=dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2"))
    names = done.stdout.split()
    if not names:
        sys.exit("compiler_tests.py: TensorFlow shows no device but its own; is the plugin installed? " + done.stderr.strip()[-300:])
    return names[0]


def main():
    parser = argparse.ArgumentParser(prog="./dev frontends --tensorflow --compiler-tests", description=__doc__)
    parser.add_argument("--tensorflow-source", type=pathlib.Path, required=True, help="tensorflow/tensorflow at the tag v2.21.0")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)  # the process of a Server
    parser.add_argument("--jobs", type=int, default=2, help="files at a time (%(default)s)")
    parser.add_argument("--timeout", type=int, default=900, help="seconds that a file may take (%(default)s)")
    parser.add_argument("--share", type=float, default=0.95, help="of what passes on XLA_CPU that has to pass (%(default)s)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="what came of each test")
    parser.add_argument("--output", type=pathlib.Path, help="a folder for logs and the results of XLA_CPU, which are kept")
    parser.add_argument("files", nargs="*", help="unary_ops_test ...; all without")
    options = parser.parse_args()
    options.tensorflow_source = options.tensorflow_source.resolve()
    there = sorted(path.stem for path in (options.tensorflow_source / TESTS).glob("*_test.py"))
    if not there:
        parser.error(f"--tensorflow-source {options.tensorflow_source} has no {TESTS}")
    if options.serve:
        serve(options.tensorflow_source)
        return 0
    if wrong := sorted(set(options.files) - set(there)):
        parser.error(f"there is no {TESTS}/{wrong[0]}.py")
    folder = (options.output or pathlib.Path(tempfile.mkdtemp(prefix="compiler-tests-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    device = plugin_device()
    report, total = [], collections.Counter()
    print(f"{'file':<36}{REFERENCE:>9}{device:>10}{'failed':>8}{'beyond':>8}{'neither':>9}{'seconds':>9}", flush=True)
    pairs = queue.SimpleQueue()
    servers = [Server(where, options) for _ in range(max(options.jobs, 1)) for where in (REFERENCE, device)]
    for pair in zip(servers[::2], servers[1::2]):
        pairs.put(pair)

    def check(file):
        pair = pairs.get()
        try:
            return check_file(file, *pair, folder)
        finally:
            pairs.put(pair)

    files = options.files or there
    with concurrent.futures.ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        for file, (rows, seconds) in zip(files, pool.map(check, files)):
            count = counts(rows)
            total += count
            report += rows
            print(f"{file:<36}{count['baseline']:>9}{count['passed']:>10}{count['failed']:>8}{count['beyond']:>8}{count['neither']:>9}"
                  f"{seconds:>9.0f}", flush=True)
            if options.json:
                options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for server in servers:
        server.close()
    for row in report:
        if row["here"] != "passed" and row["cpu"] == "passed" or not row["test"]:
            print(f"{row['file']} {row['test']}: {row['here']}: {row['reason'] or row['cpu_reason']}")
    share = total["passed"] / total["baseline"] if total["baseline"] else 0.0
    print(f"{total['passed']} of {total['baseline']} that pass on {REFERENCE} pass on {device}, {100 * share:.1f} %; {total['beyond']} more pass "
          f"there; {total['neither']} fail on both; logs: {folder}")
    return 0 if share >= options.share else 1


if __name__ == "__main__":
    sys.exit(main())
