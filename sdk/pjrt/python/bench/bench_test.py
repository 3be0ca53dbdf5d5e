# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark's scripts: tables of families, draws, figures, pages, command lines. Only those of drawn programs need JAX."""
import contextlib
import ctypes
import html.parser
import importlib.util
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import types
import unittest

import c_interface
import compare
import compare_page
import draw
import draw_kinds
import families
import figures
import modules
import page
import scaling
import torch_compare

BUILD = sys.argv[1] if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]) else None

ROW = {"name": "sort/flat float32 n=16 rank=2", "family": "sort", "variant": "flat", "type": "float32", "n": 16, "rank": 2,
       "seconds": 2e-6, "peer_seconds": 4e-6, "ratio": 2.0, "spread": 0.1, "samples": 9, "flops": 0, "bytes": 128, "limit_seconds": 1e-6,
       "bound": "memory", "of_limit": 0.5, "peer_of_limit": 0.25, "compile_seconds": 0.01, "peer_compile_seconds": 0.03,
       "difference": 0.0, "tolerance": 1e-3, "agrees": True}
SLOW = ROW | {"name": "product/square <float32> n=64 rank=2", "family": "product", "ratio": 0.5, "flops": 524288.0, "bytes": 49152}
WRONG = SLOW | {"name": "product/vector float32 n=64 rank=2", "agrees": False, "difference": 0.25}
FAILED = {"name": "fft/prime complex64 n=7 rank=2", "family": "fft", "variant": "prime", "type": "complex64", "n": 7, "rank": 2,
          "error": "ours: no such thing"}
MACHINE = {"processor": "Some CPU", "threads": 2, "vectors": "avx2", "gflops": 100.0,
           "bandwidth": [{"bytes": 16384, "gbytes": 90.0}, {"bytes": 1 << 28, "gbytes": 12.0}]}


def report(rows):
    return {"commit": "abc123", "time": "2026-01-01T00:00:00Z", "jaxlib": "0.10.2", "machine": MACHINE, "rows": rows}


class Balance(html.parser.HTMLParser):
    """Finds HTML elements without their end tag, and URLs of external resources."""
    NEEDED = {"section", "figure", "svg", "table", "div", "details", "summary", "style", "html", "title", "footer", "polyline", "circle"}

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.fetched = [], [], []

    def handle_starttag(self, tag, attributes):
        self.fetched += [value for name, value in attributes if name in ("src", "href", "srcset")] + ([tag] if tag in ("script", "link", "img") else [])
        if tag in self.NEEDED:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.NEEDED and (not self.open or self.open.pop() != tag):
            self.wrong.append(tag)


class Test(unittest.TestCase):

    def check_page(self, text):
        parser = Balance()
        parser.feed(text)
        self.assertEqual((parser.open, parser.wrong, parser.fetched), ([], [], []))
        self.assertNotRegex(text, r"url\(|@import|https?://")
        for part in ('name="viewport"', "prefers-color-scheme: dark", "@media print", "color-scheme: light dark"):
            self.assertIn(part, text)

    def refuses(self, parse, *words):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as left:
            parse(list(words))
        self.assertEqual(left.exception.code, 2, words)
        return said.getvalue()


class FamiliesTest(Test):

    def test_points_have_names_of_their_own(self):
        names = [p.name for f in families.FAMILIES for p in families.points(f, everything=True)]
        self.assertEqual(len(names), len(set(names)))
        some = [p.name for f in families.FAMILIES for p in families.points(f)]
        self.assertLess(set(some), set(names))
        self.assertGreater(len(some), 400)

    def test_every_variant_and_type_is_compared(self):
        for family in families.FAMILIES:
            points = families.points(family)
            self.assertEqual({p.variant for p in points}, set(family.variants))
            self.assertEqual({p.dtype for p in points}, set(family.types))
            self.assertEqual({p.rank for p in points}, set(family.ranks))
            self.assertEqual({p.n for p in points}, set(family.sizes))
            self.assertLessEqual(set(family.exponents), set(family.variants))

    def test_ladders_grow(self):
        for family in families.FAMILIES:
            self.assertGreaterEqual(len(family.ladder), 3, family.name)
            self.assertEqual(list(family.ladder), sorted(set(family.ladder)))
            self.assertGreater(family.exponent_of(family.variants[0]), 0)


