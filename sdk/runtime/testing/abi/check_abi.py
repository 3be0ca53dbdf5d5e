#!/usr/bin/env python3
"""check_abi.py [--renew] [--tools DIR] --headers DIR BASELINE LIBRARY

Compares the types of the functions that LIBRARY exports, by its debug information, with BASELINE: libabigail's abidw and abidiff.
Every difference fails. --renew writes BASELINE; docs/compatibility.md says which differences may be."""
import argparse
import os
import subprocess
import sys
import tempfile

OPTIONS = ["--exported-interfaces-only", "--drop-private-types", "--drop-undefined-syms", "--no-corpus-path", "--no-comp-dir-path",
           "--no-elf-needed", "--no-show-locs", "--no-write-default-sizes", "--no-parameter-names", "--type-id-style", "hash"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("--tools", default="", help="the folder of abidw and abidiff")
    parser.add_argument("--headers", required=True, help="the folder of the public headers")
    parser.add_argument("baseline")
    parser.add_argument("library")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        now = os.path.join(folder, "now.abi")
        subprocess.run([os.path.join(args.tools, "abidw"), *OPTIONS, "--headers-dir", args.headers, "--out-file", now, args.library],
                       check=True)
        with open(now, encoding="utf-8") as file:
            text = file.read()
        if "<function-decl" not in text:
            sys.exit(f"check_abi: {args.library} has no debug information of exported functions")
        if args.renew:
            with open(args.baseline, "w", encoding="utf-8") as file:
                file.write(text)
            print(f"check_abi: {args.baseline} written, {len(text)} bytes")
            return 0
        done = subprocess.run([os.path.join(args.tools, "abidiff"), args.baseline, now], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout, end="")
        if done.returncode & 3:
            sys.exit(f"check_abi: abidiff failed with status {done.returncode}")
        if done.returncode:
            print("check_abi: the ABI is not that of the baseline. If the change is one that docs/compatibility.md allows, run\n"
                  f"  python3 sdk/runtime/testing/abi/check_abi.py --renew --headers {args.headers} {args.baseline} {args.library}")
            return 1
        print(f"check_abi: {text.count('<function-decl')} functions, no difference")
        return 0


if __name__ == "__main__":
    sys.exit(main())
