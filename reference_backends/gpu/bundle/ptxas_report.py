# SPDX-License-Identifier: Apache-2.0
"""Assembles the kernels of programs with NVIDIA's ptxas, and shows registers, spills, shared memory and occupancy of each.

Programs are HLO files, folders of them, or PTX files. No GPU is needed. Exit code 1: ptxas refuses a module; 3: it is not there.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import compare

# By chip: the --target of the backend that makes its PTX, and the bytes of shared memory of a multiprocessor.
CHIPS = {"sm_80": ("sm_80", 164 << 10), "sm_90": ("sm_90", 228 << 10), "sm_100": ("sm_90", 228 << 10)}
WARPS, REGISTERS, BLOCKS, RESERVED_SHARED = 64, 65536, 32, 1024


def occupancy(registers, shared, threads, most_shared):
    """Returns the share of a multiprocessor's warps that can be active at the same time."""
    warps = -(-threads // 32)
    by_registers = REGISTERS // (-(-max(registers, 1) * 32 // 256) * 256) // warps
    by_shared = most_shared // (shared + RESERVED_SHARED)
    return min(WARPS // warps, BLOCKS, by_registers, by_shared) * warps / WARPS


def given_memory(folder):
    """By kernel: bytes of shared memory that a block gets when it is started, from the launch plans in a folder."""
    plans = (path.read_text() for path in folder.glob("*launch_plan.txt"))
    return {name: int(size) for text in plans for name, size in re.findall(r"^\s*(\w+)\(.*threads with (\d+) bytes", text, re.M)}


def kernels_of(log, ptx, chip, given):
    """Returns what ptxas -v reports for each kernel. `given` is the result of given_memory."""
    threads = {name: max(int(x), 1) for name, x in
               re.findall(r"\.entry\s+([\w$.]+)\s*\([^)]*\)\s*(?:\.\w+[^\n{]*\s*)*?\.(?:maxntid|reqntid)\s+(\d+)", ptx)}
    name, row, rows = None, {}, []
    for line in log.splitlines():
        if found := re.search(r"Compiling entry function '([^']+)'", line):
            name, row = found[1], {}
        elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            row["stack"], row["spill_stores"], row["spill_loads"] = map(int, found.groups())
        elif name and (found := re.search(r"Used (\d+) registers", line)):
            row["registers"] = int(found[1])
            smem = re.search(r"(\d+) bytes smem", line)
            row["shared"] = (int(smem[1]) if smem else 0) + given.get(name, 0)
            row["threads"] = threads.get(name, 256)
            row["occupancy"] = occupancy(row["registers"], row["shared"], row["threads"], CHIPS[chip][1])
            rows.append({"kernel": name, "chip": chip, **row})
            name = None
    return rows


def modules(options, program, scratch):
    """Yields (chip, PTX file) for a program."""
    if program.suffix == ".ptx":
        yield from ((chip, program) for chip in options.chips)
        return
    made = {}
    for chip in options.chips:
        target = CHIPS[chip][0]
        if target not in made:
            folder = scratch / target
            shutil.rmtree(folder, ignore_errors=True)
            done = subprocess.run([options.tool, "run", program, "--backend", "gpu", "--target", target, "--elided", "zeros", "--dump-to", folder],
                                  capture_output=True, text=True, timeout=options.timeout)
            made[target] = sorted(folder.rglob("*.ptx")) if done.returncode == 0 else None
            if done.returncode:
                print(f"{program}: not compiled for {target}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}", flush=True)
        yield from ((chip, ptx) for ptx in made[target] or [])


def assemble(options, chip, ptx):
    """Returns the log of ptxas, and whether it accepted the module."""
    command = [options.ptxas, "-v", f"-arch={chip}", "-o", "/dev/null", ptx]
    done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
    return done.stdout + done.stderr, done.returncode == 0


def show(row):
    spills = row["spill_stores"] + row["spill_loads"]
    print(f"{row['program'][:36]:<36} {row['chip']:<6} {row['kernel'][:44]:<44} {row['registers']:>4} {spills:>7} {row['shared']:>7} "
          f"{row['threads']:>5} {row['occupancy']:>5.0%}" + ("  SPILLS" if spills else ""), flush=True)


def conform_programs(options, folder):
    """Writes the programs of some of conform's quick cases as files."""
    shown = subprocess.run([options.tool, "conform", "--backend", "interpreter", "--show", "--profile", "quick", "--shard", options.conform],
                           capture_output=True, text=True, timeout=options.timeout)
    if shown.returncode:
        sys.exit(f"conform --show: {shown.stderr.strip()}")
    for number, (name, text) in enumerate(re.findall(r"^(\S+)\n(HloModule conformance\n(?:.*\n)*?\}\n)(?=\n|\Z)", shown.stdout, re.M)):
        (folder / f"{number:05}_{re.sub(r'[^A-Za-z0-9]+', '_', name)}.hlo").write_text(text)


def programs(paths):
    for path in paths:
        yield from sorted(p for p in path.rglob("*") if p.suffix in (".hlo", ".mlir", ".ptx")) if path.is_dir() else [path]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", type=pathlib.Path)
    parser.add_argument("--bundle-cases", action="store_true", help="the cases of compare.py, too")
    parser.add_argument("--conform", metavar="I/N", help="part I of N of conform's quick cases, too")
    parser.add_argument("--tool", default="collet", help="the tool (%(default)s)")
    parser.add_argument("--ptxas", default=shutil.which("ptxas"))
    parser.add_argument("--chips", nargs="+", choices=CHIPS, default=list(CHIPS))
    parser.add_argument("--timeout", type=float, default=300, help="seconds of each command (%(default)s)")
    parser.add_argument("--most", type=int, default=0, help="so many programs at most, spread evenly; 0: all")
    parser.add_argument("--spills-only", action="store_true", help="show only kernels that spill")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if not options.ptxas:
        print("skipped: there is no ptxas on this machine")
        return 3
    with tempfile.TemporaryDirectory() as scratch:
        return report(options, pathlib.Path(scratch))


def report(options, scratch):
    chosen = list(programs(options.programs))
    if options.most and len(chosen) > options.most:
        chosen = [chosen[i * len(chosen) // options.most] for i in range(options.most)]
    if options.bundle_cases:
        for name, text, *_ in compare.cases("large"):
            chosen.append(scratch / f"{name}.hlo")
            chosen[-1].write_text(text)
    if options.conform:
        made = scratch / "conform"
        made.mkdir()
        conform_programs(options, made)
        chosen += programs([made])
    print(f"{'program':<36} {'chip':<6} {'kernel':<44} {'regs':>4} {'spilled':>7} {'shared':>7} {'block':>5} {'warps':>5}")
    rows, refused = [], 0
    for program in chosen:
        for chip, ptx in modules(options, program, scratch):
            log, taken = assemble(options, chip, ptx)
            if not taken:
                refused += 1
                print(f"{program}: ptxas refuses {ptx.name} for {chip}: {log.strip()[:400]}", flush=True)
            for row in kernels_of(log, ptx.read_text(), chip, given_memory(ptx.parent)):
                row["program"] = program.parent.name if program.stem in ("module", "program") else program.stem
                rows.append(row)
                if not options.spills_only or row["spill_stores"] + row["spill_loads"]:
                    show(row)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    spilling = [row for row in rows if row["spill_stores"] + row["spill_loads"]]
    print(f"{len(chosen)} programs, {len(rows)} kernels on {', '.join(options.chips)}: {refused} modules refused, {len(spilling)} kernels spill")
    return 1 if refused or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