class DrawTest(Test):

    def test_a_seed_determines_the_names(self):
        names = [p.name for p in draw.points(7, 20)]
        self.assertEqual(names, [p.name for p in draw.points(7, 20)])
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), 20 * len(draw_kinds.FAMILIES))
        self.assertFalse(set(names) & {p.name for p in draw.points(8, 20)})
        self.assertFalse({name.rsplit(" ", 1)[0] for name in names} <= {p.name.rsplit(" ", 1)[0] for p in draw.points(8, 20)})

    def test_a_program_does_not_depend_on_the_others(self):
        some = draw.points(7, 3)
        self.assertEqual(some, [p for p in draw.points(7, 9) if p.index <= 3])
        self.assertEqual(compare.parse(["--draw", "7", "sort/*#7.3"]).points, [p for p in some if p.family == "sort" and p.index == 3])
        for point in some:
            self.assertEqual(compare.parse(["--draw", "7", point.name]).points, [point])

    def test_every_kind_is_drawn(self):
        for family, kinds in draw_kinds.FAMILIES.items():
            self.assertEqual({draw.one(1, family, i).variant for i in range(1, 400)}, {kind.name for kind in kinds}, family)

    def test_list_names_programs(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(compare.main(["--list", "--draw", "7", "--count", "2", "fft/"]), 0)
        self.assertEqual([line.rsplit(" ", 1)[1] for line in said.getvalue().splitlines()], ["#7.1", "#7.2"])

    def test_wrong_use_is_told(self):
        for words in ((), ("sort/",), ("-1",), ("1.5",), ("4294967296",)):
            self.assertIn("a whole number from 0 to 4294967295, as in --draw 7", self.refuses(compare.parse, "--draw", *words))
        self.assertIn("from 1 to 1000", self.refuses(compare.parse, "--draw", "7", "--count", "0"))
        self.assertIn("--count: only with --draw", self.refuses(compare.parse, "--count", "3"))
        self.assertIn("--all: not with --draw", self.refuses(compare.parse, "--all", "--draw", "3"))

    @unittest.skipUnless(importlib.util.find_spec("jax"), "needs JAX")
    def test_programs_run(self):
        os.environ["JAX_PLATFORMS"] = "cpu"
        import draw_programs
        import jax
        import measure
        import numpy
        device = jax.devices("cpu")[0]
        for point in draw.points(7, 1):
            with self.subTest(point.name), measure.precision(point):
                program, again = draw_programs.build(point), draw_programs.build(point)
                self.assertEqual(measure.difference(program.arguments, again.arguments, False), 0)
                for result in jax.tree.leaves(measure.Side(program, device).results):
                    self.assertTrue(numpy.isfinite(numpy.asarray(result).astype(complex)).all())

    @unittest.skipUnless(importlib.util.find_spec("jax"), "needs JAX")
    def test_programs_compute_what_their_names_say(self):
        import draw_programs
        import numpy
        expected = {
            ("reduction", "var"): lambda values, x: numpy.var(x.astype(float), values["axes"]),
            ("transpose", "plain"): lambda values, x: numpy.transpose(x, values["order"]),
            ("gather", "rows"): lambda values, table, i: table[i],
            ("sort", "sort"): lambda values, x: numpy.sort(x, values["axis"]),
            ("scan", "reverse"): lambda values, x: numpy.flip(numpy.cumsum(numpy.flip(x, values["axis"]), values["axis"]), values["axis"]),
            ("fft", "three_dimensions"): lambda values, x: numpy.fft.fftn(x),
            ("factorization", "solve"): lambda values, a, b: numpy.linalg.solve(a, b),
            ("product", "gram"): lambda values, a: a @ a.T,
            ("pooling", "global_average"): lambda values, x: x.mean((1, 2)),
            ("loop", "newton"): lambda values, x: numpy.sqrt(x)}
        for (family, kind), function in expected.items():
            point = next(p for p in (draw.one(7, family, i) for i in range(1, 400)) if p.variant == kind and p.dtype in ("float32", "complex64"))
            program = draw_programs.build(point)
            result, known = program.function(*program.arguments), function(point.values, *program.arguments)
            self.assertLess(abs(numpy.asarray(result) - known).max(), 1e-3 * abs(known).max(), point.name)


class FiguresTest(Test):

    def test_geometric_mean(self):
        self.assertAlmostEqual(figures.geometric_mean([1, 4]), 2)
        self.assertEqual(figures.geometric_mean([]), 0)

    def test_slope_finds_the_exponent(self):
        for exponent in (1, 2, 3):
            self.assertAlmostEqual(figures.slope([(n, 5e-9 * n ** exponent) for n in (10, 100, 1000)]), exponent)
        # The constant cost of every run hides the exponent at small sizes, but not at large ones.
        points = [(2 ** k, 1e-3 + 1e-6 * 4 ** k) for k in range(2, 14)]
        self.assertLess(figures.slope(points), 1.6)
        self.assertAlmostEqual(figures.tail_slope(points), 2, delta=0.1)
        self.assertEqual(figures.slope([(8, 1.0)]), 0)

    def test_verdict_allows_a_logarithm_and_tells_a_square(self):
        self.assertEqual(figures.verdict(1.12, 1), "as expected")
        self.assertEqual(figures.verdict(0.4, 1), "as expected")
        self.assertEqual(figures.verdict(1.9, 1), "worse")

    def test_history_is_appended_and_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "history.jsonl"
            self.assertEqual(figures.read_history(path), [])
            for _ in range(2):
                figures.append_history(path, figures.history_entry(report([ROW, SLOW, FAILED])))
            entries = figures.read_history(path)
            self.assertEqual(len(entries), 2)
            self.assertAlmostEqual(entries[0]["ratio"], 1.0)
            self.assertEqual(entries[0]["families"], {"sort": 2.0, "product": 0.5})
            self.assertEqual((entries[0]["commit"], entries[0]["threads"], entries[0]["cases"]), ("abc123", 2, 2))
            with open(path, "a") as file:
                file.write("{}\n")
            with self.assertRaisesRegex(ValueError, "history.jsonl:3:"):
                figures.read_history(path)


class PageTest(Test):

    def test_page_stands_alone(self):
        entry = figures.history_entry(report([ROW, SLOW]))
        text = compare_page.write(report([ROW, SLOW, WRONG, FAILED]), [entry, entry | {"commit": "def456"}])
        self.check_page(text)
        for part in ("Families", "Roofline", "History", "def456", "no such thing", "results differ by 2.5e-01", "&lt;float32&gt;"):
            self.assertIn(part, text)
        self.assertEqual(text.count("<circle"), 2 * 2 + 2, "a dot a side and program with arithmetic, and one a run")

    def test_history_of_another_machine_is_left_out(self):
        entry = figures.history_entry(report([ROW]))
        text = compare_page.write(report([ROW]), [entry | {"machine": "Another"}, entry | {"threads": 9}, entry | {"draw": 7}, entry])
        self.check_page(text)
        self.assertNotIn("History", text)
        self.assertNotIn("Roofline", text, "nothing has arithmetic")
        drawn = report([ROW]) | {"draw": 7}
        text = compare_page.write(drawn, [entry, entry | {"draw": 7}, figures.history_entry(drawn)])
        self.check_page(text)
        self.assertIn("--draw 7", text)
        self.assertIn("History", text)

    def test_bars_lean_to_their_side(self):
        text = page.ratio_bars([("fast", 2), ("slow", 0.5), ("even", 1), ("far", 1e9)])
        lefts = [(float(a), float(b)) for a, b in re.findall(r"left:([\d.]+)%;width:([\d.]+)%", text)]
        self.assertEqual(lefts[0][0], 50)
        self.assertAlmostEqual(lefts[1][0] + lefts[1][1], 50, places=1)
        self.assertEqual(lefts[2][1], 0)
        self.assertEqual(lefts[3], (50, 50))

    def test_numbers_are_short(self):
        self.assertEqual([page.number(x) for x in (0.0123, 1.234, 12.34, 1234.5, 0, None, float("inf"))],
                         ["0.012", "1.23", "12.3", "1234", "0", "-", "inf"])
        self.assertEqual([page.duration(s) for s in (2, 3e-3, 4.2e-6, 5e-8)], ["2.00 s", "3.00 ms", "4.20 us", "50 ns"])

    def test_verdict(self):
        self.assertEqual(compare_page.verdict([ROW]), "2.00 times XLA:CPU over 1 programs; 0 below 0.95; results agree")
        self.assertIn("1 failed; results of 1 differ", compare_page.verdict([WRONG, FAILED]))


class ScalingTest(Test):

    def test_modules_grow_as_they_say(self):
        for kind in modules.KINDS:
            small, large = (kind.text(size).count(" = ") for size in (60, 600))
            if kind.size_is == "elements of one constant":
                self.assertEqual((small, large), (3, 3))
            else:
                self.assertAlmostEqual(large / small, 10, delta=1.5, msg=kind.name)
            if kind.size_is == "instructions":
                self.assertAlmostEqual(large, 600, delta=30, msg=kind.name)
        self.assertEqual(modules.KINDS[0].up_to(10000), (100, 300, 1000, 3000, 10000))

    def test_curves_are_judged(self):
        good = scaling.series("sort/flat", "time", "elements", 1, [(n, 1e-6 * n) for n in (10, 100, 1000)])
        bad = scaling.series("scan/long", "time", "elements", 1, [(n, 1e-6 * n * n) for n in (10, 100, 1000)])
        short = scaling.series("scan/short", "time", "elements", 1, [(10, 1.0)])
        failed = scaling.series("fft/none", "time", "length", 1, [], "n=8: no such thing")
        ended = scaling.series("fft/long", "time", "length", 1, [(n, 1e-6 * n) for n in (10, 100, 1000)], "n=10000: exit code 139")
        verdicts = [row["verdict"] for row in (good, bad, short, failed, ended)]
        self.assertEqual(verdicts, ["as expected", "worse", "too few sizes", "failed", "failed"])
        self.assertAlmostEqual(bad["exponent"], 2)
        text = scaling.write_page({"processor": "Some CPU", "threads": 1, "commit": "abc", "time": "now", "rows": [good, bad, short, failed]})
        self.check_page(text)
        for part in ("4 curves; 1 grow faster than their known complexity, 1 failed", "no such thing", "too few sizes"):
            self.assertIn(part, text)

    def test_children_are_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            code, seconds, busy, peak, out, said = scaling.run_child(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], pathlib.Path(folder))
        self.assertEqual((code, out, said), (3, "out\n", "err"))
        self.assertGreater(seconds, 0)
        self.assertGreaterEqual(busy, 0)
        self.assertGreater(peak, 1 << 16)

    def test_wrong_use_is_told(self):
        self.assertIn("nothing has such a name", self.refuses(scaling.parse, "no_such_curve"))
        for words in (("--most", "10"), ("--threads", "-1"), ("--limit", "0"), ("--json", "no/such/x.json")):
            self.assertIn(words[0] if words[0] != "--json" else "cannot be written", self.refuses(scaling.parse, *words))

    def test_list_names_curves(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(scaling.main(["--list", "chain", "fft/prime"]), 0)
        self.assertEqual(said.getvalue().split(), ["elementwise/chain", "fft/prime", "compile/chain"])


class CommandLineTest(Test):

    def test_wrong_use_is_told(self):
        self.assertIn("no program has such a name", self.refuses(compare.parse, "no_such_program"))
        self.assertIn("--threads", self.refuses(compare.parse, "--threads", "100000"))
        self.assertIn("--seconds", self.refuses(compare.parse, "--seconds", "0"))
        self.assertIn("cannot be written", self.refuses(compare.parse, "--page", "no/such/folder/x.html"))
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write("nonsense\n")
            file.flush()
            self.assertIn(":1: no line of a history", self.refuses(compare.parse, "--history", file.name))

    def test_filters_choose(self):
        self.assertEqual({p.family for p in compare.parse(["sort/"]).points}, {"sort"})
        self.assertEqual({p.variant for p in compare.parse(["product/squ*"]).points}, {"square"})
        self.assertGreater(len(compare.parse(["--all"]).points), len(compare.parse([]).points))

    def test_list_names_programs(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(compare.main(["--list", "fft/prime"]), 0)
        self.assertTrue(all(line.startswith("fft/prime ") for line in said.getvalue().splitlines()))

    def test_reports_are_json(self):
        self.assertEqual(json.loads(json.dumps(report([ROW, FAILED])))["rows"][1]["error"], "ours: no such thing")


class TorchTest(Test):

    def test_numbers_of_types_are_those_of_the_c_interface(self):
        include = pathlib.Path(__file__).parents[3] / "include" / "collet"
        numbers = {name: int(value) for name, value in re.findall(r'COLLET_TYPE\(\w+, "(\w+)", (\d+)', (include / "types.def").read_text())}
        for name, number in c_interface.ELEMENTS.items():
            text = "pred" if name == "bool" else re.sub(r"^bfloat|^float|^uint|^int", lambda m: {"bfloat": "bf", "float": "f", "uint": "u", "int": "s"}[m[0]], name)
            self.assertEqual(number, numbers[text], name)

    def test_list_names_programs(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(torch_compare.main(["--list", "product int8"]), 0)
        self.assertEqual(said.getvalue().splitlines()[0], "product int8 64")

    def test_filters_choose(self):
        self.assertEqual(len(torch_compare.parse(["sort rows*", "argsort flat*"]).names), 2)
        self.assertGreater(len(torch_compare.parse([]).names), 50)


def array_of(values):
    """Returns an array of f32 with what c_interface uses of numpy's."""
    data = (ctypes.c_float * len(values))(*values)
    return types.SimpleNamespace(shape=(len(values),), ndim=1, dtype=types.SimpleNamespace(name="float32"), data=data,
                                 ctypes=types.SimpleNamespace(data=ctypes.addressof(data)))


@unittest.skipUnless(BUILD, "needs the folder of a build as argument")
class CInterfaceTest(unittest.TestCase):
    ADD = """module @add { func.func public @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
      %c = stablehlo.add %a, %b : tensor<3xf32>
      return %c : tensor<3xf32> } }"""

    def setUp(self):
        os.environ.update(COLLET_PJRT_LIBRARY=f"{BUILD}/lib/libcollet_pjrt.so", COLLET_BACKEND_PATH=f"{BUILD}/lib/collet/backends",
                          COLLET_BACKEND="interpreter")
        self.client = c_interface.Client()
        self.program = c_interface.Program(self.client, self.ADD, [array_of([1, 2, 3]), array_of([10, 20, 30])])

    def tearDown(self):
        self.program.close()
        self.client.close()

    def test_programs_run(self):
        for _ in range(3):
            self.program.run()
            out = (ctypes.c_float * 3)()
            self.client.check("collet_buffer_to_host", self.program.results[0], ctypes.addressof(out), 12, None)
            self.assertEqual(list(out), [11, 22, 33])

    def test_failures_have_messages(self):
        self.program.run()
        second, self.program.arguments[1] = self.program.arguments[1], None
        for _ in range(2):
            with self.assertRaisesRegex(c_interface.Failure, "argument 1 is missing"):
                self.program.run()
        self.program.arguments[1] = second
        self.program.run()
        with self.assertRaisesRegex(c_interface.Failure, "collet_module_read: .*1:"):
            c_interface.Program(self.client, "no program", [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2 if BUILD else 1:])
