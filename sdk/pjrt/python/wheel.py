# SPDX-License-Identifier: Apache-2.0
"""Packs the Python package, the PJRT library, libcollet and backends into one wheel."""
import argparse
import base64
import hashlib
import pathlib
import zipfile

HERE = pathlib.Path(__file__).parent


def contents(build, backends):
    """(name in the wheel, file) of all that goes in; backends stand where libcollet looks for them."""
    package = HERE / "jax_plugins" / "collet"
    for path in sorted(package.glob("*.py")):
        yield f"jax_plugins/collet/{path.name}", path
    yield "jax_plugins/collet/lib/libcollet_pjrt.so", build / "lib" / "libcollet_pjrt.so"
    yield "jax_plugins/collet/lib/libcollet.so.0", build / "lib" / "libcollet.so.0"
    for name in backends:
        file = f"libcollet_backend_{name}.so"
        yield f"jax_plugins/collet/lib/collet/backends/{file}", build / "lib" / "collet" / "backends" / file


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True, help="a folder")
    parser.add_argument("--version", default="0.1.0")
    parser.add_argument("--tag", default="py3-none-linux_x86_64")
    parser.add_argument("--backend", action="append", dest="backends", help="cpu and interpreter unless told")
    options = parser.parse_args()
    info = f"collet_jax-{options.version}.dist-info"
    texts = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: collet-jax\nVersion: {options.version}\n"
                            "Summary: JAX on Collet's backends\nLicense: Apache-2.0\nRequires-Dist: jax>=0.10,<0.11\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: collet\nRoot-Is-Purelib: false\nTag: {options.tag}\n",
        f"{info}/entry_points.txt": "[jax_plugins]\ncollet = jax_plugins.collet\n",
    }
    options.output.mkdir(parents=True, exist_ok=True)
    wheel = options.output / f"collet_jax-{options.version}-{options.tag}.whl"
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name, data):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")

        for name, path in contents(options.build, options.backends or ["cpu", "interpreter"]):
            add(name, path.read_bytes())
        for name, text in texts.items():
            add(name, text.encode())
        archive.writestr(f"{info}/RECORD", "".join(record) + f"{info}/RECORD,,\n")
    print(wheel)


if __name__ == "__main__":
    main()
