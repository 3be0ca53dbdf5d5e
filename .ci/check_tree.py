#!/usr/bin/env python3
"""check_tree.py: checks every tracked text file for absolute paths of one machine and for markers of unfinished work. Prints
file:line: complaint. Also lists long files, as a hint for review."""
import os
import re
import subprocess
import sys

CODE = (".c", ".cc", ".cpp", ".h", ".hpp", ".inc", ".py", ".cmake")
MANY_LINES = 500
MACHINE = re.compile(r"(^|[^.\w])/(work|farm|root|tmp/wt|home/\w+)/")
LEFTOVER = re.compile(r"\b(FIX" r"ME|X" r"XX|TO" r"DO)\b|not implemented" r" yet|EXPECT_TRUE\(true\)")
CONFLICT = re.compile(r"^(<{7}|>{7})( |$)")


def project_version(root):
    with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"^project\(Collet VERSION ([0-9.]+)", file.read(), re.M)[1]


def states_version(name, line, version):
    """A version of Collet in quotes, outside of CMakeLists.txt. Projects of vendors and backends for tests have versions of their own."""
    ours = name.startswith(("sdk/", "reference_backends/", "hlo/", "conformance/")) or name == "dev"
    tests = re.search(r"(_test\.\w+$|/tests/|/testing/|^sdk/include/collet/kernel_)", name)
    return ours and not tests and f'"{version}"' in line


def check(name, text, version):
    for number, line in enumerate(text.splitlines(), 1):
        if states_version(name, line, version):
            yield number, "the version, which stands in CMakeLists.txt alone"
        if MACHINE.search(line):
            yield number, "a path of one machine"
        if CONFLICT.match(line):
            yield number, "a merge conflict"
        if name.endswith(CODE) and LEFTOVER.search(line):
            yield number, "an unfinished word: finish it, or say in docs/ what is missing"


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    names = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=root, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split("\0")
    version = project_version(root)
    bad = count = 0
    for name in names:
        path = os.path.join(root, name)
        if not name or not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            data = file.read()
        if b"\0" in data[:8192]:
            continue
        count += 1
        text = data.decode("utf-8", "replace")
        for number, message in check(name, text, version):
            print(f"{name}:{number}: {message}")
            bad += 1
        lines = text.count("\n")
        if name.endswith(CODE) and lines > MANY_LINES:
            print(f"{name}: {lines} lines (has it one subject?)")
    print(f"check_tree: {count} files, {bad} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
