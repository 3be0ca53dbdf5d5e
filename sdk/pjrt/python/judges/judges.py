# SPDX-License-Identifier: Apache-2.0
"""Runs test suites of other projects through the plugin, and compares them with what passes on JAX's own cpu.

The suites stand in judges.toml. Each runs in a Python environment of its own, first on JAX's cpu; what passes there has to
pass through the plugin, with the fallback and without. A test that fails, is skipped, or does not end there is a
difference; those in the list of known differences have a reason each. Exit code 0: no other difference; 1: there are
some; 2: a suite could not be run.
"""
import argparse
import dataclasses
import html
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
import venv

import judge_journal

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "frontends"))
import run as jax_tests  # what runs JAX's own tests, file by file

JAX = ["jax==0.10.2", "jaxlib==0.10.2"]
PYTEST = ["numpy", "scipy", "pytest", "pytest-xdist", "pytest-timeout", "hypothesis", "absl-py"]


class Unusable(Exception):
    """A suite cannot be run; the text says why."""


@dataclasses.dataclass
class Judge:
    """A suite, as judges.toml describes it."""

    name: str
    about: str
    source: dict
    packages: list
    environment: str = "shared"
    command: list = dataclasses.field(default_factory=list)
    tests: list = dataclasses.field(default_factory=list)
    ignore: list = dataclasses.field(default_factory=list)
    arguments: list = dataclasses.field(default_factory=list)
    plugins: list = dataclasses.field(default_factory=list)
    variables: dict = dataclasses.field(default_factory=dict)
    platforms: str = "collet,cpu"
    devices: int = 1
    known: str = ""

    @property
    def version(self):
        return self.source["tag"][:12] if "tag" in self.source else self.source["sdist"].split("==")[1]


def read_judges(path):
    """Returns a map from name to Judge."""
    with path.open("rb") as file:
        return {name: Judge(name=name, **fields) for name, fields in tomllib.load(file).items()}


@dataclasses.dataclass
class Known:
    """Differences that are understood: patterns of tests, each with a reason."""

    patterns: list

    def reason(self, test):
        """Returns why a test differs; None if it is not known to."""
        return next((reason for pattern, reason in self.patterns if pattern.fullmatch(test)), None)


def pattern_of(text):
    """Returns the expression for a test's name in which * stands for any characters, and ? for one."""
    return re.compile("".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in text))


