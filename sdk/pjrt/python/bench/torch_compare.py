# SPDX-License-Identifier: Apache-2.0
"""Compares Collet with PyTorch on the cpu: both alternate in one process and use the same number of threads.

Collet is called through JAX, and through its C interface, whose call is the shorter one: JAX alone takes some microseconds. A program's
peer is the fastest of eager PyTorch, torch.compile and, for products of f32, oneDNN's function. Exit code 1: a program failed, results
differ, or both ratios of a program lie below --least.
"""
import json
import os
import statistics
import sys
import time

import c_interface
import torch_programs
from options import check, new_parser, wanted

SHORTEST_SAMPLE = 5e-3  # seconds: programs that take less run several times in one sample, whose start from rest must not count
FEWEST_SAMPLES = 5
REST = 20e-3  # seconds between samples: PyTorch's threads spin for some milliseconds before they sleep


def parse(arguments):
    parser = new_parser("--torch", __doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="measuring time of each program (%(default)s)")
    parser.add_argument("--least", type=float, default=0, help="exit code 1 where a program has less of PyTorch's speed (%(default)s)")
    parser.add_argument("--eager", action="store_true", help="leave torch.compile out")
    options = parser.parse_args(arguments)
    check(parser, options)
    options.names = [name for name in torch_programs.names() if wanted(name, options.filters)]
    if not options.names:
        parser.error("no program has such a name; --list has them")
    return options


class Side:
    """One way to run a program: `run` starts it, `finish` waits for its results."""

    def __init__(self, name, run, finish=lambda results: results):
        self.name, self.run, self.finish, self.samples = name, run, finish, []
        self.results = finish(run())
        once = min(self.sample(1) for _ in range(3))
        self.times = max(1, min(1000, int(SHORTEST_SAMPLE / once) + 1))

    def sample(self, times):
        self.finish(self.run())
        begun = time.perf_counter()
        for _ in range(times):
            results = self.run()
        self.finish(results)
        return (time.perf_counter() - begun) / times

    @property
    def seconds(self):
        return statistics.median(self.samples)


def sides_of(program, device, from_c, eager_alone):
    """Returns the sides of a program, of which the first two are ours. `from_c`: the same program of the C interface."""
    import jax
    import torch
    arguments = [jax.device_put(x, device) for x in program.arguments]
    ours = jax.jit(program.jax).lower(*arguments).compile()
    sides = [Side("JAX", lambda: ours(*arguments), jax.block_until_ready), Side("C", from_c.run)]
    sides[1].results = from_c.result()
    theirs = program.torch_arguments()
    sides.append(Side("eager", lambda: program.torch(*theirs)))
    if program.onednn:
        sides.append(Side("oneDNN", lambda: program.onednn(*theirs)))
    if not eager_alone:
        torch._dynamo.reset()
        compiled = torch.compile(program.torch, dynamic=False)
        sides.append(Side("compile", lambda: compiled(*theirs)))
    return sides


def compare(program, device, client, options):
    row = {"name": program.name}
    try:
        from_c = c_interface.Program(client, stablehlo_of(program), program.arguments)
    except Exception as problem:  # the other programs must still be measured
        return row | {"error": first_line(problem)}
    try:
        sides = sides_of(program, device, from_c, options.eager)
    except Exception as problem:
        from_c.close()
        return row | {"error": first_line(problem)}
    ours, peers = sides[:2], sides[2:]
    row["difference"] = max(program.difference(our.results, peer.results) for our in ours for peer in peers)
    row["agrees"] = row["difference"] <= program.tolerance
    for side in sides:
        side.results = None
    end, turn = time.perf_counter() + options.seconds, 0
    while time.perf_counter() < end or turn < FEWEST_SAMPLES:
        for side in (sides if turn % 2 == 0 else reversed(sides)):
            time.sleep(REST)
            side.samples.append(side.sample(side.times))
        turn += 1
    from_c.close()
    best = min(peers, key=lambda side: side.seconds)
    least = min(min(side.samples) for side in peers)
    through_jax, through_c = ours
    return row | {"seconds": through_jax.seconds, "ratio": best.seconds / through_jax.seconds, "peer": best.name, "samples": turn,
                  "least_ratio": least / min(through_jax.samples), "c_seconds": through_c.seconds,
                  "c_ratio": best.seconds / through_c.seconds, "c_least_ratio": least / min(through_c.samples),
                  "peers": {side.name: side.seconds for side in peers}}


def stablehlo_of(program):
    import jax
    return str(jax.jit(program.jax).lower(*program.arguments).compiler_ir("stablehlo"))


def first_line(problem):
    return str(problem).strip().splitlines()[0][:300]


def best_ratio(row):
    return max(row["ratio"], row["c_ratio"])


def run(options):
    # This must happen before either side is loaded, because both determine their number of threads when they start.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    os.environ.update(COLLET_CPU_THREADS=str(options.threads), OMP_NUM_THREADS=str(options.threads), JAX_PLATFORMS="collet,cpu",
                      COLLET_FALLBACK=os.environ.get("COLLET_FALLBACK", "none"))
    import torch
    import jax
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    print(f"{options.threads} thread{'s' if options.threads > 1 else ''}; ratios to the fastest of torch {torch.__version__}, eager or compiled, and oneDNN\n")
    print(f"{'':<44} {'through JAX':>26} {'through C':>26}\n"
          f"{'program':<44}" + f" {'ratio':>6} {'of least':>8} {'ours us':>10}" * 2 + f" {'peer us':>10}  peer")
    rows = []
    client = c_interface.Client()
    for name in options.names:
        row = compare(torch_programs.make(name), jax.devices("collet")[0], client, options)
        jax.clear_caches()
        rows.append(row)
        if "error" in row:
            print(f"{name:<44} failed: {row['error']}", flush=True)
            continue
        print(f"{name:<44} {row['ratio']:6.2f} {row['least_ratio']:8.2f} {row['seconds'] * 1e6:10.1f} "
              f"{row['c_ratio']:6.2f} {row['c_least_ratio']:8.2f} {row['c_seconds'] * 1e6:10.1f} "
              f"{row['peers'][row['peer']] * 1e6:10.1f}  {row['peer']}" + ("" if row["agrees"] else f"  RESULTS DIFFER: {row['difference']:.1e}"),
              flush=True)
    client.close()
    return {"torch": torch.__version__, "threads": options.threads, "rows": rows}


def main(arguments):
    options = parse(arguments)
    if options.list:
        print("\n".join(options.names))
        return 0
    report = run(options)
    ran = [row for row in report["rows"] if "ratio" in row]
    if ran:
        print()
        least = options.least or 0.9
        for title, key in (("through JAX", "ratio"), ("through C", "c_ratio")):
            print(f"{title}: geometric mean {statistics.geometric_mean(row[key] for row in ran):.2f} of {len(ran)}; "
                  f"below {least}: {sum(row[key] < least for row in ran)}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if all(row.get("agrees") and best_ratio(row) >= options.least for row in report["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
