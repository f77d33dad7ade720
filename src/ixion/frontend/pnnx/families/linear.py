"""Linear layers, matrix products, einsum, embedding."""

from __future__ import annotations

from ixion.base.errors import ModelFormatError
from ixion.frontend.build.matrix import dense, matmul
from ixion.frontend.build.movement import expand_dims, squeeze, transpose
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.promote import cast, promoted
from ixion.frontend.term import Term


def linear_of(site: Site, x: Term, weight: Term, bias: Term | None) -> Term:
    """`x @ weight.T + bias`; a vector counts as one row."""
    if x.rank == 1:
        rows = dense(site.emit, expand_dims(site.emit, x, [0]), weight, bias)
        return squeeze(site.emit, rows, [0])
    return dense(site.emit, x, weight, bias)


@converts("nn.Linear")
def linear(site: Site) -> Term:
    x, narrow = site.narrowed(site.x)
    bias = site.optional_weight("bias", x.dtype)
    out = linear_of(site, x, site.weight("weight", x.dtype), bias)
    return site.rounded(out, narrow)


@converts("F.linear")
def linear_function(site: Site) -> Term:
    # The input may be positional and a weight itself.
    x = site.tensor("input") or site.term(site.positional[0])
    weight, bias = site.operand("weight"), site.tensor("bias")
    bias = None if bias is None else cast(site.emit, bias, x.dtype)
    return linear_of(site, x, cast(site.emit, weight, x.dtype), bias)


def _pair(site: Site, *names: str) -> list[Term]:
    """Operands by name, those without one in order, in their common dtype."""
    rest = iter(site.positional)
    items = [site.arg(name) if name in site.op.arguments else next(rest, None) for name in names]
    if any(not isinstance(item, Term) for item in items):
        raise ModelFormatError(f"{site.op.kind} needs {len(names)} tensors")
    return promoted(site.emit, items)


@converts("torch.matmul", "aten::matmul")
def mat_mul(site: Site) -> Term:
    a, b = _pair(site, "input", "other")
    return matmul(site.emit, a, b)


@converts("torch.bmm", "torch.mm")
def batched_mat_mul(site: Site) -> Term:
    a, b = _pair(site, "input", "mat2")
    return matmul(site.emit, a, b)


@converts("torch.mv")
def matrix_vector(site: Site) -> Term:
    a, b = _pair(site, "input", "vec")
    return matmul(site.emit, a, b)


def _scaled(site: Site, x: Term, name: str) -> Term:
    factor = site.number(name, 1)
    return x if factor == 1 else site.call("multiply", x, factor)


@converts("torch.addmm")
def add_mat_mul(site: Site) -> Term:
    c, a, b = _pair(site, "input", "mat1", "mat2")
    product = _scaled(site, matmul(site.emit, a, b), "alpha")
    return site.call("add", _scaled(site, c, "beta"), product)


@converts("torch.baddbmm")
def add_batched_mat_mul(site: Site) -> Term:
    c, a, b = _pair(site, "input", "batch1", "batch2")
    product = _scaled(site, matmul(site.emit, a, b), "alpha")
    return site.call("add", _scaled(site, c, "beta"), product)


@converts("torch.einsum")
def einsum(site: Site) -> Term:
    terms = promoted(site.emit, [site.items[name] for name in site.op.inputs])
    equation = str(site.arg("equation"))
    inputs, arrow, output = equation.partition("->")
    if not arrow:
        letters = sorted({letter for letter in inputs if letter.isalpha()})
        output = "".join(letter for letter in letters if inputs.count(letter) == 1)
    permuted = _as_transpose(site, terms, inputs, output)
    if permuted is not None:
        return permuted
    return site.call("einsum", terms, equation=f"{inputs}->{output}")


def _as_transpose(site: Site, terms: list[Term], inputs: str, output: str) -> Term | None:
    if len(terms) == 1 and sorted(inputs) == sorted(output) and len(set(inputs)) == len(inputs):
        return transpose(site.emit, terms[0], [inputs.index(letter) for letter in output])
    return None


@converts("nn.Embedding", "F.embedding")
def embedding(site: Site) -> Term:
    if site.op.kind == "nn.Embedding":
        table = site.weight("weight")
    else:
        table = site.operand("weight")
    return site.call("take", table, site.x, axis=0, mode="fast")
