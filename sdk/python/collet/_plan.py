# SPDX-License-Identifier: Apache-2.0
"""The execution plan of an executable."""
from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

_COLOURS = {"device": "#2a7ab0", "fallback": "#d9822b", "host": "#7a7a7a"}


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _time(nanoseconds: float) -> str:
    for unit in ("ns", "us", "ms"):
        if nanoseconds < 1000:
            return f"{nanoseconds:.1f} {unit}"
        nanoseconds /= 1000
    return f"{nanoseconds:.2f} s"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Returns a table of cells that are HTML."""
    cell = "style='text-align:left;padding:2px 8px;vertical-align:top'"
    body = "".join("<tr>" + "".join(f"<td {cell}>{value}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{''.join(f'<th {cell}>{escape(name)}</th>' for name in head)}</tr></thead><tbody>{body}</tbody></table>"


class Plan:
    """What runs where, in which order, and why. `data` is the JSON object that `collet run --explain --json` prints as "plan"."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def module(self) -> str:
        return str(self.data["module"])

    @property
    def backend(self) -> str:
        return str(self.data["backend"])

    @property
    def device(self) -> str:
        return str(self.data["device"])

    @property
    def fallback(self) -> str:
        """The fallback's name; '' for none."""
        return str(self.data["fallback"])

    @property
    def device_ops(self) -> int:
        return int(self.data["device_ops"])

    @property
    def fallback_ops(self) -> int:
        return int(self.data["fallback_ops"])

    @property
    def crossing_bytes(self) -> int:
        """Bytes that are copied between device and fallback in one run."""
        return int(self.data["crossing_bytes"])

    @property
    def steps(self) -> list[dict[str, Any]]:
        return list(self.data["steps"])

    def instructions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields (side, instruction) of all steps and of those inside of them; side is device, fallback or host."""

        def visit(steps: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
            for step in steps:
                for instruction in step.get("instructions", ()):
                    yield str(step.get("side", "host")), instruction
                for value in step.values():
                    if isinstance(value, list) and value and isinstance(value[0], dict) and "step" in value[0]:
                        yield from visit(value)
                    elif isinstance(value, dict) and isinstance(value.get("steps"), list):
                        yield from visit(value["steps"])
                    elif isinstance(value, list) and value and isinstance(value[0], dict) and isinstance(value[0].get("steps"), list):
                        for inner in value:
                            yield from visit(inner["steps"])

        return visit(self.steps)

    def __repr__(self) -> str:
        return (f"<collet.Plan {self.module} on {self.backend}: {self.device_ops} ops on the device, "
                f"{self.fallback_ops} on the fallback>")

    def _repr_html_(self) -> str:
        steps = self.steps
        total = sum(float(step.get("cost_ns", 0)) for step in steps) or 1.0
        bar, rows, x = [], [], 0.0
        for number, step in enumerate(steps):
            side = str(step.get("side", "host"))
            cost = float(step.get("cost_ns", 0))
            width = 100 * cost / total
            colour = _COLOURS.get(side, _COLOURS["host"])
            bar.append(f"<rect x='{x:.3f}%' y='0' width='{width:.3f}%' height='16' fill='{colour}' stroke='white'>"
                       f"<title>{number}: {escape(str(step['step']))}, {_time(cost)}</title></rect>")
            x += width
            instructions = step.get("instructions", [])
            shown = [f"<code>{escape(str(i.get('fusion') or i.get('op', '')))}</code> {escape(str(i.get('type', '')))}"
                     + (f" <i>{escape(str(i['reason']))}</i>" if i.get("reason") else "") for i in instructions[:20]]
            if len(instructions) > 20:
                shown.append(f"and {len(instructions) - 20} more")
            rows.append([str(number), escape(str(step["step"])), f"<span style='color:{colour}'>{escape(side)}</span>",
                         str(step.get("ops", "")), _time(cost), _bytes(step["traffic_bytes"]) if "traffic_bytes" in step else "",
                         "<br>".join(shown)])
        title = (f"<b>{escape(self.module)}</b> on {escape(self.backend)} ({escape(self.device)}), "
                 f"{'fallback ' + escape(self.fallback) if self.fallback else 'no fallback'}: {self.device_ops} ops on the device, "
                 f"{self.fallback_ops} on the fallback, {_bytes(self.crossing_bytes)} cross")
        return (f"<div>{title}<br><svg width='100%' height='16' role='img' aria-label='estimated time of the steps'>{''.join(bar)}</svg>"
                + table(["", "step", "side", "ops", "estimated", "traffic", "instructions"], rows) + "</div>")
