# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch for torch_compile_check.py: pairs of a name, a function or module, and its arguments."""
import torch
from torch import nn
from torch.nn import functional as F

UNARY = """abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac lgamma log
    log10 log1p log2 logit neg rad2deg reciprocal relu round rsqrt sigmoid sign sin sinc sinh sqrt square tan tanh trunc i0 isnan
    isinf sgn positive angle"""
BINARY = """add sub mul div atan2 maximum minimum fmod remainder hypot copysign nextafter logaddexp logaddexp2 xlogy pow eq ne lt gt
    le ge fmax fmin heaviside"""
ALONG = """sum mean std var amax amin prod logsumexp cumsum cumprod argmax argmin median norm sort argsort cummax cummin softmax
    log_softmax all any count_nonzero"""
WHOLE = "sum mean std var max min prod numel unique_consecutive nonzero"
ACTIVATIONS = """relu gelu silu mish elu selu celu softplus hardtanh hardswish hardsigmoid leaky_relu logsigmoid tanhshrink softsign
    softshrink hardshrink relu6 glu"""


def _along(name):
    return lambda x: getattr(torch, name)(x, dim=1)


def arithmetic(x, y):
    for name in UNARY.split():
        yield name, getattr(torch, name), (y + 1 if name == "acosh" else y * 0.9,)
    for name in BINARY.split():
        yield name, getattr(torch, name), (y if name in ("pow", "xlogy") else x, y)
    for name in ALONG.split():
        yield f"{name} along 1", _along(name), (x,)
    for name in WHOLE.split():
        yield name, getattr(torch, name), (x,)
    for name in ACTIVATIONS.split():
        yield f"F.{name}", getattr(F, name), (x,)


