# SPDX-License-Identifier: Apache-2.0
"""Measures how cost grows: that of each family's programs with their size, and that of compiling with the number of instructions, nested loops and constants.

Time is the processor time of all threads, so that other processes have little influence. The exponent
that fits the larger sizes is compared with the known one, and faster growth is reported. Exit code 1: a cost grows faster than
expected, or a program failed.
"""
import json
import multiprocessing
import os
import pathlib
import sys
import tempfile
import time

import families
import figures
import modules
import page
from options import check, check_files, new_parser, wanted

COMPILE = "compile"


def parse(arguments):
    parser = new_parser("--scaling", __doc__, "series")
    parser.add_argument("--most", type=int, default=100000, metavar="N", help="instructions of the largest module (%(default)s; 1000000 takes long)")
    parser.add_argument("--seconds", type=float, default=0.2, help="measuring time of each size (%(default)s)")
    parser.add_argument("--limit", type=float, default=60, help="seconds that one size may take; larger ones are then left out (%(default)s)")
    parser.add_argument("--page", type=pathlib.Path, metavar="FILE", help="a self-contained web page")
    options = parser.parse_args(arguments)
    check(parser, options)
    if not 100 <= options.most <= 10 ** 7:
        parser.error("--most: from 100 to 10000000")
    if not 0 < options.limit < 36000:
        parser.error("--limit: more than 0")
    options.kinds = [kind for kind in modules.KINDS if wanted(f"{COMPILE}/{kind.name}", options.filters)]
    options.variants = [(f, v) for f in families.FAMILIES for v in f.variants if wanted(f"{f.name}/{v}", options.filters)]
    if not options.kinds and not options.variants:
        parser.error("nothing has such a name; --list has them")
    check_files(parser, (options.json, options.page))
    return options


def series(name, what, size_is, expected, points, error=""):
    """Returns one curve with points (size, cost)."""
    fitted = figures.tail_slope(points) if len(points) >= 3 else None
    row = {"name": name, "of": what, "size_is": size_is, "points": points, "expected": expected, "exponent": fitted,
           "verdict": "failed" if error else figures.verdict(fitted, expected) if fitted is not None else "too few sizes"}
    return row | ({"error": error} if error else {})


def run_variant(family, variant, device, options):
    """Measures the time of one execution at each size of the ladder."""
    import jax

    import measure
    import programs
    points, error = [], ""
    for point in families.ladder(family, variant):
        begun = time.perf_counter()
        try:
            with measure.precision(point):
                program = programs.build(point)
                if program is None:
                    return None
                side = measure.Side(program, device)
                side.warm()
                samples, end = [], time.perf_counter() + options.seconds
                while time.perf_counter() < end or len(samples) < 3:
                    samples.append(side.sample(time.process_time))
        except Exception as problem:  # the other sizes and families must still be measured
            error = f"n={point.n}: {str(problem).strip().splitlines()[0][:200]}"
            break
        points.append((point.n, min(samples)))
        jax.clear_caches()
        if time.perf_counter() - begun > options.limit:
            break
    return series(f"{family.name}/{variant}", "time", family.size_is, family.exponent_of(variant), points, error)


def write_module(kind, size, file):
    """Writes the text of a module. A process of its own makes it: Linux counts what the parent takes as the peak of a new process too."""
    writer = multiprocessing.get_context("fork").Process(target=lambda: file.write_text(kind.text(size)))
    writer.start()
    writer.join()
    if writer.exitcode:
        raise RuntimeError(f"{file} could not be written")


def run_child(command, folder):
    """Runs a command; returns (exit code, seconds, processor seconds, peak bytes, stdout, first line of stderr)."""
    out, err = folder / "out", folder / "err"
    begun = time.perf_counter()
    actions = [(os.POSIX_SPAWN_OPEN, fd, str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) for fd, path in ((1, out), (2, err))]
    process = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(process, 0)
    seconds = time.perf_counter() - begun
    said = (err.read_text().strip().splitlines() or [""])[0]
    return os.waitstatus_to_exitcode(status), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, out.read_text(), said


def run_kind(kind, options):
    """The processor's time of a command that reads, compiles and runs once, and the peak memory of a process beyond that of the smallest module's, at each size: two rows."""
    tool, times, compile_seconds, peaks, error = os.environ["COLLET_TOOL"], [], [], [], ""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        file = folder / "module.hlo"
        for size in kind.up_to(options.most):
            write_module(kind, size, file)
            code, seconds, busy, peak, out, said = run_child([tool, "run", str(file), "--inputs", "zeros", "--json", "-", "--timeout",
                                                        str(10 * options.limit)], folder)
            if code:
                error = f"{size} {kind.size_is}: exit code {code}: {said[:200]}"
                break
            times.append((size, busy))
            compile_seconds.append((size, json.loads(out)["compile_seconds"]))
            peaks.append((size, peak))
            if seconds > options.limit:
                break
    beyond = [(size, peak - peaks[0][1]) for size, peak in peaks[1:]]
    # Memory of less than a hundredth of the process's is noise.
    beyond = [(size, extra) for size, extra in beyond if extra > peaks[0][1] / 100]
    name = f"{COMPILE}/{kind.name}"
    memory = series(name, "memory", kind.size_is, kind.exponent, beyond)
    return [series(name, "time", kind.size_is, kind.exponent, times, error) | {"compile_seconds": compile_seconds},
            memory | {"peaks": peaks}]


