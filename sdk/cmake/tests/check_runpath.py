#!/usr/bin/env python3
"""check_runpath.py --readelf READELF FOLDER...: checks the RUNPATH of every program and library below the folders. Each of its
elements begins with / or with $ORIGIN: an empty or a relative one would load libraries from the working folder."""
import argparse
import os
import re
import subprocess
import sys


def elf_files(folder):
    for where, _, names in os.walk(folder):
        for path in (os.path.join(where, name) for name in names):
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                head = file.read(18)
            if head[:4] == b"\x7fELF" and head[16] in (2, 3):  # a program or a shared library
                yield path


def bad_elements(readelf, path):
    listing = subprocess.run([readelf, "-d", "-W", path], text=True, stdout=subprocess.PIPE, check=True).stdout
    elements = []
    for value in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", listing):
        elements += value.split(":")
    return [element for element in elements if not re.match(r"/|\$ORIGIN(/|$)|\$\{ORIGIN\}(/|$)", element)]


def check(readelf, folders):
    """Returns how many files were checked, and a line for each that has a bad element."""
    count, complaints = 0, []
    for path in (path for folder in folders for path in elf_files(folder)):
        count += 1
        if bad := bad_elements(readelf, path):
            complaints.append(f"{path}: the RUNPATH has {', '.join(repr(element) for element in bad)}")
    return count, complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readelf", default="readelf")
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    count, complaints = check(args.readelf, args.folders)
    if complaints:
        sys.exit("\n".join(complaints))
    if count == 0:
        sys.exit("there are no programs or libraries")
    print(f"{count} programs and libraries load nothing from the working folder")
    return 0


if __name__ == "__main__":
    sys.exit(main())
