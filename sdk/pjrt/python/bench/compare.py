# SPDX-License-Identifier: Apache-2.0
"""Compares Collet with XLA:CPU: the programs of families.py, or with --draw some that are drawn at random. Both sides alternate in one
process and use the same number of threads.

Exit code 1: a program failed, results differ, or a ratio lies below --least.
"""
import json
import os
import pathlib
import sys

import compare_page
import draw
import families
import figures
from options import check, check_files, new_parser, wanted

WIDTH = 64  # columns of a program's name; longer ones push the numbers to the right


def parse(arguments):
    parser = new_parser("--jax", __doc__)
    parser.add_argument("--all", action="store_true", help="every variant in every type, size and rank, not a choice of these")
    parser.add_argument("--draw", metavar="SEED", nargs="?", const="", help="programs of random kinds, types, shapes and parameters instead")
    parser.add_argument("--count", metavar="N", help=f"drawn programs of each family ({draw.DEFAULT_COUNT})")
    parser.add_argument("--seconds", type=float, default=0.4, help="measuring time of each program (%(default)s)")
    parser.add_argument("--least", type=float, default=0, help="exit code 1 where a program has less of XLA:CPU's speed (%(default)s)")
    parser.add_argument("--page", type=pathlib.Path, metavar="FILE", help="a self-contained web page")
    parser.add_argument("--history", type=pathlib.Path, metavar="FILE", help="append this run to these JSON lines; the page shows them")
    options = parser.parse_args(arguments)
    check(parser, options)
    options.points = [p for p in chosen_points(parser, options) if wanted(p.name, options.filters)]
    if not options.points:
        parser.error("no program has such a name; --list has them")
    check_files(parser, (options.json, options.page, options.history))
    try:
        options.entries = figures.read_history(options.history) if options.history else []
    except ValueError as problem:
        parser.error(f"--history: {problem}")
    return options


def chosen_points(parser, options):
    """Checks --draw, --count and --all, makes numbers of them, and returns all the programs that they choose."""
    if options.draw is None:
        if options.count is not None:
            parser.error("--count: only with --draw")
        return [p for family in families.FAMILIES for p in families.points(family, options.all)]
    if options.all:
        parser.error("--all: not with --draw")
    try:
        options.draw = draw.read_number(options.draw, "--draw", 0, draw.LARGEST_SEED)
        options.count = draw.DEFAULT_COUNT if options.count is None else draw.read_number(options.count, "--count", 1, draw.MOST)
    except ValueError as problem:
        parser.error(str(problem))
    return draw.points(options.draw, options.count)


def show(row, done, total):
    if "ratio" not in row:
        line = f"failed: {row['error'][:120]}"
    else:
        line = (f"{row['ratio']:7.2f} {row['of_limit']:9.2g} {row['peer_of_limit']:9.2g} {row['spread']:7.0%} "
                f"{row['peer_compile_seconds'] / row['compile_seconds']:9.2f}" + ("" if row["agrees"] else f"  RESULTS DIFFER: {row['difference']:.1e}"))
    print(f"{row['name']:<{WIDTH}} {line}", flush=True)
    if sys.stderr.isatty():
        print(f"\r{done} of {total}", end="\r", file=sys.stderr, flush=True)


def run(options):
    # This must happen before JAX is loaded, because both sides determine their number of threads when they start.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    os.environ["COLLET_CPU_THREADS"] = str(options.threads)
    os.environ.update(JAX_PLATFORMS="collet,cpu", COLLET_FALLBACK=os.environ.get("COLLET_FALLBACK", "none"))
    import jax
    import jaxlib

    import measure
    if options.draw is None:
        from programs import build
    else:
        from draw_programs import build
    limits = measure.Limits(os.environ["COLLET_TOOL"], options.threads)
    ours, peer = jax.devices("collet")[0], jax.devices("cpu")[0]
    print(f"{compare_page.threads(limits.machine)}, {limits.machine['gflops']:.0f} GFLOP/s ({limits.machine['vectors']}); ratios to XLA:CPU, jaxlib {jaxlib.__version__}\n")
    print(f"{'program':<{WIDTH}} {'ratio':>7} {'of limit':>9} {'XLA has':>9} {'spread':>7} {'compiles':>9}")
    rows = []
    for done, point in enumerate(options.points, 1):
        row = measure.compare(point, build, ours, peer, limits, options.seconds)
        jax.clear_caches()
        # A draw may have programs that XLA:CPU cannot run, so that there is nothing to compare with; the table has none.
        if row is not None and not (options.draw is not None and row.get("failed") == "peer"):
            rows.append(row)
            show(row, done, len(options.points))
    return {"commit": figures.commit(pathlib.Path(__file__).parent), "time": figures.now(), "jaxlib": jaxlib.__version__,
            "machine": limits.machine | {"processor": figures.processor()}, "draw": options.draw, "rows": rows}


def main(arguments):
    options = parse(arguments)
    if options.list:
        print("\n".join(point.name for point in options.points))
        return 0
    report = run(options)
    rows = report["rows"]
    print()
    for name, group in figures.by_family(rows).items():
        print(f"{name:<{WIDTH}} {figures.geometric_mean(r['ratio'] for r in figures.ran(group)):7.2f}   geometric mean of {len(figures.ran(group))}")
    print(f"\n{compare_page.verdict(rows)}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.history and figures.ran(rows):
        figures.append_history(options.history, figures.history_entry(report))
        options.entries.append(figures.history_entry(report))
    if options.page:
        options.page.write_text(compare_page.write(report, options.entries))
    good = all("ratio" in row and row["agrees"] and row["ratio"] >= options.least for row in rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
