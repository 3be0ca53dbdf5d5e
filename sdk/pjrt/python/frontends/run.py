# SPDX-License-Identifier: Apache-2.0
"""Runs JAX's own tests through the plugin and compares them with what JAX's cpu backend passes.

Without --baseline the tests run on JAX's cpu first; what passes there is kept in the output folder.

Prints, per file, how many of the baseline's passing tests pass here; a test that is skipped, not collected, or does not
end counts as failed. Exit code 1 if a test fails that is not in the list of known failures.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

HERE = pathlib.Path(__file__).parent
JUDGES = HERE.parent / "judges"
sys.path.insert(0, str(JUDGES))
import judge_journal  # noqa: E402


def is_drawn(file, test, options):
    """Returns whether a test, CLASS.METHOD, is in the sample."""
    return judge_journal.is_drawn(f"tests/{file}.py::{test.replace('.', '::', 1)}", options.sample, str(options.seed))


def baseline(path, options):
    """Returns the tests of the sample that pass on JAX's cpu backend, per file."""
    passing = collections.defaultdict(list)
    for line in path.read_text().splitlines():
        test = json.loads(line)
        if (test["result"] == "pass" and (not options.files or test["file"] in options.files)
                and is_drawn(test["file"], test["test"], options)):
            passing[test["file"]].append(test["test"])
    return passing


def measure_baseline(path, files, options, folder):
    """Writes what passes on JAX's cpu backend to `path`, for the files that it does not have yet."""
    have = {json.loads(line)["file"] for line in path.read_text().splitlines()} if path.is_file() else set()
    for file in files:
        if file in have:
            continue
        print(f"{file}: on JAX's cpu first", flush=True)
        found = run_tests(file, options, folder, f"{file}-cpu", {"JAX_PLATFORMS": "cpu"})
        with path.open("a") as out:
            for test, (state, _) in sorted(found.items()):
                word = {"passed": "pass", "failed": "fail", "skipped": "skip"}[state]
                out.write(json.dumps({"file": file, "test": test, "result": word}) + "\n")


def known_failures(path):
    """Returns a map from test to cause. A line of the file is FILE CLASS.METHOD CAUSE."""
    known = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        if line and not line.startswith("#"):
            file, test, cause = line.split(maxsplit=2)
            known[file, test] = cause
    return known


def results(report):
    """Returns a map from CLASS.METHOD to passed, failed or skipped, and the first line of the message."""
    found = {}
    if not report.is_file():
        return found
    for case in xml.parse(report).iter("testcase"):
        state, message = "passed", ""
        for child in case:
            if child.tag in ("failure", "error", "skipped"):
                state = "skipped" if child.tag == "skipped" else "failed"
                message = (child.get("message") or "").splitlines()[:1]
                message = message[0] if message else ""
        found[case.get("classname", "").rsplit(".", 1)[-1] + "." + case.get("name", "")] = (state, message)
    return found


def run_tests(file, options, folder, name, variables):
    """Runs a file's tests with more variables in the environment; returns what results() does."""
    report = folder / f"{name}.xml"
    environment = dict(os.environ, JAX_NUM_GENERATED_CASES="5", PYTHONPATH=os.pathsep.join(
        [str(HERE), str(JUDGES), *filter(None, [os.environ.get("PYTHONPATH")])]))
    environment.update(variables)
    environment["COLLET_FRONTENDS_SAMPLE"] = f"{options.sample} {options.seed}"
    environment["JAX_TEST_DUT"] = "" if options.as_unknown_platform else "cpu"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "collet_pytest", "-p", "no:cacheprovider", "--tb=line",
               "-n", str(options.jobs), "--timeout", str(options.timeout), f"--junitxml={report}", f"tests/{file}.py"]
    log = folder / f"{name}.log"
    with log.open("w") as out:
        code = subprocess.run(command, cwd=options.jax_source, env=environment, stdout=out, stderr=subprocess.STDOUT).returncode
    if code not in (0, 1):
        print(f"{file}: pytest ended with {code}; the end of {log}:", *log.read_text().splitlines()[-5:], sep="\n  ")
    return results(report)


def run_here(file, options, folder):
    """Runs a file's tests through the plugin; returns what results() does."""
    return run_tests(file, options, folder, file, {"JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "collet"),
                                                   "COLLET_FALLBACK": os.environ.get("COLLET_FALLBACK", "none")})


def run_file(file, tests, options, folder):
    found = run_here(file, options, folder)
    return {test: found.get(test, ("missing", "not collected, or did not end")) for test in tests}


