# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder have in common: options, data, and the loop that trains with a compiled step."""
import argparse
import itertools
import pathlib
import statistics
import time

import numpy as np
import tensorflow as tf


def options(description, steps):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps, help="of the training (%(default)s)")
    parser.add_argument("--device", default="", help="TensorFlow's name, such as /device:COLLET:0; the default is the first "
                        "device of a plugin, or the CPU")
    parser.add_argument("--against", default="", metavar="DEVICE", help="measure a step beside one on another device, such as /CPU:0")
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


class Training:
    """A model on a device, and its compiled step, which returns the loss of a batch."""

    def __init__(self, device, make):
        self.device = device
        with tf.device(device):
            loss_of, variables, optimizer = make()
            optimizer.build(variables)

            @tf.function(jit_compile=True)
            def step(*batch):
                with tf.GradientTape() as tape:
                    loss = loss_of(*batch)
                optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
                return loss
        self.step = step

    def place(self, batch):
        """Returns the batch as tensors on the device."""
        with tf.device(self.device):
            return [tf.constant(part) for part in batch]

    def seconds(self, batches, count):
        """Returns the time of a step, measured over `count` of them."""
        begun = time.perf_counter()
        with tf.device(self.device):
            for i in range(count):
                loss = self.step(*batches[i % len(batches)])
            float(loss)
        return (time.perf_counter() - begun) / count


def compare(chosen, make, batches):
    """Prints the time of a step on both devices, which take turns: medians of rounds."""
    sides = [Training(device, make) for device in (device_of(chosen.device), chosen.against)]
    batches = list(itertools.islice(batches, 4))
    placed = [[side.place(batch) for batch in batches] for side in sides]
    for side, data in zip(sides, placed):
        print(f"{side.device}: first step {side.seconds(data, 1):.2f} s")
    count = max(1, round(0.3 / max(side.seconds(data, 3) for side, data in zip(sides, placed))))
    rounds = [[side.seconds(data, count) for side, data in zip(sides, placed)] for _ in range(9)]
    for i, side in enumerate(sides):
        print(f"{side.device}: a step {1e3 * statistics.median(times[i] for times in rounds):.3f} ms")
    print(f"ratio {statistics.median(times[0] / times[1] for times in rounds):.2f}")


def train(chosen, make, batches):
    """Trains the model that `make` returns as (loss function of a batch, variables, optimizer); prints the losses."""
    if chosen.against:
        compare(chosen, make, batches)
        return
    training = Training(device_of(chosen.device), make)
    print("device:", training.device)
    losses = []
    for i, batch in enumerate(batches):
        with tf.device(training.device):
            losses.append(float(training.step(*training.place(batch))))
        if i % 10 == 0 or i + 1 == chosen.steps:
            print(f"step {i:4}  loss {losses[-1]:.4f}")
    if chosen.losses:
        chosen.losses.write_text("".join(f"{loss:.9g}\n" for loss in losses), encoding="utf-8")
