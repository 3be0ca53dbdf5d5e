# SPDX-License-Identifier: Apache-2.0
"""Tests of judges.py with a stand-in for pytest, which writes the journal that a test describes."""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from unittest import mock

import judge_journal
import judges

# The stand-in reads suite.json of the source: for each platform the tests' states, and "end": how the run ends.
PYTEST = '''
import json, os, pathlib, sys, time
sys.path.insert(0, os.environ["PYTHONPATH"].split(os.pathsep)[0])
import judge_journal
platform = os.environ["JAX_PLATFORMS"].split(",")[0]
fallback = os.environ.get("COLLET_FALLBACK", "")
suite = json.loads(pathlib.Path("suite.json").read_text())
run = suite.get(f"{platform} {fallback}".strip(), suite.get(platform))
journal = pathlib.Path(os.environ["COLLET_JUDGE_JOURNAL"])
every, seed = os.environ["COLLET_JUDGE_SAMPLE"].split()
have = judge_journal.read(journal)[0]
with judge_journal.append_to(journal) as out:
    for test, state in run["tests"].items():
        if test not in have and judge_journal.is_drawn(test, int(every), seed):
            out.write(json.dumps({"test": test, "state": state, "message": "because", "seconds": 0.5}) + "\\n")
            print(test, sys.argv[1:])
    if run.get("end") == "half a line":
        out.write('{"test": "cut of')
        sys.exit(3)
    if run.get("end") == "killed":
        out.flush()
        os.kill(os.getpid(), 9)
    out.write(json.dumps({"done": True}) + "\\n")
'''

TABLE = '''
[one]
about = "a suite"
packages = []
source.sdist = "one==1.2"
tests = ["tests"]
ignore = ["tests/slow.py"]

[checks]
about = "a command"
packages = []
source.sdist = "checks==2"
command = ["check.py", "{library}", "{report}"]
'''

CPU = {"tests": {"a.py::same": "passed", "a.py::worse[1 2]": "passed", "a.py::gone": "passed", "a.py::left out": "passed", "a.py::broken": "failed"}}
OURS = {"tests": {"a.py::same": "passed", "a.py::worse[1 2]": "failed", "a.py::left out": "skipped", "a.py::broken": "passed"}}


class JudgesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name in ("source", "modules/pytest", "out"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "modules/pytest/__main__.py").write_text(PYTEST)
        (self.folder / "table.toml").write_text(TABLE)
        (self.folder / "known.txt").write_text("# none\n")
        self.suite({"cpu": CPU, "collet": OURS})

    def suite(self, runs):
        (self.folder / "source/suite.json").write_text(json.dumps(runs))

    def run_judges(self, *arguments):
        """Returns the exit code, what was printed, and the JSON."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        command = ["judges.py", "--python", sys.executable, "--table", str(self.folder / "table.toml"), "--output", str(self.folder / "out"),
                   "--known", str(self.folder / "known.txt"), "--source", f"one={self.folder / 'source'}", "--source", f"checks={self.folder / 'source'}",
                   "--json", str(report), "--junit", str(self.folder / "report.xml"), *arguments]
        out = io.StringIO()
        variables = {"PYTHONPATH": str(self.folder / "modules"), "COLLET_PJRT_LIBRARY": "/lib/of/a/backend.so"}
        with mock.patch.object(sys, "argv", command), mock.patch.dict(os.environ, variables), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = judges.main()
            except SystemExit as end:
                code = end.code
        return code, out.getvalue(), json.loads(report.read_text()) if report.is_file() else None

    def test_what_passes_on_jaxs_cpu_has_to_pass(self):
        code, text, report = self.run_judges("one", "--fallback", "off")
        self.assertEqual(code, 1, text)
        (suite,) = report["suites"]
        self.assertEqual({k: suite[k] for k in ("baseline", "passed", "failed", "skipped", "missing", "known")},
                         {"baseline": 4, "passed": 1, "failed": 1, "skipped": 1, "missing": 1, "known": 0})
        self.assertIn("one: cpu without fallback: a.py::worse[1 2]: failed: because", text)
        self.assertIn("a.py::gone: missing", text)
        self.assertNotIn("a.py::broken", text)
        self.assertIn("3 differences that are not known", text)
        suite = xml.parse(self.folder / "report.xml").getroot()[0]
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("4", "3"))

    def test_known_differences_have_a_reason(self):
        (self.folder / "known.txt").write_text("one a.py::worse[1?2] rounding\none *gone it is not collected\none a.py::left?out no such memory\n"
                                               "one a.py::same it passes now\nother a.py::same another suite\n")
        code, text, report = self.run_judges("one", "--fallback", "off")
        self.assertEqual(code, 0, text)
        self.assertEqual(report["suites"][0]["known"], 3)
        self.assertEqual({d["known"] for d in report["suites"][0]["differences"]}, {"rounding", "it is not collected", "no such memory"})
        self.assertIn("a.py::same: passes, though it is listed", text)
        (self.folder / "known.txt").write_text("one a.py::worse\n")
        code, text, _ = self.run_judges("one")
        self.assertEqual(code, 2)
        self.assertIn("known.txt:1: a line is JUDGE TEST REASON", text)

    def test_both_fallbacks_are_run(self):
        self.suite({"cpu": CPU, "collet": CPU, "collet none": OURS})
        code, _, report = self.run_judges("one")
        self.assertEqual(code, 1)
        self.assertEqual([(s["run"], s["passed"]) for s in report["suites"]], [("cpu with fallback", 4), ("cpu without fallback", 1)])

    def test_the_baseline_is_kept_and_an_interrupted_run_goes_on(self):
        self.suite({"cpu": CPU, "collet": {"tests": {"a.py::same": "passed"}, "end": "half a line"}})
        code, text, _ = self.run_judges("one", "--fallback", "off")
        self.assertEqual(code, 1)
        self.assertIn("pytest did not come to its end: exit code 3", text)
        # The tests that the journal has are not run again, neither on JAX's cpu nor here.
        self.suite({"cpu": {"tests": {}}, "collet": {"tests": {"a.py::same": "failed", "a.py::gone": "passed", "a.py::worse[1 2]": "passed", "a.py::left out": "passed"}}})
        code, text, _ = self.run_judges("one", "--fallback", "off", "--resume")
        self.assertEqual(code, 0, text)
        self.assertIn("after 1 tests that ended before", text)
        code, _, _ = self.run_judges("one", "--fallback", "off")
        self.assertEqual(code, 1)

    def test_a_crash_of_pytest_loses_nothing(self):
        self.suite({"cpu": CPU, "collet": {**CPU, "end": "killed"}})
        code, text, report = self.run_judges("one", "--fallback", "off")
        self.assertEqual((code, report["suites"][0]["passed"]), (0, 4))
        self.assertIn("exit code -9", text)
        self.suite({"cpu": {"tests": {}, "end": "killed"}})
        code, text, _ = self.run_judges("one", "--fresh")
        self.assertEqual(code, 2, text)
        self.assertIn("one: cannot be run: one: jax-cpu: no test ran", text)

    def test_a_suite_without_tests_cannot_be_run(self):
        self.suite({"cpu": {"tests": {}}, "collet": CPU})
        for _ in range(2):
            code, text, _ = self.run_judges("one")
            self.assertEqual(code, 2, text)
            self.assertIn("no test ran; see", text)

    def test_a_sample_depends_on_the_seed_alone(self):
        names = [f"a.py::test{i}" for i in range(1000)]
        drawn = [name for name in names if judge_journal.is_drawn(name, 10, "7")]
        self.assertTrue(60 < len(drawn) < 140, len(drawn))
        self.assertNotEqual(drawn, [name for name in names if judge_journal.is_drawn(name, 10, "8")])
        self.suite({"cpu": {"tests": dict.fromkeys(names, "passed")}, "collet": {"tests": dict.fromkeys(names, "passed")}})
        code, _, report = self.run_judges("one", "--fallback", "on", "--sample", "10", "--seed", "7")
        self.assertEqual((code, report["suites"][0]["baseline"]), (0, len(drawn)))

    def test_a_command_has_no_baseline(self):
        (self.folder / "source/check.py").write_text(
            "import json, sys\nassert sys.argv[1] == '/lib/of/a/backend.so'\n"
            "json.dump({'checks': [{'id': 'x', 'result': 'pass'}, {'id': 'y', 'result': 'fail', 'detail': 'bad'}, {'id': 'z', 'result': 'unsupported'}]},"
            " open(sys.argv[2], 'w'))\n")
        code, text, report = self.run_judges("checks", "--fallback", "on")
        self.assertEqual(code, 1)
        self.assertEqual((report["suites"][0]["baseline"], report["suites"][0]["passed"]), (2, 1))
        self.assertIn("checks: cpu with fallback: y: failed: bad", text)
        (self.folder / "source/check.py").write_text("raise SystemExit('no library')\n")
        code, text, _ = self.run_judges("checks", "--fallback", "on")
        self.assertEqual(code, 2)
        self.assertIn("no report; the command ended with 1", text)

    def test_an_environment_without_pip_is_made_again(self):
        chosen = [judge for judge in judges.read_judges(self.folder / "table.toml").values() if judge.name == "one"]
        home = self.folder / "out/environments/shared"

        def create(where, pip=True, **_):
            for name in ("python", "pip") if pip else ("python",):
                (pathlib.Path(where) / "bin").mkdir(parents=True, exist_ok=True)
                (pathlib.Path(where) / "bin" / name).write_text("")

        with mock.patch.object(judges, "run_quietly"), contextlib.redirect_stdout(io.StringIO()):
            # Without Debian's python3-venv the environment has a Python, but no pip.
            failed = subprocess.CalledProcessError(1, "ensurepip")
            with mock.patch.object(judges.venv, "create", side_effect=failed), self.assertRaisesRegex(judges.Unusable, "python3-venv"):
                create(home, pip=False)
                judges.prepare(chosen, self.folder / "out", None)
            with mock.patch.object(judges.venv, "create", side_effect=create) as made:
                for _ in range(2):
                    self.assertEqual(judges.prepare(chosen, self.folder / "out", None), {"shared": str(home / "bin/python")})
            made.assert_called_once()

    def test_wrong_arguments_are_named(self):
        code, text, _ = self.run_judges("two")
        self.assertEqual(code, 2)
        self.assertIn("there is no suite two; there are one, checks", text)
        code, text, _ = self.run_judges("one", "--source", "one=/no/such/folder")
        self.assertEqual(code, 2)
        self.assertIn("it is NAME=DIR", text)

    def test_the_table_of_suites_is_whole(self):
        suites = judges.read_judges(judges.HERE / "judges.toml")
        for name in ("pypjrt", "array-api", "keras", "jax", "flax", "optax", "equinox", "numpyro", "diffrax", "blackjax", "haiku", "chex"):
            judge = suites[name]
            self.assertTrue(judge.version and judge.about and (judge.tests or judge.command), name)
            judges.read_known(judges.HERE / "known_differences.txt", judge)
        # JAX's own list has another form.
        known = judges.read_known(judges.HERE / "known_differences.txt", suites["jax"])
        self.assertIn("Schur", known.reason("tests/linalg_test.py::ScipyLinalgTest::testSchur3"))
        self.assertIsNone(known.reason("tests/linalg_test.py::ScipyLinalgTest::testSchur"))


if __name__ == "__main__":
    unittest.main(verbosity=0)
