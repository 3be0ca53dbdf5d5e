#!/usr/bin/env python3
"""run_fuzzers.py [--all] [--seconds N] [--seed N] [--jobs N] [--json FILE] [--list] BUILD [NAME...]

Runs the fuzzers of a build folder (fuzz/fuzzers.txt lists them; --all: those of fuzz/large_fuzzers.txt, too), or those named, for
some seconds each, from the stored seeds and from what earlier runs have found. Exit code 1: one of them found something; 2: wrong usage."""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time


def listed(build, group):
    try:
        with open(os.path.join(build, "fuzz", f"{group}.txt"), encoding="utf-8") as file:
            return {line.split()[0]: line.split()[1:] for line in file if line.strip()}
    except OSError as error:
        sys.exit(f"run_fuzzers: {error}")


def run(build, name, longest, seeds, seconds, seed):
    folder = os.path.join(build, "fuzz")
    found = os.path.join(folder, name + ".found")
    os.makedirs(found, exist_ok=True)
    begin = time.monotonic()
    # A single input that takes ten seconds counts as a hang.
    command = [os.path.join(folder, name), f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={longest}", "-timeout=10", "-rss_limit_mb=3072",
               f"-artifact_prefix={folder}/{name}-", found, *seeds]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", text=True,
                          env=os.environ | {"COLLET_BACKEND_PATH": os.path.join(build, "lib/collet/backends")})
    log = os.path.join(folder, name + ".log")
    with open(log, "w", encoding="utf-8") as file:
        file.write(done.stdout)
    runs = re.findall(r"^#(\d+)", done.stdout, re.M) + re.findall(r"^Done (\d+) runs", done.stdout, re.M)
    seeds_read = re.findall(r"files: (\d+)", done.stdout)
    covered = re.findall(r"cov: (\d+)", done.stdout)
    artifact = re.search(r"Test unit written to (\S+)", done.stdout)
    return {"name": name, "passed": done.returncode == 0, "runs": int(runs[-1]) if runs else 0,
            "seeds": sum(map(int, seeds_read)), "edges": int(covered[-1]) if covered else 0,
            "seconds": round(time.monotonic() - begin, 1), "input": artifact[1] if artifact else "", "log": log}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="seconds for each (60)")
    parser.add_argument("--seed", type=int, default=0, help="of what they draw; 0: another one each time (0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="fuzzers at a time")
    parser.add_argument("--json", help="write the results to this file; - is stdout")
    parser.add_argument("--list", action="store_true", help="print the names, and do nothing else")
    parser.add_argument("--all", action="store_true", help="also those that need much of the SDK")
    parser.add_argument("build")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    small, large = listed(args.build, "fuzzers"), listed(args.build, "large_fuzzers")
    fuzzers = small | large
    if args.list:
        print("\n".join(fuzzers))
        return 0
    unknown = [name for name in args.names if name not in fuzzers]
    if unknown:
        print(f"run_fuzzers: there is no fuzzer '{unknown[0]}'; there are: {', '.join(fuzzers)}", file=sys.stderr)
        return 2
    if args.seconds < 1 or args.jobs < 1:
        print("run_fuzzers: --seconds and --jobs take a number from 1 on", file=sys.stderr)
        return 2
    names = args.names or list(fuzzers if args.all else small)
    results = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        started = [pool.submit(run, args.build, name, fuzzers[name][0], fuzzers[name][1:], args.seconds, args.seed) for name in names]
        for future in concurrent.futures.as_completed(started):
            one = future.result()
            # A fuzzer that did not run its seeds has tested nothing.
            one["passed"] = one["passed"] and one["runs"] > one["seeds"] > 0
            results.append(one)
            if args.json != "-":
                print(f"{'ok    ' if one['passed'] else 'FAILED'} {one['name']}: {one['runs']} runs in {one['seconds']} s, "
                      f"{one['seeds']} seeds, {one['edges']} edges", flush=True)
                if not one["passed"]:
                    print(f"       {one['log']} has what it said" + (f"; again: {os.path.join(args.build, 'fuzz', one['name'])} {one['input']}"
                                                                   if one["input"] else ""), flush=True)
    results.sort(key=lambda one: one["name"])
    if args.json:
        text = json.dumps({"seconds": args.seconds, "fuzzers": results}, indent=2) + "\n"
        if args.json == "-":
            sys.stdout.write(text)
        else:
            with open(args.json, "w", encoding="utf-8") as file:
                file.write(text)
    return 0 if all(one["passed"] for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
