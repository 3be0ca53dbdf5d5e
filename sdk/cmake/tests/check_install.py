#!/usr/bin/env python3
"""check_install.py [--cmake CMAKE] [--cc CC] [--cxx CXX] [--flag FLAG] BUILD_DIR SOURCE_DIR: installs the build into a folder, moves that folder, and builds on it
alone what customers build: all headers in C and C++, by find_package(Collet) and by pkg-config, programs that embed the
runtime, and a backend of each language as `collet new` makes it. The programs run on those backends."""
import argparse
import os
import shutil
import subprocess
import sys

import check_runpath


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\nexit code {done.returncode}")
    return done.stdout


STRICT = "-Wall -Wextra -Wpedantic -Werror"
ANSWER = "11 42 93 44 105 186"  # the output of the example's program


def environment(**more):
    """Returns the environment without variables that refer to the build; a toolchain for another machine stays."""
    kept = {name: value for name, value in os.environ.items() if name == "COLLET_SYSROOT" or not name.startswith("COLLET_")}
    return kept | more


def build_project(cmake, prefix, source):
    build = os.path.join(source, "build")
    run(cmake, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_FLAGS={STRICT}",
        f"-DCMAKE_CXX_FLAGS={STRICT}", env=environment())
    if "warning" in run(cmake, "--build", build, env=environment()).lower():
        sys.exit(f"{source} is built with warnings")
    return build


def check_embedding(args, prefix, work, pkg_config, backends):
    """Builds and runs the example, by CMake and by pkg-config, on the installed backend and on the customer's."""
    source = os.path.join(work, "embed")
    shutil.copytree(os.path.join(prefix, "share/collet/templates/examples/embed"), source)
    build = build_project(args.cmake, prefix, source)
    programs = [os.path.join(build, name) for name in ("embed_c", "embed_cxx")]
    flags = run("pkg-config", "--cflags", "--libs", "collet", env=pkg_config).split()
    for compiler, file in ((args.cc, "embed.c"), (args.cxx, "embed.cc")):
        programs.append(os.path.join(work, f"by_pkg_config_{file}"))
        run(compiler, *args.flag, *STRICT.split(), os.path.join(source, file), "-o", programs[-1], *flags)
    where = environment(LD_LIBRARY_PATH=os.path.join(prefix, "lib"))
    for program in programs:
        for backend in ["interpreter"] + backends:
            answer = run(program, backend, env=where)
            if ANSWER not in answer or " 0 ops on the device" in answer:
                sys.exit(f"{program} {backend}\n{answer}")
    return len(programs)


def make_backends(cmake, prefix, work):
    """Builds a backend of each style and returns their paths. The first one's own tests are run, with the installed tool; those of the
    other styles run on the build tree."""
    tool, made = os.path.join(prefix, "bin/collet"), []
    for name, style in (("chip", "c"), ("chip_xx", "kernels"), ("chip_code", "codegen"), ("chip_source", "source")):
        project = os.path.join(work, name)
        run(tool, "new", name, "--style", style, "--out", project, env=environment())
        build = build_project(cmake, prefix, project)
        if not made:
            run("ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error", env=environment())
        made.append(os.path.join(build, f"libcollet_backend_{name}.so"))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cc", default="cc", help="the compiler of what is built without CMake")
    parser.add_argument("--cxx", default="c++", help="the same for C++")
    parser.add_argument("--flag", action="append", default=[], help="a flag for both")
    parser.add_argument("build_dir")
    parser.add_argument("source_dir")
    args = parser.parse_args()
    work = os.path.join(args.build_dir, "customer")
    shutil.rmtree(work, ignore_errors=True)
    first, prefix, project = (os.path.join(work, name) for name in ("first", "moved", "project"))
    run(args.cmake, "--install", args.build_dir, "--prefix", first)
    os.rename(first, prefix)

    # The customer's sources include all installed headers.
    shutil.copytree(os.path.join(args.source_dir, "sdk/cmake/tests/customer"), project)
    headers = sorted(os.listdir(os.path.join(prefix, "include/collet")))
    both = [name for name in headers if name.endswith(".h")]
    texts = {"headers.c": (both, "int customer_c;"),
             "headers.cc": ([name for name in headers if name.endswith((".h", ".hpp"))], "int customer_cxx;")}
    for name, (included, body) in texts.items():
        with open(os.path.join(project, name), "w", encoding="utf-8") as file:
            file.write("".join(f"#include <collet/{header}>\n" for header in included) + body + "\n")
    build_project(args.cmake, prefix, project)

    where = environment(PKG_CONFIG_PATH=os.path.join(prefix, "lib/pkgconfig"))
    flags = run("pkg-config", "--cflags", "collet", env=where).split()
    run(args.cc, *args.flag, "-std=c11", *flags, "-fsyntax-only", os.path.join(project, "headers.c"))
    backends, programs = [], 0
    if os.path.exists(os.path.join(prefix, "bin/collet")):
        backends = make_backends(args.cmake, prefix, work)
        programs = check_embedding(args, prefix, work, where, backends)
    left = [path for path in (os.path.join(folder, name) for folder, _, names in os.walk(prefix) for name in names)
            if not os.path.islink(path) and args.source_dir.encode() + b"/" in open(path, "rb").read()]
    checked, complaints = check_runpath.check("readelf", [work])  # the install tree, and what customers build on it
    if complaints:
        sys.exit("\n".join(complaints))
    if left:
        sys.exit("paths of the build machine stand in:\n  " + "\n  ".join(left))
    print(f"installed, moved and used: {len(headers)} headers, {len(backends)} backends, {programs} programs, {checked} RUNPATHs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