def structure(x, y, i):
    zeros = torch.zeros(4, 2, dtype=torch.long)
    functions = {
        "matmul": lambda x, y: x @ y.T,
        "bmm": lambda x, y: torch.bmm(x[None].expand(3, 4, 6), y.T[None].expand(3, 6, 4)),
        "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
        "addmm": lambda x, y: torch.addmm(torch.ones(4), x, y.T),
        "outer": lambda x, y: torch.outer(x[0], y[0]),
        "dot": lambda x, y: torch.dot(x[0], y[0]),
        "cat": lambda x, y: torch.cat([x, y], 1),
        "stack": lambda x, y: torch.stack([x, y]),
        "where": lambda x, y: torch.where(x > 0, x, y),
        "clamp": lambda x, y: x.clamp(-.5, .5),
        "lerp": lambda x, y: torch.lerp(x, y, .3),
        "gather": lambda x, y: x.gather(1, zeros),
        "scatter": lambda x, y: x.scatter(1, zeros[:, :1], 5.),
        "scatter_add": lambda x, y: x.scatter_add(1, torch.zeros(4, 6, dtype=torch.long), y),
        "index": lambda x, y: x[i].sum(0),
        "index_select": lambda x, y: x.index_select(0, i),
        "index_add": lambda x, y: x.index_add(0, i, y[:3]),
        "masked_fill": lambda x, y: x.masked_fill(x > 0, 1.),
        "roll": lambda x, y: x.roll(2, 1),
        "flip": lambda x, y: x.flip(0),
        "tril": lambda x, y: x.tril(),
        "triu": lambda x, y: x.triu(1),
        "repeat": lambda x, y: x.repeat(2, 3),
        "expand": lambda x, y: x[:, None].expand(4, 2, 6),
        "permute": lambda x, y: x[None].permute(2, 0, 1),
        "chunk": lambda x, y: x.chunk(3, 1),
        "split": lambda x, y: x.split([2, 4], 1),
        "unfold": lambda x, y: x.unfold(1, 3, 1),
        "pad": lambda x, y: F.pad(x, (1, 2)),
        "pad reflect": lambda x, y: F.pad(x[None], (1, 2), mode="reflect"),
        "one_hot": lambda x, y: F.one_hot(i, 5),
        "arange": lambda x, y: torch.arange(6) + x,
        "linspace": lambda x, y: torch.linspace(0, 1, 6) + x,
        "eye": lambda x, y: torch.eye(6) + x[0],
        "topk": lambda x, y: x.topk(2),
        "kthvalue": lambda x, y: x.kthvalue(2),
        "searchsorted": lambda x, y: torch.searchsorted(torch.arange(6.), x),
        "bucketize": lambda x, y: torch.bucketize(x, torch.arange(6.)),
        "diag": lambda x, y: torch.diag(x[:, :4]),
        "trace": lambda x, y: torch.trace(x[:, :4]),
        "diff": lambda x, y: x.diff(),
        "cross": lambda x, y: torch.linalg.cross(x[:, :3], y[:, :3]),
        "cdist": lambda x, y: torch.cdist(x, y),
        "tensordot": lambda x, y: torch.tensordot(x, y, dims=([1], [1])),
        "meshgrid": lambda x, y: torch.meshgrid(x[0], y[0], indexing="ij"),
        "rot90": lambda x, y: x.rot90(),
        "tile": lambda x, y: x.tile(2),
        "histc": lambda x, y: torch.histc(x, 5),
        "bincount": lambda x, y: torch.bincount(i),
        "movedim": lambda x, y: x.movedim(0, 1),
        "integers": lambda x, y: (i // 2, i % 2, i << 1, i ^ 3, i & 1, ~i),
        "truth values": lambda x, y: ((x > 0) & (y > 0.5)) | (x < -1),
        "casts": lambda x, y: (x.to(torch.int32), x.half(), x.double(), x.bfloat16().float()),
        "complex": lambda x, y: torch.complex(x, y).abs(),
        "polygamma": lambda x, y: torch.polygamma(1, y),
        "dropout in evaluation": lambda x, y: F.dropout(x, 0.5, False),
        "dict and tuple": lambda x, y: {"a": x + 1, "b": (y, x * y)},
        "in place": lambda x, y: x.clone().add_(1).mul_(y),
        "data-dependent branch": lambda x, y: x + 1 if y.sum() > 0 else x - 1,
    }
    for name, function in functions.items():
        yield name, function, (x, y)
    yield "bf16", lambda x, y: (x @ y.T).softmax(-1), (x.bfloat16(), y.bfloat16())


def movement(x, y, i):
    rows = torch.tensor([[0, 1, 2, 3, 1, 0]])
    functions = {
        "swapaxes": lambda x, y: x.swapaxes(0, 1),
        "squeeze": lambda x, y: x[None].squeeze(0),
        "flatten": lambda x, y: x[None].flatten(1),
        "unflatten": lambda x, y: x.unflatten(1, (2, 3)),
        "narrow": lambda x, y: x.narrow(1, 2, 3),
        "select": lambda x, y: x.select(1, 2),
        "take": lambda x, y: torch.take(x, i),
        "take_along_dim": lambda x, y: torch.take_along_dim(x, rows, 0),
        "diagonal": lambda x, y: x.diagonal(1),
        "diag_embed": lambda x, y: torch.diag_embed(x),
        "vander": lambda x, y: torch.vander(x[0], 3),
        "block_diag": lambda x, y: torch.block_diag(x, y),
        "cartesian_prod": lambda x, y: torch.cartesian_prod(x[0], y[0]),
        "hstack": lambda x, y: torch.hstack([x, y]),
        "dstack": lambda x, y: torch.dstack([x, y]),
        "tensor_split": lambda x, y: torch.tensor_split(x, 4, 1),
        "repeat_interleave": lambda x, y: x.repeat_interleave(2, 1),
        "fliplr": lambda x, y: x.fliplr(),
        "index_put": lambda x, y: x.clone().index_put_((i,), y[:3]),
        "index_put, added": lambda x, y: x.clone().index_put_((torch.tensor([1, 1, 2]),), y[:3], accumulate=True),
        "index_fill": lambda x, y: x.index_fill(0, i, 2.),
        "index_copy": lambda x, y: x.index_copy(0, i, y[:3]),
        "scatter_reduce": lambda x, y: x.scatter_reduce(0, rows, y[:1], "sum"),
        "scatter_reduce, largest": lambda x, y: x.scatter_reduce(0, rows, y[:1], "amax"),
        "select_scatter": lambda x, y: x.select_scatter(y[0], 0, 1),
        "slice_scatter": lambda x, y: x.slice_scatter(y[:2], 0, 1, 3),
        "masked_scatter": lambda x, y: x.masked_scatter(x > 0, y),
        "pad circular": lambda x, y: F.pad(x[None], (1, 2), mode="circular"),
        "pad replicate": lambda x, y: F.pad(x[None], (1, 2), mode="replicate"),
        "ones_like and full": lambda x, y: torch.ones_like(x) * torch.full((4, 6), 2.) + torch.zeros_like(y),
        "tril_indices": lambda x, y: torch.tril_indices(4, 4),
        "as_strided": lambda x, y: x.as_strided((3, 2), (6, 1), 1),
        "channel_shuffle": lambda x, y: F.channel_shuffle(x[None, :, None], 2),
        "PixelUnshuffle": lambda x, y: F.pixel_unshuffle(x[None, None], 2),
    }
    for name, function in functions.items():
        yield name, function, (x, y)


def statistics(x, y, i):
    functions = {
        "logcumsumexp": lambda x, y: x.logcumsumexp(1),
        "aminmax": lambda x, y: torch.aminmax(x, dim=1),
        "std_mean": lambda x, y: torch.std_mean(x, 1),
        "var, with correction 0": lambda x, y: x.var(1, correction=0),
        "nansum": lambda x, y: torch.where(x > 0, x, torch.nan).nansum(1),
        "nanmean": lambda x, y: torch.where(x > 0, x, torch.nan).nanmean(),
        "nan_to_num": lambda x, y: torch.where(x > 0, x, torch.nan).nan_to_num(3.),
        "cov": lambda x, y: x.cov(),
        "quantile": lambda x, y: x.quantile(0.3, dim=1),
        "trapezoid": lambda x, y: torch.trapezoid(x, y),
        "addcmul": lambda x, y: torch.addcmul(x, x, y, value=.5),
        "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=.5),
        "baddbmm": lambda x, y: torch.baddbmm(torch.ones(1, 4, 4), x[None], y.T[None]),
        "addmv": lambda x, y: torch.addmv(torch.ones(4), x, y[0]),
        "kron": lambda x, y: torch.kron(x, y),
        "inner": lambda x, y: torch.inner(x, y),
        "dist": lambda x, y: torch.dist(x, y),
        "pdist": lambda x, y: F.pdist(x),
        "pairwise_distance": lambda x, y: F.pairwise_distance(x, y),
        "normalize": lambda x, y: F.normalize(x, dim=1),
        "softmin": lambda x, y: F.softmin(x, 1),
        "threshold": lambda x, y: F.threshold(x, 0.1, 20.),
        "float_power": lambda x, y: torch.float_power(y, 2),
        "ldexp": lambda x, y: torch.ldexp(x, i[:1]),
        "gcd": lambda x, y: torch.gcd(i, i + 2),
        "isclose": lambda x, y: torch.isclose(x, y),
        "clamp by tensors": lambda x, y: x.clamp(-y, y),
        "expit": lambda x, y: torch.special.expit(x),
        "ndtr": lambda x, y: torch.special.ndtr(x),
        "entr": lambda x, y: torch.special.entr(y),
        "xlog1py": lambda x, y: torch.special.xlog1py(x, y),
        "i0e": lambda x, y: torch.special.i0e(x),
        "gammaln": lambda x, y: torch.special.gammaln(y),
    }
    for name, function in functions.items():
        yield name, function, (x, y)


def algebra(x, y):
    functions = {
        "fft": lambda x, y: torch.fft.fft(x).real,
        "rfft": lambda x, y: torch.fft.rfft(x).abs(),
        "inv": lambda x, y: torch.linalg.inv(x[:, :4] + 5 * torch.eye(4)),
        "det": lambda x, y: torch.linalg.det(x[:, :4]),
        "cholesky": lambda x, y: torch.linalg.cholesky(x @ x.T + torch.eye(4)),
        "solve": lambda x, y: torch.linalg.solve(x[:, :4] + 5 * torch.eye(4), y),
        "svdvals": lambda x, y: torch.linalg.svdvals(x),
        "eigvalsh": lambda x, y: torch.linalg.eigvalsh(x @ x.T),
        "qr": lambda x, y: torch.linalg.qr(x)[1].abs(),
        "lstsq": lambda x, y: torch.linalg.lstsq(x.T, y.T).solution,
        "matrix_power": lambda x, y: torch.linalg.matrix_power(x[:, :4], 3),
        "vector_norm": lambda x, y: torch.linalg.vector_norm(x, dim=1),
    }
    for name, function in functions.items():
        yield f"linalg.{name}", function, (x, y)


def losses(x, y):
    t = torch.tensor([0, 2, 1, 3])
    functions = {
        "mse": lambda x, y: F.mse_loss(x, y),
        "l1": lambda x, y: F.l1_loss(x, y),
        "smooth l1": lambda x, y: F.smooth_l1_loss(x, y),
        "huber": lambda x, y: F.huber_loss(x, y),
        "cross entropy": lambda x, y: F.cross_entropy(x, t),
        "smoothed cross entropy": lambda x, y: F.cross_entropy(x, t, label_smoothing=.1),
        "nll": lambda x, y: F.nll_loss(x.log_softmax(1), t),
        "binary cross entropy": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.clamp(0, 1)),
        "with logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y),
        "kl": lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
        "cosine": lambda x, y: F.cosine_similarity(x, y),
        "margin": lambda x, y: F.margin_ranking_loss(x, y, torch.ones(4, 6)),
        "triplet": lambda x, y: F.triplet_margin_loss(x, y, x + 1),
        "poisson": lambda x, y: F.poisson_nll_loss(x, y),
        "gaussian": lambda x, y: F.gaussian_nll_loss(x, y, y),
        "soft margin": lambda x, y: F.soft_margin_loss(x, torch.ones(4, 6)),
        "hinge embedding": lambda x, y: F.hinge_embedding_loss(x, torch.ones(4, 6)),
        "cosine embedding": lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(4)),
        "multi margin": lambda x, y: F.multi_margin_loss(x, t),
        "multilabel soft margin": lambda x, y: F.multilabel_soft_margin_loss(x, (y > 0.5).float()),
    }
    for name, function in functions.items():
        yield f"loss {name}", function, (x, y)
    yield "loss ctc", lambda lp: F.ctc_loss(lp.log_softmax(-1), torch.tensor([[1, 2]]), torch.tensor([6]), torch.tensor([2])), (
        torch.randn(6, 1, 4),)


