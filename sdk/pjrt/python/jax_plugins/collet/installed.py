# SPDX-License-Identifier: Apache-2.0
"""Finds this package's libraries, and collects the options of a client. The packages of all frontends contain this file."""
import os
import pathlib

from . import settings

LIBRARIES = pathlib.Path(__file__).parent / "lib"


def library() -> pathlib.Path:
    """Returns the path of the PJRT library: this package's own, or that of a build tree, given by COLLET_PJRT_LIBRARY."""
    path = pathlib.Path(os.environ.get("COLLET_PJRT_LIBRARY") or LIBRARIES / "libcollet_pjrt.so")
    if not path.is_file():
        raise FileNotFoundError(f"there is no PJRT library at {path}; COLLET_PJRT_LIBRARY can name one")
    return path


def client_options(platform: str) -> dict:
    """Returns the client's options, which sdk/pjrt/settings.cc reads; there the environment takes precedence."""
    backend = {"backend": str(LIBRARIES / "collet" / "backends" / settings.BACKEND)} if settings.BACKEND else {}
    return {"platform_name": platform, **backend, **settings.OPTIONS}
