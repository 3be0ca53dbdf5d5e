#!/usr/bin/env python3
"""check_contracts.py INCLUDE_DIR: in the public C headers, every function, every function pointer in a struct, and every
named struct, enum and file has a documentation comment right before it. The comment is the contract."""
import os
import re
import sys

FUNCTION = re.compile(r"^(?:COLLET_EXPORT |extern )?(?!typedef|struct|static|return)[\w][\w\s*]*?\b(collet_\w+)\(")
POINTER = re.compile(r"^\s+[\w][\w\s*]*\(\*(\w+)\)\(")
TYPE = re.compile(r"^(?:typedef )?(?:struct|enum|union)\s+(\w+)\s*\{")


def undocumented(text):
    """(line number, name) of what has no comment before it."""
    if "\\file" not in text and "@file" not in text:
        yield 1, "the file"
    previous = ""
    for number, line in enumerate(text.splitlines(), 1):
        match = FUNCTION.match(line) or POINTER.match(line) or TYPE.match(line)
        parameter = previous.endswith((",", "("))  # a callback among a function's parameters
        if match and not parameter and not previous.endswith("*/"):
            yield number, match[1]
        previous = line.rstrip()


def main():
    folder = os.path.join(sys.argv[1], "collet")
    bad = count = 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".h"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = file.read()
        count += 1
        for number, what in undocumented(text):
            print(f"sdk/include/collet/{name}:{number}: {what} has no contract")
            bad += 1
    print(f"{count} headers, {bad} things without a contract")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
