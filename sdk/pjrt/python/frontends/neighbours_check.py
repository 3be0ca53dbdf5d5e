# SPDX-License-Identifier: Apache-2.0
"""Runs Collet's plugin in one process with other libraries that bring LLVM, protobuf, zstd, LAPACK or threads of their own.

Each process loads one of them before or after the plugin, with symbols that only it sees or that all libraries see, and lets both
work in turn and then at once, on the library of a build tree and on that of an installed wheel. A combination that fails is run once
more with JAX's own cpu in place of the plugin. Exit code 0: all work; 1: one fails that works with JAX's cpu; 2: nothing was run.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ["tensorflow", "tensorflow with collet-tensorflow", "torch", "onnxruntime", "pyarrow", "llvmlite"]
OWN_VARIABLES = ("COLLET_PJRT_LIBRARY", "COLLET_BACKEND_PATH", "PYTHONPATH", "JAX_PLATFORMS", "TF_PLUGGABLE_DEVICE_LIBRARY_PATH")


@dataclasses.dataclass
class Outcome:
    """What came of one process."""
    library: str
    neighbour: str
    order: str
    scope: str
    state: str = ""  # works, fails, or fails with JAX's cpu, too
    step: str = ""  # in which it failed
    message: str = ""
    version: str = ""
    platform: str = ""
    seconds: float = 0.0


def with_plugin(neighbour):
    """Returns whether the neighbour contains a plugin of Collet itself."""
    return "collet" in neighbour


def environment(options, library, neighbour, platform):
    """Returns the variables of a process."""
    variables = {k: v for k, v in os.environ.items() if k not in OWN_VARIABLES}
    variables |= {"JAX_PLATFORMS": platform, "TF_CPP_MIN_LOG_LEVEL": "2", "JAX_TRACEBACK_FILTERING": "off"}
    if options.preload:
        variables["LD_PRELOAD"] = str(options.preload)
    if platform == "cpu":
        return variables  # without the plugin
    if library == "build":
        variables["COLLET_PJRT_LIBRARY"] = str(options.build / "lib/libcollet_pjrt.so")
        variables["COLLET_BACKEND_PATH"] = str(options.build / "lib/collet/backends")
        variables["PYTHONPATH"] = str(HERE.parent)
    else:
        variables["PYTHONPATH"] = str(options.wheel)
        variables["COLLET_PJRT_LIBRARY"] = str(options.wheel / "jax_plugins/collet/lib/libcollet_pjrt.so")
    if with_plugin(neighbour):
        variables["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = str(options.build / "lib/libcollet_tensorflow.so")
    return variables


def run(options, outcome, platform="collet"):
    """Runs the process of an outcome, and fills in what came of it."""
    command = [sys.executable, "-X", "faulthandler", str(HERE / "neighbour_process.py"), outcome.neighbour,
               "--order", outcome.order, "--scope", outcome.scope]
    begun = time.perf_counter()
    try:
        done = subprocess.run(command, env=environment(options, outcome.library, outcome.neighbour, platform), text=True,
                              capture_output=True, timeout=options.timeout, check=False)
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as error:
        code, out, err = None, (error.stdout or b"").decode(), (error.stderr or b"").decode()
    outcome.seconds = round(time.perf_counter() - begun, 1)
    fields = [line.partition(": ") for line in out.splitlines()]
    last = {key: value for key, _, value in fields}
    outcome.version, outcome.platform = last.get("neighbour", ""), last.get("platform", "")
    outcome.state = "works" if code == 0 else "fails"
    if code == 0:
        return outcome
    outcome.step = last.get("step", "the process begins")
    if code is None:
        outcome.message = f"still running after {options.timeout} s"
    elif code < 0:
        outcome.message = signal.Signals(-code).name
    else:
        outcome.message = next((line for line in reversed(err.splitlines()) if line.strip()), f"exit code {code}")[:200]
    if options.logs:
        options.logs.mkdir(parents=True, exist_ok=True)
        name = "-".join((outcome.library, outcome.neighbour, outcome.order, outcome.scope, platform)).replace(" ", "_")
        (options.logs / f"{name}.log").write_text(out + err, encoding="utf-8")
    return outcome


def check(options, outcome):
    """Runs a combination, and where it fails, the same with JAX's own cpu."""
    run(options, outcome)
    if outcome.state == "fails" and not with_plugin(outcome.neighbour):
        other = run(options, dataclasses.replace(outcome), "cpu")
        if other.state == "fails":
            outcome.state = "fails with JAX's cpu, too"
    return outcome


