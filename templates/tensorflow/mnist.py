# SPDX-License-Identifier: Apache-2.0
"""Softmax regression on images of ten classes, as in the classic tutorial: one matrix, one bias, gradient descent."""
import keras
import tensorflow as tf

import training


def main():
    chosen = training.options(__doc__, 100)

    def make():
        weights, bias = tf.Variable(tf.zeros((784, 10))), tf.Variable(tf.zeros(10))

        def loss_of(x, y):
            logits = tf.reshape(x, (-1, 784)) @ weights + bias
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))

        return loss_of, [weights, bias], keras.optimizers.SGD(0.01)

    training.train(chosen, make, (training.images(100, 28, 1, 10, seed) for seed in range(chosen.steps)))


if __name__ == "__main__":
    main()
