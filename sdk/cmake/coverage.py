#!/usr/bin/env python3
"""coverage.py BUILD_DIR [--json FILE] [--markdown]: which lines ran in the tests of a build with COLLET_COVERAGE. Reads the profiles in
BUILD_DIR/profiles. Prints line coverage per folder and the ten least covered files, and writes both for all files as JSON. Tests
and generated files do not count."""
import argparse
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys

LEAST_LINES = 20  # files with fewer lines are not listed by themselves
NO_SUBJECT = re.compile(r"_test\.cc$|_fuzz\.cc$|(^|/)(tests?|testing|testdata)/|^build/|^\.\./|^/")


def tool(name):
    for candidate in (f"{name}-19", name):
        if shutil.which(candidate):
            return candidate
    sys.exit(f"coverage: {name} is missing (Debian: llvm-19)")


def objects(build):
    """Programs and libraries of the build, each once."""
    found = []
    for folder in ("bin", "tests", "fuzz", "lib"):
        for path, _, names in os.walk(os.path.join(build, folder)):
            for name in sorted(names):
                file = os.path.join(path, name)
                if os.path.islink(file) or os.path.getsize(file) < 4:
                    continue
                with open(file, "rb") as opened:
                    if opened.read(4) == b"\x7fELF":
                        found.append(file)
    return found


def has_coverage(file):
    return b"__llvm_covmap" in subprocess.run(["objdump", "-h", file], stdout=subprocess.PIPE, check=False).stdout


def summaries(build):
    """Of each file its lines and those that ran."""
    profiles = glob.glob(os.path.join(build, "profiles", "*.profraw"))
    if not profiles:
        sys.exit(f"coverage: there are no profiles in {build}/profiles")
    merged = os.path.join(build, "coverage.profdata")
    listing = os.path.join(build, "profiles", "list")
    with open(listing, "w", encoding="utf-8") as file:
        file.write("\n".join(profiles) + "\n")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "--failure-mode=warn", "-f", listing, "-o", merged], check=True,
                   stderr=subprocess.DEVNULL)
    programs = [file for file in objects(build) if has_coverage(file)]
    command = [tool("llvm-cov"), "export", "-summary-only", f"-instr-profile={merged}", programs[0]]
    for program in programs[1:]:
        command += ["-object", program]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    files = {}
    for file in json.loads(done.stdout)["data"][0]["files"]:
        lines = file["summary"]["lines"]
        files[os.path.normpath(file["filename"])] = (lines["count"], lines["covered"])
    return files


def relative(files, source):
    """Names from the root of the tree; without tests, what the build made, and what is not of the tree."""
    out = {}
    for name, lines in files.items():
        short = os.path.relpath(name, source) if os.path.isabs(name) else name
        if not NO_SUBJECT.search(short) and os.path.exists(os.path.join(source, short)):
            out[short] = lines
    return out


def by_folder(files):
    folders = collections.defaultdict(lambda: [0, 0, 0])
    for name, (count, covered) in files.items():
        row = folders[os.path.dirname(name)]
        row[0] += 1
        row[1] += count
        row[2] += covered
    return folders


def percent(count, covered):
    return 100.0 * covered / count if count else 100.0


def print_tables(files, markdown):
    rows = [(folder, *row) for folder, row in sorted(by_folder(files).items())]
    total = [len(files), sum(count for count, _ in files.values()), sum(covered for _, covered in files.values())]
    if markdown:
        print("| folder | files | lines | covered |\n|---|---:|---:|---:|")
        for folder, number, count, covered in rows:
            print(f"| {folder} | {number} | {count:,} | {percent(count, covered):.1f} % |")
        print(f"| all | {total[0]} | {total[1]:,} | {percent(*total[1:]):.1f} % |")
        return
    print(f"{'folder':<44} {'files':>5} {'lines':>7} {'covered':>8}")
    for folder, number, count, covered in rows + [("all", *total)]:
        print(f"{folder:<44} {number:>5} {count:>7} {percent(count, covered):>6.1f} %")
    print("\nthe least covered files")
    listed = [(percent(*lines), name, *lines) for name, lines in files.items() if lines[0] >= LEAST_LINES]
    for share, name, count, covered in sorted(listed)[:10]:
        print(f"{share:>6.1f} %  {covered} of {count} lines  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--json", help="where the JSON goes; BUILD_DIR/coverage.json unless told")
    parser.add_argument("--markdown", action="store_true", help="print the folders alone, as a table for the documentation")
    options = parser.parse_args()
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    files = relative(summaries(options.build), source)
    print_tables(files, options.markdown)
    path = options.json or os.path.join(options.build, "coverage.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"folders": {folder: {"files": row[0], "lines": row[1], "covered": row[2]}
                               for folder, row in sorted(by_folder(files).items())},
                   "files": {name: {"lines": count, "covered": covered} for name, (count, covered) in sorted(files.items())}},
                  file, indent=1)
    if not options.markdown:
        print(f"\n{path}")


if __name__ == "__main__":
    main()
