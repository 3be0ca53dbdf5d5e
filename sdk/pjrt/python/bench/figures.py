# SPDX-License-Identifier: Apache-2.0
"""Evaluates rows of measurements: means by family, fits of exponents, the history of runs. Needs no JAX."""
import json
import math
import pathlib
import platform
import subprocess
import time


def geometric_mean(numbers):
    numbers = [n for n in numbers if n > 0]
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else 0.0


def by_family(rows):
    """Returns {family: its rows}, in the order in which families first appear."""
    found = {}
    for row in rows:
        found.setdefault(row["family"], []).append(row)
    return found


def ran(rows):
    return [row for row in rows if "ratio" in row]


def slope(points):
    """Returns the exponent e of the cost = c * size**e that fits points of (size, cost) best, by least squares of logarithms."""
    points = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in points}) < 2:
        return 0.0
    middle_x, middle_y = (sum(axis) / len(points) for axis in zip(*points))
    return (sum((x - middle_x) * (y - middle_y) for x, y in points) / sum((x - middle_x) ** 2 for x, _ in points))


def tail_slope(points, share=2 / 3):
    """Returns the exponent for the larger sizes, where the constant cost of a run is negligible: for the last `share` of the points,
    at least three of them. With fewer points, the step from a cache to memory would look like growth."""
    points = sorted(points)
    return slope(points[-max(3, math.ceil(len(points) * share)):])


# How much a fitted exponent may exceed the known one: a logarithmic factor adds about 0.1, and exceeding two cache
# levels about 0.5.
MARGIN = 0.6


def verdict(fitted, expected):
    """Returns "as expected", or "worse" if the cost grows faster than the known complexity."""
    return "worse" if fitted > expected + MARGIN else "as expected"


def commit(root):
    """Returns the commit of the source tree, with a + if the tree differs from it; "unknown" without git."""
    try:
        def git(*words):
            return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout.strip()
        return git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor():
    """Returns the name of the processor model as the system reports it."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def history_entry(report):
    """Returns the data of a comparison that one line of the history stores."""
    rows = ran(report["rows"])
    return {"commit": report["commit"], "time": report["time"], "machine": report["machine"]["processor"],
            "threads": report["machine"]["threads"], "draw": report.get("draw"), "cases": len(rows), "ratio": geometric_mean(r["ratio"] for r in rows),
            "families": {name: geometric_mean(r["ratio"] for r in ran(found)) for name, found in by_family(rows).items()}}


def read_history(path):
    """Reads the lines of a history file; ValueError with the line's number if a line is malformed. A missing file has no lines."""
    path = pathlib.Path(path)
    entries = []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            good = {"commit", "ratio", "families", "machine", "threads"} <= set(entry)
        except (json.JSONDecodeError, TypeError):
            good = False
        if not good:
            raise ValueError(f"{path}:{number}: no line of a history that bench --jax has written")
        entries.append(entry)
    return entries


def append_history(path, entry):
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
