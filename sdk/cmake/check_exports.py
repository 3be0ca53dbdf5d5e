#!/usr/bin/env python3
"""check_exports.py LIBRARY SYMBOL...: fails unless LIBRARY exports exactly these symbols."""
import argparse
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
    missing, extra = sorted(set(args.symbols) - found), sorted(found - set(args.symbols))
    for name in missing:
        print(f"{args.library}: does not export {name}")
    for name in extra:
        print(f"{args.library}: exports {name}, and should not")
    return 1 if missing or extra else 0


if __name__ == "__main__":
    sys.exit(main())
