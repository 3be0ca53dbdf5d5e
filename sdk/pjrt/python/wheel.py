# SPDX-License-Identifier: Apache-2.0
"""Packs the Python package of a frontend, the PJRT library, libcollet and backends into one wheel.

Without further options: collet-jax, with the cpu and interpreter backends, platform "collet"; with --frontend torch,
collet-torch for torch.compile and PyTorch/XLA, with --frontend tensorflow, collet-tensorflow. With --name acme and --backend libcollet_backend_acme.so: acme-jax, a wheel of its own for
platform "acme", with the cpu backend as the fallback.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import time
import typing
import zipfile

HERE = pathlib.Path(__file__).parent


class Frontend(typing.NamedTuple):
    """Describes how a frontend finds its plugins: by an entry point of a package, or by a library in a folder."""
    title: str
    package: str  # folder of the package; {name}: the platform
    files: tuple[str, ...]  # files of the package in addition to the settings; patterns relative to HERE
    entry_points: tuple[tuple[str, str], ...]  # group, and what it names
    requires: tuple[str, ...] = ()
    plugins: str = ""  # folder of the library that the frontend loads
    modules: tuple[tuple[str, tuple[str, ...]], ...] = ()  # more folders of Python files, each with the settings, and their files


FRONTENDS = {
    "jax": Frontend("JAX", "jax_plugins/{name}", ("jax_plugins/collet/*.py",), (("jax_plugins", "jax_plugins.{name}"),),
                    ("jax>=0.7",)),
    # PyTorch/XLA, whose project has ended with torch 2.9, and torch.compile, which needs JAX and torchax. Neither is required.
    "torch": Frontend("PyTorch", "torch_xla_plugins/{name}",
                      ("torch_xla_plugins/collet/*.py", "jax_plugins/collet/installed.py"),
                      (("torch_xla.plugins", "torch_xla_plugins.{name}:Plugin"), ("torch_dynamo_backends", "{name}_torch:backend")),
                      ("torch>=2.9", "jax>=0.7; extra == 'compile'", "torchax>=0.0.13; extra == 'compile'"),
                      modules=(("{name}_torch", ("torch_compile/*.py",)),
                               ("{name}_torch/jax_plugin", ("jax_plugins/collet/*.py",)))),
    # TensorFlow's packages have several names, tensorflow-cpu among them, so none is required.
    "tensorflow": Frontend("TensorFlow 2.21", "{name}_tensorflow", (), (), plugins="tensorflow-plugins"),
}

# Libraries that every Linux with Python has; all others are added to the wheel.
SYSTEM = ("libc.so", "libm.so", "libmvec.so", "libdl.so", "librt.so", "libpthread.so", "libstdc++.so", "libgcc_s.so", "ld-linux")

# What systems of manylinux_2_X have of libstdc++: the newest GLIBCXX_3.4.N, and X. From the policies of auditwheel.
GLIBCXX = ((24, 28), (28, 31), (29, 34), (30, 35), (32, 38), (33, 39))

# e_machine of an ELF file -> Python's name of the architecture.
MACHINES = {21: "ppc64le", 22: "s390x", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}


def fail(message):
    sys.exit(f"wheel.py: {message}")


def version_of(root):
    """Returns Collet's version, which the CMake package of an installation or of a build folder states."""
    for path in (root / "lib/cmake/Collet/ColletConfigVersion.cmake", root / "ColletConfigVersion.cmake"):
        found = path.is_file() and re.search(r'set\(PACKAGE_VERSION "([^"]+)"\)', path.read_text())
        if found:
            return found[1]
    fail(f"there is no installation of Collet in {root}: lib/cmake/Collet/ColletConfigVersion.cmake is missing or names no version")


def library(root, name, optional=False):
    """Returns a library of a build or an installation; None if it is optional and was not built."""
    for folder in (root / "lib", root / "lib64", *sorted(root.glob("lib/*-linux-gnu*"))):
        if (folder / name).is_file():
            return folder / name
    if optional:
        return None
    fail(f"there is no {name} in {root}/lib")


def backend_file(root, backend):
    """Finds a backend by path, or by name among those of a build or an installation."""
    path = pathlib.Path(backend)
    if path.is_file():
        return path
    if "/" in backend or backend.endswith(".so"):
        fail(f"there is no backend {backend}")
    return library(root, f"collet/backends/libcollet_backend_{backend}.so")


