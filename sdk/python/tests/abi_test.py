# SPDX-License-Identifier: Apache-2.0
"""abi_test.py CC INCLUDE: the structs, numbers and functions that the module states are those of the headers, by a C compiler."""
import ctypes
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from collet import _abi, _client, _errors, _host, _profile, _types

CC, INCLUDE = sys.argv[1], pathlib.Path(sys.argv[2])
del sys.argv[1:3]


def structs():
    return [kind for kind in vars(_abi).values() if isinstance(kind, type) and issubclass(kind, _abi.Struct) and kind is not _abi.Struct]


def ask(expressions):
    """Returns the values of these integer expressions in C, with the public headers."""
    lines = ["#include <collet/backend.h>", "#include <collet/collet.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void) {",
             '  printf("[0");', *(f'  printf(",%lld", (long long)({text}));' for text in expressions), '  printf("]");', "  return 0; }"]
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "ask.c", pathlib.Path(folder) / "ask"
        source.write_text("\n".join(lines))
        subprocess.run([CC, "-I", INCLUDE, source, "-o", program], check=True)
        return json.loads(subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout)[1:]


class AbiTest(unittest.TestCase):

    def compare(self, expected):
        """Compares {expression in C: value}."""
        self.assertTrue(expected)
        found = dict(zip(expected, ask(list(expected))))
        self.assertEqual(found, expected)

    def test_structs(self):
        expected = {}
        for kind in structs():
            expected[f"sizeof(struct {kind.c_name})"] = ctypes.sizeof(kind)
            for name, *_ in kind._fields_:
                field = getattr(kind, name)
                expected[f"offsetof(struct {kind.c_name}, {name})"] = field.offset
                expected[f"sizeof(((struct {kind.c_name}*)0)->{name})"] = field.size
        self.assertGreater(len(expected), 200)
        self.compare(expected)

    def test_numbers(self):
        self.compare({
            **{f"COLLET_{code.name}": int(code) for code in _errors.Code},
            **{f"COLLET_SPAN_{name.upper()}": number for number, name in _profile.KINDS.items()},
            **{f"COLLET_ELIDED_{name.upper()}": number for name, number in _client.ELIDED.items()},
            **{f"COLLET_LOG_{severity.name}": int(severity) for severity in _client.Severity},
            "COLLET_FORMAT_AUTO": _client.FORMATS["auto"], "COLLET_FORMAT_HLO_TEXT": _client.FORMATS["hlo"],
            "COLLET_FORMAT_HLO_PROTO": _client.FORMATS["hlo_proto"], "COLLET_FORMAT_STABLEHLO_TEXT": _client.FORMATS["stablehlo"],
            "COLLET_FORMAT_STABLEHLO": _client.FORMATS["stablehlo_artifact"], "COLLET_NONE": _abi.NONE,
            "COLLET_HOST_COPIED": _client._COPIED, "COLLET_HOST_ZERO_COPY": _client._ZERO_COPY,
            "COLLET_QUESTION_OP": 0, "COLLET_QUESTION_PATTERN": 1, "COLLET_QUESTION_FUSION": 2,
        })

    def test_element_types(self):
        rows = re.findall(r"^COLLET_TYPE\((\w+), \"(\w+)\", (\d+),", (INCLUDE / "collet/types.def").read_text(), re.MULTILINE)
        self.assertEqual({text: int(number) for _, text, number in rows}, {e.name: e.number for e in _types.ELEMENTS})
        self.compare({f"collet_type_bytes({element.number})": element.size for element in _types.ELEMENTS})

    def test_functions(self):
        header = re.sub(r"/\*.*?\*/", "", (INCLUDE / "collet/collet.h").read_text(), flags=re.DOTALL)
        declared = {name: (result.strip(), [p.strip() for p in parameters.split(",") if p.strip() != "void"])
                    for result, name, parameters in re.findall(r"COLLET_API\s+([^;(]*?)\b(collet_\w+)\(([^)]*(?:\([^)]*\)[^)]*)*)\);", header)}
        for name, (result, *parameters) in _abi.FUNCTIONS.items():
            self.assertIn(name, declared)
            self.assertEqual(self.kind(declared[name][0]), self.kind_of(result), name)
            self.assertEqual([self.kind(text) for text in declared[name][1]], [self.kind_of(p) for p in parameters], name)

    def kind(self, text):
        if "*" in text or "collet_trace_fn" in text:
            return "pointer"
        found = [word for word in ("uint32_t", "uint64_t", "collet_status", "struct collet_array_type", "void") if text.startswith(word)]
        self.assertTrue(found, text)
        return found[0]

    @staticmethod
    def kind_of(kind):
        named = {None: "void", ctypes.c_uint32: "uint32_t", ctypes.c_uint64: "uint64_t", ctypes.c_int32: "collet_status",
                 _abi.ArrayTypeStruct: "struct collet_array_type"}
        return named.get(kind, "pointer")

    def test_python_buffer(self):
        """The struct of the buffer protocol has the size that Python uses."""
        data = bytes(range(7))
        held = _host._Buffer(data)
        self.assertEqual((held.view.len, held.view.itemsize, held.view.ndim, held.view.readonly), (7, 1, 1, 1))


if __name__ == "__main__":
    unittest.main()
