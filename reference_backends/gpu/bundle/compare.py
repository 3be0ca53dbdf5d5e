# SPDX-License-Identifier: Apache-2.0
"""Measures the cases of the bundle with jax or torch on the same GPU, beside the figures of `collet bench --json`.

  compare.py --write DIR --size small         writes the cases as HLO text, for collet bench --cases
  compare.py --with jax --bench bench.json    compares

Every side has its arrays on the device, runs a case once to compile it, and is timed from the call to the end of the work on
the device. A ratio above 1 means that Collet takes less time.
"""
import argparse
import json
import math
import pathlib
import statistics
import time

REDUCERS = "".join(f"""
{name} {{
  a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT c = T[] {op}(a, b)
}}
""" for name, op in (("max", "maximum"), ("sum", "add")))


def softmax_lines(shape, source, name):
    """Softmax of the rows of `source`, an array of shape T[...], as instructions; the result is `name`."""
    *rows, columns = shape
    full, row = f"T[{','.join(map(str, shape))}]", f"T[{','.join(map(str, rows))}]"
    last, kept = len(rows), "{" + ",".join(map(str, range(len(rows)))) + "}"
    return f"""  low = T[] constant(-inf)
  zero = T[] constant(0)
  m = {row} reduce({source}, low), dimensions={{{last}}}, to_apply=max
  mb = {full} broadcast(m), dimensions={kept}
  d = {full} subtract({source}, mb)
  e = {full} exponential(d)
  s = {row} reduce(e, zero), dimensions={{{last}}}, to_apply=sum
  sb = {full} broadcast(s), dimensions={kept}
  {name} = {full} divide(e, sb)
"""


def elementwise(n, m):
    return f"""  x = T[{n},{m}] parameter(0)
  y = T[{n},{m}] parameter(1)
  p = T[{n},{m}] multiply(x, y)
  t = T[{n},{m}] tanh(p)
  ROOT r = T[{n},{m}] add(t, x)
"""


def softmax(n, m):
    return f"  x = T[{n},{m}] parameter(0)\n" + softmax_lines((n, m), "x", "ROOT r")


def layer_norm(n, m):
    full, row = f"T[{n},{m}]", f"T[{n}]"
    return f"""  x = {full} parameter(0)
  zero = T[] constant(0)
  each = T[] constant({1 / m!r})
  eb = {row} broadcast(each), dimensions={{}}
  s = {row} reduce(x, zero), dimensions={{1}}, to_apply=sum
  mean = {row} multiply(s, eb)
  mb = {full} broadcast(mean), dimensions={{0}}
  d = {full} subtract(x, mb)
  q = {full} multiply(d, d)
  v = {row} reduce(q, zero), dimensions={{1}}, to_apply=sum
  w = {row} multiply(v, eb)
  tiny = T[] constant(1e-05)
  tb = {row} broadcast(tiny), dimensions={{}}
  u = {row} add(w, tb)
  i = {row} rsqrt(u)
  ib = {full} broadcast(i), dimensions={{0}}
  ROOT r = {full} multiply(d, ib)
"""


def row_sum(n, m):
    return f"""  x = T[{n},{m}] parameter(0)
  zero = T[] constant(0)
  ROOT r = T[{n}] reduce(x, zero), dimensions={{1}}, to_apply=sum
"""


def column_sum(n, m):
    return f"""  x = T[{n},{m}] parameter(0)
  zero = T[] constant(0)
  ROOT r = T[{m}] reduce(x, zero), dimensions={{0}}, to_apply=sum
"""


def transpose(n, m):
    return f"""  x = T[{n},{m}] parameter(0)
  ROOT r = T[{m},{n}] transpose(x), dimensions={{1,0}}
"""


def product(n, m):
    return f"""  x = T[{n},{m}] parameter(0)
  y = T[{m},{n}] parameter(1)
  ROOT r = T[{n},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
"""