def machine(path):
    """Returns the architecture of a library."""
    head = path.read_bytes()[:20]
    if head[:4] != b"\x7fELF" or len(head) < 20:
        fail(f"{path} is no ELF library")
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    return MACHINES.get(number) or fail(f"{path} is for a machine that is not known here (ELF {number}); --tag names it")


def readelf(option, path):
    try:
        done = subprocess.run(["readelf", option, "-W", path], capture_output=True, text=True)
    except OSError as error:
        fail(f"readelf: {error.strerror} (Debian: binutils)")
    if done.returncode:
        fail(f"readelf {path}: {done.stderr.strip()}")
    return done.stdout


def platform(files):
    """Returns the platform of the tag, manylinux_2_X_MACHINE, by the symbols that the files need of the C and C++ libraries."""
    newest = {"GLIBC_2": 17, "GLIBCXX_3.4": 0}
    for path in files:
        needs = readelf("-V", path).partition("Version needs section")[2]
        for name in newest:
            versions = re.findall(rf"Name: {re.escape(name)}\.(\d+)\b", needs)
            newest[name] = max([newest[name], *map(int, versions)])
    minor = newest["GLIBC_2"]
    for cxx, least in GLIBCXX:
        if newest["GLIBCXX_3.4"] <= cxx:
            minor = max(minor, least if newest["GLIBCXX_3.4"] > GLIBCXX[0][0] else 0)
            break
    else:
        fail(f"GLIBCXX_3.4.{newest['GLIBCXX_3.4']} is newer than what is known of manylinux here")
    return f"manylinux_2_{minor}_{machine(files[0])}"


def needs_companions(path):
    """True if a library is linked with one that is neither the system's nor Collet's."""
    return any(not name.startswith((*SYSTEM, "libcollet")) for name in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path)))


def companions(files, fallback):
    """Returns the libraries that `files` need in addition to the system's, found as the loader finds them, which it does for libraries of
    this machine alone. `fallback` is the one of the files that another backend may replace, or None."""
    found, need_llvm = {}, []
    for path in filter(needs_companions, files):
        done = subprocess.run(["ldd", path], capture_output=True, text=True)
        if done.returncode:
            fail(f"ldd {path}: {(done.stderr or done.stdout).strip()}")
        for name, _, rest in (line.strip().partition(" => ") for line in done.stdout.splitlines()):
            if not name.startswith((*SYSTEM, "libcollet", "linux-vdso")) and rest:
                found[name] = pathlib.Path(rest.split(" (")[0])
                if name.startswith("libLLVM"):
                    need_llvm.append(path)
    for name, path in found.items():
        if not path.is_file():
            fail(f"{name} is needed, and the loader does not find it")
    if need_llvm:
        fail(llvm_message(need_llvm, fallback))
    return dict(sorted(found.items()))


def folders_of(path_list, folder):
    """Yields the folders of a RUNPATH that are in the wheel, for a library in `folder`."""
    for element in filter(None, path_list.split(":")):
        if element.startswith(("$ORIGIN", "${ORIGIN}")):
            yield os.path.normpath(folder + re.sub(r"^\$(ORIGIN|{ORIGIN})", "", element))


def check_reach(start, libraries):
    """Fails if the loader will not find the libraries that `start` needs in the wheel, whose `libraries` are {name in the package: path}.
    Like the loader, takes what is loaded already, and otherwise looks into the folders of the RUNPATH of the library that needs it, or
    into those of RPATHs, which count for what the library needs, too."""
    loaded, queue = set(), [(start, [])]
    for name, inherited in queue:  # grows meanwhile
        dynamic = readelf("-d", libraries[name])
        folder = os.path.dirname(name)
        run_path, old_path = (re.search(rf"\({tag}\).*\[(.*)\]", dynamic) for tag in ("RUNPATH", "RPATH"))
        inherited = [*(folders_of(old_path[1], folder) if old_path and not run_path else ()), *inherited]
        reached = list(folders_of(run_path[1], folder)) if run_path else inherited
        for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
            if needed in loaded or needed.startswith((*SYSTEM, "libcollet")):
                continue
            if found := next((f"{where}/{needed}" for where in reached if f"{where}/{needed}" in libraries), None):
                loaded.add(needed)
                queue.append((found, inherited))
                continue
            origin = "$ORIGIN" if folder == "lib" else "$ORIGIN/" + os.path.relpath("lib", folder)
            fail(f"{os.path.basename(name)} needs {needed}, which the wheel holds, but the loader will not find it there; "
                 f"link {os.path.basename(name)} with -Wl,-rpath,'{origin}'")


