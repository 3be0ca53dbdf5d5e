# SPDX-License-Identifier: Apache-2.0
"""Tests implementations.py: by Python's own module math, and by implementations that are wrong. Needs the standard library only."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "implementations.py")
BUILD = sys.argv.pop()

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
