# SPDX-License-Identifier: Apache-2.0
"""Foreign functions: `jax.ffi.register_ffi_target(name, handler, platform=...)` and `jax.ffi.register_ffi_type`.

JAX collects handlers for each platform; these functions hand those for this platform to the PJRT library.
"""
import ctypes
import functools

from . import extensions, private

_FFI = 5  # the number of the extension in sdk/pjrt/api/base.h
_TYPED = 1  # api_version of handlers that take a call frame
_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype, _capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _Type(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("name_size", ctypes.c_size_t), ("id", ctypes.c_int64), ("info", ctypes.c_void_p)]


class _Handler(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("target", ctypes.c_char_p), ("target_size", ctypes.c_size_t),
                ("handler", ctypes.c_void_p), ("platform", ctypes.c_char_p),
                ("platform_size", ctypes.c_size_t), ("traits", ctypes.c_uint32)]


class _Extension(ctypes.Structure):
    _fields_ = [*extensions.BASE, ("type_register", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Type))),
                ("user_data_add", ctypes.c_void_p),
                ("register_handler", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Handler)))]


def _address(capsule):
    return _capsule_pointer(capsule, _capsule_name(capsule))


def _add_handler(library, extension, name, function, platform, api_version=1, traits=0, *_):
    name = name.decode() if isinstance(name, bytes) else name
    if isinstance(function, dict):
        stages = sorted(set(function) - {"execute"})
        if stages or "execute" not in function:
            raise NotImplementedError(f"the handler of '{name}' for {platform} has the stages {', '.join(function)}; "
                                      "only 'execute' is called")
        function = function["execute"]
    if api_version != _TYPED:
        raise NotImplementedError(f"the handler of '{name}' for {platform} is for untyped custom calls; only typed ones are called")
    target, platform = name.encode(), platform.encode()
    handler = _Handler(ctypes.sizeof(_Handler), target, len(target), _address(function), platform, len(platform),
                       int(getattr(traits, "value", traits)))
    library.check(extension.register_handler(ctypes.byref(handler)))


def _add_type(library, extension, name, registration, *_):
    name = name.decode() if isinstance(name, bytes) else name
    capsule = registration["type_id"] if isinstance(registration, dict) else registration
    number = ctypes.c_int64.from_address(_address(capsule))
    encoded = name.encode()
    args = _Type(ctypes.sizeof(_Type), None, encoded, len(encoded), number.value, None)
    library.check(extension.type_register(ctypes.byref(args)))
    number.value = args.id


def _hand_over(what, register_at_jax, platform, add):
    """Gives JAX the function `add` for the platform. JAX calls it at once for what was registered before, and stops at the first error:
    so one that cannot be used costs a warning then, and the others are handed over. Later the error reaches whoever registers."""
    is_early = True

    def hand(name, *arguments):
        if not is_early:
            add(name, *arguments)
            return
        text = name.decode() if isinstance(name, bytes) else name
        private.attempt(f"the {what} '{text}'", add, name, *arguments)

    register_at_jax(platform, hand)
    is_early = False


def register(platform: str, library_path) -> None:
    """Hands foreign functions for `platform` to the PJRT library at `library_path`, now and from now on."""
    library = extensions.Library(library_path)
    extension = library.find(_FFI, _Extension)
    _hand_over("foreign function", private.register_custom_call_handler, platform, functools.partial(_add_handler, library, extension))
    add_types = "register_custom_type_handler"
    _hand_over("foreign type", private.find(add_types if private.holds(add_types) else "register_custom_type_id_handler"), platform,
               functools.partial(_add_type, library, extension))