def attention(n, m):
    """n rows of queries and keys of each of 16 heads, of width m."""
    part, square = f"T[16,{n},{m}]", f"T[16,{n},{n}]"
    return f"""  q = {part} parameter(0)
  k = {part} parameter(1)
  v = {part} parameter(2)
  c = {square} dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
  h = T[] constant({1 / math.sqrt(m)!r})
  hb = {square} broadcast(h), dimensions={{}}
  a = {square} multiply(c, hb)
""" + softmax_lines((16, n, n), "a", "w") + f"""  ROOT r = {part} dot(w, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
"""


# name -> HLO, types, sizes (large, small), the arguments' shapes of a size.
two, one = (lambda n, m: [(n, m)] * 2), (lambda n, m: [(n, m)])
CASES = {
    "elementwise": (elementwise, ("f32", "bf16"), (8192, 8192), (64, 256), two),
    "softmax": (softmax, ("f32", "bf16"), (16384, 2048), (32, 256), one),
    "layernorm": (layer_norm, ("f32",), (16384, 2048), (32, 256), one),
    "rowsum": (row_sum, ("f32",), (16384, 4096), (32, 512), one),
    "columnsum": (column_sum, ("f32",), (16384, 4096), (512, 32), one),
    "transpose": (transpose, ("f32", "bf16"), (8192, 8192), (96, 160), one),
    "product": (product, ("f32", "bf16"), (4096, 4096), (64, 96), lambda n, m: [(n, m), (m, n)]),
    "attention": (attention, ("bf16",), (2048, 64), (32, 32), lambda n, m: [(16, n, m)] * 3),
}


def cases(size):
    """(name, HLO text, family, type, shapes of the arguments)."""
    for family, (text, types, large, small, shapes) in CASES.items():
        for kind in types:
            n, m = large if size == "large" else small
            reducers = REDUCERS if "to_apply" in text(n, m) else "\n"
            body = f"HloModule {family}\n{reducers}\nENTRY main {{\n{text(n, m)}}}\n".replace("T[", kind + "[")
            yield f"{family}_{kind}", body, family, kind, shapes(n, m)


def jax_side():
    import jax
    import jax.numpy as np
    device = jax.devices("gpu")[0]

    def layer(x):
        d = x - x.mean(1, keepdims=True)
        return d * jax.lax.rsqrt((d * d).mean(1, keepdims=True) + 1e-5)

    def attend(q, k, v):
        scores = np.einsum("hqd,hkd->hqk", q, k) * (1 / math.sqrt(q.shape[-1]))
        return np.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, -1), v)

    functions = {"elementwise": lambda x, y: np.tanh(x * y) + x, "softmax": lambda x: jax.nn.softmax(x, -1), "layernorm": layer,
                 "rowsum": lambda x: x.sum(1), "columnsum": lambda x: x.sum(0), "transpose": lambda x: x.T.copy(),
                 "product": lambda x, y: x @ y, "attention": attend}

    def prepare(family, kind, shapes):
        types = {"f32": np.float32, "bf16": np.bfloat16}
        keys = jax.random.split(jax.random.key(0), len(shapes))
        arguments = [jax.device_put(jax.random.normal(key, shape, types[kind]), device) for key, shape in zip(keys, shapes)]
        function = jax.jit(functions[family])
        return lambda: function(*arguments).block_until_ready()

    return f"jax {jax.__version__} on {device.device_kind}", prepare


