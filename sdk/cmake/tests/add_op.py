#!/usr/bin/env python3
"""add_op.py --cmake CMAKE --scratch DIR BUILD_DIR SOURCE_DIR: checks that an elementwise op costs three files, as
docs/adding_an_op.md says. Copies the tree to the scratch folder, adds an op there, and builds the tool, the interpreter and the cpu
backend with the settings of the build folder. The conformance cases of the new op have to pass on both backends. Before the third file
is edited, which is the code generator's, the cpu backend has to decline the op."""
import argparse
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys

NAME, TEXT = "HYPOTENUSE", "hypotenuse"
SETTINGS = ("CMAKE_BUILD_TYPE", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "CMAKE_C_FLAGS", "CMAKE_CXX_FLAGS", "COLLET_WERROR",
            "COLLET_WITH_LAPACK")
PREFIXES = ("CMAKE_C_FLAGS_", "CMAKE_CXX_FLAGS_")


def row_of_op_table(text):
    """A row at the end, with the next number."""
    last = max(int(number) for number in re.findall(r"^COLLET_OP\((\d+),", text, re.M))
    row = (f'COLLET_OP({last + 1}, {NAME}, "{TEXT}", MATH, elementwise, 2, 2, None, NONE, FLOAT, '
           "COLLET_OP_BINARY | COLLET_OP_ELEMENTWISE, 4, 1)\n")
    return text.replace("/* clang-format on */", row + "/* clang-format on */", 1)


def function_of_evaluator(text):
    """The function and its case. An infinity gives infinity, whatever the other operand is."""
    function = "COLLET_FUNCTION(Hypotenuse, std::isinf(a) || std::isinf(b) ? std::numeric_limits<R>::infinity() : std::hypot(a, b))\n"
    text = text.replace("COLLET_FUNCTION(Cbrt,", function + "COLLET_FUNCTION(Cbrt,", 1)
    return text.replace("    case Op::CBRT:", f"    case Op::{NAME}:\n      return run<Hypotenuse, R>;\n    case Op::CBRT:", 1)


def row_of_code_generator(text):
    row = f"COLLET_ELEMENTWISE({NAME}, none, none, binary<math::hypot>, none, true, true)\n"
    return text.replace("COLLET_ELEMENTWISE(IMAG,", row + "COLLET_ELEMENTWISE(IMAG,", 1)


OP_TABLE, EVALUATOR = "sdk/include/collet/ops.def", "hlo/ops/eval/kernels_real.cc"
CODE_GENERATOR = "sdk/codegen/kernel/elementwise.def"


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-8000:]}\nexit code {done.returncode}")
    return done.stdout


def tracked_files(source):
    names = run("git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z", cwd=source)
    return [name for name in names.split("\0") if name and os.path.isfile(os.path.join(source, name))]


def copy_tree(source, scratch):
    for name in tracked_files(source):
        target = os.path.join(scratch, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(os.path.join(source, name), target)


def changed_files(source, scratch):
    return [name for name in tracked_files(source)
            if not filecmp.cmp(os.path.join(source, name), os.path.join(scratch, name), shallow=False)]


def edit(scratch, name, function):
    path = os.path.join(scratch, name)
    with open(path) as file:
        before = file.read()
    after = function(before)
    if NAME not in after:
        sys.exit(f"{name} no longer has the place where the test adds the op")
    with open(path, "w") as file:
        file.write(after)


def settings(build):
    """The options that give another build folder the compiler and the flags of this one."""
    options = []
    with open(os.path.join(build, "CMakeCache.txt")) as cache:
        for line in cache:
            match = re.match(r"(\w+):\w+=(.*)", line)
            if match and (match[1] in SETTINGS or match[1].startswith(PREFIXES)):
                options.append(f"-D{match[1]}={match[2]}")
    return options


def environment():
    """Without the variables that lead to the backends of the outer build."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COLLET_")}


def conform(tool, backend):
    """The statuses of the op's cases with their counts, and the names of the cases."""
    done = subprocess.run([tool, "conform", "--backend", backend, "--no-fallback", "--filter", f"{TEXT}/*", "--json", "-"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    try:
        report = json.loads(done.stdout)
    except ValueError:
        sys.exit(f"collet conform --backend {backend} made no report\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    counts = {status: count for status, count in report["counts"].items() if count > 0}
    print(f"{backend}: exit code {done.returncode}, {counts}", flush=True)
    return done.returncode, counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", required=True)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("build")
    parser.add_argument("source")
    options = parser.parse_args()
    source, scratch = options.source, options.scratch
    shutil.rmtree(scratch, ignore_errors=True)
    copy_tree(source, scratch)
    build = os.path.join(scratch, "build")
    tool = os.path.join(build, "bin", "collet")

    def rebuild():
        jobs = os.environ.get("COLLET_JOBS", str(os.cpu_count()))
        run(options.cmake, "--build", build, "--parallel", jobs, "--target", "collet_tool", "collet_backend_interpreter",
            "collet_backend_cpu", env=environment())

    edit(scratch, OP_TABLE, row_of_op_table)
    edit(scratch, EVALUATOR, function_of_evaluator)
    run(options.cmake, "-S", scratch, "-B", build, "-G", "Ninja", "-DCOLLET_WITH_TESTS=OFF", *settings(options.build),
        env=environment())
    rebuild()
    if f"| {TEXT} |" not in run(tool, "info", "--ops", "--format", "md", env=environment()):
        sys.exit(f"collet info --ops does not show {TEXT}")
    code, counts = conform(tool, "interpreter")
    if code != 0 or set(counts) != {"pass"}:
        sys.exit("the interpreter does not compute the new op")
    cases = counts["pass"]
    code, counts = conform(tool, "cpu")
    empty = cases - counts.get("unsupported", 0)  # cases of arrays without elements, for which no code is needed
    if counts != {"pass": empty, "unsupported": cases - empty} or empty * 4 > cases:
        sys.exit("without its row for compiled code the cpu backend has to decline the new op")

    edit(scratch, CODE_GENERATOR, row_of_code_generator)
    rebuild()
    code, counts = conform(tool, "cpu")
    if code != 0 or counts != {"pass": cases}:
        sys.exit("the cpu backend does not compute the new op")
    changed = changed_files(source, scratch)
    if sorted(changed) != sorted((OP_TABLE, EVALUATOR, CODE_GENERATOR)):
        sys.exit(f"the new op changed {changed}")
    print(f"an elementwise op costs {len(changed)} files; {cases} cases pass on both backends")
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
