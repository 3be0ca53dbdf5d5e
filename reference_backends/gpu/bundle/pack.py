# SPDX-License-Identifier: Apache-2.0
"""Packs an installation of Collet (`cmake --install`, LLVM linked statically) with run.sh and what it needs into one archive.

  pack.py --installed DIR OUTPUT     OUTPUT: a folder, or a file that ends in .tar.xz
"""
import argparse
import pathlib
import shutil
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.path.insert(0, str(ROOT / "sdk/pjrt/python"))
import compare  # noqa: E402
import wheel  # noqa: E402

MOST_BYTES = 60 << 20
NAME = "collet-gpu"
BACKENDS = ("gpu", "cpu", "interpreter")


def fill(installed, folder):
    """Writes what the bundle holds to `folder`."""
    backends = folder / "lib/collet/backends"
    for made in (folder / "bin", backends, folder / "python"):
        made.mkdir(parents=True)
    files = [installed / "bin/collet"]
    shutil.copy2(files[0], folder / "bin")
    for name in ("libcollet.so.0", "libcollet_pjrt.so", "libcollet_pjrt_private.so", "libcollet_lapack.so"):
        path = wheel.library(installed, name, optional=name == "libcollet_lapack.so")
        if path:
            shutil.copy2(path, folder / "lib" / name)
            files.append(path)
    plugins = [wheel.backend_file(installed, name) for name in BACKENDS]
    plugins.append(wheel.library(installed, "collet/backends/libcollet_cuda_emulator.so"))
    for path in plugins:
        shutil.copy2(path, backends)
    # Copies the shared libraries that the target system may lack. pack.py refuses LLVM as a shared library.
    for name, path in wheel.companions(files + plugins, None).items():
        shutil.copy2(path, folder / "lib" / name)
    shutil.copytree(ROOT / "sdk/pjrt/python/jax_plugins", folder / "python/jax_plugins", ignore=shutil.ignore_patterns("__pycache__"))
    for script in ("run.sh", "compare.py", "ptxas_report.py"):
        shutil.copy2(HERE / script, folder)
    shutil.copy2(ROOT / "LICENSE", folder)
    for size, cases in (("large", "cases"), ("small", "cases_small")):
        (folder / cases).mkdir()
        for name, text, *_ in compare.cases(size):
            (folder / cases / f"{name}.hlo").write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--installed", type=pathlib.Path, required=True)
    parser.add_argument("output", type=pathlib.Path)
    options = parser.parse_args()
    output = options.output
    if not output.name.endswith(".tar.xz"):
        output = output / f"{NAME}.tar.xz"
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / NAME
        folder.mkdir()
        fill(options.installed, folder)
        with tarfile.open(output, "w:xz") as archive:
            archive.add(folder, NAME)
    size = output.stat().st_size
    if size > MOST_BYTES:
        wheel.fail(f"{output} has {size / (1 << 20):.1f} MiB, and {MOST_BYTES >> 20} are the most")
    print(f"{output}: {size / (1 << 20):.1f} MiB")


if __name__ == "__main__":
    main()
