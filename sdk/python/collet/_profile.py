# SPDX-License-Identifier: Apache-2.0
"""Profiles: what the library and devices did, and when."""
from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from collet import _abi
from collet._abi import lib, text
from collet._plan import _time

KINDS = {1: "compile", 2: "run", 3: "launch", 4: "copy", 5: "collective", 6: "host_call", 7: "device"}
_COLOURS = {"compile": "#8a63b5", "run": "#c5c5c5", "launch": "#2a7ab0", "copy": "#d9822b", "collective": "#b5475a",
            "host_call": "#7a7a7a", "device": "#3a9a5b"}
_ROW = 14
_MOST_DRAWN = 5000


class Span(NamedTuple):
    """An interval of time. `start_ns` is in nanoseconds since 1970, `thread` the system's number of the thread, `bytes` what was
    copied, `device` the device's number or None, `engine` the part of the device that it ran on, or ''."""
    kind: str
    name: str
    start_ns: int
    duration_ns: int
    thread: int
    run_id: int
    bytes: int
    device: int | None
    on_fallback: bool
    engine: str


class Profile:
    """Records the spans of the whole process in a `with` block. One profile at a time.

    `spans` has them in the order of their starts once the block has ended; those that a device recorded come at its end.
    """

    _active = threading.Lock()

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._found: list[Span] = []
        self._function = _abi.TraceFn(self._add)

    def _add(self, _user: int | None, pointer: Any) -> None:
        with _abi.Callback():
            span = pointer.contents
            self._found.append(Span(KINDS.get(span.kind, str(span.kind)), text(span.name), span.start_ns, span.duration_ns, span.thread,
                                    span.run_id, span.bytes, None if span.device == _abi.NONE else span.device,
                                    bool(span.on_fallback), text(span.engine)))

    def __enter__(self) -> "Profile":
        if not Profile._active.acquire(blocking=False):
            raise RuntimeError("there is a profile already: the library has one listener")
        self._found.clear()
        lib.collet_trace(self._function, None)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            lib.collet_trace(_abi.TraceFn(), None)
            self.spans = sorted(self._found, key=lambda span: (span.start_ns, -span.duration_ns))
        finally:
            Profile._active.release()

    def __iter__(self) -> Iterator[Span]:
        return iter(self.spans)

    def __len__(self) -> int:
        return len(self.spans)

    def total_ns(self, kind: str) -> int:
        """Returns the time of all spans of a kind: compile, run, launch, copy, collective, host_call or device."""
        if kind not in KINDS.values():
            raise ValueError(f"kind is one of {', '.join(KINDS.values())}, not {kind!r}")
        return sum(span.duration_ns for span in self.spans if span.kind == kind)

    def trace(self) -> dict[str, Any]:
        """Returns the spans in the format that Perfetto and chrome://tracing read; their times count from the first span's start."""
        first = min((span.start_ns for span in self.spans), default=0)  # microseconds since 1970 as a float would be exact to 250 ns
        events = []
        for span in self.spans:
            arguments = {key: getattr(span, key) for key in ("run_id", "bytes", "on_fallback", "engine") if getattr(span, key)}
            if span.device is not None:
                arguments["device"] = span.device
            events.append({"ph": "X", "cat": span.kind, "name": span.name or span.kind, "ts": (span.start_ns - first) / 1e3,
                           "dur": span.duration_ns / 1e3, "pid": os.getpid(), "tid": _lane(span), "args": arguments})
        return {"traceEvents": events, "displayTimeUnit": "ns"}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes trace() to a file."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.trace(), file)

    def __repr__(self) -> str:
        return f"<collet.Profile of {len(self.spans)} spans>"

    def _repr_html_(self) -> str:
        if not self.spans:
            return "<div>no spans</div>"
        first = self.spans[0].start_ns
        length = max(1, max(span.start_ns + span.duration_ns for span in self.spans) - first)
        lanes: dict[object, list[list[Span]]] = {}
        drawn = sorted(self.spans, key=lambda span: -span.duration_ns)[:_MOST_DRAWN]
        for span in sorted(drawn, key=lambda span: (span.start_ns, -span.duration_ns)):
            rows = lanes.setdefault(_lane(span), [])
            for row in rows:  # the first row in which it does not overlap
                if row[-1].start_ns + row[-1].duration_ns <= span.start_ns:
                    row.append(span)
                    break
            else:
                rows.append([span])
        shapes, y = [], 0
        for lane, rows in lanes.items():
            shapes.append(f"<text x='2' y='{y + 11}' font-size='11' fill='currentColor'>{escape(str(lane))}</text>")
            y += _ROW
            for row in rows:
                for span in row:
                    x, width = 100 * (span.start_ns - first) / length, max(0.05, 100 * span.duration_ns / length)
                    shapes.append(f"<rect x='{x:.3f}%' y='{y}' width='{width:.3f}%' height='{_ROW - 2}' fill='{_COLOURS[span.kind]}'>"
                                  f"<title>{escape(span.kind)}: {escape(span.name)}, {_time(span.duration_ns)}</title></rect>"
                                  if span.kind in _COLOURS else "")
                y += _ROW
        kinds = [kind for kind in KINDS.values() if any(span.kind == kind for span in self.spans)]
        legend = " ".join(f"<span style='color:{_COLOURS[kind]}'>&#9632;</span> {kind} {_time(self.total_ns(kind))}" for kind in kinds)
        left_out = f" The {_MOST_DRAWN} longest of {len(self.spans)} spans are drawn." if len(self.spans) > _MOST_DRAWN else ""
        return (f"<div>{_time(length)}: {legend}.{left_out}<br><svg width='100%' height='{y}' role='img' aria-label='timeline'>"
                f"{''.join(shapes)}</svg></div>")


def _lane(span: Span) -> object:
    """Returns what a span is drawn for: a device's engine, or a thread."""
    if span.kind == "device":
        return f"device {0 if span.device is None else span.device} {span.engine}".rstrip()
    return span.thread


def profile() -> Profile:
    """Records what the library does: `with collet.profile() as p: ...`, then p.spans."""
    return Profile()
