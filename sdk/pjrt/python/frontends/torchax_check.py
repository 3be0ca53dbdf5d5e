# SPDX-License-Identifier: Apache-2.0
"""Compares torchax on the plugin's device with torch's own CPU: the functions of torch_cases.py, and training runs of a residual
network and of a transformer whose steps are compiled as one program each.

A function that does not agree is tried on JAX's own cpu as well. Small differences grow as training goes on, in torch itself too, so
that each step is compared from the state that torch had before it. torchax 0.0.13 does not keep batch norm's running statistics, so
these are not compared. Exit code 1 if a function fails that agrees on JAX's cpu, or a step differs by more than the tolerance.
"""
import argparse
import copy
import itertools
import json
import pathlib
import statistics
import sys
import types
import warnings

import jax
import numpy as np
import torch
import torch_cases
import torchax
from torch import nn
from torch.utils import _pytree as pytree
from torchax import interop

PROGRAMS = pathlib.Path(__file__).resolve().parents[4] / "templates" / "torch"
TOLERANCE = 3e-4
RATE, MOMENTUM = 0.02, 0.9


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inside, outside, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(),
            nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside))
        same = stride == 1 and inside == outside
        self.shortcut = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        return torch.relu(self.path(x) + self.shortcut(x))


def resnet(classes):
    """Returns a residual network of eighteen layers for small grey images."""
    widths = (16, 16, 32, 64, 128)
    blocks = []
    for stage, (inside, outside) in enumerate(itertools.pairwise(widths)):
        blocks += [Block(inside, outside, 1 if stage == 0 else 2), Block(outside, outside, 1)]
    return nn.Sequential(nn.Conv2d(1, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes))


def networks():
    """Yields (name, network, function that gives its batches, loss)."""
    sys.path.insert(0, str(PROGRAMS))
    import cnn
    import transformer

    text = (PROGRAMS / "transformer.py").read_text()
    alphabet = sorted(set(text))
    letters = torch.tensor([alphabet.index(c) for c in text])
    yield "resnet", resnet(cnn.KINDS), lambda: cnn.batches(seed=1), cnn.loss_of
    yield "transformer", transformer.Transformer(len(alphabet)), lambda: transformer.batches(letters, seed=1), transformer.loss_of


def on_device(value):
    """Copies the tensors in a value to JAX's default device."""
    return pytree.tree_map(lambda v: v.to("jax") if isinstance(v, torch.Tensor) else v, value)


def moved(function):
    """Returns a copy of a module or a function whose own tensors are on JAX's default device."""
    if isinstance(function, nn.Module):
        return copy.deepcopy(function).to("jax")
    if not getattr(function, "__closure__", None):
        return function
    cells = tuple(types.CellType(on_device(cell.cell_contents)) for cell in function.__closure__)
    return types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)


def compare(found, expected):
    for a, b in zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b, f"{a}, not {b}"
            continue
        a = a.cpu() if isinstance(a, torch.Tensor) else torch.tensor(a)
        assert a.dtype == b.dtype and a.shape == b.shape, f"{a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        tolerance = TOLERANCE if b.dtype not in (torch.bfloat16, torch.float16) else 4 * torch.finfo(b.dtype).eps
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def outcome(function, arguments, expected, device):
    """Returns why a function does not agree with torch's CPU on a device of JAX; empty if it does."""
    try:
        with jax.default_device(device), torchax.default_env(), torch.no_grad():
            there, arguments = moved(function), on_device(arguments)
            with torch.device("jax"):
                found = there(*arguments)
            compare(found, expected)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def check_functions(options, device, cpu):
    """Returns what became of each function: agrees, differs, or fails on JAX's own cpu, too."""
    found = {}
    for name, function, arguments in torch_cases.cases():
        if options.filter not in name:
            continue
        with torch.no_grad():
            expected = copy.deepcopy(function)(*arguments)
        found[name] = outcome(function, arguments, expected, device)
        if found[name] and (other := outcome(function, arguments, expected, cpu)):
            found[name] = f"on JAX's own cpu, too: {other}"
        if found[name]:
            print(f"{name}: {found[name]}", flush=True)
    both = sum(text.startswith("on JAX's own cpu, too") for text in found.values())
    agree = sum(not text for text in found.values())
    print(f"{agree} of {len(found)} functions agree with torch's CPU; {both} of the others do not on JAX's own cpu, either")
    return found


