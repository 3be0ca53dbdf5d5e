# SPDX-License-Identifier: Apache-2.0
"""Registers Collet's PJRT plugin with JAX: the platform, its donation and its lowerings.

Environment variables select the backend: COLLET_BACKEND (a backend's name), COLLET_DEVICES, COLLET_FALLBACK, and, for a build tree,
COLLET_PJRT_LIBRARY (the library's path). A vendor's package calls `register` with a name and options of its own.
"""
import os
import pathlib
import types
import warnings

from . import analysis, callbacks, extensions, foreign, installed, lowerings, private, settings


def register(name: str, library: pathlib.Path, options: dict | None = None) -> None:
    """Makes `library` JAX's platform `name`; `options` go to the client (sdk/pjrt/settings.cc reads them)."""
    extensions.Library(library)  # its error says more than what JAX makes of a library without a table
    private.register_plugin(name, priority=400, library_path=str(library), options={"platform_name": name, **(options or {})})
    lowerings.register(name)
    private.attempt("the donation of arrays", _allow_donation, name)
    private.attempt("Python callbacks in programs", callbacks.register, name, library)
    private.attempt("jax.ffi", foreign.register, name, library)
    private.attempt("the cost analysis of lowered programs", analysis.register, name)
    private.attempt("JAX's compilation cache", _use_compilation_cache, name)
    private.attempt("JAX's cpu beside this platform", _keep_cpu, name)


def _allow_donation(platform: str) -> None:
    if platform not in private.platforms_with_donation:
        private.platforms_with_donation.append(platform)


def _keep_cpu(platform: str) -> None:
    """Adds JAX's cpu platform if JAX_PLATFORMS names only this platform.

    JAX puts the arguments of Python callbacks, and numpy arrays that loops pass through, on a device of its cpu, and fails
    without one. This platform stays the default; only programs that request the cpu by name run there. COLLET_JAX_CPU=0 omits it.
    """

    registration = private.backend_factories[platform]
    make = registration.factory

    def make_beside_cpu():
        client = make()
        alone = private.jax_platforms.value == platform and os.environ.get("COLLET_JAX_CPU") != "0"
        if alone and "cpu" not in private.backends:
            private.backends["cpu"] = private.init_backend("cpu")
        return client

    registration.factory = make_beside_cpu


def _use_compilation_cache(platform: str) -> None:
    """Adds the platform to those for which JAX keeps executables on disk."""
    original = private.compilation_cache.is_cache_used

    def is_cache_used(backend):
        return original(types.SimpleNamespace(platform="cpu") if backend.platform == platform else backend)

    private.compilation_cache.is_cache_used = is_cache_used


def _register_failure(name: str, error: Exception) -> None:
    """Makes the platform `name` one whose use raises the error. Otherwise JAX says that it knows no such platform, and why is lost among
    the messages of the start."""
    warnings.warn(f"collet: the platform {name} cannot be used: {error}", RuntimeWarning, stacklevel=3)

    def fail():
        raise RuntimeError(f"the platform {name} could not be registered: {error}") from error

    private.register_backend_factory(name, fail, priority=-1, fail_quietly=True)


def initialize() -> None:
    """Called by JAX when it looks for plugins."""
    name = os.environ.get("COLLET_PLATFORM_NAME", settings.PLATFORM)
    try:
        register(name, installed.library(), installed.client_options(name))
    except Exception as error:
        if name in private.backend_factories:
            raise  # the platform is there, and JAX reports what it lacks
        _register_failure(name, error)
