# SPDX-License-Identifier: Apache-2.0
"""Packs the Python package, the PJRT library, libcollet and backends into one wheel.

Without further options: collet-jax, with the cpu and interpreter backends, platform "collet". With --name acme and
--backend libcollet_backend_acme.so: acme-jax, a wheel of its own for platform "acme", with the cpu backend as the fallback.
"""
import argparse
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).parent


def library(root, name):
    """A library of a build or an installation."""
    for folder in ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"):
        if (root / folder / name).is_file():
            return root / folder / name
    sys.exit(f"wheel.py: there is no {name} in {root}/lib")


def backend_file(root, backend):
    """A backend by path, or by name among those of a build or an installation."""
    path = pathlib.Path(backend)
    return path if path.is_file() else library(root, f"collet/backends/libcollet_backend_{backend}.so")


# What every Linux with Python has; all else goes into the wheel.
SYSTEM = ("libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libstdc++.so", "libgcc_s.so", "ld-linux")


def companions(files, root):
    """Libraries that `files` need beside the system's, found as the loader finds them."""
    found = {}
    for path in files:
        lines = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.splitlines()
        for name, _, rest in (line.strip().partition(" => ") for line in lines):
            if not name.startswith(SYSTEM) and rest and not name.startswith(("libcollet", "linux-vdso")):
                found[name] = rest.split(" ")[0]
    if any(name.startswith("libLLVM") for name in found):
        sys.exit(f"wheel.py: {root} was built with the shared LLVM; configure with -DCOLLET_STATIC_LLVM=ON")
    return {name: pathlib.Path(path) for name, path in sorted(found.items())}


def settings(options, vendors):
    """The text of the package's settings.py."""
    pairs = dict(pair.split("=", 1) for pair in options.option)
    return ("# SPDX-License-Identifier: Apache-2.0\n"
            f"PLATFORM = {options.name!r}\nBACKEND = {vendors and vendors.name!r}\nOPTIONS = {pairs!r}\n")


def contents(options):
    """(name in the wheel, bytes) of all that goes in; backends stand where libcollet looks for them."""
    package = f"jax_plugins/{options.name}"
    files = [backend_file(options.build, b) for b in options.backends or ("cpu", "interpreter")]
    vendors = files[0] if options.name != "collet" else None
    fallback = [backend_file(options.build, options.fallback)] if vendors and options.fallback != "none" else []
    for path in sorted((HERE / "jax_plugins" / "collet").glob("*.py")):
        yield f"{package}/{path.name}", settings(options, vendors).encode() if path.name == "settings.py" else path.read_bytes()
    libraries = {name: library(options.build, name) for name in ("libcollet_pjrt.so", "libcollet.so.0")}
    backends = list(dict.fromkeys(files + fallback))
    libraries |= companions([*libraries.values(), *backends], options.build)
    for name, path in libraries.items():
        yield f"{package}/lib/{name}", path.read_bytes()
    for path in backends:
        yield f"{package}/lib/collet/backends/{path.name}", path.read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="where Collet is installed")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder")
    parser.add_argument("--name", default="collet", help="JAX's name of the platform")
    parser.add_argument("--distribution", help="the wheel's name; NAME-jax unless told")
    parser.add_argument("--version", default="0.1.0")
    parser.add_argument("--tag", default="py3-none-linux_x86_64")
    parser.add_argument("--backend", action="append", dest="backends",
                        help="path or name, the vendor's first; cpu and interpreter unless told")
    parser.add_argument("--fallback", default="cpu", help="a backend that runs what the vendor's does not; none: none")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="for the client; any number")
    options = parser.parse_args()
    if not re.fullmatch("[a-z][a-z0-9_]*", options.name):
        parser.error("--name is a word of small letters, digits and _")
    if options.name != "collet" and not options.backends:
        parser.error("--name needs --backend")
    distribution = options.distribution or f"{options.name}-jax"
    stem = re.sub("[-_.]+", "_", distribution)
    info = f"{stem}-{options.version}.dist-info"
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {options.version}\n"
                            f"Summary: JAX on {options.name}, through Collet\nRequires-Dist: jax>=0.10,<0.11\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: collet\nRoot-Is-Purelib: false\nTag: {options.tag}\n",
        f"{info}/entry_points.txt": f"[jax_plugins]\n{options.name} = jax_plugins.{options.name}\n",
    }
    options.output.mkdir(parents=True, exist_ok=True)
    wheel = options.output / f"{stem}-{options.version}-{options.tag}.whl"
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name, data):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")

        for name, data in contents(options):
            add(name, data)
        for name, text in texts.items():
            add(name, text.encode())
        archive.writestr(f"{info}/RECORD", "".join(record) + f"{info}/RECORD,,\n")
    print(wheel)


if __name__ == "__main__":
    main()
