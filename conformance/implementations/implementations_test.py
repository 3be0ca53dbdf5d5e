# SPDX-License-Identifier: Apache-2.0
"""Tests implementations.py: by Python's own module math, and by implementations that are wrong. Needs the standard library only."""

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "implementations.py")
BUILD = sys.argv.pop()


def math_library():
    """Returns the path of the C library's functions in this process, or None."""
    try:
        path = ctypes.CDLL("libm.so.6")
        with open("/proc/self/maps") as maps:
            return next((line.split()[-1] for line in maps if "/libm" in line and ".so" in line), None) if path else None
    except OSError:
        return None


MATH = math_library()

# Reverses the sign of sines of one number, and has negate, rightly.
WRONG = """
import math, struct
NAME = "wrong 1"
def each(function, data):
    return b"".join(struct.pack("d", function(x)) for (x,) in struct.iter_unpack("d", data))
def sine(x):
    return math.nan if math.isinf(x) else -math.sin(x) if x == 1 else math.sin(x)
def find(op, source, target):
    if (source, target) != ("f64", "f64"):
        return None
    return {"sine": lambda operands: each(sine, operands[0]), "negate": lambda operands: each(lambda x: -x, operands[0])}.get(op)
"""


class Implementations(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text=None):
        path = os.path.join(self.folder.name, name)
        if text is not None:
            with open(path, "w") as file:
                file.write(text)
        return path

    def run_program(self, *words, code=0):
        ran = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, text=True)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout + ran.stderr

    def judged(self, name, ops, *words, code=0):
        report = self.path("report.json")
        text = self.run_program("run", name, "--build", BUILD, "--ops", ops, "--json", report, *words, code=code)
        with open(report) as file:
            return json.load(file)[0], text

    def test_the_c_library_is_right(self):
        summary, text = self.judged("python", "sine,cbrt,log,convert")
        self.assertEqual(summary["accused"], [])
        self.assertGreaterEqual(summary["types"]["f64"]["passed"], 20)
        self.assertGreater(summary["not_there"], 100)  # other types
        self.assertIn("0 accusations", text)

    def library(self, name, target):
        path = self.path(name)
        os.symlink(os.path.abspath(target), path)
        return path

    @unittest.skipUnless(MATH, "there is no C library to open by its path")
    def test_a_library_is_judged_by_its_path(self):
        summary, _ = self.judged(self.library("mine-1.so", MATH), "sine,cbrt,power")
        self.assertEqual(summary["implementation"], "mine-1")
        self.assertEqual(summary["accused"], [])
        for kind in ("f32", "f64"):
            self.assertGreaterEqual(summary["types"][kind]["passed"], 15)

    def test_functions_of_other_libraries_are_not_those_of_a_library(self):
        other = os.path.join(BUILD, "lib", "collet", "test_backends", "libcollet_backend_by_process.so")  # which is linked with the C library
        summary, _ = self.judged(self.library("other.so", other), "sine")
        self.assertEqual(summary["passed"], 0)
        self.assertGreater(summary["not_there"], 0)

    def test_a_wrong_function_is_accused(self):
        summary, text = self.judged(self.path("wrong.py", WRONG), "sine,negate", code=1)
        self.assertEqual({one["case"].split("/")[0] for one in summary["accused"]}, {"sine"})
        self.assertIn("accused: sine/f64/", text)

    def test_a_known_difference_has_a_reason(self):
        known = self.path("known.toml", '[[difference]]\nimplementations = ["wrong *"]\ncases = ["sine/f64/*"]\nreason = "it is wrong at 1"\n')
        summary, _ = self.judged(self.path("wrong.py", WRONG), "sine,negate", "--known", known)
        self.assertEqual(summary["accused"], [])
        self.assertEqual({one["reason"] for one in summary["known"]}, {"it is wrong at 1"})

    def test_a_process_that_ends_is_a_failure(self):
        text = WRONG.replace("return b\"\".join", "import os; os._exit(3); return b\"\".join")
        summary, _ = self.judged(self.path("ends.py", text), "negate", code=1)
        self.assertIn("has ended", summary["accused"][0]["detail"])

    def test_an_exception_is_told(self):
        summary, _ = self.judged(self.path("raises.py", WRONG.replace("lambda x: -x", "lambda x: 1 / 0")), "negate", code=1)
        self.assertIn("ZeroDivisionError", summary["accused"][0]["detail"])

    def test_bad_words(self):
        self.assertIn("there is no implementation 'nothing'", self.run_program("run", "nothing", "--build", BUILD, "--ops", "sine", code=2))
        self.assertIn("there is no 'sin'", self.run_program("run", "python", "--ops", "sin", code=2))
        self.assertIn("text.so", self.run_program("serve", self.path("text.so", "no library, but a text " * 100), code=2))
        self.assertIn("there is no file 'missing.so'", self.run_program("run", "missing.so", "--build", BUILD, "--ops", "sine", code=2))
        self.assertIn("has no 'reason'", self.run_program("run", "python", "--build", BUILD, "--known", self.path(
            "bad.toml", '[[difference]]\nimplementations = ["a"]\ncases = ["b"]\n'), code=2))
        self.assertIn("the option 'command' must name a program", self.conform("command="))
        self.assertIn("is no implementation", self.conform("command=echo hello"))
        self.assertIn("xla", self.run_program("list"))

    def conform(self, option):
        ran = subprocess.run([os.path.join(BUILD, "bin", "collet"), "conform", "--backend",
                              os.path.join(BUILD, "lib", "collet", "test_backends", "libcollet_backend_by_process.so"), "--option", option, "--filter", "sine/*"],
                             capture_output=True, text=True)
        self.assertNotEqual(ran.returncode, 0)
        return ran.stderr


if __name__ == "__main__":
    unittest.main()