def table(outcomes):
    """Yields the lines of a table: a row for each neighbour and order, a column for each library and scope."""
    columns = list(dict.fromkeys((o.library, o.scope) for o in outcomes))
    yield f"{'neighbour':<42}{'loaded':<8}" + "".join(f"{f'{library}, {scope}':<16}" for library, scope in columns).rstrip()
    for name, order in dict.fromkeys((o.neighbour, o.order) for o in outcomes):
        row = {(o.library, o.scope): o for o in outcomes if (o.neighbour, o.order) == (name, order)}
        version = next((o.version for o in row.values() if o.version), "")
        words = {"works": "works", "fails": "FAILS"}
        cells = (words.get(row[c].state, "(fails)") if c in row else "" for c in columns)
        yield f"{f'{name} {version}':<42}{order:<8}" + "".join(f"{cell:<16}" for cell in cells).rstrip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, help="a build tree; it has libcollet_tensorflow.so, too")
    parser.add_argument("--wheel", type=pathlib.Path, help="a folder into which collet-jax was installed")
    parser.add_argument("--filter", default="", help="only the neighbours with this in their names")
    parser.add_argument("--preload", type=pathlib.Path, help="a library that the loader puts before all others, such as an allocator")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (%(default)s)")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one process (%(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="a file that gets what came of each process")
    parser.add_argument("--logs", type=pathlib.Path, help="a folder for the output of processes that fail")
    options = parser.parse_args()
    if options.preload and not options.preload.is_file():
        parser.error(f"--preload {options.preload}: there is no such file")
    libraries = [name for name in ("build", "wheel") if getattr(options, name)]
    if not libraries:
        parser.error("--build DIR, --wheel DIR, or both")
    for name in libraries:
        folder = getattr(options, name).resolve()
        setattr(options, name, folder)
        library = folder / ("lib" if name == "build" else "jax_plugins/collet/lib") / "libcollet_pjrt.so"
        if not library.is_file():
            parser.error(f"--{name} {folder} has no {library.relative_to(folder)}")
    neighbours = [name for name in NAMES if options.filter in name and (options.build or not with_plugin(name))]
    if not neighbours:
        parser.error(f"--filter {options.filter}: the neighbours are {', '.join(NAMES)}")
    todo = [Outcome(library, name, order, scope) for name in neighbours for order in ("before", "after")
            for library in libraries for scope in ("local", "global")]
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        for outcome in pool.map(lambda o: check(options, o), todo):
            outcomes.append(outcome)
            where = f"{outcome.neighbour} {outcome.order}, {outcome.library}, {outcome.scope}"
            if outcome.state != "works":
                print(f"{where}: {outcome.state}: {outcome.step}: {outcome.message}", flush=True)
            elif sys.stderr.isatty():
                print(f"\r{len(outcomes)}/{len(todo)} {where:70.70}", end="\r", file=sys.stderr)
    print(*table(outcomes), sep="\n")
    works, both = (sum(o.state == state for o in outcomes) for state in ("works", "fails with JAX's cpu, too"))
    print(f"{works} of {len(outcomes)} work; {both} fail with JAX's own cpu, too")
    if options.json:
        options.json.write_text(json.dumps({"platform": next((o.platform for o in outcomes if o.platform), ""),
                                            "processes": [dataclasses.asdict(o) for o in outcomes]}, indent=1) + "\n", encoding="utf-8")
    return 0 if works + both == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
