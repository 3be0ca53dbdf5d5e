#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the tests of Collet's own parts: puts each fault of source_faults.toml into a source file, builds a copy of what is
tested, and runs the test that must fail. A test is a program of GoogleTest, or cases of the suite (`conform`, globs of their names)
on a backend that is made with Collet's headers. The source tree and the build folder are not changed.

A fault is killed if its test fails, crashes, or does not end in its time. Exit code 1: a fault survived; 2: the program
cannot run, or a test fails without a fault.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INCLUDES = ["sdk/codegen/include", "sdk/include"]  # folders of public headers


class Wrong(Exception):
    """What is wrong with the list, the build folder or a test."""


def read_faults(path):
    """Returns the tests by name, and the faults."""
    with open(path, "rb") as file:
        data = tomllib.load(file)
    tests = {test["name"]: test for test in data["test"]}
    for number, fault in enumerate(data["fault"], 1):
        for key in ("name", "file", "old", "new", "test"):
            if key not in fault:
                raise Wrong(f"{path}: fault {number} has no '{key}'")
        if fault["test"] not in tests:
            raise Wrong(f"{path}: {fault['name']}: there is no test '{fault['test']}'")
    return tests, data["fault"]


def mutated_text(fault):
    try:
        with open(os.path.join(ROOT, fault["file"])) as file:
            text = file.read()
    except OSError as error:
        raise Wrong(f"{fault['name']}: {error}") from error
    found = text.count(fault["old"])
    if found != 1:
        raise Wrong(f"{fault['name']}: the text is {found} times in {fault['file']}, and must be there once: {fault['old']}")
    return text.replace(fault["old"], fault["new"])


