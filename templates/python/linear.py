# SPDX-License-Identifier: Apache-2.0
"""Runs a program on a backend and says what ran where: `python linear.py [BACKEND]`. Needs no other package."""
import array
import sys

import collet

PROGRAM = """HloModule linear

ENTRY linear {
  x = f32[2,3] parameter(0)
  w = f32[3,2] parameter(1)
  b = f32[2] parameter(2)
  product = f32[2,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  rows = f32[2,2] broadcast(b), dimensions={1}
  ROOT y = f32[2,2] add(product, rows)
}
"""


def matrix(rows):
    """Returns nested lists as a memoryview of float32 with two dimensions."""
    flat = array.array("f", [value for row in rows for value in row])
    return memoryview(flat).cast("B").cast("f", (len(rows), len(rows[0])))


def main():
    backend = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    with collet.Client(backend) as client:
        linear = client.compile(PROGRAM)
        # Weights that are used often are put on the device once.
        weights = client.array(matrix([[1, 2], [3, 4], [5, 6]]))
        [y] = linear(matrix([[1, 0, 0], [0, 1, 1]]), weights, array.array("f", [10, 20]))
        print("y =", y.tolist())
        print(linear.explain())
    assert y.tolist() == [[11, 22], [18, 30]], "the result is wrong"


if __name__ == "__main__":
    main()