def torch_side():
    import torch
    if not torch.cuda.is_available():
        raise RuntimeError("torch sees no GPU")
    t = torch

    def layer(x):
        d = x - x.mean(1, keepdim=True)
        return d * t.rsqrt((d * d).mean(1, keepdim=True) + 1e-5)

    functions = {"elementwise": lambda x, y: t.tanh(x * y) + x, "softmax": lambda x: t.softmax(x, -1), "layernorm": layer,
                 "rowsum": lambda x: x.sum(1), "columnsum": lambda x: x.sum(0), "transpose": lambda x: x.t().contiguous(),
                 "product": lambda x, y: x @ y, "attention": t.nn.functional.scaled_dot_product_attention}

    def prepare(family, kind, shapes):
        types = {"f32": t.float32, "bf16": t.bfloat16}
        arguments = [t.randn(shape, dtype=types[kind], device="cuda") for shape in shapes]
        function = t.compile(functions[family])

        def run():
            function(*arguments)
            t.cuda.synchronize()
        return run

    return f"torch {t.__version__} on {t.cuda.get_device_name()}", prepare


def median_ns(run, repeat):
    for _ in range(3):
        run()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - begin)
    return statistics.median(times)


def compare(options):
    bench = {case["name"]: case for case in json.loads(options.bench.read_text())["cases"]}
    try:
        title, prepare = (jax_side if options.other == "jax" else torch_side)()
    except RuntimeError as problem:
        print(f"{options.other} sees no GPU: {problem}")
        return 77
    print(title)
    rows = []
    for name, _, family, kind, shapes in cases(options.size):
        row = {"name": name, "collet_ns": bench.get(name, {}).get("fused", {}).get("median_ns")}
        rows.append(row)
        try:
            row["other_ns"] = median_ns(prepare(family, kind, shapes), options.repeat)
        except Exception as problem:  # of any kind, so that the next case runs
            row["error"] = f"{type(problem).__name__}: {problem}"[:300]
        if row["collet_ns"] and row.get("other_ns"):
            row["ratio"] = row["other_ns"] / row["collet_ns"]
        shown = [f"{row[key] / 1e3:12.1f}" if row.get(key) else " " * 11 + "-" for key in ("collet_ns", "other_ns")]
        print(f"{name:<20} {shown[0]} us {shown[1]} us  {row.get('ratio', float('nan')):6.2f}  {row.get('error', '')}", flush=True)
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    mean = statistics.geometric_mean(ratios) if ratios else None
    if options.json:
        options.json.write_text(json.dumps({"with": title, "geometric_mean": mean, "cases": rows}, indent=1))
    print(f"geometric mean of {len(ratios)} ratios: {mean:.2f}" if ratios else "no case ran on both sides")
    return 0 if ratios else 1


def check():
    """Runs a loss and its gradient on the plugin's device and on jax's cpu."""
    import jax
    import jax.numpy as np

    def loss(w, x):
        return np.mean(jax.nn.log_softmax(np.tanh(x @ w))[:, 0] ** 2)

    w, x = np.linspace(-1, 1, 64 * 32).reshape(64, 32), np.cos(np.arange(16 * 64.0)).reshape(16, 64)
    results = []
    for platform in ("collet", "cpu"):
        device = jax.devices(platform)[0]
        results.append(jax.jit(jax.value_and_grad(loss))(jax.device_put(w, device), jax.device_put(x, device)))
    (mine, my_gradient), (theirs, their_gradient) = jax.device_get(results)
    difference = max(abs(mine - theirs), abs(my_gradient - their_gradient).max())
    print(f"jax {jax.__version__}: loss {mine:.6f}, largest difference from jax's cpu {difference:.1e}")
    return 0 if difference < 1e-4 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("large", "small"), default="large")
    parser.add_argument("--write", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--with", dest="other", choices=("jax", "torch"))
    parser.add_argument("--bench", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--check", action="store_true", help="only run a program through the plugin, and compare with jax's cpu")
    options = parser.parse_args()
    if options.check:
        return check()
    if options.write:
        options.write.mkdir(parents=True, exist_ok=True)
        for name, text, *_ in cases(options.size):
            (options.write / f"{name}.hlo").write_text(text)
        return 0
    if not options.other or not options.bench:
        parser.error("--write, or --with and --bench")
    return compare(options)


if __name__ == "__main__":
    raise SystemExit(main())
