# SPDX-License-Identifier: Apache-2.0
"""A block of a transformer, of Keras's layers, that learns to sort: at each place it predicts the number that belongs there."""
import keras
import numpy as np
import tensorflow as tf

import training

LENGTH, NUMBERS = 16, 12


def lists(seed, count=64):
    values = np.random.default_rng(seed).integers(0, NUMBERS, (count, LENGTH)).astype(np.int32)
    return values, np.sort(values, 1)


def network():
    values = keras.layers.Input((LENGTH,), dtype="int32")
    places = keras.layers.Embedding(LENGTH, 64)(keras.ops.arange(LENGTH))
    x = keras.layers.Embedding(NUMBERS, 64)(values) + places
    for _ in range(2):
        y = keras.layers.LayerNormalization()(x)
        x = x + keras.layers.MultiHeadAttention(4, 16)(y, y)
        y = keras.layers.Dense(128, activation="gelu")(keras.layers.LayerNormalization()(x))
        x = x + keras.layers.Dense(64)(y)
    return keras.Model(values, keras.layers.Dense(NUMBERS)(keras.layers.LayerNormalization()(x)))


def main():
    chosen = training.options(__doc__, 100)

    def make():
        keras.utils.set_random_seed(0)
        model = network()

        def loss_of(x, y):
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x)))

        return loss_of, model.trainable_variables, keras.optimizers.Adam(2e-3)

    training.train(chosen, make, (lists(seed) for seed in range(chosen.steps)))


if __name__ == "__main__":
    main()