class Trainer:
    """Trains a copy of a network on a device of JAX. A step is one compiled program: gradient and update."""

    def __init__(self, model, loss_of, device):
        self.model, self.loss_of, self.device = copy.deepcopy(model), loss_of, device
        self.compiled = jax.jit(self._step)

    def _loss(self, weights, buffers, batch):
        buffers = dict(interop.torch_view(buffers))

        def computed(*arguments):
            return torch.func.functional_call(self.model, {**interop.torch_view(weights), **buffers}, arguments)

        with torchax.default_env():
            return interop.jax_view(self.loss_of(computed, *interop.torch_view(batch))), interop.jax_view(buffers)

    def _step(self, weights, buffers, speeds, batch):
        (loss, buffers), gradients = jax.value_and_grad(self._loss, has_aux=True)(weights, buffers, batch)
        speeds = jax.tree.map(lambda v, g: MOMENTUM * v + g, speeds, gradients)
        return loss, jax.tree.map(lambda w, v: w - RATE * v, weights, speeds), buffers, speeds

    def step(self, weights, buffers, speeds, batch):
        """Takes dictionaries of torch's tensors, or what the step before returned; returns the loss, and those after the step."""
        with jax.default_device(self.device):
            with torchax.default_env():
                values = interop.jax_view(on_device([weights, buffers, speeds, list(batch)]))
            return self.compiled(*values)


def state_of(model, optimizer):
    """Returns copies of the parameters, the buffers and the optimizer's momenta, by name."""
    copies = lambda named: {name: value.detach().clone() for name, value in named}
    speeds = {name: optimizer.state[value].get("momentum_buffer", torch.zeros_like(value)) for name, value in model.named_parameters()}
    return copies(model.named_parameters()), copies(model.named_buffers()), copies(speeds.items())


def far(found, expected):
    """Returns the largest difference of tensors with the same names, in parts of the tensor's largest element."""
    return max(float(abs(np.asarray(found[name]) - value.numpy()).max() / max(float(abs(value).max()), 1e-30))
               for name, value in expected.items())


def train(model, batches, loss_of, device):
    """Trains by torch, and computes each step from torch's state on the device, too; trains there alone as well, where differences
    add up. Returns the largest relative difference of losses, the median and the largest one of momenta, and the first and last loss
    of both runs. The gradient jumps where a rectifier's argument is almost 0, so that single steps may differ much, also from what
    torch computes in f64."""
    trainer = Trainer(model, loss_of, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    alone = state_of(model, optimizer)
    of_loss, of_momenta, losses = 0.0, [], []
    for batch in batches:
        before = state_of(model, optimizer)
        loss = loss_of(model, *batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        *_, speeds = state_of(model, optimizer)
        found = trainer.step(*before, batch)
        of_loss = max(of_loss, abs(float(found[0]) - loss.item()) / abs(loss.item()))
        of_momenta.append(far(found[3], speeds))
        own, *alone = trainer.step(*alone, batch)
        losses.append((loss.item(), float(own)))
    return {"loss": of_loss, "momenta": statistics.median(of_momenta), "momenta at most": max(of_momenta),
            "losses": [losses[0], losses[-1]]}


def check_training(options, device):
    """Returns what `train` returns, or the error, for each network."""
    torch.manual_seed(0)
    found = {}
    for name, model, batches, loss_of in networks():
        try:
            got = found[name] = train(model, itertools.islice(batches(), options.steps), loss_of, device)
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"}
            print(f"{name}: {found[name]['error']}", flush=True)
            continue
        (first, own_first), (last, own_last) = got["losses"]
        print(f"{name}: {options.steps} steps; the loss of a step differs by at most {got['loss']:.1e}, its momenta by "
              f"{got['momenta']:.1e}, at most {got['momenta at most']:.1e}; loss {first:.4f} to {last:.4f}, trained on the device alone "
              f"{own_first:.4f} to {own_last:.4f}", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="collet", help="JAX's name of the platform (%(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="of each training run; 0: none (%(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="of a step's loss and momenta, relative (%(default)s)")
    parser.add_argument("--filter", default="", help="cases whose name contains this text")
    parser.add_argument("--json", type=pathlib.Path, help="a file for the results")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    jax.config.update("jax_enable_x64", True)  # torch's integers have 64 bits
    device, cpu = jax.devices(options.platform)[0], jax.devices("cpu")[0]
    print(f"torch {torch.__version__}, torchax {torchax.__version__}, JAX {jax.__version__}, {device}")
    results = {"functions": check_functions(options, device, cpu)}
    if options.steps:
        results["training"] = check_training(options, device)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    bad = [name for name, text in results["functions"].items() if text and not text.startswith("on JAX's own cpu, too")]
    apart = [name for name, found in results.get("training", {}).items()
             if "error" in found or max(found["loss"], found["momenta"]) > options.tolerance]
    return 1 if bad or apart else 0


if __name__ == "__main__":
    sys.exit(main())
