#!/usr/bin/env python3
"""check_new.py --collet TOOL --mnist PROGRAM --build DIR --style c|kernels|lists|codegen|source --cc CC --cxx CXX [--build-only]

Makes a backend with `collet new` in an empty folder, as a new user would, builds it with warnings as errors against
the build folder, and runs its own tests and the training program on it. Then checks what `collet new` must refuse.
With --build-only it ends when the backend is built, which is enough for a second compiler."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import zipfile


# Frontend, package and entry point of each CMake target.
WHEELS = {"wheel": ("jax", "jax_plugins/my_chip2", "my_chip2 = jax_plugins.my_chip2\n"),
          "wheel_torch": ("torch", "torch_xla_plugins/my_chip2", "my_chip2 = torch_xla_plugins.my_chip2:Plugin\n")}


def run(command, expected=0, **rest):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          **rest)
    if done.returncode != expected:
        print(f"{' '.join(command)}\n{done.stdout}\nexit code {done.returncode}, and {expected} was expected")
        sys.exit(1)
    return done.stdout


def files_of(folder):
    return sorted(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)


def check_project(args, work):
    out = os.path.join(work, "projects", "my_chip2")
    os.makedirs(os.path.dirname(out))
    made = json.loads(run([args.collet, "new", "my_chip2", "--style", args.style, "--out", out, "--json", "-"]))
    if sorted(os.path.join(out, name) for name in made["files"]) != files_of(out):
        sys.exit("the files listed are not the files made")
    for path in files_of(out):
        with open(path, encoding="utf-8") as file:
            if "acme" in file.read().lower():
                sys.exit(f"{path} still speaks of acme")
    if os.path.realpath(made["collet_dir"]) != os.path.realpath(args.build):
        sys.exit(f"collet_dir is {made['collet_dir']}")
    build = os.path.join(out, "build")
    run(["cmake", "-S", out, "-B", build, f"-DCollet_DIR={args.build}"],
        env=os.environ | {"CC": args.cc, "CXX": args.cxx, "CFLAGS": "-Werror -Wshadow -Wpedantic",
                          "CXXFLAGS": "-Werror -Wshadow -Wpedantic"})
    output = run(["cmake", "--build", build])
    if "warning" in output.lower():
        sys.exit(output)
    library = made["library"]
    symbols = [line.split()[-1] for line in run(["nm", "-D", "--defined-only", library]).splitlines()]
    if symbols != ["collet_backend_entry"]:
        sys.exit(f"visible symbols: {symbols}")
    if args.build_only:
        return
    if args.style == "source":  # the compiler of C takes so long that a part of the cases has to do
        print(run(["ctest", "--test-dir", build, "--output-on-failure", "-E", "^conform$"]))
        print(run([args.collet, "conform", "--backend", library, "--no-fallback", "--timeout", "120", "--profile", "quick",
                   "--shard", "0/20"]))
    else:
        print(run(["ctest", "--test-dir", build, "--output-on-failure"]))
    losses = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mnist", "losses.txt")
    path = os.path.join(work, "mnist.json")
    run([args.mnist, "--backend", library, "--steps", "10", "--losses", losses, "--quiet", "--json", path])
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    print(f"{found['device_ops']} ops of the step on the device, {found['fallback_ops']} on the fallback")
    if found["device_ops"] == 0:
        sys.exit("nothing ran on the device")
    check_wheel(args, build, library)
    before = files_of(out)
    run([args.collet, "new", "my_chip2", "--out", out], expected=3)
    if files_of(out) != before:
        sys.exit("a second `collet new` changed the project")


def check_wheel(args, build, library):
    """Checks the wheels under the vendor's name, if Collet was built with its PJRT plugin. Their fallback is the
    interpreter, because the cpu backend of a developer's build needs the system's LLVM."""
    if not os.path.exists(os.path.join(args.build, "lib", "libcollet_pjrt.so")):
        print("no PJRT plugin in this build: no wheel")
        return
    run(["cmake", build, "-DMY_CHIP2_WHEEL_FALLBACK=interpreter"])
    if args.style == "codegen":  # a wheel does not have LLVM's library
        said = run(["cmake", "--build", build, "--target", "wheel"], expected=2)
        if "shared LLVM" not in said:
            sys.exit(said)
        said = run(["cmake", build, "-DCOLLET_STATIC_LLVM=ON", "-DCOLLET_LLVM_TARGETS=Abacus"], expected=1)
        if "was not found with its archives" in said:  # Debian: zlib1g-dev libzstd-dev
            print("LLVM's archives, or what they need, are not here: no wheel with LLVM in it")
            return
        if "LLVM has no Abacus" not in said:
            sys.exit(said)
        run(["cmake", build, "-DCOLLET_LLVM_TARGETS="])
        run(["cmake", "--build", build])
        run([args.collet, "conform", "--backend", library, "--no-fallback", "--filter", "add/f32/129/*"])
    for target, (frontend, package, point) in WHEELS.items():
        run(["cmake", "--build", build, "--target", target])
        wheels = [name for name in os.listdir(build) if name.startswith(f"my_chip2_{frontend}-0.1.0-") and name.endswith(".whl")]
        if len(wheels) != 1:
            sys.exit(f"wheels: {wheels}")
        with zipfile.ZipFile(os.path.join(build, wheels[0])) as archive:
            for part in ("__init__.py", "installed.py", "lib/libcollet_pjrt.so", "lib/libcollet_pjrt_private.so", "lib/libcollet.so.0",
                         f"lib/collet/backends/{os.path.basename(library)}",
                         "lib/collet/backends/libcollet_backend_interpreter.so"):
                if f"{package}/{part}" not in archive.namelist():
                    sys.exit(f"{part} is not in the wheel: {archive.namelist()}")
            settings = archive.read(f"{package}/settings.py").decode()
            entry = archive.read(f"my_chip2_{frontend}-0.1.0.dist-info/entry_points.txt").decode()
        if "'fallback': 'interpreter'" not in settings:
            sys.exit(settings)
        if point not in entry:
            sys.exit(entry)
        print(f"packed {wheels[0]}")


def check_refusals(args, work):
    for name in ("", "Acme", "1st", "a b", "a-b", "../x", "a/b", "cpu", "int", "x" * 33, "a__b", "a_"):
        run([args.collet, "new", "--out", os.path.join(work, "refused"), "--", name], expected=2)
        if os.path.exists(os.path.join(work, "refused")):
            sys.exit(f"'{name}' was refused, and yet there is a folder")
    run([args.collet, "new", "good", "--style", "rust"], expected=2, cwd=work)
    with open(os.path.join(work, "file"), "w", encoding="utf-8"):
        pass
    run([args.collet, "new", "good", "--out", os.path.join(work, "file")], expected=3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("collet", "mnist", "build", "style", "cc", "cxx"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--build-only", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        check_project(args, work)
        if not args.build_only:
            check_refusals(args, work)


if __name__ == "__main__":
    main()
