# SPDX-License-Identifier: Apache-2.0
"""The private names of JAX that this package uses, with the versions of JAX in which they hold. No other file uses any.

`private.register_plugin` is the object of the table's entry `register_plugin`. A name that the installed JAX lacks raises
`Missing`, whose text names it; what needs that name is then left out, with a warning, and everything else is registered.
"""
import importlib
import inspect
import warnings

import jax


class Missing(Exception):
    """The installed JAX lacks a private name."""


def _version(text):
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


VERSION = _version(jax.__version__)

# name -> (module below jax._src or full name, attribute or None for the module itself, first version, first version without it or None). The versions are those of releases that were
# looked at: 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.0 and 0.12.0.1.
NAMES = {
    # the platform
    "register_plugin": ("xla_bridge", "register_plugin", "0.7", None),
    "register_backend_factory": ("xla_bridge", "register_backend_factory", "0.7", None),
    "backend_factories": ("xla_bridge", "_backend_factories", "0.7", None),
    "backends": ("xla_bridge", "_backends", "0.7", None),
    "init_backend": ("xla_bridge", "_init_backend", "0.7", None),
    "jax_platforms": ("config", "jax_platforms", "0.7", None),
    "platforms_with_donation": ("interpreters.mlir", "_platforms_with_donation", "0.7", None),
    "compilation_cache": ("compilation_cache", None, "0.7", None),
    # cost analysis
    "MeshComputation": ("interpreters.pxla", "MeshComputation", "0.7", None),
    "hlo_module_cost_analysis": ("lib", "_jax.hlo_module_cost_analysis", "0.7", None),
    # lowering
    "lower_fun": ("interpreters.mlir", "lower_fun", "0.7", None),
    "lower_with_sharding_in_types": ("interpreters.mlir", "lower_with_sharding_in_types", "0.7", None),
    "set_sharding": ("interpreters.mlir", "set_sharding", "0.7", None),
    "check_vma": ("config", "_check_vma", "0.7", None),
    "empty_mat": ("core", "empty_mat", "0.10", None),
    "is_constant_shape": ("core", "is_constant_shape", "0.7", None),
    # callbacks
    "callback": ("callback", None, "0.7", None),
    "abstract_token": ("core", "abstract_token", "0.7", None),
    "physical_aval": ("core", "physical_aval", "0.7", None),
    "canonicalize_value": ("dtypes", "canonicalize_value", "0.7", None),
    "build_ffi_lowering_function": ("ffi", "build_ffi_lowering_function", "0.7", None),
    "SdyArray": ("sharding_impls", "SdyArray", "0.7", None),
    "SdyArrayList": ("sharding_impls", "SdyArrayList", "0.7", None),
    "debug_callback_p": ("debugging", "debug_callback_p", "0.7", None),
    "debug_callback_lowering": ("debugging", "debug_callback_lowering", "0.7", None),
    "debug_print_p": ("debugging", "debug_print_p", "0.7", None),
    "debug_print_lowering": ("debugging", "debug_print_lowering_rule", "0.7", None),
    "check_p": ("checkify", "check_p", "0.7", None),
    "check_lowering": ("checkify", "check_lowering_rule", "0.7", None),
    # foreign functions
    "register_custom_call_handler": ("lib", "xla_client.register_custom_call_handler", "0.7", None),
    "register_custom_type_handler": ("lib", "xla_client.register_custom_type_handler", "0.8", None),
    "register_custom_type_id_handler": ("lib", "xla_client.register_custom_type_id_handler", "0.7", "0.8"),
    # linear algebra
    "spsolve_p": ("jax.experimental.sparse.linalg", "spsolve_p", "0.7", None),
    "spsolve_lowering": ("jax.experimental.sparse.linalg", "_spsolve_cpu_lowering", "0.7", None),
    "approx_top_k_p": ("lax.ann", "approx_top_k_p", "0.7", None),
    "lu_python": ("lax.linalg", "_lu_python", "0.7", None),
    "cholesky_lowering": ("lax.linalg", "_cholesky_lowering", "0.7", None),
    **{name: ("lax.linalg", name, "0.7", None) for name in (
        "cholesky_p", "eig_p", "eigh_p", "geqp3_p", "geqrf_p", "hessenberg_p", "householder_product_p", "lu_p", "schur_p", "svd_p",
        "tridiagonal_p", "tridiagonal_solve_p")},
}


def find(name):
    """Returns the object of the table's entry `name`; raises Missing if the installed JAX lacks it."""
    module, attribute, *_ = NAMES[name]
    where = module if module.startswith("jax.") else f"jax._src.{module}"
    try:
        found = importlib.import_module(where)
        for part in attribute.split(".") if attribute else ():
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise Missing(f"JAX {jax.__version__} has no {where}{f'.{attribute}' if attribute else ''}") from error
    return found


def __getattr__(name):
    if name not in NAMES:
        raise AttributeError(f"{name} is not in the table of private names")
    globals()[name] = found = find(name)
    return found


def holds(name):
    """Returns whether the table says that the installed JAX has the name."""
    _, _, first, end = NAMES[name]
    return _version(first) <= VERSION and (end is None or VERSION < _version(end))


def attempt(what, function, *arguments):
    """Calls `function`; if it fails, mostly because a private name is missing or has changed, warns that `what` does not work, and
    returns None: the platform itself works without it."""
    try:
        return function(*arguments)
    except Exception as error:
        warnings.warn(f"collet: {what} is not available on this platform: {error}", RuntimeWarning, stacklevel=2)
        return None


def without_manual_axes(aval):
    """Returns the abstract value without the axes of manual computations (shard_map) along which it varies."""
    if holds("empty_mat"):
        return aval.update(manual_axis_type=find("empty_mat"))
    return aval.update(vma=frozenset())


def explicit_mesh(avals):
    """Returns the mesh of the first abstract value that is sharded along explicit axes, or None."""
    return next((a.sharding.mesh for a in avals if a.sharding.mesh._any_axis_explicit), None)


def shard(context, op, sharding):
    """Sets the sharding of an operation of a program; `context` is that of the module."""
    set_sharding = find("set_sharding")
    takes_context = len(inspect.signature(set_sharding).parameters) == 3  # since 0.10.1
    set_sharding(*([context] if takes_context else []), op, sharding)