def cost_text(row):
    """Returns the cost at the largest size, and the cost of one more unit of size there."""
    if not row["points"]:
        return "-", "-"
    size, cost = row["points"][-1]
    show = page.duration if row["of"] == "time" else lambda amount: f"{page.number(amount / 1e6)} MB"
    return show(cost), show(cost / size) if row["of"] == "time" else f"{page.number(cost / size / 1e3)} kB"


def show(row):
    fitted = "-" if row["exponent"] is None else f"{row['exponent']:.2f}"
    sizes = f"{row['points'][0][0]} ... {row['points'][-1][0]}" if row["points"] else "-"
    print(f"{row['name']:<34} {row['of']:<7} {sizes:>20} {row['expected']:>8g} {fitted:>7}  {row['verdict']}"
          + (f": {row['error']}" if "error" in row else ""), flush=True)


def curves(rows):
    """Draws the rows of one family in one chart: size and cost as multiples of the smallest ones."""
    rows = [row for row in rows if len(row["points"]) >= 2]
    if not rows:
        return ""
    scaled = [[(x / row["points"][0][0], y / row["points"][0][1]) for x, y in row["points"]] for row in rows]
    x_range, y_range = (page.decades([point[axis] for line in scaled for point in line]) for axis in (0, 1))
    plot = page.Plot(x_range, y_range, "times the smallest size", "times its cost")
    for exponent in sorted({row["expected"] for row in rows}):
        end = min(x_range[1], y_range[1] ** (1 / exponent))
        plot.line([(1, 1), (end, end ** exponent)], "currentColor", 1, "4 3", f"size to the power of {exponent:g}")
    for row, line in zip(rows, scaled):
        colour = "var(--bad)" if row["verdict"] == "worse" else "var(--ours)"
        plot.line(line, colour, 1.5, label=f"{row['name']}, {row['of']}: exponent {page.number(row['exponent'])}")
        plot.dots([(x, y, f"{row['name']}, {row['of']}, {x:g} times the size: {y:.3g} times the cost") for x, y in line], colour, 2)
    return plot.figure("Dashes: the known complexity. Red: what grows faster.")


def write_page(report):
    rows = report["rows"]
    bad = [row for row in rows if row["verdict"] in ("worse", "failed")]
    verdict = f"{len(rows)} curves; {sum(r['verdict'] == 'worse' for r in bad)} grow faster than their known complexity, " \
              f"{sum(r['verdict'] == 'failed' for r in bad)} failed"
    intro = (f'<p class="verdict">{page.escaped(verdict)}</p>\n<p>{page.escaped(report["processor"])}, {report["threads"]} threads; commit '
             f'<code>{page.escaped(report["commit"])}</code>, {page.escaped(report["time"])}. The exponent is that of the larger two thirds of the '
             f"sizes; more than {figures.MARGIN} above the known one counts as faster, so that a logarithm and leaving a cache do not.</p>")
    head = ("what", "of", "#sizes", "#known", "#fitted", "#at the largest", "#a unit", "")
    sections = []
    for name in dict.fromkeys(row["name"].split("/")[0] for row in rows):
        group = [row for row in rows if row["name"].split("/")[0] == name]
        cells = [(row["name"], row["of"], f"{row['points'][0][0]} ... {row['points'][-1][0]}" if row["points"] else "-", f"{row['expected']:g}",
                  page.number(row["exponent"]), *cost_text(row),
                  (row.get("error", row["verdict"]), {"worse": "bad", "failed": "bad words", "as expected": "good"}.get(row["verdict"], ""))) for row in group]
        charts = curves([row for row in group if row["of"] == "time"]) + curves([row for row in group if row["of"] == "memory"])
        sections.append(page.section(name, charts + page.table(head, cells)))
    return page.page("How cost grows", intro, sections, "./dev bench --scaling")


def main(arguments):
    options = parse(arguments)
    if options.list:
        print("\n".join([f"{f.name}/{v}" for f, v in options.variants] + [f"{COMPILE}/{kind.name}" for kind in options.kinds]))
        return 0
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    os.environ.update(COLLET_CPU_THREADS=str(options.threads), JAX_PLATFORMS="collet", COLLET_FALLBACK=os.environ.get("COLLET_FALLBACK", "none"))
    rows = []
    print(f"{'what':<34} {'of':<7} {'sizes':>20} {'known':>8} {'fitted':>7}")
    for kind in options.kinds:
        for row in run_kind(kind, options):
            rows.append(row)
            show(row)
    if options.variants:
        import jax
        device = jax.devices("collet")[0]
        for family, variant in options.variants:
            row = run_variant(family, variant, device, options)
            if row is not None:
                rows.append(row)
                show(row)
    report = {"commit": figures.commit(pathlib.Path(__file__).parent), "time": figures.now(), "processor": figures.processor(),
              "threads": options.threads, "margin": figures.MARGIN, "rows": rows}
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.page:
        options.page.write_text(write_page(report))
    bad = [row for row in rows if row["verdict"] in ("worse", "failed")]
    print(f"\n{len(rows)} curves, {len(bad)} grow faster than their known complexity or failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
