#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""all_models.py [--option KEY=VALUE]... COLLET BACKEND

Runs every model of the corpus (COLLET_CORPUS_DIR/models) through `collet conform` on a backend that leaves to the
fallback what it does not take. Succeeds if every model passes, except for those on which the fallback itself is known to fail."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

MODELS = 49

# Models that exceed their error bound for a known reason: on which backends (None: on all, also on cpu alone), the
# beginning of their report, the largest error, and the reason.
KNOWN = {
    "bf16_attention": (None, "as f64:", 4, "read as f64, it is 2.7e-9 of the largest value away; 1e-9 is asked"),
    "resnet50_loss_and_grads": (None, "output 0:", 4,
                                "f32 does not say more: 3e-8 more in its image moves the loss by 1.5e-4, also on cpu "
                                "alone; where it is cut, and the processor's vectors, decide on which side of 5.3e-5 it comes to lie"),
}


def known_reason(case, backend):
    backends, start, most, why = KNOWN.get(case["name"], ([], "", 0, ""))
    if backends is not None and not any(f"_{name}.so" in backend for name in backends):
        return None
    worst = re.search(r"the worst ([\d.e+]+) times", case["detail"])
    fits = case["status"] == "fail" and case["detail"].startswith(start) and worst and float(worst[1]) <= most
    return why if fits else None


def run(args, corpus):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [args.collet, "conform", "--backend", args.backend, "--corpus", corpus, "--timeout", "600", "--jobs",
                   str(min(os.cpu_count() or 1, 4)), "--json", report]
        for option in args.option:
            command += ["--option", option]
        subprocess.run(command, check=False)
        with open(report, encoding="utf-8") as file:
            return json.load(file)["cases"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("collet")
    parser.add_argument("backend")
    args = parser.parse_args()
    folder = os.environ.get("COLLET_CORPUS_DIR")
    if not folder:
        print(f"COLLET_CORPUS_DIR is not set: {MODELS} models did not run")
        return 1 if os.environ.get("COLLET_REQUIRE_CORPUS") == "1" else 0
    cases = run(args, os.path.join(folder, "models"))
    bad = 0
    for case in cases:
        if case["status"] == "pass":
            continue
        why = known_reason(case, args.backend)
        bad += why is None
        print(f"{'known' if why else 'WRONG'}: {case['name']}: {why or case['detail']}")
    passed = sum(case["status"] == "pass" for case in cases)
    print(f"{passed} of {len(cases)} models passed, {len(cases) - passed - bad} are known misses, {bad} are wrong")
    if len(cases) < MODELS:
        print(f"{MODELS} models were expected")
    return 1 if bad or len(cases) < MODELS else 0


if __name__ == "__main__":
    sys.exit(main())
