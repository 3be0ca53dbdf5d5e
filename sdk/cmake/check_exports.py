#!/usr/bin/env python3
"""check_exports.py LIBRARY SYMBOL...: fails unless LIBRARY exports exactly these symbols. A SYMBOL with a star is a
pattern that exported names may match."""
import argparse
import fnmatch
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nm", default="nm")
    parser.add_argument("library")
    parser.add_argument("symbols", nargs="+")
    args = parser.parse_args()
    listing = subprocess.run([args.nm, "-D", "--defined-only", args.library], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    found = {line.split()[-1].split("@")[0] for line in listing.splitlines() if line.split()}
    missing = sorted(name for name in args.symbols if not fnmatch.filter(found, name))
    extra = sorted(name for name in found if not any(fnmatch.fnmatchcase(name, known) for known in args.symbols))
    for name in missing:
        print(f"{args.library}: does not export {name}")
    for name in extra:
        print(f"{args.library}: exports {name}, and should not")
    return 1 if missing or extra else 0


if __name__ == "__main__":
    sys.exit(main())
