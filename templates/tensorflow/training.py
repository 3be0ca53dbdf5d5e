# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder have in common: options, data, and the loop that trains with a compiled step."""
import argparse
import pathlib

import numpy as np
import tensorflow as tf


def options(description, steps):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps, help="of the training (%(default)s)")
    parser.add_argument("--device", default="", help="TensorFlow's name, such as /device:COLLET:0; the default is the first "
                        "device of a plugin, or the CPU")
    parser.add_argument("--losses", type=pathlib.Path, help="a file that gets the loss of each step")
    return parser.parse_args()


def device_of(chosen):
    """Returns the name of the device: the chosen one, else one of a plugin, else the CPU."""
    others = [d for d in tf.config.list_logical_devices() if d.device_type not in ("CPU", "XLA_CPU")]
    return chosen or (others[0].name if others else "/CPU:0")


def images(count, size, channels, classes, seed):
    """Returns images of classes, each of which has a pattern of its own, with noise; and their labels."""
    rng = np.random.default_rng(seed)
    patterns = np.random.default_rng(1234).normal(0, 1, (classes, size, size, channels))
    labels = rng.integers(0, classes, count)
    noise = rng.normal(0, 2, (count, size, size, channels))
    return (patterns[labels] + noise).astype(np.float32), labels.astype(np.int32)


def train(chosen, make, batches):
    """Trains the model that `make` returns as (loss function of a batch, variables, optimizer); prints the losses."""
    device = device_of(chosen.device)
    print("device:", device)
    losses = []
    with tf.device(device):
        loss_of, variables, optimizer = make()
        optimizer.build(variables)

        @tf.function(jit_compile=True)
        def step(*batch):
            with tf.GradientTape() as tape:
                loss = loss_of(*batch)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss

        for i, batch in enumerate(batches):
            losses.append(float(step(*(tf.constant(part) for part in batch))))
            if i % 10 == 0 or i + 1 == chosen.steps:
                print(f"step {i:4}  loss {losses[-1]:.4f}")
    if chosen.losses:
        chosen.losses.write_text("".join(f"{loss:.9g}\n" for loss in losses), encoding="utf-8")
