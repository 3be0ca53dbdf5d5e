# SPDX-License-Identifier: Apache-2.0
"""Builds drawn programs of loops. None amplifies rounding errors without bound, so that results can be compared."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from programs import Program


def repeated(body):
    """A program that applies `body`, a function of the step and the vector, several times."""
    return lambda m, steps, width: Program(lambda x: lax.fori_loop(0, steps, body, x), (m.floats(width),))


def positive(m, *shape):
    return np.abs(m.floats(*shape))


def newton(m, width):
    def roots(x):
        return lax.while_loop(lambda state: state[1] < 30, lambda state: (0.5 * (state[0] + x / state[0]), state[1] + 1), (x, 0))[0]
    return Program(roots, (positive(m, width) + 1,))


def until(m, width):
    def small(state):
        return (state[1] < 200) & (jnp.abs(state[0]).max() > 1e-3)
    return Program(lambda x: lax.while_loop(small, lambda state: (state[0] * 0.95, state[1] + 1), (x, 0))[0], (m.floats(width),))


def until_each(m, width):
    return Program(jax.vmap(lambda x: lax.while_loop(lambda x: x > 1, lambda x: x * 0.7, x)), (positive(m, width) * 100,))


def bisection(m, width):
    def cube_roots(x):
        def step(i, bounds):
            middle = (bounds[0] + bounds[1]) / 2
            return jnp.where(middle ** 3 < x, middle, bounds[0]), jnp.where(middle ** 3 < x, bounds[1], middle)
        return lax.fori_loop(0, 40, step, (jnp.zeros(width), jnp.full(width, 10.0)))[0]
    return Program(cube_roots, (positive(m, width),))


def collatz(m, width):
    step = lambda i, x: jnp.where(x % 2 == 0, x // 2, 3 * x + 1)
    return Program(lambda x: lax.fori_loop(0, 100, step, x), (m.indices(width, 1000) + 1,), tolerance=0)


def sum_squares(m, steps, width):
    step = lambda total, x: (total + x * x, total.max())
    return Program(lambda x: lax.scan(step, jnp.zeros(width), x), (m.floats(steps, width),))


def selection(m, steps, width):
    """Finds the positions of the largest elements, one in each step."""
    def function(x):
        def step(i, state):
            place = jnp.argmax(state[0])
            return state[0].at[place].set(-1e9), state[1].at[i].set(place)
        return lax.fori_loop(0, min(steps, width), step, (x, jnp.zeros(steps, jnp.int32)))[1]
    return Program(function, (m.floats(width),), tolerance=0)


def set_element(m, steps):
    step = lambda i, x: x.at[i].set(i * 0.5 + 0.5 * x[(i * 7) % steps])
    return Program(lambda x: lax.fori_loop(0, steps, step, x), (m.floats(steps),))


def switch(m, steps):
    branches = [lambda x: x + 1, lambda x: x * 0.5, jnp.sin]
    return Program(lambda x: lax.fori_loop(0, steps, lambda i, x: lax.switch(i % 3, branches, x), x), (np.float32(0.3),))


def fibonacci(m, steps):
    step = lambda i, state: (state[1], (state[0] + state[1]) % 10007)
    return Program(lambda x: lax.fori_loop(0, steps, step, (x, x + 1))[1], (np.int32(1),), tolerance=0)


def previous_row(m, steps, width):
    return Program(lambda x: lax.fori_loop(1, steps, lambda i, x: x.at[i].set(x[i - 1] * 0.9 + x[i]), x), (m.floats(steps, width),))


def least_path(m, n):
    def element(i, j, x):
        return x.at[i, j].set(jnp.minimum(jnp.minimum(x[i - 1, j], x[i, j - 1]), x[i - 1, j - 1]) + x[i, j])

    def row(i, x):
        return lax.fori_loop(1, n, lambda j, x: element(i, j, x), x)
    return Program(lambda x: lax.fori_loop(1, n, row, x), (positive(m, n, n),))


def recurrence(m, steps, width):
    def function(x, weights):
        return lax.scan(lambda h, u: (jnp.tanh(weights @ h + u), h), jnp.zeros(width), x)[1]
    return Program(function, (m.floats(steps, width), m.floats(width, width, scale=0.1)))


def heat(m, n):
    def step(i, x):
        return x.at[1:-1, 1:-1].set(0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]))
    return Program(lambda x: lax.fori_loop(0, 20, step, x), (m.floats(n, n),))


def heat_3d(m, n):
    def step(i, x):
        return x + 0.1 * (sum(jnp.roll(x, by, axis) for axis in range(3) for by in (1, -1)) - 6 * x)
    return Program(lambda x: lax.fori_loop(0, 5, step, x), (m.floats(n, n, n),))


def nested(m, steps):
    outer = lambda i, x: lax.fori_loop(0, 50, lambda j, x: x * 0.999 + i * j * 1e-6, x)
    return Program(lambda x: lax.fori_loop(0, steps, outer, x), (np.float32(1),))


def lorenz(m, steps, width):
    """Runge and Kutta's method. Errors grow with the steps, because the system is chaotic; 400 are few enough."""
    def slope(y):
        return jnp.stack([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])

    def step(y, _):
        a = slope(y)
        b = slope(y + 0.005 * a)
        c = slope(y + 0.005 * b)
        y = y + 0.01 / 6 * (a + 2 * b + 2 * c + slope(y + 0.01 * c))
        return y, y
    return Program(lambda y: lax.scan(step, y, None, length=steps)[1], (m.floats(3, width),), tolerance=1e-2)


