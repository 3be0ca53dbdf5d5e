# SPDX-License-Identifier: Apache-2.0
"""Element types: those of types.def, with what Python, numpy and DLPack call them."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy


class Element(NamedTuple):
    """An element type. In host memory an element has `size` bytes; those of less than 8 bits have a byte each."""
    name: str  # in HLO text
    number: int
    size: int
    numpy: str  # name of numpy's or ml_dtypes' type; '' for none
    format: str  # of the struct module and the buffer protocol; '' for none
    dlpack: tuple[int, int] | None  # code and bits


ELEMENTS: tuple[Element, ...] = (
    Element("pred", 1, 1, "bool", "?", (6, 8)),
    Element("s8", 2, 1, "int8", "b", (0, 8)),
    Element("s16", 3, 2, "int16", "h", (0, 16)),
    Element("s32", 4, 4, "int32", "i", (0, 32)),
    Element("s64", 5, 8, "int64", "q", (0, 64)),
    Element("u8", 6, 1, "uint8", "B", (1, 8)),
    Element("u16", 7, 2, "uint16", "H", (1, 16)),
    Element("u32", 8, 4, "uint32", "I", (1, 32)),
    Element("u64", 9, 8, "uint64", "Q", (1, 64)),
    Element("f16", 10, 2, "float16", "e", (2, 16)),
    Element("f32", 11, 4, "float32", "f", (2, 32)),
    Element("f64", 12, 8, "float64", "d", (2, 64)),
    Element("opaque", 14, 0, "", "", None),
    Element("c64", 15, 8, "complex64", "", (5, 64)),
    Element("bf16", 16, 2, "bfloat16", "", (4, 16)),
    Element("token", 17, 0, "", "", None),
    Element("c128", 18, 16, "complex128", "", (5, 128)),
    Element("f8e5m2", 19, 1, "float8_e5m2", "", (12, 8)),
    Element("f8e4m3fn", 20, 1, "float8_e4m3fn", "", (10, 8)),
    Element("s4", 21, 1, "int4", "", None),
    Element("u4", 22, 1, "uint4", "", None),
    Element("f8e4m3b11fnuz", 23, 1, "float8_e4m3b11fnuz", "", (9, 8)),
    Element("f8e5m2fnuz", 24, 1, "float8_e5m2fnuz", "", (13, 8)),
    Element("f8e4m3fnuz", 25, 1, "float8_e4m3fnuz", "", (11, 8)),
    Element("s2", 26, 1, "int2", "", None),
    Element("u2", 27, 1, "uint2", "", None),
    Element("f8e4m3", 28, 1, "float8_e4m3", "", (8, 8)),
    Element("f8e3m4", 29, 1, "float8_e3m4", "", (7, 8)),
    Element("s1", 30, 1, "int1", "", None),
    Element("u1", 31, 1, "uint1", "", None),
    Element("f4e2m1fn", 32, 1, "float4_e2m1fn", "", None),
    Element("f8e8m0fnu", 33, 1, "float8_e8m0fnu", "", (14, 8)),
)
BY_NUMBER = {element.number: element for element in ELEMENTS}
BY_NAME = {element.name: element for element in ELEMENTS}
BY_NUMPY = {element.numpy: element for element in ELEMENTS if element.numpy}
BY_FORMAT = {element.format: element for element in ELEMENTS if element.format} | {
    "l": BY_NAME["s64"], "L": BY_NAME["u64"], "Zf": BY_NAME["c64"], "Zd": BY_NAME["c128"], "n": BY_NAME["s64"], "N": BY_NAME["u64"]}
BY_DLPACK = {element.dlpack: element for element in ELEMENTS if element.dlpack}


class ArrayType(NamedTuple):
    """The type of an array: `element` is a name of HLO ('f32'), `shape` its dimensions."""
    element: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.element}[{','.join(map(str, self.shape))}]"

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for dimension in self.shape:
            count *= dimension
        return count

    @property
    def nbytes(self) -> int:
        """The bytes of the dense data in host memory."""
        return self.size * BY_NAME[self.element].size

    @property
    def dtype(self) -> "numpy.dtype[Any]":
        """numpy's type of the elements. Types that numpy does not have need the package ml_dtypes."""
        return numpy_dtype(BY_NAME[self.element])


def from_struct(struct: Any) -> ArrayType:
    """Makes an ArrayType of a collet_array_type."""
    element = BY_NUMBER.get(struct.element)
    return ArrayType(element.name if element else f"type{struct.element}", tuple(struct.dims[i] for i in range(struct.rank)))


def format_of(element: str) -> str | None:
    """Returns the name that memoryview has for an element type; None if it has none."""
    name = BY_NAME[element].format
    return None if name == "e" and sys.version_info < (3, 12) else name


def cast(data: memoryview, kind: ArrayType) -> memoryview:
    """Returns bytes as a memoryview of the array, where the buffer protocol has a name for its elements and a view can be empty."""
    name: Any = format_of(kind.element)
    return data.cast(name, kind.shape) if name and kind.size else data


def numpy_dtype(element: Element) -> "numpy.dtype[Any]":
    """Returns numpy's type for an element type."""
    import numpy
    if not element.numpy:
        raise TypeError(f"{element.name} has no data")
    try:
        return numpy.dtype(element.numpy)
    except TypeError:
        pass
    try:
        import ml_dtypes
        found: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, element.numpy))
        return found
    except (ImportError, AttributeError):
        raise TypeError(f"numpy has no type for {element.name}: install the package ml_dtypes, or use Array.tobytes()") from None
