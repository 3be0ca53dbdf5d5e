# SPDX-License-Identifier: Apache-2.0
"""Tests of old_glibc/stubs.py: a program that is linked with its libraries needs no newer glibc, and runs here."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

STUBS = pathlib.Path(__file__).resolve().parent.parent / "old_glibc/stubs.py"
PROGRAM = """#include <chrono>
#include <condition_variable>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <malloc.h>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <unistd.h>

struct Static {
  int value;
  Static() : value(7) {}
  ~Static() { std::puts("destroyed"); }
} constructed;

int main(int count, char** arguments) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait_for(lock, std::chrono::seconds(60), [&] { return done; });
  const bool timeout = changed.wait_for(lock, std::chrono::milliseconds(1)) == std::cv_status::timeout;
  lock.unlock();
  other.join();
  try {
    throw std::runtime_error("thrown");
  } catch (const std::exception& error) {
    std::puts(error.what());
  }
  std::random_device random;
  const bool is_random = random() != random() || random() != random();
  const bool has_environment = environ != nullptr && getenv("COLLET_OLD_GLIBC") != nullptr;
  std::printf("%d %d %d %d %d %.3f %d\\n", constructed.value, count, timeout, is_random, has_environment, std::hypot(count, std::pow(2.0, count)),
              std::filesystem::file_size(arguments[0]) > 1000 && mallinfo2().arena > 0 && dlsym(RTLD_DEFAULT, "malloc"));
}
"""


class OldGlibcTest(unittest.TestCase):
    compilers = ("gcc", "g++")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def stubs(self, version):
        return subprocess.run([sys.executable, STUBS, "--version", version, "--output", self.folder / "stubs", "--compiler", self.compilers[0]],
                              text=True, capture_output=True)

    def test_program_needs_no_newer_glibc(self):
        made = self.stubs("2.28")
        self.assertEqual(made.returncode, 0, made.stderr)
        source, program = self.folder / "program.cc", self.folder / "program"
        source.write_text(PROGRAM)
        # Code for position-independent programs reads variables of libraries through copies of them.
        for kind in ("-fPIE", "-fPIC"):
            with self.subTest(kind):
                subprocess.run([self.compilers[1], "-std=c++20", "-O2", kind, "-pie", "-pthread", source, "-o", program, f"-B{self.folder}/stubs",
                                f"-L{self.folder}/stubs", "-static-libstdc++", "-Wl,--as-needed,--allow-shlib-undefined"], check=True)
                needs = subprocess.run(["readelf", "-V", "-d", "-W", program], text=True, capture_output=True, check=True).stdout
                versions = {tuple(map(int, version.split("."))) for version in re.findall(r"Name: GLIBC_([\d.]+)", needs)}
                self.assertTrue(versions)
                self.assertLessEqual(max(versions), (2, 28))
                self.assertNotIn("libstdc++", needs)
                ran = subprocess.run([program, "x"], text=True, capture_output=True, env={**os.environ, "COLLET_OLD_GLIBC": "1"})
                self.assertEqual((ran.returncode, ran.stdout), (0, "thrown\n7 2 1 1 1 4.472 1\ndestroyed\n"), ran.stderr)

    def test_what_is_not_there_is_an_error(self):
        self.assertEqual(self.stubs("2.28").returncode, 0)
        source = self.folder / "new.c"
        source.write_text("#define _GNU_SOURCE\n#include <sys/pidfd.h>\nint main(void) { return pidfd_open(0, 0); }\n")
        linked = subprocess.run([self.compilers[0], source, "-o", self.folder / "new", f"-B{self.folder}/stubs", f"-L{self.folder}/stubs"],
                                text=True, capture_output=True)
        self.assertNotEqual(linked.returncode, 0)
        self.assertIn("pidfd_open", linked.stderr)

    def test_version_that_is_none(self):
        made = self.stubs("new")
        self.assertEqual(made.returncode, 1)
        self.assertIn("--version new is no version of glibc", made.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        OldGlibcTest.compilers = tuple(sys.argv[1:3])
        del sys.argv[1:3]
    unittest.main()