def llvm_message(paths, fallback):
    """Returns a message that says why `paths`, which need the shared LLVM, cannot be put into a wheel, and how to avoid that."""
    message = (f"{', '.join(path.name for path in paths)} needs the shared LLVM, which a wheel does not hold; "
               "configure Collet with -DCOLLET_STATIC_LLVM=ON")
    if paths == [fallback]:
        message += (", or take another fallback: --fallback interpreter, which is -D<NAME>_WHEEL_FALLBACK=interpreter in a "
                    "project of `collet new <name>`")
    return message


def chosen_backends(options):
    """Returns the vendor's backend or None, and all backends of the wheel."""
    files = [backend_file(options.build, b) for b in options.backends or ("cpu", "interpreter")]
    if options.name == "collet":
        return None, files
    fallback = [backend_file(options.build, options.fallback)] if options.fallback != "none" else []
    return files[0], list(dict.fromkeys(files + fallback))


def client_options(options):
    """Returns OPTIONS of the settings: the client's options, which the environment can override."""
    out = dict(options.option)
    if options.name != "collet" and "fallback" not in out:
        # Uses the name, by which libcollet finds a backend among those of the wheel.
        file = pathlib.Path(options.fallback).name
        out["fallback"] = file.removeprefix("libcollet_backend_").removesuffix(".so")
    return out


def python_files(options, vendors, patterns):
    """Yields (name, bytes) of the settings and of the Python files that match."""
    settings = ("# SPDX-License-Identifier: Apache-2.0\n"
                f"PLATFORM = {options.name!r}\nBACKEND = {vendors and vendors.name!r}\nOPTIONS = {client_options(options)!r}\n")
    yield "settings.py", settings.encode()
    for pattern in patterns:
        for path in sorted(HERE.glob(pattern)):
            if path.name != "settings.py":
                yield path.name, path.read_bytes()


def package_files(options, vendors):
    """Yields (name, bytes) of the files of the package, its libraries excepted."""
    if FRONTENDS[options.frontend].plugins:
        lines = {"platform_name": options.name, **({"backend": vendors.name} if vendors else {}), **client_options(options)}
        yield "settings.txt", "".join(f"{key}={value}\n" for key, value in lines.items()).encode()
        return
    yield from python_files(options, vendors, FRONTENDS[options.frontend].files)


def library_files(options, vendors, backends):
    """Yields (name, path) of the libraries; backends are in the folder that libcollet searches."""
    libraries = {name: library(options.build, name) for name in ("libcollet_pjrt.so", "libcollet_pjrt_private.so", "libcollet.so.0")}
    lapack = library(options.build, "libcollet_lapack.so", optional=True)  # the cpu backend opens it
    if lapack and any(path.name == "libcollet_backend_cpu.so" for path in backends):
        libraries[lapack.name] = lapack
    fallback = backends[-1] if vendors and backends[-1] != vendors else None
    libraries |= companions([*libraries.values(), *backends], fallback)
    files = {f"lib/{name}": path for name, path in libraries.items()}
    files |= {f"lib/collet/backends/{path.name}": path for path in backends}
    for path in backends:
        if not path.resolve().is_relative_to(options.build.resolve()):  # it is not Collet's own
            check_reach(f"lib/collet/backends/{path.name}", files)
    yield from files.items()


def binaries(options, vendors, backends):
    """Returns {name in the wheel: path} of all libraries."""
    frontend = FRONTENDS[options.frontend]
    package = frontend.package.format(name=options.name)
    found = {f"{package}/{name}": path for name, path in library_files(options, vendors, backends)}
    if frontend.plugins:  # the library finds the package by its own name
        found[f"{frontend.plugins}/lib{package}.so"] = library(options.build, f"libcollet_{options.frontend}.so")
    return found


