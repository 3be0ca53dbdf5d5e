#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries a package of the SDK as its user would, in a new folder whose name has a space.

A wheel is installed by pip into a new environment, without an index; an archive is unpacked; a .deb too, after apt has said that
what it depends on can be had. Then a backend is made by `collet new`, built on the package alone, tested and judged; a program that
embeds the runtime is built by CMake and by pkg-config; and a program is run by the Python module.

With --toolchain and --sysroot the package is one for another machine, whose programs the kernel can start (by qemu): projects are built
by that toolchain, and a wheel is unpacked and tried with the Python of the sysroot.
"""
import argparse
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import typing
import venv
import zipfile

PYTHON = """import array, collet, sys
with collet.Client("cpu") as client:
    add = client.compile("HloModule m\\nENTRY e {\\n  x = f32[2] parameter(0)\\n  ROOT y = f32[2] add(x, x)\\n}")
    assert add(array.array("f", [1, 2]))[0].tolist() == [2, 4]
assert str(collet.prefix()) == sys.argv[1], collet.prefix()
"""


class Host(typing.NamedTuple):
    """What builds and runs programs for the machine of a package."""
    cmake: tuple = ()  # options
    compiler: tuple = ("cc",)
    sysroot: pathlib.Path | None = None


def clean_environment(**more):
    """Returns the environment without what would lead to another Collet or other modules."""
    hidden = ("COLLET_", "PYTHON", "LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "PKG_CONFIG")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)} | more


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, env=clean_environment(**more))
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}\nexit code {done.returncode}")
    return done.stdout


def foreign_python(sysroot):
    """Returns a Python of a sysroot, and its environment."""
    found = sorted(sysroot.glob("usr/bin/python3.[0-9]*"))
    if not found:
        sys.exit(f"try_package.py: {sysroot} has no Python")
    return found[-1], {"PYTHONHOME": str(sysroot / "usr")}


def unpack(package, folder, host):
    """Returns the tool, the Python that finds the module, and the environment that it needs."""
    if host.sysroot:
        python, environment = foreign_python(host.sysroot)
        if package.suffix == ".whl":
            with zipfile.ZipFile(package) as archive:
                archive.extractall(folder)
                for info in archive.infolist():
                    os.chmod(folder / info.filename, info.external_attr >> 16)
            return folder / "collet/sdk/bin/collet", python, environment | {"PYTHONPATH": str(folder)}
        tool, _, more = unpack(package, folder, Host())
        return tool, python, environment | more
    if package.suffix == ".whl":
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv/bin/python"
        run(python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", package)
        if auditwheel := shutil.which("auditwheel"):
            told = " ".join(run(auditwheel, "show", package).split())
            tag = package.stem.rsplit("-", 1)[1]
            if f'platform tag: "{tag}"' not in told:
                sys.exit(f"auditwheel does not say that {tag} is the tag:\n{told}")
        else:
            print("try_package: auditwheel is not installed: the tag is what sdk_wheel.py has found", file=sys.stderr)
        return folder / "venv/bin/collet", python, {}
    if package.suffix == ".deb":
        if shutil.which("apt-get") and not package.stem.endswith("_arm64"):
            run("apt-get", "install", "--simulate", "--no-install-recommends", package)
        run("dpkg-deb", "--extract", package, folder / "root")
        return folder / "root/usr/bin/collet", sys.executable, {"PYTHONPATH": str(folder / "root/usr/lib/python3/dist-packages")}
    run("tar", "-xf", package, "-C", folder)
    [root] = folder.iterdir()
    return root / "bin/collet", sys.executable, {"PYTHONPATH": str(root / "lib/collet/python")}


def check_backend(tool, folder, cmake_dir, host):
    project = folder / "acme project"
    run(tool, "new", "acme", "--out", project)
    run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={cmake_dir}", *host.cmake)
    run("cmake", "--build", project / "build")
    run("ctest", "--test-dir", project / "build", "--output-on-failure", "--no-tests=error")
    report = folder / "report.json"
    run(tool, "conform", "--backend", project / "build/libcollet_backend_acme.so", "--filter", "add/f32/*", "--json", report)
    found = json.loads(report.read_text())
    if found["verdict"] != "conforms" or not found["cases"]:
        sys.exit(f"the new backend does not conform: {found['verdict']}, {len(found['cases'])} cases")
    return len(found["cases"])


def check_embedding(prefix, folder, cmake_dir, host):
    source = folder / "embed"
    shutil.copytree(prefix / "share/collet/templates/examples/embed", source)
    run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={cmake_dir}", *host.cmake)
    run("cmake", "--build", source / "build")
    programs = [source / "build/embed_c"]
    if shutil.which("pkg-config"):
        # It writes paths with spaces as a shell reads them.
        flags = run("pkg-config", "--cflags", "--libs", "collet", PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
        programs.append(source / "by_pkg_config")
        run(*host.compiler, source / "embed.c", "-o", programs[-1], *shlex.split(flags))
    for program in programs:
        for backend in ("interpreter", "cpu"):
            run(program, backend, LD_LIBRARY_PATH=str(prefix / "lib"))
    return len(programs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", metavar="FILE", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--toolchain", type=lambda text: pathlib.Path(text).resolve(), help="CMake's toolchain file of the machine")
    parser.add_argument("--sysroot", type=lambda text: pathlib.Path(text).resolve(), help="the machine's libraries and Python")
    parser.add_argument("--compiler", default="cc", help="the machine's C compiler")
    options = parser.parse_args()
    package = options.package
    if not package.is_file():
        sys.exit(f"try_package.py: there is no {package}")
    if bool(options.toolchain) != bool(options.sysroot):
        sys.exit("try_package.py: --toolchain and --sysroot belong together")
    with tempfile.TemporaryDirectory(prefix="collet user ") as name:
        folder = pathlib.Path(name).resolve() / "collet package"
        folder.mkdir()
        host = Host()
        if options.sysroot:
            # CMake looks for packages in the sysroot and in this folder alone.
            host = Host((f"-DCMAKE_TOOLCHAIN_FILE={options.toolchain}", f"-DCOLLET_SYSROOT={options.sysroot}", f"-DCMAKE_FIND_ROOT_PATH={folder}"),
                        (options.compiler, f"--sysroot={options.sysroot}"), options.sysroot)
        tool, python, environment = unpack(package, folder, host)
        prefix, cmake_dir = (pathlib.Path(run(tool, option).rstrip("\n")) for option in ("--prefix", "--cmake-dir"))
        if not prefix.is_relative_to(folder):
            sys.exit(f"{tool} says that it is installed in {prefix}")
        for verb in ("", "-conform"):
            page = prefix / f"share/man/man1/collet{verb}.1"
            if not page.is_file() or not page.read_text().startswith(".TH COLLET"):
                sys.exit(f"there is no manual page {page}")
        cases = check_backend(tool, folder, cmake_dir, host)
        programs = check_embedding(prefix, folder, cmake_dir, host)
        run(python, "-c", PYTHON, prefix, **environment)
        run(python, "-m", "collet", "opt", "--list-passes", **environment)
        megabytes = package.stat().st_size / 1e6
        print(f"{package.name}: {megabytes:.1f} MB; a new backend passes {cases} cases, {programs} programs embed the runtime, "
              "the Python module runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
