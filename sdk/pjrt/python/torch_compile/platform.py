# SPDX-License-Identifier: Apache-2.0
"""JAX's platform for a Collet device: that of an installed package for JAX, or one that this package registers."""
import functools
import importlib.util
import os
import pathlib

import jax

from . import settings
from .jax_plugin import installed, register

# The libraries lie in the package for PyTorch/XLA, which the same wheel holds.
_LIBRARIES = pathlib.Path(__file__).parents[1] / "torch_xla_plugins" / settings.PLATFORM / "lib"


@functools.cache
def device():
    """Returns the device on which graphs run: the first one of the platform."""
    name = os.environ.get("COLLET_PLATFORM_NAME", settings.PLATFORM)
    if not _has_plugin(name):
        installed.LIBRARIES = _LIBRARIES
        register(name, installed.library(), installed.client_options(name))
    return jax.devices(name)[0]


def _has_plugin(name):
    try:
        return importlib.util.find_spec(f"jax_plugins.{name}") is not None
    except ModuleNotFoundError:
        return False
