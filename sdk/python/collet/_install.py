# SPDX-License-Identifier: Apache-2.0
"""Where Collet's files are: in the wheel beside this module, or in the installation or build that this module lies in."""
from __future__ import annotations

import pathlib

_LIBRARY = "libcollet.so.0"
_FOLDERS = ("lib", "lib64")


def _candidates() -> list[pathlib.Path]:
    here = pathlib.Path(__file__).parent
    found = [here / "sdk"]
    # PREFIX/lib/collet/python/collet, where a .deb has a link to it. The first is not resolved, because a build tree has a link to
    # the sources.
    for folder in (here, here.resolve()):
        if len(folder.parents) > 3:
            found.append(folder.parents[3])
    return found


def _find(what: str, *names: str) -> pathlib.Path:
    candidates = _candidates()
    for prefix in candidates:
        for name in names:
            if (prefix / name).exists():
                return prefix / name
    places = ", ".join(str(prefix / names[0]) for prefix in candidates)
    raise ImportError(f"collet: there is no {what}; looked for {places}")


def library() -> pathlib.Path:
    """Returns the path of libcollet."""
    return _find("library", *(f"{folder}/{_LIBRARY}" for folder in _FOLDERS))


def tool() -> pathlib.Path:
    """Returns the path of the program `collet`."""
    return _find("tool", "bin/collet")
