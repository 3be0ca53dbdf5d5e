# SPDX-License-Identifier: Apache-2.0
"""Runs the bundle's script on the driver emulator, with the tool and the backends of a build tree: bundle_test.py BUILD"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import compare  # noqa: E402
import ptxas_report  # noqa: E402

BUILD = pathlib.Path(".")


class Script(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name) / "a folder"
        self.folder.mkdir()
        for name in ("run.sh", "compare.py", "ptxas_report.py"):
            shutil.copy2(HERE / name, self.folder)
        cases = self.folder / "cases_small"
        cases.mkdir()
        for name, text, *_ in compare.cases("small"):
            if name in ("softmax_f32", "product_bf16"):
                (cases / f"{name}.hlo").write_text(text)
        (self.folder / "cases").symlink_to("cases_small")

    def run_script(self, *options):
        environment = dict(os.environ, COLLET_TOOL=str(BUILD / "bin/collet"), COLLET_BACKEND_PATH=str(BUILD / "lib/collet/backends"))
        done = subprocess.run([self.folder / "run.sh", "--output", self.folder / "report", *options], env=environment, cwd=self.folder,
                              capture_output=True, text=True, timeout=250)
        report = self.folder / "report/report.json"
        steps = json.loads(report.read_text())["steps"] if report.exists() else []
        return done, {step["step"]: step for step in steps}

    def test_emulator(self):
        done, steps = self.run_script("--driver", "emulator", "--shard", "0/600", "--jobs", "2", "--python", "/no/python")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("conform quick", "conform libraries", "bench", "bench without libraries", "bench without graphs"):
            self.assertEqual(steps[name]["status"], "passed", steps)
            self.assertTrue((self.folder / "report" / steps[name]["file"]).stat().st_size)
        for name in ("sanitizer memcheck", "sanitizer racecheck", "sanitizer initcheck", "compare with jax", "compare with torch"):
            self.assertEqual(steps[name]["status"], "skipped", steps)
            self.assertTrue(steps[name]["message"])
        self.assertIn("conforms", steps["conform quick"]["message"])
        page = (self.folder / "report/index.html").read_text()
        self.assertIn("conform_quick.html", page)
        bench = json.loads((self.folder / "report/bench.json").read_text())
        self.assertEqual({case["name"] for case in bench["cases"]}, {"softmax_f32", "product_bf16"})
        listing = subprocess.run(["tar", "-tzf", self.folder / "report.tar.gz"], capture_output=True, text=True, check=True).stdout
        self.assertIn("report/report.json", listing)

    def test_machine_code_is_dumped(self):
        dump = self.folder / "dump"
        subprocess.run([BUILD / "bin/collet", "run", self.folder / "cases/softmax_f32.hlo", "--backend", "gpu", "--target", "sm_90", "--dump-to", dump],
                       check=True, capture_output=True, env=dict(os.environ, COLLET_BACKEND_PATH=str(BUILD / "lib/collet/backends")))
        (code,) = dump.rglob("*.sass")
        self.assertRegex(code.read_text(), r"skipped: there is n|EXIT")
        logs = list(dump.rglob("*.ptxas.txt"))
        if logs:  # ptxas was found
            self.assertRegex(logs[0].read_text(), r"Used \d+ registers")
        else:
            self.assertIn("no ptxas", code.read_text())

    def test_failures_are_reported(self):
        done, steps = self.run_script("--driver", "/no/such/driver.so", "--only", "bench")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(steps["bench"]["status"], "failed")
        self.assertIn("no CUDA driver", (self.folder / "report/bench.txt").read_text())

    def test_time_limit(self):
        _, steps = self.run_script("--driver", "emulator", "--limit", "1", "--only", "conform", "--shard", "0/2", "--jobs", "1")
        self.assertEqual((steps["conform quick"]["status"], steps["conform quick"]["message"]), ("failed", "not done in 1 s"))

    def test_wrong_options(self):
        for options in (("--what", "x"), ("--limit",), ("--jobs", "none")):
            self.assertEqual(self.run_script(*options)[0].returncode, 2, options)


class Occupancy(unittest.TestCase):
    LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 4096 bytes smem, 376 bytes cmem[0]
"""

    def test_kernels(self):
        (row,) = ptxas_report.kernels_of(self.LOG, ".visible .entry k(\n.param .u64 k_param_0\n)\n.maxntid 128, 1, 1\n{", "sm_80", {"k": 1024})
        self.assertEqual((row["registers"], row["shared"], row["threads"]), (40, 4096 + 1024, 128))
        self.assertEqual((row["spill_stores"], row["spill_loads"]), (12, 16))
        self.assertEqual(row["occupancy"], 0.75)  # 65536 / (32 * 40) = 51 warps, of which 48 are whole blocks

    def test_limits(self):
        self.assertEqual(ptxas_report.occupancy(32, 0, 256, 164 << 10), 1)
        self.assertEqual(ptxas_report.occupancy(16, 40 << 10, 128, 164 << 10), 16 / 64)  # four blocks by shared memory
        self.assertEqual(ptxas_report.occupancy(16, 0, 32, 164 << 10), 0.5)  # 32 blocks of a warp


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
