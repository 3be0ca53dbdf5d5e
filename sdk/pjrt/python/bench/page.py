# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the benchmarks. Each is self-contained, without scripts, fonts or external files, like the conformance report.

The style is that of the conformance report, conformance/report/page.css, plus rules for the charts.
"""
import html
import math
import pathlib

STYLE = pathlib.Path(__file__).resolve().parents[4] / "conformance" / "report" / "page.css"

CHART_STYLE = """
:root { --ours: #2166ac; --peer: #c98a1b }
@media (prefers-color-scheme: dark) { :root { --ours: #6baed6; --peer: #e0b050 } }
section { break-inside: avoid } figure { margin: 1rem 0; overflow-x: auto } svg { max-width: 42rem; width: 100%; height: auto }
svg text { font: 11px system-ui, sans-serif; fill: currentColor } svg .axis { stroke: currentColor; stroke-opacity: .35; fill: none }
svg .grid { stroke: currentColor; stroke-opacity: .12 } figcaption { opacity: .75 }
.bars { display: grid; grid-template-columns: minmax(6.5rem, 11rem) 1fr 3.6rem; gap: .15rem .6rem; align-items: center; max-width: 46rem }
.bars b { font-weight: 400; overflow-wrap: anywhere } .bars span { text-align: right; font-variant-numeric: tabular-nums }
.track { position: relative; height: .95rem; background: var(--line) } .track i { position: absolute; top: 0; bottom: 0 }
.track u { position: absolute; top: -.1rem; bottom: -.1rem; width: 2px; background: currentColor; left: 50% }
.scroll { overflow-x: auto } summary { cursor: pointer; font-weight: 600; margin-top: .8rem }
.scroll td, .scroll th { white-space: nowrap } .scroll td.words { white-space: normal; min-width: 12rem }
@media print { body { max-width: none; margin: 0; font-size: 11px } a { color: inherit } * { print-color-adjust: exact; -webkit-print-color-adjust: exact } }
"""


def escaped(text):
    return html.escape(str(text), quote=True)


def number(value, digits=2):
    """Formats a number briefly for tables: 0.034, 1.27, 12.7, 1270."""
    if value is None or value != value:
        return "-"
    if math.isinf(value):
        return "inf"
    if value == 0:
        return "0"
    return f"{value:.{digits}g}" if abs(value) < 0.1 else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 100 \
        else f"{value:.0f}"


def duration(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{number(seconds / size)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def page(title, intro, sections, command):
    """Returns the whole page. `intro` and `sections` are HTML; `command` is the command that wrote the page."""
    return (f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escaped(title)}</title>\n'
            f"<style>\n{STYLE.read_text()}{CHART_STYLE}</style>\n<h1>{escaped(title)}</h1>\n{intro}\n" + "\n".join(sections) +
            f"\n<footer>Written by <code>{escaped(command)}</code>.</footer>\n</html>\n")


def section(title, body, note=""):
    note = f"<p>{note}</p>\n" if note else ""
    return f"<section>\n<h2>{escaped(title)}</h2>\n{note}{body}</section>"


def table(head, rows):
    """Returns a table. `head`: names of columns, with a leading # for columns of numbers; `rows`: cells as text or (text, class)."""
    kinds = ["n" if name.startswith("#") else "" for name in head]
    out = ['<div class="scroll"><table>\n<tr>' + "".join(f'<th class="{k}">{escaped(name.lstrip("#"))}' for k, name in zip(kinds, head))]
    for row in rows:
        cells = []
        for kind, cell in zip(kinds, row):
            text, extra = cell if isinstance(cell, tuple) else (cell, "")
            cells.append(f'<td class="{(kind + " " + extra).strip()}">{escaped(text)}')
        out.append("<tr>" + "".join(cells))
    return "\n".join(out) + "\n</table></div>\n"


def ratio_bars(rows, most=8.0):
    """Draws bars on a logarithmic scale around 1 for (name, ratio): green to the right for ratios above 1, red to the left below 0.95."""
    out = []
    for name, ratio in rows:
        share = max(-1.0, min(1.0, math.log(ratio) / math.log(most))) * 50 if ratio > 0 else 0
        kind = "p" if ratio >= 1 else "f" if ratio < 0.95 else "u"
        left, width = (50, share) if share >= 0 else (50 + share, -share)
        out.append(f'<b>{escaped(name)}</b><div class="track"><i class="{kind}" style="left:{left:.2f}%;width:{width:.2f}%"></i><u></u>'
                   f"</div><span>{number(ratio)}</span>")
    return '<div class="bars">\n' + "\n".join(out) + "\n</div>\n"


class Plot:
    """A chart with logarithmic or linear axes, as SVG."""
    WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 460, 300, 46, 36, 10, 24

    def __init__(self, x_range, y_range, x_name, y_name, x_log=True, y_log=True):
        self.x_range, self.y_range, self.x_log, self.y_log = x_range, y_range, x_log, y_log
        self.parts = [f'<svg viewBox="0 0 {self.WIDTH} {self.HEIGHT}" role="img">']
        self._axes(x_name, y_name)

    def x(self, value):
        return self.LEFT + self._share(value, self.x_range, self.x_log) * (self.WIDTH - self.LEFT - self.RIGHT)

    def y(self, value):
        return self.HEIGHT - self.BOTTOM - self._share(value, self.y_range, self.y_log) * (self.HEIGHT - self.BOTTOM - self.TOP)

    @staticmethod
    def _share(value, limits, log):
        low, high = (math.log(v) for v in limits) if log else limits
        value = math.log(max(value, 1e-300)) if log else value
        return max(0.0, min(1.0, (value - low) / (high - low))) if high > low else 0.5

    @staticmethod
    def _ticks(limits, log):
        if not log:
            step = 10 ** math.floor(math.log10(max(limits[1] - limits[0], 1e-9) / 2))
            step *= next(k for k in (1, 2, 5, 10) if (limits[1] - limits[0]) / (step * k) <= 5)
            first = math.ceil(limits[0] / step)
            return [k * step for k in range(first, math.floor(limits[1] / step) + 1)]
        low, high = math.ceil(math.log10(limits[0]) - 1e-9), math.floor(math.log10(limits[1]) + 1e-9)
        skip = max(1, math.ceil((high - low + 1) / 7))
        return [10.0 ** k for k in range(low, high + 1, skip)]

    def _axes(self, x_name, y_name):
        bottom, right = self.HEIGHT - self.BOTTOM, self.WIDTH - self.RIGHT
        for tick in self._ticks(self.x_range, self.x_log):
            self.parts.append(f'<line class="grid" x1="{self.x(tick):.1f}" x2="{self.x(tick):.1f}" y1="{self.TOP}" y2="{bottom}"/>'
                              f'<text x="{self.x(tick):.1f}" y="{bottom + 14}" text-anchor="middle">{tick:g}</text>')
        for tick in self._ticks(self.y_range, self.y_log):
            self.parts.append(f'<line class="grid" x1="{self.LEFT}" x2="{right}" y1="{self.y(tick):.1f}" y2="{self.y(tick):.1f}"/>'
                              f'<text x="{self.LEFT - 4}" y="{self.y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
        self.parts.append(f'<path class="axis" d="M{self.LEFT} {self.TOP}V{bottom}H{right}"/>'
                          f'<text x="{(self.LEFT + right) / 2:.0f}" y="{self.HEIGHT - 5}" text-anchor="middle">{escaped(x_name)}</text>'
                          f'<text x="11" y="{bottom / 2:.0f}" text-anchor="middle" transform="rotate(-90 11 {bottom / 2:.0f})">'
                          f"{escaped(y_name)}</text>")

    def dots(self, points, colour, radius=2.6):
        """Draws dots for points (x, y, tooltip)."""
        for x, y, tip in points:
            self.parts.append(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius}" fill="{colour}" fill-opacity=".75">'
                              f"<title>{escaped(tip)}</title></circle>")
        return self

    def line(self, points, colour, width=1.5, dashes="", label=""):
        where = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{where}" fill="none" stroke="{colour}" stroke-width="{width}"'
                          f'{f" stroke-dasharray={chr(34)}{dashes}{chr(34)}" if dashes else ""}><title>{escaped(label)}</title></polyline>')
        return self

    def text(self, x, y, words, anchor="start"):
        self.parts.append(f'<text x="{self.x(x):.1f}" y="{self.y(y):.1f}" text-anchor="{anchor}">{escaped(words)}</text>')
        return self

    def figure(self, caption):
        return "<figure>\n" + "\n".join(self.parts) + f"\n</svg>\n<figcaption>{escaped(caption)}</figcaption>\n</figure>\n"


def decades(values, least=1):
    """Returns powers of ten that enclose the values."""
    values = [v for v in values if v > 0] or [1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-12)
    return 10.0 ** low, 10.0 ** max(high, low + least)
