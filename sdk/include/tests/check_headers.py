#!/usr/bin/env python3
"""check_headers.py --compiler CC --language c|c++ --standard c11|c++17 [--together] INCLUDE_DIR

Compiles each public header alone, twice over, and then all together in both orders: as the strictest customer would,
-Wall -Wextra -Wpedantic -Werror, and with nothing else in the include path. A .hpp is for C++ only. With --together
no header is compiled alone, which is enough for a second compiler."""
import argparse
import os
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--language", choices=["c", "c++"], required=True)
    parser.add_argument("--standard", required=True)
    parser.add_argument("--together", action="store_true")
    parser.add_argument("include_dir")
    args = parser.parse_args()
    endings = (".h", ".hpp") if args.language == "c++" else (".h",)
    folder = os.path.join(args.include_dir, "collet")
    headers = sorted(f"collet/{name}" for name in os.listdir(folder) if name.endswith(endings))
    alone = [] if args.together else [(name, [name, name]) for name in headers]
    units = alone + [("all", headers), ("all, reversed", headers[::-1])]
    bad = 0
    for name, included in units:
        text = "".join(f"#include <{header}>\n" for header in included) + "typedef int not_an_empty_unit;\n"
        command = [args.compiler, "-x", args.language, f"-std={args.standard}", *WARNINGS, "-fsyntax-only",
                   "-I", args.include_dir, "-"]
        done = subprocess.run(command, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            bad += 1
            print(f"{name}, {args.standard}, {args.compiler}:\n{done.stdout}")
    print(f"{len(headers)} headers, {bad} of {len(units)} units do not compile")
    return 1 if bad or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
