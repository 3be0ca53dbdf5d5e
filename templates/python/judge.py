# SPDX-License-Identifier: Apache-2.0
"""Judges a backend and says what to do next: `python judge.py [BACKEND] [FILTER...]`. Exit code 1: something failed."""
import sys

import collet


def main():
    backend = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    try:
        report = collet.conform(backend, filters=sys.argv[2:])
    except collet.ToolError as error:  # for instance, there is no such backend
        print(error, file=sys.stderr)
        return error.exit_code
    print(report)
    for case in report.failures:
        print(f"  {case.name}: {case.status} {case.message}")
    slow = [op["op"] for op in report.ops if op["on_device"] < op["declared"]]
    print("ops that run on the fallback in some cases:", ", ".join(slow) or "none")
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
