# SPDX-License-Identifier: Apache-2.0
"""Conformance and benchmarks: the tool `collet` does them in processes of its own; here are its reports as objects."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, NamedTuple

from collet import _install
from collet._errors import ToolError
from collet._plan import _time, table

_TOLD = (0, 1)  # exit codes with which the tool has written what was asked for


def run_tool(arguments: Iterable[str | os.PathLike[str]], *, accept: Iterable[int] = (0,)) -> "subprocess.CompletedProcess[str]":
    """Runs `collet` with these arguments, and returns what it printed; raises ToolError for exit codes that are not in `accept`."""
    done = subprocess.run([_install.tool(), *arguments], capture_output=True, text=True, encoding="utf-8", errors="replace",
                          stdin=subprocess.DEVNULL)
    if done.returncode not in tuple(accept):
        raise ToolError(done.returncode, done.stderr.strip().removeprefix("collet: ") or f"ended by signal {-done.returncode}")
    return done


def _report(verb: str, arguments: list[str]) -> tuple[dict[str, Any], str]:
    """Returns the JSON that a verb writes, and what it printed."""
    with tempfile.TemporaryDirectory(prefix="collet-") as folder:
        path = pathlib.Path(folder) / "report.json"
        done = run_tool([verb, *arguments, "--json", str(path)], accept=_TOLD)
        if not path.exists():
            raise ToolError(done.returncode, done.stderr.strip() or done.stdout.strip() or "there is no report")
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return data, done.stdout


def _common(backend: str | os.PathLike[str] | None, fallback: bool, options: Mapping[str, object] | None) -> list[str]:
    arguments = [] if backend is None else ["--backend", os.fspath(backend)]
    if not fallback:
        arguments.append("--no-fallback")
    for key, value in (options or {}).items():
        arguments += ["--option", f"{key}={value}"]
    return arguments


class Case(NamedTuple):
    """A case of the suite. `status` is pass, fail, crash, timeout, unsupported, oracle or not_run; `message` says why, where it says
    something."""
    name: str
    op: str
    element: str
    status: str
    message: str
    data: dict[str, Any]


class ConformReport:
    """The verdict on a backend. `data` is what `collet conform --json` writes: docs/conformance_report.schema.json describes it."""

    def __init__(self, data: dict[str, Any], printed: str) -> None:
        self.data, self.text = data, printed

    @property
    def backend(self) -> str:
        return str(self.data["backend"])

    @property
    def verdict(self) -> str:
        return str(self.data["verdict"])

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return self.verdict == "conforms"

    @property
    def counts(self) -> dict[str, int]:
        """The number of cases by status."""
        return dict(self.data["counts"])

    @property
    def cases(self) -> list[Case]:
        return [Case(case["name"], case.get("op", ""), case.get("type", ""), case["status"], str(case.get("message", "")), case)
                for case in self.data["cases"]]

    @property
    def failures(self) -> list[Case]:
        return [case for case in self.cases if case.status in ("fail", "crash", "timeout")]

    @property
    def profiles(self) -> list[dict[str, Any]]:
        return list(self.data["profiles"])

    @property
    def ops(self) -> list[dict[str, Any]]:
        return list(self.data["ops"])

    def __repr__(self) -> str:
        return f"<collet.ConformReport {self.backend}: {self.verdict}, {self.counts['pass']} of {sum(self.counts.values())} cases passed>"

    def _repr_html_(self) -> str:
        colour = "#3a9a5b" if self.passed else "#b5475a"
        counts = ", ".join(f"{count} {escape(name)}" for name, count in self.counts.items() if count)
        parts = [f"<div><b>{escape(self.backend)}</b>: <b style='color:{colour}'>{escape(self.verdict)}</b> ({counts})"]
        if self.profiles:
            parts.append(table(["profile", "cases", "on the device", "failed"], [
                [escape(str(p["profile"])), str(p["cases"]), str(p["on_device"]), str(p["failed"])] for p in self.profiles]))
        if self.failures:
            parts.append(table(["failed", "status", "why"], [
                [f"<code>{escape(case.name)}</code>", escape(case.status), escape(case.message[:300])] for case in self.failures[:20]]))
        return "".join(parts) + "</div>"


def conform(backend: str | os.PathLike[str] | None = None, *, fallback: bool = True, options: Mapping[str, object] | None = None,
            filters: Iterable[str] = (), profiles: Iterable[str] = (), claims: Iterable[str] = (), full: bool = False, jobs: int = 1,
            timeout: float | None = None, seed: int | None = None, html: str | os.PathLike[str] | None = None,
            junit: str | os.PathLike[str] | None = None) -> ConformReport:
    """Judges a backend by the conformance suite, in processes of their own: a backend that crashes costs a case.

    `filters` are globs of case names, `profiles` for instance ['quick'], `timeout` the seconds of one case. `html` and `junit` are files
    for the whole report. Raises ToolError where the suite could not run; failures are in the report.
    """
    arguments = _common(backend, fallback, options) + ["--jobs", str(jobs)]
    for option, values in (("--filter", filters), ("--profile", profiles), ("--claim", claims)):
        for value in [values] if isinstance(values, str) else values:
            arguments += [option, value]
    if full:
        arguments.append("--full")
    for option, given in (("--timeout", timeout), ("--seed", seed), ("--html", html), ("--junit", junit)):
        if given is not None:
            arguments += [option, os.fspath(given) if isinstance(given, os.PathLike) else str(given)]
    return ConformReport(*_report("conform", arguments))


class BenchCase(NamedTuple):
    """A measured program. `median_ns` is the time of the fused program, `of_limit` its share of the machine's own limit (None where
    there is none), `against_ns` the time on the other backend or None; `data` is all that was measured."""
    name: str
    family: str
    median_ns: float | None
    of_limit: float | None
    against_ns: float | None
    data: dict[str, Any]


class BenchReport:
    """What `collet bench --json` has measured."""

    def __init__(self, data: dict[str, Any], printed: str) -> None:
        self.data, self.text = data, printed

    @property
    def backend(self) -> str:
        return str(self.data["backend"])

    @property
    def machine(self) -> dict[str, Any]:
        """The limits of the machine, as they were measured in this run."""
        return dict(self.data["machine"])

    @property
    def cases(self) -> list[BenchCase]:

        def median(case: dict[str, Any], key: str) -> float | None:
            return case[key]["median_ns"] if isinstance(case.get(key), dict) else None

        return [BenchCase(case["name"], case["family"], median(case, "fused"), case.get("of_limit"), median(case, "against"), case)
                for case in self.data["cases"]]

    def __repr__(self) -> str:
        return f"<collet.BenchReport {self.backend}: {len(self.data['cases'])} cases>"

    def _repr_html_(self) -> str:
        rows = []
        for case in self.cases:
            share = case.of_limit or 0
            bar = (f"<svg width='100' height='10' role='img' aria-label='{share:.2f}'><rect width='100' height='10' fill='#c5c5c5'/>"
                   f"<rect width='{min(100, 100 * share):.1f}' height='10' fill='#2a7ab0'/></svg> {share:.2f}")
            ratio = f"{case.against_ns / case.median_ns:.2f}x" if case.against_ns and case.median_ns else ""
            rows.append([escape(case.name), "did not run" if case.median_ns is None else _time(case.median_ns), bar, ratio])
        against = str(self.data.get("against") or "")
        return (f"<div><b>{escape(self.backend)}</b>" +
                table(["program", "median", "share of the limit", f"against {against}" if against else ""], rows) + "</div>")


def bench(backend: str | os.PathLike[str] | None = None, *, against: str | os.PathLike[str] | None = None, fallback: bool = True,
          options: Mapping[str, object] | None = None, filter: str | None = None, programs: str | os.PathLike[str] | None = None,
          repeat: int | None = None) -> BenchReport:
    """Measures a backend: against the machine's limits, unfused execution, and another backend. `filter` is a part of the cases'
    names; `programs` is a file or folder to measure instead. Raises ToolError where nothing could be measured."""
    arguments = _common(backend, fallback, options)
    for option, given in (("--against", against), ("--filter", filter), ("--cases", programs), ("--repeat", repeat)):
        if given is not None:
            arguments += [option, os.fspath(given) if isinstance(given, os.PathLike) else str(given)]
    return BenchReport(*_report("bench", arguments))


def prefix() -> pathlib.Path:
    """Returns the folder that Collet is installed in: bin, include, lib and share."""
    return pathlib.Path(run_tool(["--prefix"]).stdout.rstrip("\n"))


def cmake_dir() -> pathlib.Path:
    """Returns CMake's folder, for -DCMAKE_PREFIX_PATH=."""
    return pathlib.Path(run_tool(["--cmake-dir"]).stdout.rstrip("\n"))
