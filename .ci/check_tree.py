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


def check(name, text):
    for number, line in enumerate(text.splitlines(), 1):
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
        for number, message in check(name, text):
            print(f"{name}:{number}: {message}")
            bad += 1
        lines = text.count("\n")
        if name.endswith(CODE) and lines > MANY_LINES:
            print(f"{name}: {lines} lines (has it one subject?)")
    print(f"check_tree: {count} files, {bad} complaints")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
