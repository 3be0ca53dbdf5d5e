# SPDX-License-Identifier: Apache-2.0
"""Trains on several processes, keeps a checkpoint in the middle, and goes on from it.

    python checkpoint.py                       # starts two processes and checks what they compute
    python checkpoint.py --processes 4

The parameters are spread over the devices of all processes. For the checkpoint, they are gathered in each process and the first one
writes them. All read the file, spread the parameters again, and train further with the step that was compiled before, which is kept
beside the parameters. The losses must be those of a training that was not interrupted.
"""
import argparse
import pathlib
import pickle
import socket
import subprocess
import sys
import tempfile

import numpy as np

FEATURES, ROWS, STEPS = 64, 256, 4


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2, metavar="N", help="how many processes (%(default)s)")
    parser.add_argument("--rank", type=int, help="be this process; without, all are started")
    parser.add_argument("--address", help="host:port of the first process, for --rank")
    parser.add_argument("--folder", type=pathlib.Path, help="where the checkpoint goes, for --rank")
    options = parser.parse_args()
    if options.rank is not None and (options.address is None or options.folder is None):
        parser.error("--rank needs --address and --folder")
    return options


def start_all(count):
    """Starts the processes; returns the largest exit code."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--processes", str(count), "--address", address, "--folder", folder, "--rank"]
        started = [subprocess.Popen([*command, str(rank)]) for rank in range(count)]
        return max(process.wait() for process in started)


def train(options):
    import jax
    import jax.numpy as jnp
    from jax.experimental import multihost_utils, serialize_executable
    from jax.sharding import NamedSharding, PartitionSpec

    jax.distributed.initialize(options.address, options.processes, options.rank)
    mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    rows, whole = NamedSharding(mesh, PartitionSpec("x")), NamedSharding(mesh, PartitionSpec())

    def spread(parameters):
        return {name: jax.make_array_from_callback(value.shape, rows, lambda index, value=value: value[index])
                for name, value in parameters.items()}

    random = np.random.default_rng(0)
    data = random.standard_normal((ROWS, FEATURES), dtype=np.float32)
    target = np.tanh(data @ random.standard_normal((FEATURES, FEATURES), dtype=np.float32))
    batch = [jax.make_array_from_process_local_data(rows, np.array_split(array, options.processes)[options.rank])
             for array in (data, target)]

    def loss(parameters, x, y):
        return jnp.mean((jnp.tanh(x @ parameters["first"]) @ parameters["second"] - y) ** 2)

    def step(parameters, x, y):
        value, slope = jax.value_and_grad(loss)(parameters, x, y)
        return {name: parameters[name] - 0.1 * slope[name] for name in parameters}, value

    def run(step, parameters, steps):
        losses = []
        for _ in range(steps):
            parameters, value = step(parameters, *batch)
            losses.append(float(value))
        return parameters, losses

    first = {name: random.standard_normal((FEATURES, FEATURES), dtype=np.float32) / 8 for name in ("first", "second")}
    names = {name: rows for name in first}
    compiled = jax.jit(step, out_shardings=(names, whole)).lower(spread(first), *batch).compile()
    _, expected = run(compiled, spread(first), 2 * STEPS)

    # Half of the steps, then the checkpoint. Each process keeps its own step: it has the code for its devices.
    parameters, losses = run(compiled, spread(first), STEPS)
    gathered = {name: multihost_utils.process_allgather(value, tiled=True) for name, value in parameters.items()}
    if options.rank == 0:
        np.savez(options.folder / "parameters.npz", **gathered)
    kept = options.folder / f"step.{options.rank}"
    kept.write_bytes(pickle.dumps(serialize_executable.serialize(compiled)))
    multihost_utils.sync_global_devices("the checkpoint is written")

    with np.load(options.folder / "parameters.npz") as stored:
        parameters = spread(dict(stored))
    again = serialize_executable.deserialize_and_load(*pickle.loads(kept.read_bytes()))
    _, more = run(again, parameters, STEPS)
    losses += more
    multihost_utils.assert_equal(np.array(losses), "processes have unlike losses")
    chosen = multihost_utils.broadcast_one_to_all(np.float32(options.rank + 7))
    if options.rank == 0:
        print("losses:", *(f"{value:.6f}" for value in losses))
    if losses != expected or chosen != 7:
        print(f"process {options.rank}: {losses} are not the losses of a training without a checkpoint, {expected}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    arguments = parse()
    sys.exit(start_all(arguments.processes) if arguments.rank is None else train(arguments))
