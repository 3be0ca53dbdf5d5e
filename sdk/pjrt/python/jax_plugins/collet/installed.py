# SPDX-License-Identifier: Apache-2.0
"""Where this package's libraries lie, and what a client is told. The packages of all frontends hold this file."""
import os
import pathlib

from . import settings

LIBRARIES = pathlib.Path(__file__).parent / "lib"


def library() -> pathlib.Path:
    """The PJRT library: this package's own, or that of a build tree, by COLLET_PJRT_LIBRARY."""
    path = pathlib.Path(os.environ.get("COLLET_PJRT_LIBRARY") or LIBRARIES / "libcollet_pjrt.so")
    if not path.is_file():
        raise FileNotFoundError(f"there is no PJRT library at {path}; COLLET_PJRT_LIBRARY can name one")
    return path


def client_options(platform: str) -> dict:
    """The client's options (sdk/pjrt/settings.cc reads them); the environment goes before them there."""
    backend = {"backend": str(LIBRARIES / "collet" / "backends" / settings.BACKEND)} if settings.BACKEND else {}
    return {"platform_name": platform, **backend, **settings.OPTIONS}
