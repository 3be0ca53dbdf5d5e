# SPDX-License-Identifier: Apache-2.0
"""Shows where the time of a program goes, and writes a trace for Perfetto: `python profile.py [BACKEND] [TRACE.json]`."""
import array
import sys

import collet

PROGRAM = """HloModule softmax

larger { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}
plus { c = f32[] parameter(0)
  d = f32[] parameter(1)
  ROOT s = f32[] add(c, d)
}
ENTRY softmax {
  x = f32[1048576] parameter(0)
  lowest = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[] reduce(x, lowest), dimensions={0}, to_apply=larger
  tops = f32[1048576] broadcast(top), dimensions={}
  shifted = f32[1048576] subtract(x, tops)
  powers = f32[1048576] exponential(shifted)
  sum = f32[] reduce(powers, zero), dimensions={0}, to_apply=plus
  sums = f32[1048576] broadcast(sum), dimensions={}
  ROOT y = f32[1048576] divide(powers, sums)
}
"""


def main():
    backend = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    with collet.Client(backend) as client, collet.profile() as profile:
        softmax = client.compile(PROGRAM)
        x = client.array(array.array("f", [0.0]) * 1048576)
        for _ in range(5):
            [y] = softmax(x)
        assert abs(sum(y.memoryview()) - 1) < 1e-3, "the result is wrong"
    for kind in ("compile", "run", "launch"):
        spans = [span for span in profile if span.kind == kind]
        print(f"{kind:8} {len(spans):3} spans {profile.total_ns(kind) / 1e6:10.3f} ms")
    if len(sys.argv) > 2:
        profile.save(sys.argv[2])


if __name__ == "__main__":
    main()
