# SPDX-License-Identifier: Apache-2.0
"""Packs an installation of Collet and the Python module into the wheel `collet`: the module, and in its folder `sdk` the tool,
libraries, headers, CMake files, templates and backends.

The installation is one of a build with COLLET_PORTABLE. The tag says which systems can run it, by the symbols of the C and C++
libraries that its files need. SOURCE_DATE_EPOCH is the time of the files in the wheel.
"""
import argparse
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "pjrt/python"))
import wheel  # noqa: E402

MODULE = "lib/collet/python/collet"
DESCRIPTION = """Collet lets a new accelerator run every program that XLA's frontends produce. This wheel is its SDK: the tool `collet`,
the libraries, headers and CMake files, templates of backends, the conformance suite, the cpu, gpu and interpreter backends with LLVM
in them, and a Python module.

    pip install collet
    collet new acme
    cmake -S acme -B acme/build "-DCMAKE_PREFIX_PATH=$(collet --cmake-dir)"
    cmake --build acme/build
    collet conform --backend acme/build/libcollet_backend_acme.so

The guides are in `share/doc/collet` of the folder that `collet --prefix` prints.
"""


def is_elf(path):
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def platform(files):
    """Returns the platform of the tag. A file that needs a library which is neither the system's nor among them is an error."""
    own = {path.name for path in files}
    for path in files:
        needed = re.findall(r"\(NEEDED\)[^\[]*\[([^\]]+)\]", wheel.readelf("-d", path))
        if other := [name for name in needed if name not in own and not name.startswith(wheel.SYSTEM)]:
            wheel.fail(f"{path.name} needs {', '.join(other)}, which the wheel does not hold: was Collet built with COLLET_PORTABLE?")
    return wheel.platform(files)


def contents(installed):
    """Yields (name in the wheel, bytes, whether it is a program) of all files of the installation."""
    for path in sorted(installed.rglob("*")):
        name = path.relative_to(installed).as_posix()
        if path.is_dir() or "__pycache__" in path.parts or path.suffix == ".pyc":
            continue
        if path.is_symlink():
            target = os.readlink(path)
            if "/" in target or not name.endswith(".so"):
                wheel.fail(f"{path} is a link to {target}, and a wheel has no links")
            # A linker's script, which says the same to whoever links -lNAME.
            yield f"collet/sdk/{name}", f"INPUT(-l:{target})\n".encode(), False
        elif name.startswith(MODULE + "/"):
            yield f"collet/{name[len(MODULE) + 1:]}", path.read_bytes(), False
        else:
            yield f"collet/sdk/{name}", path.read_bytes(), name.startswith("bin/")


def descriptions(version, tag):
    """Yields (name in dist-info, text)."""
    yield "METADATA", (f"Metadata-Version: 2.1\nName: collet\nVersion: {version}\n"
                       "Summary: A backend SDK that lets any accelerator run XLA's programs\n"
                       "License: Apache-2.0; licenses/ has those of what is linked in\nRequires-Python: >=3.10\n"
                       "Requires-Dist: numpy; extra == 'numpy'\nRequires-Dist: ml_dtypes; extra == 'numpy'\nProvides-Extra: numpy\n"
                       f"Description-Content-Type: text/markdown\n\n{DESCRIPTION}")
    yield "WHEEL", f"Wheel-Version: 1.0\nGenerator: collet\nRoot-Is-Purelib: false\nTag: {tag}\n"
    yield "entry_points.txt", "[console_scripts]\ncollet = collet.__main__:main\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--installed", type=pathlib.Path, required=True, help="where Collet is installed")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder")
    options = parser.parse_args()
    version = wheel.version_of(options.installed)
    if not (options.installed / "share/doc/collet/licenses").is_dir():
        wheel.fail(f"{options.installed} has no licences of what is linked in: was Collet built with COLLET_PORTABLE?")
    binaries = [path for path in sorted(options.installed.rglob("*")) if path.is_file() and not path.is_symlink() and is_elf(path)]
    tag = f"py3-none-{platform(binaries)}"
    info = f"collet-{version}.dist-info"
    found = list(contents(options.installed))
    files = [(name, data) for name, data, _ in found]
    files += [(f"{info}/{name}", text.encode()) for name, text in descriptions(version, tag)]
    files += wheel.licence_files(options.installed, info)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"collet-{version}-{tag}.whl"
    wheel.pack(path, files, f"{info}/RECORD", {name for name, _, program in found if program})
    print(path)


if __name__ == "__main__":
    main()