class Build:
    """The commands of a build folder."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        try:
            with open(os.path.join(self.folder, "compile_commands.json")) as file:
                self.commands = {os.path.relpath(entry["file"], ROOT): entry["command"] for entry in json.load(file)}
        except OSError as error:
            raise Wrong(f"{folder} is no build folder: {error}") from error
        self.links = {}

    def run(self, line, timeout=600):
        return subprocess.run(line, shell=True, cwd=self.folder, capture_output=True, text=True, timeout=timeout)

    def link_of(self, target):
        if target not in self.links:
            ran = self.run(f"ninja -t commands -s {shlex.quote(target)}")
            if ran.returncode != 0 or f"-o {target} " not in ran.stdout:
                raise Wrong(f"{target} is no target of {self.folder}")
            self.links[target] = ran.stdout.strip()
        return self.links[target]

    def compile(self, source, text, folder, header=None):
        """Compiles `source`; with `header`, this has the text in place of its own. Returns the object and the path of its original."""
        if source not in self.commands:
            raise Wrong(f"{source} is not compiled in {self.folder}")
        line = self.commands[source]
        original = re.search(r" -o (\S+)", line).group(1)
        out = os.path.join(folder, os.path.basename(original))
        include = ""
        if header:
            base = next(base for base in INCLUDES if header.startswith(base + "/"))
            place = os.path.join(folder, "include", os.path.relpath(header, base))
            beside = os.path.join(ROOT, os.path.dirname(header))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            for name in os.listdir(beside):  # headers include each other without a path
                link = os.path.join(os.path.dirname(place), name)
                if name != os.path.basename(header) and not os.path.lexists(link):
                    os.symlink(os.path.join(beside, name), link)
            include = f" -I{shlex.quote(os.path.join(folder, 'include'))}"
            changed = os.path.join(ROOT, source)
        else:
            place = changed = os.path.join(folder, os.path.basename(source))
        with open(place, "w") as file:
            file.write(text)
        compiler, rest = line.split(" ", 1)
        rest = rest.replace(f" -o {original}", f" -o {shlex.quote(out)}")
        rest = rest.replace(f" -c {os.path.join(ROOT, source)}", f" -c {shlex.quote(changed)}")
        ran = self.run(f"{compiler}{include} {rest} -Wno-error -w")
        if ran.returncode != 0:
            raise Wrong(f"{source} does not compile: {ran.stderr.strip()[-600:]}")
        return out, original

    def link(self, target, objects, out):
        """Links a copy of a target in which `objects`, pairs of a path and that of its original, take the place of the originals."""
        line, more = self.link_of(target), []
        for path, original in objects:
            if f" {original} " in line:
                line = line.replace(f" {original} ", f" {path} ")
            else:  # it is in an archive, whose own member is not taken if its names are known
                more.append(path)
        line = line.replace(f"-o {target} ", f"-o {shlex.quote(out)} {' '.join(more)} ")
        ran = self.run(line)
        if ran.returncode != 0:
            raise Wrong(f"{target} cannot be linked: {ran.stderr.strip()[-600:]}")


def run_cases(build, test, backend):
    """Runs cases of the suite on a backend; returns which one failed first, or an empty text."""
    line = [os.path.join(build.folder, "bin", "collet"), "conform", "--no-fallback", "--backend", backend, "--timeout", str(test.get("timeout", 60))]
    for glob in test["conform"]:
        line += ["--filter", glob]
    ran = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, errors="replace")
    if ran.returncode == 0:
        return "" if ": conforms" in ran.stdout else "no case ran"
    failed = re.findall(r"^(?:fail|crash|timeout) +(\S+)", ran.stdout, re.MULTILINE)
    return failed[0] if failed else f"exit code {ran.returncode}"


def run_test(build, test, program, libraries):
    """Runs a test; returns how it failed, or an empty text."""
    if "conform" in test:
        return run_cases(build, test, program)
    environment = dict(os.environ, COLLET_BUILD_DIR=build.folder)
    if libraries:
        environment["LD_LIBRARY_PATH"] = libraries
        if "variable" in test:
            environment[test["variable"]] = os.path.join(libraries, os.path.basename(test["library"]))
    arguments = [f"--gtest_filter={test['filter']}"] if "filter" in test else []
    try:
        ran = subprocess.run([program, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace",
                             timeout=test.get("timeout", 60))
    except subprocess.TimeoutExpired:
        return "no end in time"
    if ran.returncode == 0:
        return "" if "[  PASSED  ]" in ran.stdout and "[  PASSED  ] 0 tests" not in ran.stdout else "no test ran"
    failed = re.findall(r"\[  FAILED  \] ([^\s,]+)", ran.stdout)
    return failed[0] if failed else f"exit code {ran.returncode}"


def judge(build, test, fault):
    """Returns how the fault was noticed, or an empty text."""
    with tempfile.TemporaryDirectory(prefix="source_fault_") as folder:
        text = mutated_text(fault)
        units, header = ([fault["file"]], None) if fault["file"].endswith(".cc") else (test["units"], fault["file"])
        objects = [build.compile(unit, text, folder, header) for unit in units]
        program = os.path.join(build.folder, test["target"])
        libraries = ""
        if "library" in test:
            libraries = os.path.join(folder, "lib")
            os.makedirs(libraries)
            own = os.path.basename(test["library"])
            build.link(test["library"], objects, os.path.join(libraries, own))
            for name in os.listdir(os.path.join(build.folder, "lib")):  # what it finds beside itself
                if name != own:
                    os.symlink(os.path.join(build.folder, "lib", name), os.path.join(libraries, name))
        else:
            program = os.path.join(folder, os.path.basename(test["target"]))
            build.link(test["target"], objects, program)
        return run_test(build, test, program, libraries)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", help="the build folder; its tests and libraries are built")
    parser.add_argument("--faults", default=os.path.join(HERE, "source_faults.toml"), metavar="FILE", help="the list (default: the one beside this program)")
    parser.add_argument("--filter", default="*", metavar="GLOB", help="only faults whose name matches")
    parser.add_argument("--list", action="store_true", help="print the faults and their tests, and do nothing else")
    parser.add_argument("--check", action="store_true", help="check that the list fits the sources, and do nothing else")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="faults at the same time (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write what became of each to this file")
    arguments = parser.parse_args()
    if not arguments.build and not arguments.list and not arguments.check:
        parser.error("the build folder is missing")
    try:
        tests, faults = read_faults(arguments.faults)
        faults = [fault for fault in faults if fnmatch.fnmatchcase(fault["name"], arguments.filter)]
        if not faults:
            raise Wrong(f"no fault matches --filter {arguments.filter}")
        if arguments.check:
            for fault in faults:
                mutated_text(fault)
            print(f"{len(faults)} faults fit the sources")
            return 0
        if arguments.list:
            for fault in faults:
                print(f"{fault['name']}: {fault['file']}, {fault['test']}")
            return 0
        build = Build(arguments.build)
        missing = set()
        for name in sorted({fault["test"] for fault in faults}):
            program = os.path.join(build.folder, tests[name]["target"])
            if not os.path.exists(program) and tests[name].get("optional"):
                missing.add(name)
                continue
            if not os.path.exists(program):
                raise Wrong(f"{name}: {program} has not been built")
            failed = run_test(build, tests[name], program, "")
            if failed:
                raise Wrong(f"{name} fails without a fault: {failed}")
        left_out = [fault for fault in faults if fault["test"] in missing]
        faults = [fault for fault in faults if fault["test"] not in missing]
        with concurrent.futures.ThreadPoolExecutor(max(arguments.jobs, 1)) as pool:
            results = []
            for fault, result in zip(faults, pool.map(lambda fault: judge(build, tests[fault["test"]], fault), faults)):
                results.append(result)
                print(f"{'killed  ' if result else 'SURVIVED'} {fault['name']}: {fault['test']}{', ' + result if result else ''}", flush=True)
    except Wrong as wrong:
        print(f"source_faults.py: {wrong}", file=sys.stderr)
        return 2
    killed = [result for result in results if result]
    for fault in left_out:
        print(f"not run  {fault['name']}: {fault['test']}, which this build does not have")
    print(f"{len(killed)} of {len(faults)} faults killed" + (f", {len(left_out)} not run" if left_out else ""))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump([{"fault": fault["name"], "file": fault["file"], "test": fault["test"], "killed_by": result} for fault, result in
                               zip(faults, results)] + [{"fault": fault["name"], "file": fault["file"], "test": fault["test"], "killed_by": None}
                                                for fault in left_out], file, indent=1)
            file.write("\n")
    return 0 if len(killed) == len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
