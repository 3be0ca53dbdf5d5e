# SPDX-License-Identifier: Apache-2.0
"""Compares torch.compile(backend="collet") with torch's own CPU: the functions of torch_cases.py, their gradients, and training
runs of the networks of templates/torch.

A case that differs is printed, and one of which ops stay in torch, with those ops. Exit code 1 if a case differs.
"""
import argparse
import copy
import itertools
import json
import os
import pathlib
import sys
import tempfile
import warnings

import torch
import torch_cases
from torch.utils import _pytree as pytree

PROGRAMS = pathlib.Path(__file__).resolve().parents[4] / "templates" / "torch"
TOLERANCE = 3e-4


def compiled(function, options):
    torch._dynamo.reset()
    return torch.compile(function, backend=options.backend, dynamic=False)


def compare(found, expected):
    for a, b in zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b, f"{a}, not {b}"
            continue
        assert a.dtype == b.dtype and a.shape == b.shape, f"{a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        tolerance = TOLERANCE if b.dtype not in (torch.bfloat16, torch.float16) else 4 * torch.finfo(b.dtype).eps
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def gradients(function, arguments):
    """Returns the gradients of the sum of squares of all results, or None if there are none."""
    arguments = [a.detach().clone().requires_grad_() if a.is_floating_point() else a for a in arguments]
    module = getattr(function, "_orig_mod", function)
    parameters = list(module.parameters()) if isinstance(module, torch.nn.Module) else []
    results = [r for r in pytree.tree_leaves(function(*arguments)) if isinstance(r, torch.Tensor) and r.requires_grad]
    wanted = [a for a in arguments if a.requires_grad] + parameters
    if not results or not wanted:
        return None
    return torch.autograd.grad(sum(r.abs().pow(2).sum() for r in results), wanted, allow_unused=True)


def check(function, arguments, options):
    """Compares results and gradients; raises an error if they differ."""
    expected = copy.deepcopy(function)(*arguments)
    compare(compiled(copy.deepcopy(function), options)(*arguments), expected)
    try:
        expected = gradients(copy.deepcopy(function), arguments)
    except (RuntimeError, NotImplementedError):  # torch has no gradient of it
        return
    if expected is not None:
        compare(gradients(compiled(copy.deepcopy(function), options), arguments), expected)


def check_functions(options):
    bad, in_torch, count = {}, {}, 0
    for name, function, arguments in torch_cases.cases():
        if options.filter not in name:
            continue
        count += 1
        options.explained.write_text("")
        try:
            check(function, arguments, options)
        except Exception as error:
            bad[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            print(f"{name}: {bad[name]}", flush=True)
        stays = sorted({line.split(" = ", 1)[1] for line in options.explained.read_text().splitlines() if line.startswith("collet:   ")})
        if stays:
            in_torch[name] = stays
            print(f"{name}: in torch: {'; '.join(stays)}", flush=True)
    print(f"{count - len(bad)} of {count} functions agree with torch's CPU; of {len(in_torch)} some ops stay in torch")
    return {"functions": count, "differ": bad, "in torch": in_torch}


def networks():
    """Yields (name, network, function that gives its batches, loss) of the programs of templates/torch."""
    sys.path.insert(0, str(PROGRAMS))
    import cnn
    import transformer

    text = (PROGRAMS / "transformer.py").read_text()
    alphabet = sorted(set(text))
    letters = torch.tensor([alphabet.index(c) for c in text])
    yield "cnn", cnn.network(), lambda: cnn.batches(seed=1), cnn.loss_of
    yield "transformer", transformer.Transformer(len(alphabet)), lambda: transformer.batches(letters, seed=1), transformer.loss_of


def train(model, function, batches, loss_of, steps):
    """Returns the losses of a training run. `function` computes `model`."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    out = []
    for batch in itertools.islice(batches, steps):
        loss = loss_of(function, *batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


def check_training(options):
    torch.manual_seed(0)
    worst = {}
    for name, model, batches, loss_of in networks():
        other = copy.deepcopy(model)
        expected = train(model, model, batches(), loss_of, options.steps)
        found = train(other, compiled(other, options), batches(), loss_of, options.steps)
        worst[name] = max(abs(a - b) / abs(b) for a, b in zip(found, expected))
        print(f"{name}: {options.steps} steps, loss {expected[0]:.4f} to {expected[-1]:.4f}, "
              f"largest difference {worst[name]:.1e}", flush=True)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="collet", help="of torch.compile (%(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="of each training run; 0: none (%(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="of losses, relative (%(default)s)")
    parser.add_argument("--filter", default="", help="cases whose name contains this text")
    parser.add_argument("--json", type=pathlib.Path, help="a file for the results")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as folder:
        options.explained = pathlib.Path(folder) / "explained"
        os.environ["COLLET_EXPLAIN"] = str(options.explained)
        results = check_functions(options)
        if options.steps:
            results["training"] = check_training(options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 1 if results["differ"] or any(d > options.tolerance for d in results.get("training", {}).values()) else 0


if __name__ == "__main__":
    sys.exit(main())
