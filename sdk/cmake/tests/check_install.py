#!/usr/bin/env python3
"""check_install.py --cmake CMAKE BUILD_DIR SOURCE_DIR: installs the build into a folder, moves that folder, and builds a
customer's project on it twice, by find_package(Collet) and by pkg-config."""
import argparse
import os
import shutil
import subprocess
import sys


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\nexit code {done.returncode}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("build_dir")
    parser.add_argument("source_dir")
    args = parser.parse_args()
    work = os.path.join(args.build_dir, "customer")
    shutil.rmtree(work, ignore_errors=True)
    first, prefix, project = (os.path.join(work, name) for name in ("first", "moved", "project"))
    run(args.cmake, "--install", args.build_dir, "--prefix", first)
    os.rename(first, prefix)

    # The customer's sources include whatever headers are there.
    shutil.copytree(os.path.join(args.source_dir, "sdk/cmake/tests/customer"), project)
    headers = sorted(os.listdir(os.path.join(prefix, "include/collet")))
    both = [name for name in headers if name.endswith(".h")]
    texts = {"headers.c": (both, "int customer_c;"),
             "headers.cc": ([name for name in headers if name.endswith((".h", ".hpp"))], "int customer_cxx;"),
             "embedder.c": ([name for name in both if name == "collet.h"], "int main(void) { return 0; }")}
    for name, (included, body) in texts.items():
        with open(os.path.join(project, name), "w", encoding="utf-8") as file:
            file.write("".join(f"#include <collet/{header}>\n" for header in included) + body + "\n")
    build = os.path.join(work, "build")
    run(args.cmake, "-S", project, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror")
    run(args.cmake, "--build", build)

    where = dict(os.environ, PKG_CONFIG_PATH=os.path.join(prefix, "lib/pkgconfig"))
    flags = run("pkg-config", "--cflags", "collet", env=where).split()
    run("cc", "-std=c11", *flags, "-fsyntax-only", os.path.join(project, "headers.c"))
    if os.path.exists(os.path.join(prefix, "lib/libcollet.so")):
        libraries = run("pkg-config", "--libs", "collet", env=where).split()
        run("cc", "-std=c11", *flags, os.path.join(project, "embedder.c"), "-o", os.path.join(work, "embedder"),
            "-Wl,--no-as-needed", *libraries)
        run(os.path.join(work, "embedder"), env=dict(os.environ, LD_LIBRARY_PATH=os.path.join(prefix, "lib")))
        run(os.path.join(build, "embedder"))
    tool = os.path.join(prefix, "bin/collet")
    if os.path.exists(tool):
        run(tool, "--help")
    left = [path for path in (os.path.join(folder, name) for folder, _, names in os.walk(prefix) for name in names)
            if not os.path.islink(path) and args.source_dir.encode() + b"/" in open(path, "rb").read()]
    if left:
        sys.exit("paths of the build machine stand in:\n  " + "\n  ".join(left))
    print(f"installed, moved and used: {len(headers)} headers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
