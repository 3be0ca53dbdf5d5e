# SPDX-License-Identifier: Apache-2.0
"""Writes the page of a comparison with XLA:CPU."""
import figures
import page

SLOW = 0.95  # below this share of the peer's speed a case counts as slower


def threads(machine):
    return f"{machine['threads']} thread" + ("" if machine["threads"] == 1 else "s")


def verdict(rows):
    found = figures.ran(rows)
    slow = sum(row["ratio"] < SLOW for row in found)
    wrong = sum(not row["agrees"] for row in found)
    words = f"{page.number(figures.geometric_mean(r['ratio'] for r in found))} times XLA:CPU over {len(found)} programs; {slow} below {SLOW}"
    if len(found) < len(rows):
        words += f"; {len(rows) - len(found)} failed"
    return words + (f"; results of {wrong} differ" if wrong else "; results agree")


def roofline(report):
    """A roofline chart: programs with arithmetic, compared with the peak speed and the bandwidths of the nearest cache and of memory."""
    rows = [row for row in figures.ran(report["rows"]) if row["flops"] > 0]
    if not rows:
        return ""
    machine = report["machine"]
    intensity = [row["flops"] / row["bytes"] for row in rows]
    speeds = [row["flops"] / row[side] / 1e9 for row in rows for side in ("seconds", "peer_seconds")]
    x_range, y_range = page.decades(intensity), page.decades(speeds + [machine["gflops"]])
    plot = page.Plot(x_range, y_range, "multiply-adds, counted as two, a byte", "GFLOP/s")
    roofs = [max(row["gbytes"] for row in machine["bandwidth"]), machine["bandwidth"][-1]["gbytes"]]
    for bandwidth, name in zip(roofs, ("nearest cache", "memory")):
        ridge = machine["gflops"] / bandwidth
        start = max(x_range[0], y_range[0] / bandwidth)
        corners = [(start, start * bandwidth), (min(max(ridge, x_range[0]), x_range[1]), machine["gflops"]), (x_range[1], machine["gflops"])]
        plot.line(corners, "currentColor", 1.2, "" if name == "memory" else "4 3", f"{name}: {bandwidth:.0f} GB/s")
    for side, colour, name in (("peer_seconds", "var(--peer)", "XLA:CPU"), ("seconds", "var(--ours)", "Collet")):
        plot.dots([(row["flops"] / row["bytes"], row["flops"] / row[side] / 1e9,
                    f"{row['name']}, {name}: {page.number(row['flops'] / row[side] / 1e9)} GFLOP/s") for row in rows], colour)
    return page.section("Roofline", plot.figure(
        f"Blue: Collet; amber: XLA:CPU. The roof: {machine['gflops']:.0f} GFLOP/s, and the bandwidth of memory (line) and of the nearest "
        f"cache (dashes) in this run. Bytes are those of arguments and results. Only programs of products, transforms and factorizations."))


def history(entries, report):
    """A chart of the geometric means of earlier runs of the same table or draw on the same machine with the same number of threads."""
    machine = report["machine"]
    same = (machine["processor"], machine["threads"], report.get("draw"))
    mine = [e for e in entries if (e["machine"], e["threads"], e.get("draw")) == same]
    if len(mine) < 2:
        return ""
    families = sorted({name for entry in mine for name in entry["families"]})
    values = [v for entry in mine for v in (entry["ratio"], *entry["families"].values()) if v > 0]
    low, high = min(values) / 1.2, max(values) * 1.2
    plot = page.Plot((0, len(mine) - 1), (low, high), "runs, the oldest first", "times XLA:CPU", x_log=False)
    for name in families:
        plot.line([(i, e["families"][name]) for i, e in enumerate(mine) if e["families"].get(name, 0) > 0], "var(--skip)", 1, label=name)
    plot.line([(0, 1), (len(mine) - 1, 1)], "currentColor", 1, "4 3", "as fast as XLA:CPU")
    plot.line([(i, e["ratio"]) for i, e in enumerate(mine)], "var(--ours)", 2.5, label="all")
    plot.dots([(i, e["ratio"], f"{e['commit']} {e['time']}: {page.number(e['ratio'])}") for i, e in enumerate(mine)], "var(--ours)", 3.5)
    rows = [(e["commit"], e["time"], page.number(e["ratio"]), str(e["cases"])) for e in reversed(mine[-12:])]
    return page.section("History", plot.figure("Blue: the geometric mean of all programs; grey: of each family.") +
                        page.table(("commit", "time", "#times XLA:CPU", "#programs"), rows))


def row_cells(row):
    if "ratio" not in row:
        return (row["name"], ("failed", "bad"), "", "", "", "", "", (row["error"], "words"))
    note = "" if row["agrees"] else f"results differ by {row['difference']:.1e}"
    return (row["name"], (page.number(row["ratio"]), "bad" if row["ratio"] < SLOW else "good"), page.duration(row["seconds"]),
            page.duration(row["peer_seconds"]), page.number(row["of_limit"]), page.number(row["peer_of_limit"]),
            page.number(row["peer_compile_seconds"] / row["compile_seconds"]), (note, "bad"))


def write(report, entries):
    """Returns the page's HTML. `entries`: the history, including this run."""
    rows, machine = report["rows"], report["machine"]
    found = figures.by_family(rows)
    means = [(name, figures.geometric_mean(r["ratio"] for r in figures.ran(group))) for name, group in found.items()]
    intro = (f'<p class="verdict">{page.escaped(verdict(rows))}</p>\n<p>{page.escaped(machine["processor"])}, {threads(machine)} for '
             f'both, {machine["gflops"]:.0f} GFLOP/s of f32 multiply-adds ({page.escaped(machine["vectors"])}); jaxlib '
             f'{page.escaped(report["jaxlib"])}; commit <code>{page.escaped(report["commit"])}</code>, {page.escaped(report["time"])}.</p>')
    if report.get("draw") is not None:
        intro += f'\n<p>Programs drawn at random: <code>./dev bench --jax --draw {report["draw"]}</code>.</p>'
    sections = [page.section("Families", page.ratio_bars(sorted(means, key=lambda m: -m[1])),
                             "How many times faster than XLA:CPU: geometric means, on a logarithmic scale from an eighth to eight times. The line is 1.")]
    sections += [part for part in (roofline(report), history(entries, report)) if part]
    slow = sorted((row for row in figures.ran(rows) if row["ratio"] < SLOW), key=lambda row: row["ratio"])[:20]
    if slow:
        sections.append(page.section("The slowest beside XLA:CPU", page.ratio_bars([(row["name"], row["ratio"]) for row in slow])))
    head = ("program", "#times XLA", "#Collet", "#XLA", "#of limit", "#XLA's", "#compiles", "")
    body = "".join(f"<details open><summary>{page.escaped(name)}</summary>\n" + page.table(head, map(row_cells, group)) + "</details>\n"
                   for name, group in found.items())
    sections.append(page.section("Programs", body, "Medians of samples in turns. Of limit: the machine's own time for the multiply-adds, or to "
                                 "read the arguments and write the results once, divided by the time taken. Compiles: XLA's time "
                                 "to compile divided by ours."))
    return page.page("Collet and XLA:CPU", intro, sections, "./dev bench --jax")
