# SPDX-License-Identifier: Apache-2.0
"""The module with numpy, and with DLPack as numpy speaks it."""
import gc
import unittest

import numpy

import collet
from collet import _host, _types

SAME = "HloModule same\nENTRY e {{\n  ROOT x = {} parameter(0)\n}}\n"


def address(array):
    return array.__array_interface__["data"][0]


class OldConsumer:
    """Asks for DLPack as it was before version 1.0."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class NumpyTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.client = collet.Client("interpreter")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def test_arrays_of_another_client(self):
        with collet.Client("interpreter") as other:
            for given in (numpy.zeros((0, 3), "f4"), numpy.arange(6, dtype="f4").reshape(2, 3), numpy.float16(2)):
                x = other.array(given)
                y = self.client.array(x)
                self.assertEqual(str(y.type), str(x.type))
                self.assertEqual(y.tobytes(), given.tobytes())
            with self.assertRaises(TypeError):
                self.client.array(x, type=collet.ArrayType("f32", ()))

    def test_f16_as_python_numbers(self):
        x = self.client.array(numpy.float16([1.5, 2]))
        self.assertEqual(x.tolist(), [1.5, 2])
        self.assertEqual(self.client.array(numpy.float16(2)).item(), 2)
        self.assertEqual(bytes(x.memoryview()), numpy.float16([1.5, 2]).tobytes())
        self.assertEqual(x.wait(float("inf")).tolist(), [1.5, 2])

    def test_every_element_type_goes_in_and_out(self):
        tested = 0
        for element in _types.ELEMENTS:
            try:
                dtype = _types.numpy_dtype(element)
            except TypeError:
                continue  # numpy has none, or ml_dtypes is not there
            given = numpy.array([[0, 1, 0], [1, 1, 0]]).astype(dtype)
            program = self.client.compile(SAME.format(f"{element.name}[2,3]"))
            [y] = program(given)
            self.assertEqual(y.dtype, dtype)
            for _ in range(2):
                # A set bit of s1 is -1, which the library extends to the byte and ml_dtypes does not.
                expected = given.tobytes() if element.name != "s1" else given.tobytes().replace(b"\x01", b"\xff")
                self.assertEqual(y.numpy().tobytes(), expected, element.name)
                [y] = program(given[::-1, ::-1].copy()[::-1, ::-1])  # in other strides
            tested += 1
        self.assertGreaterEqual(tested, 14)

    def test_views(self):
        [y] = self.client.compile(SAME.format("f32[256,256]"))(numpy.arange(65536, dtype=numpy.float32).reshape(256, 256))
        first, second = y.numpy(), numpy.asarray(y)
        self.assertEqual(address(first), address(second))
        self.assertFalse(first.flags.writeable)
        self.assertEqual(numpy.asarray(y, dtype=numpy.float64).dtype, numpy.float64)
        del y, second
        gc.collect()
        self.assertEqual(first[255, 255], 65535)

    def test_lists_numbers_and_empty_arrays(self):
        self.assertEqual(self.client.compile(SAME.format("s64[2,2]"))([[1, 2], [3, 4]])[0].tolist(), [[1, 2], [3, 4]])
        [y] = self.client.compile(SAME.format("f32[0,3]"))(numpy.zeros((0, 3), numpy.float32))
        self.assertEqual((y.numpy().shape, y.tolist()), ((0, 3), []))
        self.assertEqual(self.client.array(numpy.broadcast_to(numpy.float32(3), (2, 2))).tolist(), [[3, 3], [3, 3]])
        self.assertEqual(self.client.array(numpy.float64(3)).item(), 3)
        with self.assertRaisesRegex(TypeError, "byte order"):
            self.client.array(numpy.zeros(2, ">f4"))
        with self.assertRaisesRegex(TypeError, "argument 0 is f64"):
            self.client.compile(SAME.format("f32[2]"))(numpy.zeros(2))

    def test_dlpack_out(self):
        [y] = self.client.compile(SAME.format("s32[2,3]"))(numpy.arange(6, dtype=numpy.int32).reshape(2, 3))
        kept = len(_host._kept)
        for consumer in (y, OldConsumer(y)):
            array = numpy.from_dlpack(consumer)
            self.assertEqual(array.tolist(), [[0, 1, 2], [3, 4, 5]])
            del array
        capsule, versioned = y.__dlpack__(), y.__dlpack__(max_version=(1, 1))  # nobody takes them
        self.assertEqual(len(_host._kept), kept + 2)
        del capsule, versioned
        _host.drop_refused()
        self.assertEqual(len(_host._kept), kept)
        with self.assertRaises(BufferError):
            y.__dlpack__(copy=False)
        with self.assertRaises(BufferError):
            y.__dlpack__(dl_device=(2, 0))

    def test_a_consumer_that_refuses_an_array_says_why(self):
        program = self.client.compile("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = bf16[4] convert(x)\n}")
        [y] = program(numpy.zeros(4, numpy.float32))
        kept = len(_host._kept)
        for _ in range(2):
            with self.assertRaisesRegex(Exception, "[Uu]nsupported dtype"):
                numpy.from_dlpack(y)
        y.delete()
        self.assertEqual(len(_host._kept), kept)

    def test_a_view_by_dlpack_keeps_the_memory(self):
        [y] = self.client.compile(SAME.format("f32[65536]"))(numpy.arange(65536, dtype=numpy.float32))
        own = address(y.numpy())
        view = _host.view_of(Exporter(y), None)
        self.assertEqual(view.address, own)
        del y
        gc.collect()
        self.assertEqual(numpy.ctypeslib.as_array((_host.c.c_float * 65536).from_address(view.address))[65535], 65535)

    def test_dlpack_in(self):
        for version in (None, (1, 0)):
            given = numpy.arange(6, dtype=numpy.float64).reshape(2, 3).T
            array = self.client.array(Exporter(given, version))
            self.assertEqual((array.element, array.tolist()), ("f64", given.tolist()))
        with self.assertRaisesRegex(TypeError, "copy it to the host"):
            self.client.array(Exporter(given, None, device=(2, 0)))


class Exporter:
    """An array that has DLPack alone, of one version."""

    def __init__(self, array, version=(1, 0), device=(1, 0)):
        self.array, self.version, self.device = array, version, device

    def __dlpack__(self, *, max_version=None):
        if self.version is None:
            return self.array.__dlpack__()
        try:
            return self.array.__dlpack__(max_version=self.version)
        except TypeError:  # numpy before 2.1
            return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.device


if __name__ == "__main__":
    unittest.main()
