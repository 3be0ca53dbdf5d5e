# SPDX-License-Identifier: Apache-2.0
"""A small residual network of Keras's layers, with batch normalization, that classifies images."""
import keras
import tensorflow as tf

import training


def block(x, features, stride):
    layers = keras.layers
    y = layers.Conv2D(features, 3, stride, padding="same", use_bias=False)(x)
    y = layers.Activation("relu")(layers.BatchNormalization()(y))
    y = layers.BatchNormalization()(layers.Conv2D(features, 3, padding="same", use_bias=False)(y))
    if stride != 1 or x.shape[-1] != features:
        x = layers.BatchNormalization()(layers.Conv2D(features, 1, stride, use_bias=False)(x))
    return layers.Activation("relu")(x + y)


def network(size=24, classes=10):
    first = keras.layers.Input((size, size, 3))
    x = keras.layers.Conv2D(16, 3, padding="same", activation="relu")(first)
    for features, stride in ((16, 1), (32, 2), (64, 2)):
        x = block(x, features, stride)
    return keras.Model(first, keras.layers.Dense(classes)(keras.layers.GlobalAveragePooling2D()(x)))


def main():
    chosen = training.options(__doc__, 60)

    def make():
        keras.utils.set_random_seed(0)
        model = network()

        def loss_of(x, y):
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True)))

        return loss_of, model.trainable_variables, keras.optimizers.SGD(0.05, momentum=0.9)

    training.train(chosen, make, (training.images(32, 24, 3, 10, seed) for seed in range(chosen.steps)))


if __name__ == "__main__":
    main()
