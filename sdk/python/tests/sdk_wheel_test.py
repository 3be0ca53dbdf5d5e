# SPDX-License-Identifier: Apache-2.0
"""Tests of sdk_wheel.py, on a small installation made of libraries of the build."""
import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parent / "sdk_wheel.py"
sys.path.insert(0, str(SCRIPT.parent))
import sdk_wheel  # noqa: E402

BUILD = pathlib.Path(os.environ["COLLET_BUILD_DIR"])
VERSION = 'set(PACKAGE_VERSION "1.2.3")\n'


def pack(installed, output, epoch="1700000000"):
    """Runs the script; returns the wheel's path, or the message."""
    done = subprocess.run([sys.executable, SCRIPT, "--installed", installed, "--output", output], capture_output=True, text=True,
                          env=os.environ | {"SOURCE_DATE_EPOCH": epoch})
    if "Traceback" in done.stderr:
        raise AssertionError(done.stderr)
    return (pathlib.Path(done.stdout.strip()), "") if done.returncode == 0 else (None, done.stderr)


class SdkWheelTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.installed = self.folder / "installed"
        for name, text in (("lib/cmake/Collet/ColletConfigVersion.cmake", VERSION), ("include/collet/a.h", "// a\n"),
                           ("share/doc/collet/licenses/zlib.txt", "of zlib\n"), ("share/doc/collet/sbom.spdx.json", "{}\n"),
                           ("lib/collet/python/collet/__init__.py", "x = 1\n"), ("lib/collet/python/collet/__pycache__/a.pyc", "no\n"),
                           ("bin/collet", "#!/bin/sh\n")):
            path = self.installed / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.library = self.installed / "lib/libx.so.0"
        shutil.copy(BUILD / "lib/collet/backends/libcollet_backend_interpreter.so", self.library)
        (self.installed / "lib/libx.so").symlink_to("libx.so.0")

    def test_contents(self):
        path, message = pack(self.installed, self.folder / "out")
        self.assertTrue(path, message)
        self.assertRegex(path.name, r"^collet-1\.2\.3-py3-none-manylinux_2_\d+_\w+\.whl$")
        with zipfile.ZipFile(path) as archive:
            files = {entry.filename: archive.read(entry) for entry in archive.infolist()}
            modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
            self.assertEqual(archive.infolist()[0].date_time, (2023, 11, 14, 22, 13, 20))
        info = "collet-1.2.3.dist-info"
        self.assertEqual(set(files), {
            "collet/__init__.py", "collet/sdk/bin/collet", "collet/sdk/include/collet/a.h",
            "collet/sdk/lib/cmake/Collet/ColletConfigVersion.cmake", "collet/sdk/lib/libx.so", "collet/sdk/lib/libx.so.0",
            "collet/sdk/share/doc/collet/licenses/zlib.txt", "collet/sdk/share/doc/collet/sbom.spdx.json",
            *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/zlib.txt", "sboms/collet.spdx.json"))})
        self.assertEqual(files["collet/sdk/lib/libx.so"], b"INPUT(-l:libx.so.0)\n")
        self.assertEqual([name for name, mode in modes.items() if mode & 0o111], ["collet/sdk/bin/collet"])
        self.assertIn(b"collet = collet.__main__:main", files[f"{info}/entry_points.txt"])
        for line in files[f"{info}/RECORD"].decode().splitlines():
            name, digest, _ = line.split(",")
            if digest:
                expected = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
                self.assertEqual(digest, "sha256=" + expected)

    def test_equal_installations_give_equal_bytes(self):
        first, _ = pack(self.installed, self.folder / "a")
        shutil.copytree(self.installed, self.folder / "other", symlinks=True)
        for path in (self.folder / "other").rglob("*"):
            if not path.is_symlink():
                os.utime(path, (1, 1))
        second, _ = pack(self.folder / "other", self.folder / "b")
        self.assertEqual(first.read_bytes(), second.read_bytes())
        third, _ = pack(self.installed, self.folder / "c", "1600000000")
        self.assertNotEqual(first.read_bytes(), third.read_bytes())

    def test_the_script_of_a_link_links(self):
        with zipfile.ZipFile(pack(self.installed, self.folder / "out")[0]) as archive:
            archive.extractall(self.folder / "unpacked")
        source = self.folder / "main.c"
        source.write_text("int collet_backend_entry(void);\nint main(void) { return collet_backend_entry(); }\n")
        program = self.folder / "main"
        subprocess.run([*os.environ.get("COLLET_TEST_CC", "cc").split(), source, "-o", program, f"-L{self.folder}/unpacked/collet/sdk/lib", "-lx"], check=True)
        needed = sdk_wheel.wheel.readelf("-d", program)
        self.assertIn("[libx.so.0]", needed)

    def test_the_tag_follows_the_symbols(self):
        listing = ("Version symbols section\n Name: GLIBC_2.99\nVersion needs section '.gnu.version_r'\n"
                   "  0x0010:   Name: GLIBC_2.{}  Flags: none\n  0x0020:   Name: GLIBCXX_3.4.{}  Flags: none\n")
        original = sdk_wheel.wheel.readelf
        self.addCleanup(setattr, sdk_wheel.wheel, "readelf", original)
        for glibc, glibcxx, minor in ((17, 19, 17), (28, 24, 28), (28, 25, 31), (35, 30, 35), (36, 30, 36), (17, 33, 39)):
            sdk_wheel.wheel.readelf = lambda option, path: "" if option == "-d" else listing.format(glibc, glibcxx)
            self.assertRegex(sdk_wheel.platform([self.library]), f"^manylinux_2_{minor}_")
        sdk_wheel.wheel.readelf = lambda option, path: "" if option == "-d" else listing.format(40, 99)
        with self.assertRaises(SystemExit):
            sdk_wheel.platform([self.library])

    def test_refusals(self):
        path, message = pack(self.folder / "nothing", self.folder / "out")
        self.assertIsNone(path)
        self.assertIn("there is no installation of Collet", message)
        (self.installed / "lib/other.so").symlink_to("../bin/collet")
        self.assertIn("a wheel has no links", pack(self.installed, self.folder / "out")[1])
        (self.installed / "lib/other.so").unlink()
        original = sdk_wheel.wheel.readelf
        self.addCleanup(setattr, sdk_wheel.wheel, "readelf", original)
        sdk_wheel.wheel.readelf = lambda option, path: " (NEEDED)  Shared library: [libLLVM.so.19.1]\n" if option == "-d" else ""
        with self.assertRaisesRegex(SystemExit, "needs libLLVM.so.19.1, which the wheel does not hold"):
            sdk_wheel.platform([self.library])
        shutil.rmtree(self.installed / "share/doc/collet/licenses")
        self.assertIn("no licences of what is linked in", pack(self.installed, self.folder / "out")[1])


if __name__ == "__main__":
    unittest.main()
