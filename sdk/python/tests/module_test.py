# SPDX-License-Identifier: Apache-2.0
"""The module with Python's own arrays; numpy_test.py has what needs numpy."""
import array
import gc
import json
import operator
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import weakref

import collet
from collet import _abi, _host

DOUBLE = """HloModule double
ENTRY e {
  x = f32[4] parameter(0)
  ROOT y = f32[4] add(x, x)
}
"""
SAME = "HloModule same\nENTRY e {\n  ROOT x = f32[65536] parameter(0)\n}\n"
DONATES = """HloModule donates, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e {
  x = f32[4] parameter(0)
  ROOT y = f32[4] add(x, x)
}
"""
CALLS = """HloModule calls
ENTRY e {
  x = f32[2,2] parameter(0)
  ROOT y = f32[2,2] custom-call(x), custom_call_target="twice", api_version=API_VERSION_TYPED_FFI, backend_config="some"
}
"""
REPLICAS = """HloModule replicas, replica_count=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[2] parameter(0)
  ROOT y = f32[2] all-reduce(x), replica_groups={}, to_apply=add
}
"""


def floats(*values):
    return array.array("f", values)


class Offering:
    """An array of which there is a capsule alone."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, max_version=None):
        return self.capsule


class ModuleTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.client = collet.Client("interpreter")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def test_run(self):
        double = self.client.compile(DOUBLE)
        [y] = double(floats(1, 2, 3, 4))
        self.assertEqual(y.tolist(), [2, 4, 6, 8])
        self.assertEqual((y.element, y.shape, y.nbytes, len(y), y.device), ("f32", (4,), 16, 4, 0))
        self.assertEqual(double(y)[0].tolist(), [4, 8, 12, 16])
        self.assertEqual(str(double.parameters[0]), "f32[4]")

    def test_facts_of_the_client(self):
        self.assertEqual(self.client.backend, "interpreter")
        self.assertTrue(self.client.backend_path.is_file())
        self.assertEqual(self.client.devices[0].number, 0)
        self.assertEqual(collet.__version__, self.client.backend_version)

    def test_views_have_no_copy_and_keep_the_memory(self):
        [y] = self.client.compile(SAME)(array.array("f", range(65536)))
        self.assertTrue(y.is_host_readable)
        first, second = _host.view_of(y.memoryview(), None), _host.view_of(y.memoryview(), None)
        self.assertEqual(first.address, second.address)
        view = y.memoryview()
        self.assertTrue(view.readonly)
        if sys.version_info >= (3, 12):  # from then on, classes in Python have the buffer protocol
            self.assertEqual(_host.view_of(memoryview(y), None).address, first.address)
        with self.assertRaises(BufferError):
            y.delete()
        del first, second
        del y
        gc.collect()
        self.assertEqual(view[65535], 65535.0)

    def test_borrowed_memory_is_held_until_it_was_read(self):
        data = array.array("f", range(65536))
        before = len(_host._kept)
        x = self.client.array(data, borrow=True).wait()
        self.assertEqual(x.memoryview()[65535], 65535)
        del x
        gc.collect()
        for _ in range(1000):  # the library says so on a thread of its own
            if len(_host._kept) == before:
                break
            time.sleep(0.01)
        self.assertEqual(len(_host._kept), before)
        data.append(1)  # nobody holds the memory any more
        x = self.client.array(data)
        data[0] = 7
        self.assertEqual(x.memoryview()[0], 0)

    def test_borrowed_memory_with_the_right_alignment_is_used_as_it_is(self):
        elements, alignment = 1 << 20, 64  # of the cpu backend's memory
        data = array.array("f", bytes(4 * elements + alignment))
        skipped = -data.buffer_info()[0] % alignment
        aligned = memoryview(data)[skipped // 4:skipped // 4 + elements]
        aligned[5] = 3
        before = len(_host._kept)
        try:
            client = collet.Client("cpu")
        except collet.Error as error:
            self.skipTest(f"no backend whose memory is the host's: {error}")
        x = client.array(aligned, borrow=True).wait()
        self.assertEqual(_host.view_of(x.memoryview(), None).address, data.buffer_info()[0] + skipped)
        # A donated view is not written to.
        program = client.compile(f"HloModule m, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}\n"
                                      f"ENTRY e {{\n  x = f32[{elements}] parameter(0)\n  ROOT y = f32[{elements}] add(x, x)\n}}")
        y = program(x)[0]
        self.assertEqual((y.memoryview()[5], aligned[5]), (6, 3))
        z = client.array(aligned, borrow=True).wait()
        self.assertEqual(len(_host._kept), before + 1)  # the array that was donated is gone
        del z
        gc.collect()
        self.assertEqual(len(_host._kept), before)

    def test_a_result_does_not_use_memory_of_the_caller(self):
        data = array.array("f", range(65536))
        [y] = self.client.compile(SAME)(data)
        data[0] = 7
        self.assertEqual(y.memoryview()[0], 0)

    def test_donation(self):
        program = self.client.compile(DONATES)
        self.assertEqual(program.donates, [True])
        x = self.client.array(floats(1, 2, 3, 4))
        self.assertEqual(program(x)[0].tolist(), [2, 4, 6, 8])
        self.assertTrue(x.is_deleted)
        with self.assertRaises(collet.Error):
            x.tolist()
        x = self.client.array(floats(1, 2, 3, 4))
        view = x.memoryview()  # whoever has a view keeps what it sees
        self.assertEqual(program(x)[0].tolist(), [2, 4, 6, 8])
        self.assertFalse(x.is_deleted)
        self.assertEqual(view.tolist(), [1, 2, 3, 4])

    def test_errors_have_a_code_and_a_place(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "wrong.hlo"
            path.write_text(DOUBLE.replace("add", "ad"))
            with self.assertRaises(collet.Error) as caught:
                self.client.compile(path)
        error = caught.exception
        self.assertEqual(error.code, collet.Code.INVALID_ARGUMENT)
        self.assertEqual(error.place, collet.Place(str(path), 4, 19))
        self.assertIn("did you mean 'add'?", error.message)
        self.assertIn("^", error.details)
        with self.assertRaises(collet.Error) as caught:
            collet.Client("nobody")
        self.assertEqual(caught.exception.code, collet.Code.NOT_FOUND)
        self.assertIsNone(caught.exception.place)

    def test_wrong_arguments(self):
        double = self.client.compile(DOUBLE)
        for arguments, message in (((), "1 parameters (f32[4]), and 0 arguments"), ((floats(1),), "argument 0 is f32[1]"),
                                   ((array.array("d", [1] * 4),), "argument 0 is f64[4], and the program's parameter is f32[4]"),
                                   ((object(),), "argument 0: a object is no array"), (("text",), "argument 0: a str is no array")):
            with self.assertRaises((TypeError, ValueError)) as caught:
                double(*arguments)
            self.assertIn(message, str(caught.exception))
        with self.assertRaisesRegex(ValueError, "format is one of"):
            collet.read(DOUBLE, format="onnx")
        with self.assertRaisesRegex(ValueError, "0 to 3"):
            self.client.compile(DOUBLE, optimization=9)

    def test_numbers_and_strides(self):
        program = self.client.compile("HloModule m\nENTRY e {\n  a = s32[] parameter(0)\n  b = c64[] parameter(1)\n  ROOT t = (s32[], c64[]) tuple(a, b)\n}")
        a, b = program(7, 1 + 2j)
        self.assertEqual(int(a), 7)
        self.assertEqual(b.tobytes(), floats(1, 2).tobytes())
        with self.assertRaisesRegex(TypeError, "argument 0"):
            program(1 << 40, 0)
        every_second = memoryview(floats(*range(8)))[::-2]
        self.assertEqual(self.client.array(every_second).tolist(), [7, 5, 3, 1])
        self.assertEqual(self.client.array(memoryview(floats(*range(6))).cast("B").cast("f", (2, 3))).tolist(), [[0, 1, 2], [3, 4, 5]])
        empty = self.client.array(floats())
        self.assertEqual((empty.shape, empty.tobytes(), empty.memoryview().nbytes), ((0,), b"", 0))

    def test_formats(self):
        module = collet.read(DOUBLE)
        self.assertEqual((module.name, len(module.parameters), str(module.results[0])), ("double", 1, "f32[4]"))
        for name in ("hlo", "hlo_proto", "stablehlo", "stablehlo_artifact"):
            program = self.client.compile(module.write(name), format=name)
            self.assertEqual(program(floats(1, 2, 3, 4))[0].tolist(), [2, 4, 6, 8], name)

    def test_plan_and_explain(self):
        program = self.client.compile(DOUBLE)
        self.assertIn("1 ops on the device", program.explain())
        plan = program.plan
        self.assertEqual((plan.module, plan.device_ops, plan.fallback_ops), ("double", 1, 0))
        self.assertEqual([side for side, _ in plan.instructions()], ["device"])
        self.assertIn("<svg", plan._repr_html_())
        self.assertEqual(program._repr_html_(), plan._repr_html_())
        self.assertIn(("op", "add", True), [(q.kind, q.name, q.accepted) for q in program.questions])
        self.assertEqual(program.facts.device_ops, 1)
        self.assertIn("add(", program.program().decode())

    def test_names_are_escaped_in_pictures(self):
        plan = collet.Plan({"module": "<script>", "backend": "b", "device": "d", "fallback": "", "device_ops": 1, "fallback_ops": 0,
                            "crossing_bytes": 0, "steps": [{"step": "<s>", "instructions": [{"op": "<o>", "type": "<t>", "reason": "<r>"}]}]})
        self.assertNotIn("<script>", plan._repr_html_())
        for text in ("<s>", "<o>", "<t>", "<r>"):
            self.assertNotIn(text, plan._repr_html_())

    def test_dump_and_serialize(self):
        with tempfile.TemporaryDirectory() as folder:
            program = self.client.compile(DOUBLE, dump_to=folder, cache=False)
            self.assertTrue(list(pathlib.Path(folder).rglob("*.hlo")))
        loaded = self.client.load(program.serialize())
        self.assertEqual(loaded(floats(1, 2, 3, 4))[0].tolist(), [2, 4, 6, 8])
        with self.assertRaises(collet.Error) as caught:
            self.client.load(b"no executable")
        self.assertEqual(caught.exception.code, collet.Code.DATA_LOSS)

    def test_profile(self):
        program = self.client.compile(DOUBLE)
        with collet.profile() as profile:
            program(floats(1, 2, 3, 4))
            with self.assertRaises(RuntimeError):
                collet.profile().__enter__()
        kinds = {span.kind for span in profile}
        self.assertLessEqual({"run", "launch"}, kinds)
        self.assertGreater(profile.total_ns("run"), 0)
        self.assertIn("<rect", profile._repr_html_())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            profile.save(path)
            self.assertEqual(len(json.loads(path.read_text())["traceEvents"]), len(profile))
        with collet.profile() as second:
            pass
        self.assertEqual(len(second), 0)

    def test_a_trace_keeps_devices_and_nanoseconds(self):
        start = 1_790_000_000_000_000_000
        profile = collet.profile()
        profile.spans = [collet.Span("run", "", start + 100 * i, 99, 7, 1, 0, device, False, "") for i, device in enumerate((0, None, 1))]
        events = json.loads(json.dumps(profile.trace()))["traceEvents"]
        self.assertEqual([event["args"].get("device") for event in events], [0, None, 1])
        self.assertEqual([round(1000 * event["ts"]) for event in events], [0, 100, 200])
        for one, after in zip(events, events[1:]):
            self.assertLess(one["ts"] + one["dur"], after["ts"])
        self.assertEqual(collet.Profile().trace()["traceEvents"], [])

    def test_progress_gives_up(self):
        stages = []
        self.client.compile(DOUBLE, cache=False, progress=lambda done, stage: stages.append((done, stage)))
        self.assertTrue(stages)
        with self.assertRaises(collet.Error) as caught:
            self.client.compile(DOUBLE, cache=False, progress=lambda done, stage: True)
        # What it raises reaches the caller, as does Ctrl-C, which comes while such a function runs.
        for kind in (ZeroDivisionError, KeyboardInterrupt):
            def fails(done, stage, kind=kind):
                raise kind("in progress")
            with self.assertRaises(kind):
                self.client.compile(DOUBLE, cache=False, progress=fails)
        self.assertEqual(caught.exception.code, collet.Code.CANCELLED)

    def test_host_functions(self):
        seen = []

        def twice(call):
            seen.append((call.target, call.operands[0].readonly, str(call.operand_types[0])))
            for i in range(2):
                for j in range(2):
                    call.results[0][i, j] = 2 * call.operands[0][i, j]

        program = self.client.compile(CALLS, functions={"twice": twice})
        given = memoryview(floats(1, 2, 3, 4)).cast("B").cast("f", (2, 2))
        self.assertEqual(program(given)[0].tolist(), [[2, 4], [6, 8]])
        self.assertEqual(seen, [("twice", True, "f32[2,2]")])

        def fails(call):
            raise KeyError("it went wrong")

        program = self.client.compile(CALLS, functions={"twice": fails})
        with self.assertRaises(collet.Error) as caught:
            program(given)
        self.assertIn("it went wrong", caught.exception.message)

    def test_what_a_function_keeps_is_its_own(self):
        kept = []

        def twice(call):
            kept.append((call.operands[0], call.results[0]))
            call.results[0][0, 0] = 2 * call.operands[0][0, 0]

        with collet.Client("interpreter") as client:
            program = client.compile(CALLS, functions={"twice": twice})
            for value in (1, 5):
                [y] = program(memoryview(floats(value, 2, 3, 4)).cast("B").cast("f", (2, 2)))
                self.assertEqual(y.tolist(), [[2 * value, 0], [0, 0]])
            del y, program
        self.assertEqual([(given.tolist(), made.tolist()) for given, made in kept],
                         [([[1, 2], [3, 4]], [[2, 0], [0, 0]]), ([[5, 2], [3, 4]], [[10, 0], [0, 0]])])
        with self.assertRaises(TypeError):
            kept[0][0][0, 0] = 7
        kept[0][1][0, 0] = 7

    def test_capsules_that_die_while_an_error_is_set(self):
        [y] = self.client.compile(SAME)(array.array("f", range(65536)))
        kept = len(_host._kept)

        class Refused:

            def __index__(self):
                return y.__dlpack__(max_version=(1, 0))

        for _ in range(3):
            with self.assertRaisesRegex(TypeError, "PyCapsule"):
                operator.index(Refused())
        capsule = y.__dlpack__(max_version=(1, 0))
        with self.assertRaisesRegex(BufferError, "has views"):
            y.delete()  # somebody may take it yet
        self.assertEqual(len(_host._kept), kept + 1)
        owner = _host.view_of(Offering(capsule), None)
        del capsule
        _host.drop_refused()
        self.assertEqual(len(_host._kept), kept + 1)
        with self.assertRaisesRegex(BufferError, "has views"):
            y.delete()
        del owner
        self.assertEqual((len(_host._kept), len(_host._offered)), (kept, 0))
        with self.assertRaisesRegex(TypeError, "PyCapsule"):
            operator.index(Refused())
        y.delete()
        self.assertEqual((len(_host._kept), y.is_deleted), (kept, True))

    def test_participants_and_runs(self):
        with collet.Client("interpreter", devices=2) as client:
            program = client.compile(REPLICAS)
            self.assertEqual(program.facts.participants, 2)
            with self.assertRaisesRegex(ValueError, "2 participants"):
                program(floats(1, 2))
            run = program.start([[floats(1, 2)], [floats(10, 20)]])
            self.assertEqual([results[0].tolist() for results in run.wait(60)], [[11, 22], [11, 22]])
            self.assertTrue(run.is_done)
            self.assertEqual([results[0].device for results in run.results], [0, 1])
            moved = run.results[0][0].to(1)
            self.assertEqual((moved.device, moved.tolist()), (1, [11, 22]))
            swapped = client.compile(REPLICAS, assignment=[1, 0])
            results = swapped.start([[floats(1, 2)], [floats(10, 20)]]).wait()
            self.assertEqual([r[0].device for r in results], [1, 0])
            del moved, results, run

    def test_closing(self):
        client = collet.Client("interpreter")
        [y] = client.compile(DOUBLE)(floats(1, 2, 3, 4))
        client.close()
        client.close()
        self.assertTrue(client.is_closed)
        self.assertEqual(y.tolist(), [2, 4, 6, 8])
        with self.assertRaisesRegex(ValueError, "closed"):
            client.compile(DOUBLE)
        with self.assertRaisesRegex(ValueError, "closed"):
            client.array(floats(1))

    def test_clients_and_functions_that_refer_to_each_other_end(self):
        given = memoryview(floats(1, 2, 3, 4)).cast("B").cast("f", (2, 2))

        class Model:
            def __init__(self):
                self.client = collet.Client("interpreter", log=self.log)
                self.program = self.client.compile(CALLS, functions={"twice": self.twice})
                self.program(given)

            def log(self, severity, message):
                pass

            def twice(self, call):
                call.results[0][0, 0] = 2 * call.operands[0][0, 0]

        def drop(closes):
            model = Model()
            if closes:
                model.program = None
                model.client.close()
            return weakref.ref(model)

        kept, closed, close = len(_host._kept), [], _abi.lib.collet_client_close
        with unittest.mock.patch.object(_abi.lib, "collet_client_close", lambda value: (closed.append(value), close(value))):
            for closes in (False, True):
                models = [drop(closes) for _ in range(3)]
                gc.collect()
                self.assertEqual([model() for model in models], [None] * 3)
        self.assertEqual((len(closed), len(_host._kept)), (6, kept))

    def test_functions_outlive_a_client_that_others_keep_open(self):
        def twice(call):
            call.results[0][0, 0] = 2 * call.operands[0][0, 0]

        client = collet.Client("interpreter")
        x = client.array(memoryview(floats(1, 2, 3, 4)).cast("B").cast("f", (2, 2)))
        program = client.compile(CALLS, functions={"twice": twice})
        function = weakref.ref(twice)
        client.close()
        del client, twice
        gc.collect()
        self.assertIsNotNone(function())
        self.assertEqual(program(x)[0].tolist(), [[2, 0], [0, 0]])

        # A close by a host function does not wait for the run that calls it.
        def closes(call):
            closing.pop().close()

        closing = [collet.Client("interpreter", log=lambda severity, message: None)]
        log = weakref.ref(closing[0]._functions[0])
        self.client.compile(CALLS, functions={"twice": closes})(x.memoryview())
        gc.collect()
        self.assertEqual(closing, [])
        self.assertIsNotNone(log())

    def test_threads(self):
        program, wrong = self.client.compile(DOUBLE), []

        def work(number):
            for step in range(50):
                values = [number, step, number + step, 1]
                if program(floats(*values))[0].tolist() != [2 * v for v in values]:
                    wrong.append((number, step))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        with collet.profile() as profile:  # listens on all threads while garbage is collected
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(sum(span.kind == "run" for span in profile), 200)

    def test_log(self):
        messages = []
        with collet.Client("interpreter", log=lambda severity, message: messages.append((severity, message))) as client:
            client.compile(DOUBLE)
        self.assertTrue(all(isinstance(severity, collet.Severity) and message for severity, message in messages))

    def test_conform_and_bench(self):
        report = collet.conform("interpreter", filters=["add/f32/scalar/*"])
        self.assertTrue(report.passed)
        self.assertTrue(report.cases and not report.failures)
        self.assertEqual(report.counts["pass"], len(report.cases))
        self.assertIn(report.verdict, report._repr_html_())
        with self.assertRaises(collet.ToolError) as caught:
            collet.conform("nobody")
        self.assertEqual(caught.exception.exit_code, 4)
        with self.assertRaises(collet.ToolError) as caught:
            collet.conform("interpreter", profiles=["none such"])
        self.assertEqual(caught.exception.exit_code, 2)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "double.hlo").write_text(DOUBLE)
            bench = collet.bench("interpreter", programs=folder, repeat=3)
        self.assertEqual([case.name for case in bench.cases], ["double"])
        self.assertGreater(bench.cases[0].median_ns, 0)
        self.assertIn("double", bench._repr_html_())

    def test_the_command(self):
        for command, out in ((["--version"], f"collet {collet.__version__}\n"), (["--cmake-dir"], f"{collet.cmake_dir()}\n")):
            done = subprocess.run([sys.executable, "-m", "collet", *command], text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (0, out))
        done = subprocess.run([sys.executable, "-m", "collet", "dance"], text=True, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertTrue((collet.cmake_dir() / "ColletConfig.cmake").is_file())

    def test_the_interpreter_ends_while_things_are_alive(self):
        script = ("import array, collet\nclient = collet.Client('interpreter')\n"
                  "x = client.array(array.array('f', [1] * 4), borrow=True)\n"
                  f"program = client.compile({DOUBLE!r})\nrun = program.start([[x]])\ny = program(x)[0]\nview = y.memoryview()\n"
                  "profile = collet.profile()\nprofile.__enter__()\nprogram(x)\ncapsule = y.__dlpack__(max_version=(1, 0))\n")
        for _ in range(3):
            done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
