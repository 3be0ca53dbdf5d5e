# SPDX-License-Identifier: Apache-2.0
"""Registers Collet's PJRT plugin with JAX: the platform, its donation and its lowerings.

Environment variables select the backend: COLLET_BACKEND (a backend's name), COLLET_DEVICES, COLLET_FALLBACK, and, for a build tree,
COLLET_PJRT_LIBRARY (the library's path). A vendor's package calls `register` with a name and options of its own.
"""
import os
import pathlib
import types

from jax._src import compilation_cache
from jax._src import config
from jax._src import xla_bridge
from jax._src.interpreters import mlir

from . import analysis, callbacks, installed, lowerings, settings


def register(name: str, library: pathlib.Path, options: dict | None = None) -> None:
    """Makes `library` JAX's platform `name`; `options` go to the client (sdk/pjrt/settings.cc reads them)."""
    xla_bridge.register_plugin(name, priority=400, library_path=str(library),
                               options={"platform_name": name, **(options or {})})
    if name not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(name)
    lowerings.register(name)
    callbacks.register(name, library)
    analysis.register(name)
    _use_compilation_cache(name)
    _keep_cpu(name)


def _keep_cpu(platform: str) -> None:
    """Adds JAX's cpu platform if JAX_PLATFORMS names only this platform.

    JAX puts the arguments of Python callbacks, and numpy arrays that loops pass through, on a device of its cpu, and fails
    without one. This platform stays the default; only programs that request the cpu by name run there. COLLET_JAX_CPU=0 omits it.
    """

    registration = xla_bridge._backend_factories[platform]
    make = registration.factory

    def make_beside_cpu():
        client = make()
        alone = config.jax_platforms.value == platform and os.environ.get("COLLET_JAX_CPU") != "0"
        if alone and "cpu" not in xla_bridge._backends:
            xla_bridge._backends["cpu"] = xla_bridge._init_backend("cpu")
        return client

    registration.factory = make_beside_cpu


def _use_compilation_cache(platform: str) -> None:
    """Adds the platform to those for which JAX keeps executables on disk."""
    original = compilation_cache.is_cache_used

    def is_cache_used(backend):
        return original(types.SimpleNamespace(platform="cpu") if backend.platform == platform else backend)

    compilation_cache.is_cache_used = is_cache_used


def initialize() -> None:
    """Called by JAX when it looks for plugins."""
    name = os.environ.get("COLLET_PLATFORM_NAME", settings.PLATFORM)
    register(name, installed.library(), installed.client_options(name))