def run_file_first(file, options, folder):
    """Runs a file through the plugin, and what does not pass on JAX's cpu afterwards; returns the states of those tests that pass on one
    of both. Half the work of a baseline that is measured first, if nearly all tests pass; tests that pass here alone count, too."""
    found = run_here(file, options, folder)
    left = folder / f"{file}-left.txt"
    left.write_text("".join(f"{test}\n" for test, (state, _) in found.items() if state != "passed"))
    there = {}
    if left.stat().st_size or not found:
        only = {"COLLET_FRONTENDS_ONLY": str(left)} if found else {}
        there = run_tests(file, options, folder, f"{file}-cpu", {"JAX_PLATFORMS": "cpu", **only})
    missing = ("missing", "not collected, or did not end")
    return {test: found.get(test, missing) for test in sorted({*found, *there})
            if found.get(test, missing)[0] == "passed" or there.get(test, missing)[0] == "passed"}


def wrong_private_names():
    """Returns the private names of JAX that the installed version has or lacks, unlike what the package's table says."""
    from jax_plugins.collet import private

    def is_there(name):
        try:
            private.find(name)
        except private.Missing:
            return False
        return True

    return [name for name in private.NAMES if is_there(name) != private.holds(name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax-source", type=pathlib.Path, required=True, help="jax-ml/jax at the tag of the version")
    parser.add_argument("--baseline", type=pathlib.Path, help="what passes on JAX's cpu; measured unless told")
    parser.add_argument("--cpu-after", action="store_true", help="run on JAX's cpu only what does not pass here, afterwards")
    parser.add_argument("--known", type=pathlib.Path, default=HERE / "known_failures.txt")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=300, help="seconds a test may take")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="run one test of N, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--as-unknown-platform", action="store_true", help="leave out what JAX keeps for its cpu")
    parser.add_argument("--output", type=pathlib.Path, help="a folder for logs and reports")
    parser.add_argument("files", nargs="*", help="lax_test ...; all of the baseline's without")
    options = parser.parse_args()
    if options.sample < 1:
        parser.error("--sample takes a positive number")
    folder = (options.output or pathlib.Path(tempfile.mkdtemp(prefix="frontends-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not options.baseline and not options.files:
        parser.error("without --baseline the files have to be named")
    if options.baseline and options.cpu_after:
        parser.error("--cpu-after takes no --baseline")
    if not options.baseline and not options.cpu_after:
        options.baseline = folder / f"baseline{f'-of-{options.sample}-{options.seed}' if options.sample > 1 else ''}.jsonl"
        measure_baseline(options.baseline, options.files, options, folder)
    tests_of = dict.fromkeys(options.files) if options.cpu_after else baseline(options.baseline, options)
    if missing := sorted(set(options.files) - set(tests_of)):
        parser.error(f"the baseline has no passing tests of {', '.join(missing)}")
    if not tests_of:
        parser.error(f"{options.baseline} has no passing tests")
    if missing := [file for file in sorted(tests_of) if not (options.jax_source / "tests" / f"{file}.py").is_file()]:
        parser.error(f"--jax-source {options.jax_source} has no tests/{missing[0]}.py: it is to be jax-ml/jax at the tag of the version")
    wrong = wrong_private_names()
    if wrong:
        print(f"jax_plugins/collet/private.py is wrong for this version of JAX about {', '.join(wrong)}")
    known = known_failures(options.known)
    new, mended = [], []
    print(f"{'file':<28}{'baseline':>9}{'passed':>8}{'failed':>8}{'skipped':>9}{'missing':>9}{'share':>8}", flush=True)
    for file, tests in sorted(tests_of.items()):
        states = run_file_first(file, options, folder) if options.cpu_after else run_file(file, tests, options, folder)
        tests = list(states)
        if not tests:
            parser.error(f"no test of {file} passes; logs: {folder}")
        count = collections.Counter(state for state, _ in states.values())
        print(f"{file:<28}{len(tests):>9}{count['passed']:>8}{count['failed']:>8}{count['skipped']:>9}"
              f"{count['missing']:>9}{100 * count['passed'] / len(tests):>7.2f}%", flush=True)
        new += [(file, test, state, re.sub(r"\s+", " ", message)[:160]) for test, (state, message) in states.items()
                if state != "passed" and (file, test) not in known
                and not (options.as_unknown_platform and state == "skipped")]
        mended += [(file, test) for test, (state, _) in states.items() if state == "passed" and (file, test) in known]
    for file, test, state, message in new:
        print(f"new: {file} {test}: {state}: {message}")
    for file, test in mended:
        print(f"passes, though it is listed as a known failure: {file} {test}")
    print(f"{len(new)} tests fail that are not known to; logs: {folder}")
    return 1 if new or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
