"""Gemm, MatMul, Einsum."""

from __future__ import annotations

from ixion.frontend.build.matrix import dense, matmul
from ixion.frontend.build.movement import reshape, transpose
from ixion.frontend.onnx.convert import Site, converts
from ixion.frontend.term import Term


@converts("Gemm")
def gemm(site: Site) -> Term:
    a, b, c = site.input(0), site.input(1), site.optional(2)
    alpha, beta = site.attr("alpha", 1.0), site.attr("beta", 1.0)
    if site.attr("transA", 0):
        a = transpose(site.emit, a, (1, 0))
    if not site.attr("transB", 0):
        b = transpose(site.emit, b, (1, 0))
    out = dense(site.emit, a, b)
    if alpha != 1.0:
        out = site.call("multiply", out, alpha)
    if c is None or beta == 0.0:
        return out
    if beta != 1.0:
        c = site.call("multiply", c, beta)
    if c.shape[-1:] == out.shape[-1:] and all(dim == 1 for dim in c.shape[:-1]):
        return site.call("nn.bias_add", out, reshape(site.emit, c, c.shape[-1:]), axis=-1)
    return site.call("add", out, c)


@converts("MatMul")
def mat_mul(site: Site) -> Term:
    return matmul(site.emit, site.input(0), site.input(1))


@converts("Einsum")
def einsum(site: Site) -> Term:
    return site.call("einsum", site.present(), equation=site.attr("equation").replace(" ", ""))
