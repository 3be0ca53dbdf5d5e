# SPDX-License-Identifier: Apache-2.0
"""Code that the programs share: the device, the training loop with its progress, and the file of losses."""
import argparse
import os
import pathlib
import time

import torch


def device():
    """Returns PyTorch/XLA's device if PJRT_DEVICE selects one, else torch's cpu device. Must be called before the
    first backward pass."""
    if "PJRT_DEVICE" not in os.environ:
        return torch.device("cpu")
    import torch_xla
    return torch_xla.device()


def finish_step(place):
    """Compiles and runs the operations of one step, which PyTorch/XLA only collects."""
    if place.type == "xla":
        import torch_xla
        torch_xla.sync()


def options(description, steps):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--losses", type=pathlib.Path, help="a file for the loss of each step, one a line")
    return parser.parse_args()


def train(model, optimizer, batches, loss_of, place, options):
    """Trains on `batches`, an endless iterator, and prints every twentieth step."""
    losses, begun = [], time.perf_counter()
    for step, batch in zip(range(options.steps), batches):
        loss = loss_of(model, *(part.to(place) for part in batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        finish_step(place)
        losses.append(loss.item())
        if step % 20 == 0 or step == options.steps - 1:
            print(f"step {step:4}  loss {losses[-1]:.4f}  {time.perf_counter() - begun:6.2f} s", flush=True)
    if options.losses:
        options.losses.write_text("".join(f"{loss!r}\n" for loss in losses))