def read_known(path, judge):
    """Reads lines JUDGE TEST REASON, in which a space in TEST is written as ?, and the list of the suite's own."""
    patterns = []
    for number, line in enumerate(path.read_text().splitlines() if path.is_file() else (), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split(maxsplit=2)
        if len(fields) != 3:
            raise Unusable(f"{path}:{number}: a line is JUDGE TEST REASON")
        if fields[0] == judge.name:
            patterns.append((pattern_of(fields[1]), fields[2]))
    if judge.known:
        for (file, test), reason in jax_tests.known_failures(HERE / judge.known).items():
            patterns.append((pattern_of(f"tests/{file}.py::" + test.replace(".", "::")), reason))
    return Known(patterns)


# Fetching

def run_quietly(command, **options):
    """Runs a command; its output is the text of the error if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        tail = "\n  ".join(done.stdout.strip().splitlines()[-5:])
        raise Unusable(f"{' '.join(map(str, command))} failed:\n  {tail}")
    return done.stdout


def fetch(judge, folder, python):
    """Returns the folder with the suite's source, which is fetched once."""
    target = folder / "sources" / f"{judge.name}-{judge.version}"
    if target.is_dir():
        return target
    part = target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    print(f"{judge.name}: fetching the source", flush=True)
    if "git" in judge.source:
        run_quietly(["git", "-C", part, "init", "-q"])
        try:
            run_quietly(["git", "-C", part, "fetch", "-q", "--depth", "1", judge.source["git"], judge.source["tag"]])
        except Unusable as error:
            raise Unusable(f"{error}\n  --source {judge.name}=DIR takes a copy of the repository at {judge.version}") from None
        run_quietly(["git", "-C", part, "checkout", "-q", "FETCH_HEAD"])
        if judge.source.get("modules"):
            run_quietly(["git", "-C", part, "submodule", "update", "-q", "--init", "--depth", "1"])
    else:
        run_quietly([python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--dest", part, judge.source["sdist"]])
        archive = next(part.glob("*.tar.gz"))
        with tarfile.open(archive) as packed:
            packed.extractall(part, filter="data")
        archive.unlink()
        (inner,) = part.iterdir()
        for child in inner.iterdir():
            child.rename(part / child.name)
        inner.rmdir()
    part.rename(target)
    return target


def prepare(judges, folder, wheel):
    """Returns a map from environment to its Python, with the packages of these suites and the plugin's wheel in it."""
    pythons = {}
    for name in sorted({judge.environment for judge in judges}):
        packages = [*JAX, *PYTEST, *(p for judge in judges if judge.environment == name for p in judge.packages)]
        home = folder / "environments" / name
        python = home / "bin" / "python"
        # An environment that could not be finished has a Python, but no pip.
        if not (home / "bin" / "pip").is_file():
            try:
                venv.create(home, with_pip=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise Unusable(f"the environment {home} could not be made ({error}); Debian: python3-venv") from None
        print(f"environment {name}: installing what is missing", flush=True)
        run_quietly([python, "-m", "pip", "install", "-q", *dict.fromkeys(packages)])
        if wheel:
            run_quietly([python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", wheel])
        pythons[name] = str(python)
    return pythons


# Running

@dataclasses.dataclass
class Run:
    """One run of a suite: on JAX's cpu, or through the plugin."""

    name: str
    variables: dict


def runs_of(judge, options):
    """Returns the run on JAX's cpu, and those through the plugin."""
    fallback = {"on": ("with fallback", {}), "off": ("without fallback", {"COLLET_FALLBACK": "none"})}
    chosen = fallback.values() if options.fallback == "both" else [fallback[options.fallback]]
    backend = pathlib.Path(os.environ.get("COLLET_BACKEND", "cpu")).stem.removeprefix("libcollet_backend_")
    ours = {"JAX_PLATFORMS": judge.platforms}
    if judge.devices > 1:
        ours["COLLET_DEVICES"] = str(judge.devices)
    return Run("jax-cpu", {"JAX_PLATFORMS": "cpu"}), [Run(f"{backend} {words}", {**ours, **variables}) for words, variables in chosen]


def stop(process):
    """Ends a process and those that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            continue


def watch(process, label, journal, timeout):
    """Waits for pytest, prints how far it is, and stops it if no test ends for much longer than one may take."""
    seen, last, told = 0, time.monotonic(), time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        now, count = time.monotonic(), len(judge_journal.read(journal)[0]) if told + 2 < time.monotonic() else seen
        if count != seen:
            seen, last = count, now
        if told + 2 < now:
            told = now
            if sys.stderr.isatty():
                print(f"\r{label}: {seen} tests", end="", file=sys.stderr, flush=True)
        if now - last > 3 * timeout + 120:
            stop(process)
            return f"no test ended for {3 * timeout + 120} seconds, so it was stopped"
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return ""


def run_pytest(judge, run, source, python, folder, options):
    """Runs a suite, or what is left of it; returns a map from test to (state, message, seconds)."""
    sample = f"-of-{options.sample}-{options.seed}" if options.sample > 1 else ""
    stem = folder / f"{judge.name}-{judge.version}{sample}-{run.name.replace(' ', '-')}"
    journal, log = stem.with_name(stem.name + ".jsonl"), stem.with_name(stem.name + ".log")
    keeps = options.resume or run.name == "jax-cpu"
    if not keeps or options.fresh:
        journal.unlink(missing_ok=True)
    found, done = judge_journal.read(journal)
    if done:
        return found
    # Names of tests that are made from sets have to be the same in all workers: hence the hash seed.
    environment = dict(os.environ, PYTHONHASHSEED="0", COLLET_JUDGE_JOURNAL=str(journal), COLLET_JUDGE_SAMPLE=f"{options.sample} {options.seed}")
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent / "frontends"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment.update(judge.variables)
    environment.update(run.variables)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "judge_pytest", "--tb=line", "--continue-on-collection-errors",
               "-n", str(options.jobs), "--max-worker-restart", "10000", "--timeout", str(options.timeout), "--timeout-method", "thread"]
    command += [word for plugin in judge.plugins for word in ("-p", plugin)] + [f"--ignore={path}" for path in judge.ignore]
    command += [f"--hypothesis-seed={options.seed}", *judge.arguments, *judge.tests]
    print(f"{judge.name}: {run.name}" + (f", after {len(found)} tests that ended before" if found else ""), flush=True)
    with log.open("a") as out:
        process = subprocess.Popen(command, cwd=source, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            why = watch(process, f"{judge.name}: {run.name}", journal, options.timeout)
        except BaseException:
            stop(process)
            raise
    found, done = judge_journal.read(journal)
    if not done:
        tail = "\n  ".join(log.read_text(errors="replace").strip().splitlines()[-5:])
        print(f"{judge.name}: {run.name}: pytest did not come to its end: {why or f'exit code {process.returncode}'}; {log} ends with\n  {tail}", flush=True)
    if not found:
        journal.unlink(missing_ok=True)
        raise Unusable(f"{judge.name}: {run.name}: no test ran; see {log}")
    return found


def run_command(judge, run, source, python, folder, options):
    """Runs a suite that is a command and writes a report of checks; returns what run_pytest does."""
    library = os.environ.get("COLLET_PJRT_LIBRARY") or run_quietly(
        [python, "-c", "from jax_plugins.collet import installed; print(installed.library())"]).strip()
    report = folder / f"{judge.name}-{judge.version}-{run.name.replace(' ', '-')}.json"
    report.unlink(missing_ok=True)
    command = [python, *(word.format(library=library, report=report) for word in judge.command)]
    print(f"{judge.name}: {run.name}", flush=True)
    done = subprocess.run(command, cwd=source, env=dict(os.environ, **run.variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=options.timeout * 4)
    if not report.is_file():
        raise Unusable(f"{judge.name}: no report; the command ended with {done.returncode}:\n  " + "\n  ".join(done.stdout.splitlines()[-5:]))
    states = {"pass": "passed", "fail": "failed"}
    checks = json.loads(report.read_text())["checks"]
    return {check["id"]: (states.get(check["result"], "skipped"), check.get("detail", ""), 0) for check in checks}


# Results

@dataclasses.dataclass
class Result:
    """A suite's run through the plugin beside its baseline."""

    judge: str
    version: str
    run: str
    baseline: int  ## tests that pass on JAX's cpu
    states: dict   ## test of the baseline -> (state, message, seconds, reason if it is known)

    def count(self, state, known=None):
        return sum(1 for s, _, _, reason in self.states.values() if s == state and (known is None or known == (reason is not None)))

    @property
    def differences(self):
        """Tests that differ and are not known to."""
        return [test for test, (state, _, _, reason) in self.states.items() if state != "passed" and reason is None]

    @property
    def known(self):
        return sum(1 for state, _, _, reason in self.states.values() if state != "passed" and reason is not None)

    @property
    def mended(self):
        """Tests that pass although they are known to differ."""
        return [test for test, (state, _, _, reason) in self.states.items() if state == "passed" and reason is not None]


def compare(judge, run, baseline, found, known):
    """Returns the Result of a run. Without a baseline, checks that are skipped are not counted."""
    if baseline is None:
        tests = [test for test, (state, _, _) in found.items() if state != "skipped"]
    else:
        tests = [test for test, (state, _, _) in baseline.items() if state == "passed"]
    missing = "missing", "not collected, or did not end", 0
    return Result(judge.name, judge.version, run.name, len(tests),
                  {test: (*found.get(test, missing), known.reason(test)) for test in tests})


def table(results):
    """Returns the lines of the table for people."""
    lines = [f"{'suite':<11}{'version':<13}{'run':<30}{'baseline':>9}{'passed':>8}{'failed':>8}{'skipped':>9}{'missing':>9}{'known':>7}{'share':>9}"]
    for r in results:
        share = 100 * r.count("passed") / r.baseline if r.baseline else 0
        lines.append(f"{r.judge:<11}{r.version:<13}{r.run:<30}{r.baseline:>9}{r.count('passed'):>8}{r.count('failed'):>8}"
                     f"{r.count('skipped'):>9}{r.count('missing'):>9}{r.known:>7}{share:>8.2f}%")
    return lines


def to_json(results, options):
    return json.dumps({
        "sample": options.sample, "seed": options.seed, "suites": [{
            "suite": r.judge, "version": r.version, "run": r.run, "baseline": r.baseline,
            **{state: r.count(state) for state in ("passed", "failed", "skipped", "missing")}, "known": r.known,
            "differences": [{"test": test, "state": state, "message": message, "known": reason}
                            for test, (state, message, _, reason) in r.states.items() if state != "passed"],
        } for r in results]}, indent=1)


def to_junit(results):
    """Returns JUnit's XML: known differences are skipped with their reason, all others are failures."""
    quote = lambda text: html.escape(re.sub(r"[^\t\n\x20-\ud7ff]", "?", str(text)))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for r in results:
        lines.append(f'<testsuite name="{quote(r.judge)} {quote(r.run)}" tests="{r.baseline}" failures="{len(r.differences)}" skipped="{r.known}">')
        for test, (state, message, seconds, reason) in r.states.items():
            inner = "" if state == "passed" else f'<skipped message="{quote(reason)}"/>' if reason else f'<failure message="{quote(state)}: {quote(message)}"/>'
            lines.append(f'<testcase classname="{quote(r.judge)}" name="{quote(test)}" time="{seconds}">{inner}</testcase>')
        lines.append("</testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def run_judge(judge, python, source, options):
    """Returns the Results of a suite's runs through the plugin."""
    known = read_known(options.known, judge)
    cpu, runs = runs_of(judge, options)
    if judge.command:
        return [compare(judge, run, None, run_command(judge, run, source, python, options.output, options), known) for run in runs]
    baseline = run_pytest(judge, cpu, source, python, options.output, options)
    return [compare(judge, run, baseline, run_pytest(judge, run, source, python, options.output, options), known) for run in runs]


def parse():
    parser = argparse.ArgumentParser(prog="./dev judges", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the suites; all without")
    parser.add_argument("--list", action="store_true", help="list the suites and end")
    parser.add_argument("--source", action="append", default=[], metavar="NAME=DIR", help="the suite's source, instead of fetching it")
    parser.add_argument("--fallback", choices=["on", "off", "both"], default="both", help="whether other ops may run on the cpu backend")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="run one test of N, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0, help="of the sample, and of tests that draw their inputs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at a time")
    parser.add_argument("--timeout", type=int, default=300, metavar="SECONDS", help="time that a test may take")
    parser.add_argument("--resume", action="store_true", help="go on with runs that were interrupted")
    parser.add_argument("--fresh", action="store_true", help="run the tests on JAX's cpu again, too")
    parser.add_argument("--known", type=pathlib.Path, default=HERE / "known_differences.txt", metavar="FILE", help="known differences")
    parser.add_argument("--table", type=pathlib.Path, default=HERE / "judges.toml", metavar="FILE", help="the suites' descriptions")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("judges"), metavar="DIR", help="environments, sources, logs, journals")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--junit", type=pathlib.Path, metavar="FILE", help="write the results as JUnit's XML")
    parser.add_argument("--wheel", help="the plugin's wheel; without, it has to be importable")
    parser.add_argument("--python", help="a Python that has everything; no environment is made")
    options = parser.parse_args()
    if options.sample < 1 or options.jobs < 1 or options.timeout < 1:
        parser.error("--sample, --jobs and --timeout take positive numbers")
    judges = read_judges(options.table)
    if unknown := sorted(set(options.names) - set(judges)):
        parser.error(f"there is no suite {', '.join(unknown)}; there are {', '.join(judges)}")
    options.sources = {}
    for text in options.source:
        name, _, folder = text.partition("=")
        if name not in judges or not pathlib.Path(folder).is_dir():
            parser.error(f"--source {text}: it is NAME=DIR, with a suite's name and a folder")
        options.sources[name] = pathlib.Path(folder).resolve()
    return options, judges


def main():
    options, judges = parse()
    if options.list:
        for judge in judges.values():
            print(f"{judge.name:<11}{judge.version:<13}{judge.about}")
        return 0
    chosen = [judges[name] for name in options.names] or list(judges.values())
    options.output = options.output.resolve()
    options.output.mkdir(parents=True, exist_ok=True)
    results, unusable = [], []
    try:
        pythons = {judge.environment: options.python for judge in chosen} if options.python else prepare(chosen, options.output, options.wheel)
    except Unusable as error:
        print(f"no suite can be run: {error}", file=sys.stderr, flush=True)
        return 2
    for judge in chosen:
        try:
            source = options.sources.get(judge.name) or fetch(judge, options.output, pythons[judge.environment])
            results += run_judge(judge, pythons[judge.environment], source, options)
        except (Unusable, OSError, subprocess.TimeoutExpired) as error:
            print(f"{judge.name}: cannot be run: {error}", file=sys.stderr, flush=True)
            unusable.append(judge.name)
    for r in results:
        for test in r.differences:
            state, message, _, _ = r.states[test]
            print(f"{r.judge}: {r.run}: {test}: {state}: {message[:160]}")
        for test in r.mended:
            print(f"{r.judge}: {r.run}: {test}: passes, though it is listed as a known difference")
    print(*table(results), sep="\n")
    count = sum(len(r.differences) for r in results)
    print(f"{count} differences that are not known; logs: {options.output}" + (f"; not run: {', '.join(unusable)}" if unusable else ""))
    if options.json:
        options.json.write_text(to_json(results, options) + "\n")
    if options.junit:
        options.junit.write_text(to_junit(results))
    return 2 if unusable else 1 if count else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; the same line with --resume goes on", file=sys.stderr)
        sys.exit(130)
