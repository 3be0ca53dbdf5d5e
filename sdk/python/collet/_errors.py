# SPDX-License-Identifier: Apache-2.0
"""Errors of the library as exceptions."""
from __future__ import annotations

import enum
import re


class Code(enum.IntEnum):
    """Says what kind of failure it was; the numbers are those of collet_status."""
    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15


_PLACE = re.compile(r"(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): (?:error: )?(?P<message>.*)", re.DOTALL)


class Place:
    """A place in a program's text: `file` as it was named when it was read, `line` and `column` from 1."""
    __slots__ = ("file", "line", "column")

    def __init__(self, file: str, line: int, column: int) -> None:
        self.file, self.line, self.column = file, line, column

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"Place({self.file!r}, {self.line}, {self.column})"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Error(Exception):
    """A call of the library failed.

    `code` is a Code, `message` the library's text, `place` the place in the program's text that it names, or None, and `details`
    all messages with their source lines, where a program was read; else ''.
    """

    def __init__(self, code: int, message: str, details: str = "") -> None:
        super().__init__(message)
        try:
            self.code: Code = Code(code)
        except ValueError:  # of a newer library
            self.code = Code.UNKNOWN
        self.message = message
        self.details = details
        found = _PLACE.match(message)
        self.place: Place | None = Place(found["file"], int(found["line"]), int(found["column"])) if found else None

    def __str__(self) -> str:
        return f"{self.code.name}: {self.details or self.message}"


class ToolError(Exception):
    """The tool `collet` could not do what it was asked for: `exit_code` (2 wrong usage, 3 input refused, 4 a backend or the
    system failed, 5 out of time) and `message`, what it printed to stderr."""

    def __init__(self, exit_code: int, message: str) -> None:
        super().__init__(f"collet ended with {exit_code}: {message}")
        self.exit_code, self.message = exit_code, message
