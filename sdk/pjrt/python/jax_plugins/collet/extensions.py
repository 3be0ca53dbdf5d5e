# SPDX-License-Identifier: Apache-2.0
"""The extensions of the PJRT library, through ctypes."""
import ctypes

BASE = (("struct_size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.c_void_p))


class _Base(ctypes.Structure):
    _fields_ = BASE


class _Api(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("version", ctypes.c_char * 24),
                ("error_destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("error_message", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class _Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("error", ctypes.c_void_p),
                ("message", ctypes.c_void_p), ("message_size", ctypes.c_size_t)]


class Library:
    """A PJRT library."""

    def __init__(self, path):
        self.path = path
        get_api = ctypes.CDLL(str(path)).GetPjrtApi
        get_api.restype = ctypes.POINTER(_Api)
        api = get_api()
        if not api:
            raise RuntimeError(f"{path} has no PJRT table; what it wrote to the standard error stream says why")
        self._api = api.contents

    def find(self, number, structure):
        """Returns the extension with this number as a `structure`, whose fields begin with BASE."""
        address = self._api.extensions
        while address:
            base = _Base.from_address(address)
            if base.type == number:
                return structure.from_address(address)
            address = base.next
        raise RuntimeError(f"{self.path} has no extension with the number {number}")

    def check(self, error):
        """Raises an error that the library returned."""
        if not error:
            return
        args = _Error(ctypes.sizeof(_Error), None, error)
        self._api.error_message(ctypes.addressof(args))
        text = ctypes.string_at(args.message, args.message_size).decode(errors="replace")
        self._api.error_destroy(ctypes.addressof(_Error(24, None, error)))
        raise RuntimeError(text)
