# SPDX-License-Identifier: Apache-2.0
"""A small transformer on characters, trained on a text (by default its own source). An ordinary PyTorch program."""
import pathlib

import torch
from torch import nn
from torch.nn import functional

import training

LAYERS, WIDTH, HEADS, CONTEXT, BATCH = 2, 64, 4, 48, 8


class Transformer(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letters = nn.Embedding(letters, WIDTH)
        self.places = nn.Parameter(torch.randn(CONTEXT, WIDTH) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True,
                                       norm_first=True) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, letters)
        self.register_buffer("mask", torch.triu(torch.full((CONTEXT, CONTEXT), float("-inf")), 1))

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.letters(tokens) + self.places[:length]
        for layer in self.layers:
            x = layer(x, src_mask=self.mask[:length, :length])
        return self.out(self.norm(x))


def batches(tokens, seed):
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(0, len(tokens) - CONTEXT - 1, (BATCH,), generator=generator)
        yield (torch.stack([tokens[s:s + CONTEXT + 1] for s in starts.tolist()]),)


def loss_of(model, tokens):
    logits = model(tokens[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def main():
    options = training.options(__doc__, steps=100)
    place = training.device()
    print("device:", place)
    text = pathlib.Path(__file__).read_text()
    alphabet = sorted(set(text))
    tokens = torch.tensor([alphabet.index(c) for c in text])
    torch.manual_seed(0)
    model = Transformer(len(alphabet)).to(place)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    training.train(model, optimizer, batches(tokens, seed=1), loss_of, place, options)
    model.eval()
    with torch.no_grad():
        start = tokens[:CONTEXT][None].to(place)
        likely = model(start)[0].argmax(1).tolist()
    print("after", repr(text[:CONTEXT]), "comes", repr(alphabet[likely[-1]]))


if __name__ == "__main__":
    main()
