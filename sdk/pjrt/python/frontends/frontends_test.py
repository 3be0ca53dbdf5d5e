# SPDX-License-Identifier: Apache-2.0
"""Tests of the scripts of this folder that need no frontend: how they draw tests, and what they make of processes."""
import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import compiler_tests
import multiprocess
import neighbours_check
import run

WORKS = "echo 'step: torch begins'; echo 'neighbour: 9.9'; echo 'platform: collet'; echo 'step: the process ends'"
CRASHES = "echo 'step: Collet begins'; kill -SEGV $$"
FAILS = "echo 'step: Collet begins'; echo 'ValueError: no' >&2; exit 1"


class Sample(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "baseline.jsonl"
        self.path.write_text("".join(json.dumps({"file": "lax_test", "test": f"Test.test{i}", "result": "fail" if i == 7 else "pass"}) + "\n"
                                     for i in range(600)))

    def drawn(self, **options):
        return run.baseline(self.path, argparse.Namespace(**{"files": [], "sample": 1, "seed": 0, **options}))["lax_test"]

    def test_all_without_a_sample(self):
        self.assertEqual(len(self.drawn()), 599)
        self.assertEqual(self.drawn(files=["nn_test"]), [])

    def test_the_seed_and_the_names_decide(self):
        first = self.drawn(sample=6)
        self.assertEqual(first, self.drawn(sample=6))
        self.assertTrue(60 < len(first) < 140, len(first))
        self.assertNotEqual(first, self.drawn(sample=6, seed=1))


class CpuAfter(unittest.TestCase):

    def test_what_does_not_pass_runs_on_the_cpu(self):
        here = {"T.a": ("passed", ""), "T.b": ("failed", "why"), "T.c": ("skipped", ""), "T.d": ("failed", "")}
        there = {"T.b": ("passed", ""), "T.c": ("skipped", ""), "T.d": ("failed", "")}
        asked = []

        def run_tests(_file, _options, folder, name, variables):
            if "COLLET_FRONTENDS_ONLY" in variables:
                asked.extend((folder / "a_test-left.txt").read_text().split())
            return there if name.endswith("-cpu") else here

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(run, "run_tests", side_effect=run_tests):
            found = run.run_file_first("a_test", None, pathlib.Path(folder))
        self.assertEqual(found, {"T.a": ("passed", ""), "T.b": ("failed", "why")})
        self.assertEqual(asked, ["T.b", "T.c", "T.d"])

    def test_a_file_that_is_not_collected_here_counts_as_missing(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(run, "run_tests", side_effect=[{}, {"T.a": ("passed", "")}]):
            found = run.run_file_first("a_test", None, pathlib.Path(folder))
        self.assertEqual({test: state for test, (state, _) in found.items()}, {"T.a": "missing"})


class CompilerTests(unittest.TestCase):

    def run_file(self, outputs, expected=()):
        """Runs a file whose processes write `outputs`, and end so."""
        server = mock.Mock()
        server.run.side_effect = outputs
        with tempfile.TemporaryDirectory() as folder:
            found = compiler_tests.run_file("a_test", server, expected, pathlib.Path(folder) / "log")
        return *found, [call.args[1] for call in server.run.call_args_list]

    def test_what_a_dead_process_left_out_runs_in_another(self):
        first = ("[ RUN      ] T.a\n[       OK ] T.a\n[ RUN      ] T.b\n[  FAILED  ] T.b\n[ RUN      ] T.c\n*** Received signal 11 ***\n"
                 "*** Begin stack trace ***\n\tgsignal\n\t\n\ttensorflow::Tensor::data()\n")
        second = ("[ RUN      ] T.b\n[  FAILED  ] T.b\n[ RUN      ] T.d\n[  SKIPPED ] T.d\n" + "=" * 70 + "\nERROR: test_b (__main__.T.test_b)\n"
                  "ValueError: no\n").replace("test_b", "b")
        found, reasons, asked = self.run_file([(first, "SIGABRT"), (second, None)], {"T.d": "passed"})
        self.assertEqual(found, {"T.a": "passed", "T.b": "failed", "T.c": "failed", "T.d": "skipped"})
        self.assertEqual(reasons["T.c"], "the process ended: SIGSEGV in tensorflow::Tensor::data()")
        self.assertEqual(reasons["T.b"], "no")
        self.assertEqual(asked, [[], ["T.b", "T.d"]])

    def test_a_file_that_does_not_load_ends(self):
        found, reasons, asked = self.run_file([("Traceback\nImportError: no module\n", None)], {"T.a": "passed"})
        self.assertEqual((found, reasons[""], len(asked)), ({}, "ImportError: no module", 1))

    def test_the_first_of_several_errors_is_the_reason(self):
        text = ("=" * 70 + "\nERROR: a (__main__.T.a)\nInternalError: 2 root error(s) found.\n  (0) INTERNAL: placed wrongly\n"
                "tensorflow.InternalError: Graph execution error:\n")
        self.assertEqual(compiler_tests.why(text, "T.a"), "INTERNAL: placed wrongly")

    def test_counts(self):
        rows = [{"cpu": a, "here": b} for a, b in (("passed", "passed"), ("passed", "missing"), ("failed", "passed"), ("failed", "failed"),
                                                   ("skipped", "skipped"))]
        self.assertEqual(dict(compiler_tests.counts(rows)), {"baseline": 2, "passed": 1, "failed": 1, "beyond": 1, "neither": 1})


class Multiprocess(unittest.TestCase):

    def test_a_test_passes_if_it_passes_in_each_process(self):
        begun = "[ RUN      ] T.{0}\n"
        good, bad, left = (begun + word for word in ("[       OK ] T.{0}\n", "[  FAILED  ] T.{0}\n", "[  SKIPPED ] T.{0} - why\n"))
        first = good.format("a") + good.format("b") + left.format("c") + good.format("d") + begun.format("e")
        second = good.format("a") + bad.format("b") + left.format("c") + good.format("e")
        self.assertEqual(multiprocess.of_all([first, second]),
                         {"T.a": "passed", "T.b": "failed", "T.c": "skipped", "T.d": "failed", "T.e": "failed"})

    def test_the_reason_is_the_last_line_of_the_error(self):
        text = ("noise\n" + "=" * 70 + "\nERROR: test_b (__main__.T.test_b)\n" + "-" * 70 + "\nTraceback (most recent call last):\n"
                "  File x, line 1\nValueError: no such thing\n\n" + "-" * 70 + "\nRan 1 test\n")
        self.assertEqual(multiprocess.reason(["", text], "T.test_b"), "ValueError: no such thing")
        self.assertEqual(multiprocess.reason([text], "T.test_c"), "the process ended, or did not end in time")


class Neighbours(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "build/lib").mkdir(parents=True)
        (self.folder / "build/lib/libcollet_pjrt.so").touch()

    def check(self, script, *options):
        """Runs the check with a shell script in place of Python; returns the exit code, the output and what the JSON file has."""
        python = self.folder / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        report = self.folder / "report.json"
        arguments = ["neighbours_check.py", "--build", str(self.folder / "build"), "--filter", "torch", "--json", str(report),
                     "--logs", str(self.folder / "logs"), *options]
        with mock.patch.object(sys, "argv", arguments), mock.patch.object(neighbours_check.sys, "executable", str(python)), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            code = neighbours_check.main()
        return code, out.getvalue(), json.loads(report.read_text())

    def test_all_work(self):
        code, out, report = self.check(WORKS)
        self.assertEqual(code, 0)
        self.assertIn("4 of 4 work", out)
        self.assertEqual(report["platform"], "collet")
        self.assertEqual({(o["order"], o["scope"], o["state"], o["version"]) for o in report["processes"]},
                         {(order, scope, "works", "9.9") for order in ("before", "after") for scope in ("local", "global")})

    def test_a_crash_is_named(self):
        code, out, report = self.check(f'if [ "$JAX_PLATFORMS" = cpu ]; then {WORKS}; else {CRASHES}; fi')
        self.assertEqual(code, 1)
        self.assertIn("torch before, build, local: fails: Collet begins: SIGSEGV", out)
        self.assertIn("FAILS", out)
        self.assertIn("step: Collet begins", (self.folder / "logs/build-torch-before-local-collet.log").read_text())
        self.assertEqual({o["step"] for o in report["processes"]}, {"Collet begins"})

    def test_a_library_is_put_before_all_others(self):
        library = self.folder / "allocator.so"
        library.touch()  # the loader says that it cannot be put there, and goes on
        self.assertEqual(self.check(f'[ "$LD_PRELOAD" = "{library}" ] || exit 1; {WORKS}', "--preload", str(library))[0], 0)

    def test_what_fails_without_the_plugin_is_no_failure_of_it(self):
        code, out, _ = self.check(FAILS)
        self.assertEqual(code, 0)
        self.assertIn("fails with JAX's cpu, too: Collet begins: ValueError: no", out)
        self.assertIn("0 of 4 work; 4 fail with JAX's own cpu, too", out)

    def test_another_plugin_of_collet_is_no_excuse(self):
        code, out, _ = self.check(FAILS, "--filter", "collet-tensorflow")
        self.assertEqual(code, 1)
        self.assertIn("0 of 4 work; 0 fail", out)

    def test_a_process_that_does_not_end(self):
        code, out, _ = self.check(f'if [ "$JAX_PLATFORMS" = cpu ]; then {WORKS}; else exec sleep 20; fi', "--timeout", "1", "--jobs", "4")
        self.assertEqual(code, 1)
        self.assertIn("still running after 1 s", out)

    def test_refusals(self):
        for options, message in ((("--filter", "nobody"), "the neighbours are"), (("--wheel", str(self.folder)), "has no jax_plugins"),
                                 (("--preload", "none.so"), "there is no such file")):
            with contextlib.redirect_stderr(io.StringIO()) as err, self.assertRaises(SystemExit) as ended:
                self.check(WORKS, *options)
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(message, err.getvalue())


if __name__ == "__main__":
    unittest.main()
