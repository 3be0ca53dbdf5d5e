# SPDX-License-Identifier: Apache-2.0
"""Trains models of the kinds that Keras's examples show, compiled, on the plugin's device and on TensorFlow's CPU (XLA:CPU).

Data are random, of the right shapes. Losses are compared step by step, then predictions of the model that was saved as a SavedModel
and loaded, then the time of a step: both devices take turns. Exit code 1 if losses or predictions differ.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers, ops  # noqa: E402

CPU = "/CPU:0"
LOSS_TOLERANCE = 2e-3  # relative; f32 sums in other orders are about 1e-5 apart after ten steps
PREDICTION_TOLERANCE = 2e-3
PIXELS = 32


def image_classifier():
    """Separable convolutions with residual connections, as in "Image classification from scratch"."""
    inputs = keras.Input((PIXELS, PIXELS, 3))
    x = layers.Rescaling(1.0 / 255)(inputs)
    x = layers.Activation("relu")(layers.BatchNormalization()(layers.Conv2D(32, 3, strides=2, padding="same")(x)))
    before = x
    for size in (64, 128):
        x = layers.BatchNormalization()(layers.SeparableConv2D(size, 3, padding="same")(layers.Activation("relu")(x)))
        x = layers.BatchNormalization()(layers.SeparableConv2D(size, 3, padding="same")(layers.Activation("relu")(x)))
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        x = layers.add([x, layers.Conv2D(size, 1, strides=2, padding="same")(before)])
        before = x
    x = layers.Dropout(0.25)(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(inputs, layers.Dense(10)(x))
    model.compile(keras.optimizers.Adam(3e-4), keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
    random = np.random.RandomState(1)
    return model, random.uniform(0, 255, (64, PIXELS, PIXELS, 3)).astype("f"), random.randint(0, 10, 64)


def text_classifier():
    """A bidirectional GRU over embeddings, as in "Bidirectional LSTM on IMDB"."""
    inputs = keras.Input((80,), dtype="int32")
    x = layers.Embedding(5000, 64)(inputs)
    x = layers.Bidirectional(layers.GRU(64, return_sequences=True))(x)
    x = layers.Bidirectional(layers.GRU(64))(x)
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", "binary_crossentropy", jit_compile=True)
    random = np.random.RandomState(2)
    return model, random.randint(0, 5000, (32, 80)).astype("i"), random.randint(0, 2, (32, 1)).astype("f")


def autoencoder():
    """As in "Convolutional autoencoder for image denoising"."""
    inputs = keras.Input((28, 28, 1))
    x = layers.MaxPooling2D(2, padding="same")(layers.Conv2D(32, 3, activation="relu", padding="same")(inputs))
    x = layers.MaxPooling2D(2, padding="same")(layers.Conv2D(32, 3, activation="relu", padding="same")(x))
    x = layers.Conv2DTranspose(32, 3, strides=2, activation="relu", padding="same")(x)
    x = layers.Conv2DTranspose(32, 3, strides=2, activation="relu", padding="same")(x)
    model = keras.Model(inputs, layers.Conv2D(1, 3, activation="sigmoid", padding="same")(x))
    model.compile("adam", "binary_crossentropy", jit_compile=True)
    clean = np.random.RandomState(3).uniform(0, 1, (64, 28, 28, 1)).astype("f")
    noisy = np.clip(clean + 0.4 * np.random.RandomState(4).normal(size=clean.shape), 0, 1).astype("f")
    return model, noisy, clean


@keras.saving.register_keras_serializable()
class Patches(layers.Layer):
    """Cuts images into patches, and adds an embedding of their places."""

    def __init__(self, size, width, **more):
        super().__init__(**more)
        self.size, self.width = size, width

    def build(self, shape):
        self.count = (shape[1] // self.size) * (shape[2] // self.size)
        self.project, self.place = layers.Dense(self.width), layers.Embedding(self.count, self.width)
        self.project.build((None, self.count, self.size * self.size * shape[3]))
        self.place.build((self.count,))

    def call(self, images):
        patches = ops.image.extract_patches(images, self.size)
        patches = ops.reshape(patches, (-1, self.count, self.size * self.size * images.shape[3]))
        return self.project(patches) + self.place(ops.arange(self.count))


def vision_transformer():
    """As in "Image classification with Vision Transformer", smaller."""
    inputs = keras.Input((PIXELS, PIXELS, 3))
    x = Patches(4, 64)(inputs)
    for _ in range(4):
        normal = layers.LayerNormalization(epsilon=1e-6)(x)
        x = layers.Add()([layers.MultiHeadAttention(num_heads=4, key_dim=16, dropout=0.1)(normal, normal), x])
        wide = layers.Dense(128, activation="gelu")(layers.LayerNormalization(epsilon=1e-6)(x))
        x = layers.Add()([layers.Dropout(0.1)(layers.Dense(64)(layers.Dropout(0.1)(wide))), x])
    x = layers.Dropout(0.5)(layers.Flatten()(layers.LayerNormalization(epsilon=1e-6)(x)))
    model = keras.Model(inputs, layers.Dense(10)(layers.Dense(128, activation="gelu")(x)))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.AdamW(1e-3, weight_decay=1e-4), loss, jit_compile=True)
    random = np.random.RandomState(5)
    return model, random.normal(size=(32, PIXELS, PIXELS, 3)).astype("f"), random.randint(0, 10, 32)


@keras.saving.register_keras_serializable()
class Sampling(layers.Layer):
    """Draws from the distribution that an encoder describes."""

    def __init__(self, **more):
        super().__init__(**more)
        self.seeds = keras.random.SeedGenerator(1337)

    def call(self, inputs):
        mean, log_variance = inputs
        return mean + ops.exp(0.5 * log_variance) * keras.random.normal(ops.shape(mean), seed=self.seeds)


class Autoencoding(keras.Model):
    """A variational autoencoder with a training step of its own."""

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def call(self, images):
        return self.decoder(self.encoder(images)[0])

    def train_step(self, data):
        images = data[0] if isinstance(data, tuple) else data
        with tf.GradientTape() as tape:
            mean, log_variance, code = self.encoder(images)
            errors = keras.losses.binary_crossentropy(images, self.decoder(code))
            divergence = -0.5 * (1 + log_variance - ops.square(mean) - ops.exp(log_variance))
            loss = ops.mean(ops.sum(errors, axis=(1, 2))) + ops.mean(ops.sum(divergence, axis=1))
        self.optimizer.apply(tape.gradient(loss, self.trainable_weights), self.trainable_weights)
        return {"loss": loss}


def variational_autoencoder():
    """As in "Variational AutoEncoder"."""
    inputs = keras.Input((28, 28, 1))
    x = layers.Conv2D(32, 3, activation="relu", strides=2, padding="same")(inputs)
    x = layers.Flatten()(layers.Conv2D(64, 3, activation="relu", strides=2, padding="same")(x))
    x = layers.Dense(16, activation="relu")(x)
    mean, log_variance = layers.Dense(2)(x), layers.Dense(2)(x)
    encoder = keras.Model(inputs, [mean, log_variance, Sampling()([mean, log_variance])])
    codes = keras.Input((2,))
    x = layers.Reshape((7, 7, 64))(layers.Dense(7 * 7 * 64, activation="relu")(codes))
    x = layers.Conv2DTranspose(64, 3, activation="relu", strides=2, padding="same")(x)
    x = layers.Conv2DTranspose(32, 3, activation="relu", strides=2, padding="same")(x)
    decoder = keras.Model(codes, layers.Conv2DTranspose(1, 3, activation="sigmoid", padding="same")(x))
    model = Autoencoding(encoder, decoder)
    model.compile(optimizer=keras.optimizers.Adam(), jit_compile=True)
    return model, np.random.RandomState(6).uniform(0, 1, (128, 28, 28, 1)).astype("f"), None


EXAMPLES = (image_classifier, text_classifier, autoencoder, vision_transformer, variational_autoencoder)


class Side:
    """A model on a device, with its data there."""

    def __init__(self, make, device):
        self.device = device
        keras.utils.set_random_seed(7)
        with tf.device(device):
            self.model, x, y = make()
            self.x, self.y = x, y
            self.begun = time.perf_counter()
            self.losses = [self.step()]
            self.compiling = time.perf_counter() - self.begun

    def step(self):
        """Trains on the batch, and waits for the loss."""
        with tf.device(self.device):
            logs = self.model.train_on_batch(self.x, self.y, return_dict=True)
        return float(logs["loss"])

    def saved_prediction(self):
        """Saves the model, loads it, and lets it predict, compiled."""
        with tempfile.TemporaryDirectory() as folder, tf.device(self.device):
            self.model(self.x[:1])
            self.model.export(folder, verbose=False)
            loaded = tf.saved_model.load(folder)
            return np.asarray(tf.function(loaded.serve, jit_compile=True)(tf.constant(self.x[:8])))


def compare(make, device, options):
    """Returns what came of one example."""
    ours, reference = Side(make, device), Side(make, CPU)
    for side in (ours, reference):
        side.losses += [side.step() for _ in range(options.steps - 1)]
    apart = float(np.max(np.abs(np.array(ours.losses) - reference.losses) / np.abs(reference.losses)))
    outputs = float(np.max(np.abs(ours.saved_prediction() - reference.saved_prediction())))
    times = {ours: [], reference: []}
    for _ in range(options.rounds):
        for side, found in times.items():
            begun = time.perf_counter()
            for _ in range(options.steps):
                side.step()
            found.append((time.perf_counter() - begun) / options.steps)
    ratios = [a / b for a, b in zip(times[ours], times[reference])]
    return {"example": make.__name__, "steps": options.steps, "losses": ours.losses, "reference_losses": reference.losses,
            "losses_apart": apart, "saved_apart": outputs, "first_step_s": [ours.compiling, reference.compiling],
            "step_ms": [1e3 * statistics.median(times[side]) for side in (ours, reference)], "ratio": statistics.median(ratios)}


def main():
    parser = argparse.ArgumentParser(prog="./dev frontends --tensorflow --keras-examples", description=__doc__)
    parser.add_argument("--steps", type=int, default=10, help="of each comparison and each round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of the measurement (%(default)s)")
    parser.add_argument("--filter", default="", help="only examples with this in their names")
    parser.add_argument("--json", type=pathlib.Path, help="a file that gets all figures")
    options = parser.parse_args()
    if options.steps < 2 or options.rounds < 1:
        parser.error("--steps takes 2 or more, --rounds 1 or more")
    others = [d for d in tf.config.list_logical_devices() if d.device_type != "CPU"]
    if not others:
        sys.exit("keras_examples.py: TensorFlow shows no device but its CPU; is the plugin installed?")
    device, found, good = others[0].name, [], True
    print(f"{'example':<26}{'losses apart':>13}{'saved apart':>13}{'first step':>12}{'CPU':>8}{'step':>10}{'CPU':>10}{'ratio':>7}", flush=True)
    for make in EXAMPLES:
        if options.filter not in make.__name__:
            continue
        row = compare(make, device, options)
        found.append(row)
        good &= row["losses_apart"] <= LOSS_TOLERANCE and row["saved_apart"] <= PREDICTION_TOLERANCE
        first, step = row["first_step_s"], row["step_ms"]
        print(f"{row['example']:<26}{row['losses_apart']:>13.1e}{row['saved_apart']:>13.1e}{first[0]:>10.1f} s{first[1]:>6.1f} s"
              f"{step[0]:>7.1f} ms{step[1]:>7.1f} ms{row['ratio']:>7.2f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"tensorflow": tf.__version__, "keras": keras.__version__, "device": device,
                                            "examples": found}, indent=1) + "\n", encoding="utf-8")
    return 0 if good and found else 1


if __name__ == "__main__":
    sys.exit(main())
