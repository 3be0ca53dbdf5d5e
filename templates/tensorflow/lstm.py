# SPDX-License-Identifier: Apache-2.0
"""An LSTM of Keras that learns to add up the marked numbers of a sequence."""
import keras
import numpy as np
import tensorflow as tf

import training


def sequences(seed, count=64, length=24):
    """Returns sequences of (number, mark), two of them marked, and the sums of the marked numbers."""
    rng = np.random.default_rng(seed)
    numbers, marks = rng.random((count, length)), np.zeros((count, length))
    for row in marks:
        row[rng.choice(length, 2, replace=False)] = 1
    return np.stack([numbers, marks], -1).astype(np.float32), (numbers * marks).sum(1, keepdims=True).astype(np.float32)


def main():
    chosen = training.options(__doc__, 100)

    def make():
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.layers.Input((24, 2)), keras.layers.LSTM(48), keras.layers.Dense(1)])
        return (lambda x, y: tf.reduce_mean(tf.square(model(x) - y))), model.trainable_variables, keras.optimizers.Adam(3e-3)

    training.train(chosen, make, (sequences(seed) for seed in range(chosen.steps)))


if __name__ == "__main__":
    main()
