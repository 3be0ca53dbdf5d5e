# SPDX-License-Identifier: Apache-2.0
"""A small convolutional network with batch norm that classifies drawn shapes. An ordinary PyTorch program."""
import torch
from torch import nn
from torch.nn import functional

import training

KINDS, SIZE, BATCH = 4, 16, 32


def shapes(count, generator):
    """Returns images with a bar, a column, a square or a cross at a random place, with noise, and their labels."""
    labels = torch.randint(0, KINDS, (count,), generator=generator)
    images = torch.randn(count, 1, SIZE, SIZE, generator=generator) * 0.3
    places = torch.randint(4, SIZE - 4, (count, 2), generator=generator)
    for image, label, (y, x) in zip(images[:, 0], labels.tolist(), places.tolist()):
        if label in (0, 3):
            image[y, x - 3:x + 4] += 1
        if label in (1, 3):
            image[y - 3:y + 4, x] += 1
        if label == 2:
            image[y - 2:y + 3, x - 2:x + 3] += 0.6
    return images, labels


def batches(seed):
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield shapes(BATCH, generator)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
        nn.Flatten(), nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, KINDS))


def loss_of(model, images, labels):
    return functional.cross_entropy(model(images), labels)


def main():
    options = training.options(__doc__, steps=100)
    place = training.device()
    print("device:", place)
    torch.manual_seed(0)
    model = network().to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    training.train(model, optimizer, batches(seed=1), loss_of, place, options)
    model.eval()
    with torch.no_grad():
        images, labels = shapes(500, torch.Generator().manual_seed(2))
        right = (model(images.to(place)).argmax(1).cpu() == labels).float().mean().item()
    print(f"{100 * right:.1f} % of 500 new shapes are named rightly")


if __name__ == "__main__":
    main()
