# SPDX-License-Identifier: Apache-2.0
"""Tests of wheel.py that need no frontend. Usage: `wheel_test.py BUILD`, a build folder with the PJRT plugin and the interpreter."""
import base64
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

import wheel

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
FOREIGN = "COLLET_TEST_EMULATED" in os.environ  # the build is for another machine


def pack(*options):
    """Runs wheel.py; returns the wheel's path, or the error message."""
    done = subprocess.run([sys.executable, wheel.__file__, *options], capture_output=True, text=True)
    if "Traceback" in done.stderr:
        raise AssertionError(done.stderr)
    return (pathlib.Path(done.stdout.strip()), "") if done.returncode == 0 else (None, done.stderr)


class WheelTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.common = ("--build", str(BUILD), "--output", str(self.folder), "--backend", "interpreter")

    def test_frontends(self):
        for frontend, point in (("jax", "[jax_plugins]\ncollet = jax_plugins.collet\n"),
                                ("torch", "[torch_xla.plugins]\ncollet = torch_xla_plugins.collet:Plugin\n\n"
                                 "[torch_dynamo_backends]\ncollet = collet_torch:backend\n")):
            path, message = pack(*self.common, "--frontend", frontend, "--option", "a=b=c")
            self.assertTrue(path, message)
            self.assertRegex(path.name, r"-py3-none-manylinux_2_\d+_\w+\.whl$")
            with zipfile.ZipFile(path) as archive:
                files = {name: archive.read(name) for name in archive.namelist()}
            package = {"jax": "jax_plugins", "torch": "torch_xla_plugins"}[frontend] + "/collet/"
            info = f"collet_{frontend}-{wheel.version_of(BUILD)}.dist-info/"
            self.assertEqual(files[info + "entry_points.txt"].decode(), point)
            self.assertIn("OPTIONS = {'a': 'b=c'}", files[package + "settings.py"].decode())
            for library in ("libcollet_pjrt.so", "libcollet_pjrt_private.so", "collet/backends/libcollet_backend_interpreter.so"):
                self.assertIn(package + "lib/" + library, files)
            for line in files[info + "RECORD"].decode().splitlines():
                name, digest, _ = line.split(",")
                if digest:
                    expected = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
                    self.assertEqual(digest, "sha256=" + expected)
            if frontend == "torch":
                for name, data in files.items():
                    self.assertFalse(name.startswith(package) and name.endswith(".py") and b"import jax" in data, name)
                for name in ("collet_torch/compiler.py", "collet_torch/settings.py", "collet_torch/jax_plugin/lowerings.py"):
                    self.assertIn(name, files)

    def test_private_names_of_jax_are_in_one_file(self):
        package = pathlib.Path(wheel.__file__).parent / "jax_plugins" / "collet"
        users = [path.name for path in sorted(package.glob("*.py")) if "jax._src" in path.read_text()]
        self.assertEqual(users, ["private.py"])

    def test_tensorflow(self):
        for more, name, lines in (((), "collet", ["platform_name=collet", "a=b=c"]),
                                  (("--name", "acme", "--fallback", "none"), "acme",
                                   ["platform_name=acme", "backend=libcollet_backend_interpreter.so", "a=b=c", "fallback=none"])):
            path, message = pack(*self.common, "--frontend", "tensorflow", "--option", "a=b=c", *more)
            self.assertTrue(path, message)
            with zipfile.ZipFile(path) as archive:
                files = {entry: archive.read(entry) for entry in archive.namelist()}
            self.assertEqual(files[f"{name}_tensorflow/settings.txt"].decode().splitlines(), lines)
            self.assertIn(f"tensorflow-plugins/lib{name}_tensorflow.so", files)
            self.assertIn(f"{name}_tensorflow/lib/libcollet_pjrt.so", files)
            self.assertFalse([entry for entry in files if entry.endswith("entry_points.txt")])

    def test_the_settings_name_the_fallback(self):
        for given, options in ((("--fallback", "none"), "{'fallback': 'none'}"),
                               (("--fallback", "interpreter"), "{'fallback': 'interpreter'}"),
                               (("--fallback", str(wheel.backend_file(BUILD, "interpreter"))), "{'fallback': 'interpreter'}"),
                               (("--fallback", "none", "--option", "a=b"), "{'a': 'b', 'fallback': 'none'}"),
                               (("--fallback", "interpreter", "--option", "fallback=none"), "{'fallback': 'none'}")):
            path, message = pack(*self.common, "--name", "acme", *given)
            self.assertTrue(path, message)
            with zipfile.ZipFile(path) as archive:
                settings = archive.read("jax_plugins/acme/settings.py").decode()
            self.assertIn(f"OPTIONS = {options}\n", settings)

    def test_the_message_about_llvm_names_another_fallback(self):
        cpu, chip = pathlib.Path("libcollet_backend_cpu.so"), pathlib.Path("libcollet_backend_chip.so")
        message = wheel.llvm_message([cpu], cpu)
        self.assertIn("libcollet_backend_cpu.so needs the shared LLVM", message)
        self.assertIn("_WHEEL_FALLBACK=interpreter", message)
        for needed, fallback in (([chip], None), ([chip, cpu], cpu)):
            message = wheel.llvm_message(needed, fallback)
            self.assertIn("-DCOLLET_STATIC_LLVM=ON", message)
            self.assertNotIn("FALLBACK", message)

    def test_licences_of_an_installation_for_packages(self):
        for name, text in (("LICENSE", "own"), ("licenses/zlib.txt", "of zlib"), ("sbom.spdx.json", "{}")):
            path = self.folder / "share/doc/collet" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.assertEqual(dict(wheel.licence_files(self.folder, "x.dist-info")),
                         {"x.dist-info/licenses/LICENSE": b"own", "x.dist-info/licenses/zlib.txt": b"of zlib",
                          "x.dist-info/sboms/collet.spdx.json": b"{}"})
        self.assertEqual(list(wheel.licence_files(self.folder / "nowhere", "x")), [])

    def test_the_tag_names_the_machine(self):
        for number, name in ((62, "x86_64"), (183, "aarch64")):
            path = self.folder / "library.so"
            path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0" + number.to_bytes(2, "little"))
            self.assertEqual(wheel.machine(path), name)
        path.write_bytes(b"not a library, but a text")
        with self.assertRaises(SystemExit):
            wheel.machine(path)

    def test_libraries_of_another_machine(self):
        folder = self.folder / "lib" / "aarch64-linux-gnu"
        folder.mkdir(parents=True)
        (folder / "libx.so").write_bytes(b"")
        self.assertEqual(wheel.library(self.folder, "libx.so"), folder / "libx.so")

    def compile(self, name, *options, text=""):
        """Compiles a library in the folder; returns its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,--no-as-needed", f"-Wl,-soname,{path.name}", "-x", "c", "-", "-o", path, "-x", "none", *options],
                       input=text, text=True, check=True)
        return path

    def install(self, backend):
        """Puts the libraries of a wheel with the backend alone, Collet's own excepted, where the wheel would have them; returns the
        installed backend, or the message of a refusal."""
        target = self.folder / f"installed_{backend.stem}"
        options = types.SimpleNamespace(build=BUILD)
        try:
            files = dict(wheel.library_files(options, backend, [backend]))
        except SystemExit as end:
            return None, str(end)
        for name, path in files.items():
            if not path.is_relative_to(BUILD):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target / name)
        return target / "lib/collet/backends" / backend.name, ""

    def opens(self, backend):
        """True if the backend can be opened where the libraries that it was linked with are gone."""
        os.rename(self.folder / "opt", self.folder / "away")
        done = subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL('{backend}')"], capture_output=True)
        os.rename(self.folder / "away", self.folder / "opt")
        return done.returncode == 0

    @unittest.skipIf(FOREIGN or not shutil.which("cc"), "there is no C compiler for this machine")
    def test_a_backend_finds_the_libraries_that_are_packed_for_it(self):
        opt, packed = self.folder / "opt", "-Wl,-rpath,$ORIGIN/../.."
        core = self.compile("opt/libdrvcore.so.1", text="int core(void) { return 1; }")
        lost = self.compile("opt/libdrv.so.1", core, f"-Wl,-rpath,{opt}", text="int drv(void) { return 1; }")
        found = self.compile("opt/libdrvgood.so.1", core, "-Wl,-rpath,$ORIGIN", text="int drv(void) { return 1; }")
        entry = "int collet_backend_entry(void) { return 0; }"
        for number, (libraries, rpath, refusal) in enumerate((
                ([core], f"-Wl,-rpath,{opt}", "libcollet_backend_0.so needs libdrvcore.so.1, which the wheel holds"),
                ([core], f"{packed}:{opt}", ""),
                ([core], f"-Wl,-rpath,{opt}:${{ORIGIN}}/../..", ""),
                ([lost], f"{packed}:{opt}", "link libdrv.so.1 with -Wl,-rpath,'$ORIGIN'"),
                ([lost, core], f"{packed}:{opt}", ""),  # the second is loaded before the first asks for it
                ([found], f"{packed}:{opt}", ""),
                ([found], f"-Wl,--disable-new-dtags,-rpath,{opt}:$ORIGIN/../..", ""))):
            backend = self.compile(f"libcollet_backend_{number}.so", *libraries, rpath, text=entry)
            installed, message = self.install(backend)
            self.assertEqual(bool(installed), not refusal, f"{number}: {message}")
            self.assertIn(refusal, message)
            if installed:
                self.assertTrue(self.opens(installed), number)

    @unittest.skipIf(FOREIGN or not shutil.which("cc") or not shutil.which("cmake"), "there is no C compiler for this machine, or no CMake")
    def test_backends_of_the_cmake_package_look_into_the_wheel(self):
        drv = self.folder / "opt/libdrv.so"
        self.compile("opt/libdrv.so.1", text="int drv(void) { return 1; }")
        drv.symlink_to("libdrv.so.1")
        module = pathlib.Path(wheel.__file__).resolve().parents[2] / "cmake/ColletBackend.cmake"
        project = self.folder / "project"  # in which libraries would not count as linked from elsewhere
        project.mkdir()
        (project / "acme.c").write_text("int drv(void);\n__attribute__((visibility(\"default\"))) int collet_backend_entry(void) { return drv(); }\n")
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(acme LANGUAGES C)\nadd_library(abi INTERFACE)\n"
            f"add_library(collet::abi ALIAS abi)\ninclude({module})\n"
            f"collet_add_backend(acme SOURCES acme.c DEPS {drv})\n")
        build = self.folder / "build"
        for command in (["cmake", "-S", project, "-B", build], ["cmake", "--build", build]):
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        backend = build / "libcollet_backend_acme.so"
        self.assertIn(f"[$ORIGIN:$ORIGIN/../..:{self.folder}/opt]", wheel.readelf("-d", backend))
        installed, message = self.install(backend)
        self.assertTrue(installed, message)
        self.assertTrue(self.opens(installed))

    def test_refusals(self):
        for options, message in ((("--option", "foo"), "'foo' is not KEY=VALUE"),
                                 (("--option", "=foo"), "'=foo' is not KEY=VALUE"),
                                 (("--frontend", "abacus"), "invalid choice"),
                                 (("--name", "Acme"), "--name is a word"),
                                 (("--backend", "nowhere.so"), "there is no backend nowhere.so"),
                                 (("--backend", "nobody"), "libcollet_backend_nobody.so"),
                                 (("--build", str(self.folder)), "there is no installation of Collet in")):
            path, found = pack(*self.common, *options)
            self.assertIsNone(path)
            self.assertIn(message, found)


if __name__ == "__main__":
    unittest.main()