def power_iteration(m, n):
    def function(a, x):
        def step(i, x):
            y = a @ x
            return y / jnp.linalg.norm(y)
        return lax.fori_loop(0, 50, step, x)
    a = m.floats(n, n)
    return Program(function, (a @ a.T / n, m.floats(n)))


def life(m, n):
    def step(i, x):
        around = sum(jnp.roll(jnp.roll(x, down, 0), right, 1) for down in (-1, 0, 1) for right in (-1, 0, 1)) - x
        return ((around == 3) | ((x == 1) & (around == 2))).astype(x.dtype)
    return Program(lambda x: lax.fori_loop(0, 10, step, x), ((m.random.random((n, n)) < 0.3).astype(np.int32),), tolerance=0)


def knapsack(m, n):
    def function(weights, values):
        def step(i, best):
            taken = jnp.where(jnp.arange(500) >= weights[i], jnp.roll(best, weights[i]) + values[i], 0)
            return jnp.maximum(best, taken)
        return lax.fori_loop(0, n, step, jnp.zeros(500))
    return Program(function, (m.indices(n, 50) + 1, positive(m, n)))


def viterbi(m, steps):
    """Scores are integers, because ties of rounded sums would differ."""
    def function(emitted, moves):
        def step(score, seen):
            paths = score[:, None] + moves
            return paths.max(0) + seen, paths.argmax(0)
        return lax.scan(step, emitted[0], emitted[1:])
    return Program(function, (m.floats(steps, 20), m.floats(20, 20)), tolerance=0)


def gradient(m, steps, width):
    def loss(x):
        return jnp.sum(lax.scan(lambda x, _: (jnp.sin(x) * 1.1, None), x, None, length=steps)[0])
    return Program(jax.grad(loss), (m.floats(width),))


def add_element(m, steps, width):
    function = lambda x, i: lax.fori_loop(0, steps, lambda step, x: x.at[i[step]].add(1.0), x)
    return Program(function, (m.floats(width), m.indices(steps, width)))


def jacobi(m, n):
    def function(a, b):
        diagonal = jnp.diag(a)
        return lax.fori_loop(0, 30, lambda i, x: (b - (a @ x - diagonal * x)) / diagonal, jnp.zeros(n))
    return Program(function, (m.floats(n, n) + 2 * n * np.eye(n, dtype=np.float32), m.floats(n)))


def subsequence(m, n):
    """The length of the longest common subsequence, a row of the table in each step."""
    def function(a, b):
        def step(row, letter):
            longer = jnp.concatenate([jnp.zeros(1, jnp.int32), row[:-1] + (b[1:] == letter)])
            return lax.cummax(jnp.maximum(row, longer), 0), None
        return lax.scan(step, jnp.zeros(n, jnp.int32), a)[0]
    return Program(function, (m.indices(n, 4), m.indices(n, 4)), tolerance=0)


def complex_map(m, n):
    c = m.floats(n, n)
    return Program(lambda c: lax.fori_loop(0, 30, lambda i, z: z * z * 0.3 + c, c * 0), (0.7 * c / (1 + np.abs(c)),))


def congruential(m, steps, width):
    step = lambda i, x: x * jnp.uint32(1664525) + jnp.uint32(1013904223)
    return Program(lambda x: lax.fori_loop(0, steps, step, x), (m.floats(width),), tolerance=0)


LOOP = {
    "sines": repeated(lambda i, x: x * 0.99 + jnp.sin(x) * 0.1),
    "branch": repeated(lambda i, x: lax.cond(i % 3 == 0, lambda x: x * 1.01, lambda x: x - 0.5, x)),
    "congruential": congruential, "newton": newton, "until": until, "until_each": until_each, "bisection": bisection, "collatz": collatz,
    "sum_squares": sum_squares, "selection": selection, "set_element": set_element, "switch": switch, "fibonacci": fibonacci,
    "previous_row": previous_row, "least_path": least_path, "recurrence": recurrence, "heat": heat, "heat_3d": heat_3d, "nested": nested,
    "lorenz": lorenz, "power_iteration": power_iteration, "life": life, "knapsack": knapsack, "viterbi": viterbi, "gradient": gradient,
    "add_element": add_element, "jacobi": jacobi, "subsequence": subsequence, "complex_map": complex_map,
}

BUILDERS = {"loop": LOOP}