def contents(options, vendors, libraries):
    """Yields (name in the wheel, bytes) of all files."""
    frontend = FRONTENDS[options.frontend]
    package = frontend.package.format(name=options.name)
    for name, data in package_files(options, vendors):
        yield f"{package}/{name}", data
    for name, path in libraries.items():
        yield name, path.read_bytes()
    for folder, patterns in frontend.modules:
        for name, data in python_files(options, vendors, patterns):
            yield f"{folder.format(name=options.name)}/{name}", data


def licence_files(root, info):
    """Yields (name in the wheel, bytes) of the licences of what is linked in and of the SBOM, which an installation of a build with
    COLLET_PORTABLE has."""
    folder = root / "share/doc/collet"
    for path in sorted([folder / "LICENSE", *folder.glob("licenses/*.txt")]):
        if path.is_file():
            yield f"{info}/licenses/{path.name}", path.read_bytes()
    if (folder / "sbom.spdx.json").is_file():
        yield f"{info}/sboms/collet.spdx.json", (folder / "sbom.spdx.json").read_bytes()


def descriptions(options):
    """Yields (name in dist-info, text) of the files that pip reads."""
    frontend = FRONTENDS[options.frontend]
    lines = [f"Requires-Dist: {requirement}\n" for requirement in frontend.requires]
    if any("extra" in requirement for requirement in frontend.requires):
        lines.append("Provides-Extra: compile\n")
    yield "METADATA", (f"Metadata-Version: 2.1\nName: {options.distribution}\nVersion: {options.version}\n"
                       f"Summary: {frontend.title} on {options.name}, through Collet\n{''.join(lines)}")
    yield "WHEEL", f"Wheel-Version: 1.0\nGenerator: collet\nRoot-Is-Purelib: false\nTag: {options.tag}\n"
    points = [f"[{group}]\n{options.name} = {point.format(name=options.name)}\n" for group, point in frontend.entry_points]
    if points:
        yield "entry_points.txt", "\n".join(points)


def pack(wheel, files, record_name, programs=()):
    """Writes `files` and their record; equal files and an equal SOURCE_DATE_EPOCH give a wheel with equal bytes. `programs` are the
    names of those that can be run."""
    record = []
    # The oldest time of an archive is the beginning of 1980.
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH") or 1577836800), 315532800))[:6]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name, data):
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100755 if name in programs else 0o100644) << 16
            archive.writestr(entry, data)

        for name, data in files:
            add(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
        add(record_name, "".join(record) + f"{record_name},,\n")


def key_and_value(text):
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return key, value


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="where Collet is installed")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder")
    parser.add_argument("--frontend", choices=FRONTENDS, default="jax", help="whose plugin it is (%(default)s)")
    parser.add_argument("--name", default="collet", help="the frontend's name of the platform")
    parser.add_argument("--distribution", help="the wheel's name; NAME-FRONTEND unless told")
    parser.add_argument("--version", help="the wheel's version; Collet's unless told")
    parser.add_argument("--tag", help="py3-none-manylinux_2_X_MACHINE unless told, as the libraries need it")
    parser.add_argument("--backend", action="append", dest="backends",
                        help="path or name, the vendor's first; cpu and interpreter unless told")
    parser.add_argument("--fallback", default="cpu", help="a backend that runs what the vendor's does not; none: none")
    parser.add_argument("--option", action="append", default=[], type=key_and_value, metavar="KEY=VALUE",
                        help="for the client; any number")
    options = parser.parse_args()
    if not re.fullmatch("[a-z][a-z0-9_]*", options.name):
        parser.error("--name is a word of small letters, digits and _")
    if options.name != "collet" and not options.backends:
        parser.error("--name needs --backend")
    options.distribution = options.distribution or f"{options.name}-{options.frontend}"
    options.version = options.version or version_of(options.build)
    return options


def main():
    options = read_options()
    stem = f"{re.sub('[-_.]+', '_', options.distribution)}-{options.version}"
    info = f"{stem}.dist-info"
    vendors, backends = chosen_backends(options)
    libraries = binaries(options, vendors, backends)
    options.tag = options.tag or f"py3-none-{platform(list(libraries.values()))}"
    files = [*contents(options, vendors, libraries), *((f"{info}/{name}", text.encode()) for name, text in descriptions(options)),
             *licence_files(options.build, info)]
    options.output.mkdir(parents=True, exist_ok=True)
    wheel = options.output / f"{stem}-{options.tag}.whl"
    pack(wheel, files, f"{info}/RECORD")
    print(wheel)


if __name__ == "__main__":
    main()