class _SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


def layers(x, y, i):
    image, sequence, heads = torch.randn(2, 3, 16, 16), torch.randn(2, 5, 8), torch.randn(2, 2, 5, 8)
    modules = {
        "Linear": (nn.Linear(6, 3), x),
        "Conv1d": (nn.Conv1d(5, 4, 3), sequence),
        "Conv2d": (nn.Conv2d(3, 4, 3, padding=1, stride=2), image),
        "Conv2d in groups": (nn.Conv2d(3, 6, 3, groups=3), image),
        "Conv2d dilated": (nn.Conv2d(3, 4, 3, dilation=2), image),
        "ConvTranspose1d": (nn.ConvTranspose1d(5, 4, 3, stride=2), sequence),
        "ConvTranspose2d": (nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), image),
        "Conv3d": (nn.Conv3d(1, 2, 3), torch.randn(1, 1, 6, 6, 6)),
        "BatchNorm2d in evaluation": (nn.BatchNorm2d(3).eval(), image),
        "BatchNorm2d": (nn.BatchNorm2d(3), image),
        "LayerNorm": (nn.LayerNorm(6), x),
        "GroupNorm": (nn.GroupNorm(3, 6), torch.randn(2, 6, 4)),
        "InstanceNorm2d": (nn.InstanceNorm2d(3), image),
        "RMSNorm": (nn.RMSNorm(6), x),
        "MaxPool2d": (nn.MaxPool2d(3, 2, 1), image),
        "MaxPool1d": (nn.MaxPool1d(2), sequence),
        "AvgPool1d": (nn.AvgPool1d(2), sequence),
        "LPPool2d": (nn.LPPool2d(2, 2), image),
        "AvgPool2d": (nn.AvgPool2d(2), image),
        "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d(5), image),
        "AdaptiveMaxPool2d": (nn.AdaptiveMaxPool2d(4), image),
        "Embedding": (nn.Embedding(10, 4), i),
        "EmbeddingBag": (nn.EmbeddingBag(10, 4, mode="mean"), torch.tensor([[1, 2], [3, 4]])),
        "LSTM": (nn.LSTM(8, 7, batch_first=True), sequence),
        "GRU": (nn.GRU(8, 7, batch_first=True), sequence),
        "LSTMCell": (nn.LSTMCell(6, 5), x),
        "GRUCell": (nn.GRUCell(6, 5), x),
        "RNN": (nn.RNN(8, 7, batch_first=True), sequence),
        "MultiheadAttention": (_SelfAttention(), sequence),
        "TransformerEncoderLayer": (nn.TransformerEncoderLayer(8, 2, 16, dropout=0., batch_first=True), sequence),
        "Upsample": (nn.Upsample(scale_factor=2), image),
        "Upsample bilinear": (nn.Upsample(scale_factor=2, mode="bilinear"), image),
        "Upsample bicubic": (nn.Upsample(scale_factor=2, mode="bicubic"), image),
        "PixelShuffle": (nn.PixelShuffle(2), torch.randn(1, 4, 3, 3)),
        "PReLU": (nn.PReLU(), x),
        "Fold": (nn.Fold((4, 4), (2, 2), stride=2), torch.randn(1, 8, 4)),
        "Unfold": (nn.Unfold(3), image),
    }
    for name, (module, argument) in modules.items():
        yield f"nn.{name}", module, (argument,)
    yield "nn.Bilinear", nn.Bilinear(6, 6, 3), (x, y)
    yield "attention, causal", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (heads,)
    mask = torch.ones(5, 5).tril().bool()
    yield "attention, masked", lambda q: F.scaled_dot_product_attention(q, q, q, attn_mask=mask), (heads,)
    yield "grid_sample", lambda a: F.grid_sample(a, torch.zeros(2, 4, 4, 2), align_corners=False), (image,)
    yield "interpolate by area", lambda a: F.interpolate(a, size=8, mode="area"), (image,)


def cases():
    """Yields all cases; the same values each time."""
    torch.manual_seed(0)
    x, y, i = torch.randn(4, 6), torch.rand(4, 6) + 0.1, torch.tensor([0, 2, 3])
    for group in (arithmetic(x, y), structure(x, y, i), movement(x, y, i), statistics(x, y, i), algebra(x, y), losses(x, y), layers(x, y, i)):
        yield from group
