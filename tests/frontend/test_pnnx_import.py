"""PNNX networks: small ones written here with numpy's answers, and the stored samples if there."""

from __future__ import annotations

import math
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ixion
from ixion.analysis.evaluate import evaluate
from ixion.base.errors import InputError, IxionError, ModelFormatError, UnsupportedOpError
from ixion.frontend import inputs, load

RNG = np.random.default_rng(3)
SAMPLES = Path(__file__).parents[3] / "shared" / "pnnx"
#: The source of an assignment is lost, complex numbers, or a range known only at run time.
REFUSED = {"idx3", "index", "complexnet"}
REFUSED |= {f"test_torch_{name}" for name in ("arange", "imag", "real", "view_as_complex")}


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


FUSED_SLICE = (
    "Tensor.slice s 1 1 0 y dims=(0,2) ends=(2,0) selects=(2147483647,2) starts=(0,0) "
    "steps=(1,0) $input=0"
)
CONV = (
    "nn.Conv2d c 1 1 0 1 bias=True dilation=(1,1) groups=1 kernel_size=(3,3) padding=(1,1) "
    "padding_mode=zeros stride=(2,2) @bias=(4)f32 @weight=(4,3,3,3)f32 $input=0"
)
POOL = (
    "nn.MaxPool2d m 1 1 1 2 ceil_mode=True dilation=(1,1) kernel_size=(2,2) padding=(0,0) "
    "return_indices=False stride=(2,2)"
)


def write(folder, lines, weights=()):
    """A pair of files from operator lines (without the counts) and weights by entry name."""
    path = folder / "net.pnnx.param"
    operands = {word for line in lines for word in line.split()[4:] if "=" not in word}
    path.write_text("\n".join(["7767517", f"{len(lines)} {len(operands)}", *lines]) + "\n")
    with zipfile.ZipFile(folder / "net.pnnx.bin", "w") as archive:
        for name, array in dict(weights).items():
            archive.writestr(name, array.tobytes())
    return path


def run(folder, lines, args, weights=()):
    module = load(write(folder, lines, weights))
    return evaluate(module["main"], list(args), module)


def one(folder, line, *args, weights=(), shapes=None):
    """The result of one operator on inputs 0, 1, ...; it makes operand `y`."""
    shapes = shapes or [
        f"({','.join(map(str, a.shape))}){ {'f': 'f32', 'i': 'i64', 'b': 'bool'}[a.dtype.kind] }"
        for a in args
    ]
    lines = [
        f"pnnx.Input in{i} 0 1 {i} #{i}={shape}" for i, shape in enumerate(shapes)
    ]  # fmt: skip
    return run(folder, [*lines, line, "pnnx.Output out 1 0 y"], args, weights)


def close(got, want):
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_linear_relu_and_names(tmp_path):
    w, b = f32(3, 4), f32(3)
    lines = [
        "pnnx.Input pnnx_input_0 0 1 0 #0=(2,4)f32",
        "nn.Linear fc 1 1 0 1 bias=True in_features=4 out_features=3 @bias=(3)f32 @weight=(3,4)f32",
        "nn.ReLU act 1 1 1 2",
        "pnnx.Output pnnx_output_0 1 0 2",
    ]
    path = write(tmp_path, lines, {"fc.bias": b, "fc.weight": w})
    module = load(path)
    assert module.attrs["input_names"] == ("pnnx_input_0",)
    assert module.attrs["output_names"] == ("pnnx_output_0",)
    x = f32(2, 4)
    close(evaluate(module["main"], [x], module), np.maximum(x @ w.T + b, 0))
    assert str(module["main"].body.span) == "net.pnnx.param:act:5:0"


def test_tuple_outputs_are_opened(tmp_path):
    lines = [
        "pnnx.Input in 0 1 0 #0=(2,6)f32",
        "torch.chunk c 1 2 0 1 2 chunks=2 dim=1 $input=0",
        "prim::TupleConstruct t 2 1 1 2 3",
        "prim::TupleConstruct u 2 1 3 0 4",
        "pnnx.Output out 1 0 4",
    ]
    x = f32(2, 6)
    module = load(write(tmp_path, lines))
    assert module.attrs["output_names"] == ("out.0", "out.1", "out.2")
    got = evaluate(module["main"], [x], module)
    for value, want in zip(got, (x[:, :3], x[:, 3:], x), strict=True):
        close(value, want)


@pytest.mark.parametrize(
    ("expr", "numpy"),
    [
        ("add(mul(@0,2),sin(@1))", lambda a, b: a * 2 + np.sin(b)),
        ("sub(1,@0)", lambda a, b: 1 - a),
        ("log1p,expm1,@0", lambda a, b: a),
        ("pow(@0,2)", lambda a, b: a * a),
        ("atan2(@0,@1)", np.arctan2),
        ("fmod(@0,@1)", np.fmod),
        ("remainder(@0,@1)", np.mod),
        ("floor_divide(@0,@1)", np.floor_divide),
        ("logaddexp(@0,@1)", np.logaddexp),
        ("round(mul(@0,2.5))", lambda a, b: np.round(a * np.float32(2.5))),
        ("maximum(@0,minimum(@1,0.5))", lambda a, b: np.maximum(a, np.minimum(b, 0.5))),
        ("reciprocal(add(abs(@0),1))", lambda a, b: 1 / (abs(a) + 1)),
        ("add(@0,inf)", lambda a, b: a + math.inf),
        ("mul(size(@0,1),@0)", lambda a, b: a * 4),
    ],
)
def test_expressions(tmp_path, expr, numpy):
    a, b = f32(3, 4), f32(4)
    got = one(tmp_path, f"pnnx.Expression e 2 1 0 1 y expr={expr}", a, b)
    close(got, numpy(a, b))


def test_floor_division_of_floats_as_python_does(tmp_path):
    a, b = np.array([10, -1, 7], np.float32), np.array([0.1, 0.3, -2], np.float32)
    got = one(tmp_path, "pnnx.Expression e 2 1 0 1 y expr=floor_divide(@0,@1)", a, b)
    np.testing.assert_array_equal(got, [99, -4, -4])


@pytest.mark.parametrize(
    ("expr", "dtype"),
    [
        ("add(@0,1)", "int64"),
        ("add(@0,1.0)", "float32"),
        ("div(@0,2)", "float32"),
        ("add(@0,@1)", "float32"),
        ("exp(@0)", "float32"),
        ("neg(@0)", "int64"),
        ("pow(@0,2)", "int64"),
        ("floor_divide(@0,2)", "int64"),
        ("and(@0,3)", "int64"),
    ],
)
def test_promotion(tmp_path, expr, dtype):
    got = one(tmp_path, f"pnnx.Expression e 2 1 0 1 y expr={expr}", np.arange(3), f32(3))
    assert got.dtype == dtype


def test_stated_dtype_of_a_result(tmp_path):
    got = one(tmp_path, "torch.sum s 1 1 0 y dim=(1) keepdim=False $input=0 #y=(2)f64", f32(2, 3))
    assert got.dtype == np.float64


@pytest.mark.parametrize(
    ("line", "numpy"),
    [
        ("F.pad p 1 1 0 y mode=constant pad=(1,2) value=None $input=0",
         lambda x: np.pad(x, [(0, 0), (0, 0), (1, 2)])),
        ("F.pad p 1 1 0 y mode=circular pad=(1,1) $input=0",
         lambda x: np.pad(x, [(0, 0), (0, 0), (1, 1)], mode="wrap")),
        ("Tensor.slice s 1 1 0 y dim=1 end=2147483647 start=-2 step=1 $input=0",
         lambda x: x[:, -2:]),
        (FUSED_SLICE, lambda x: x[0:2, :, 2]),
        ("Tensor.index i 1 1 0 y expr=[None,[0,2]]", lambda x: x[:, [0, 2]]),
        ("Tensor.index i 1 1 0 y expr=[None,[0,2],[1,3]]", lambda x: x[:, [0, 2], [1, 3]]),
        ("Tensor.index i 1 1 0 y expr=[[0,1],None,[1,3]]", lambda x: x[[0, 1], :, [1, 3]]),
        ("Tensor.index i 1 1 0 y expr=[[True,False]]", lambda x: x[[True, False]]),
        ("torch.roll r 1 1 0 y dims=(2) shifts=(1) $input=0", lambda x: np.roll(x, 1, 2)),
        ("torch.flip f 1 1 0 y dims=(1,2) $input=0", lambda x: np.flip(x, (1, 2))),
        ("torch.std s 1 1 0 y dim=(1) keepdim=False unbiased=True $input=0",
         lambda x: x.std(1, ddof=1)),
        ("torch.argmax a 1 1 0 y dim=None keepdim=False $input=0", np.argmax),
        ("torch.norm n 1 1 0 y dim=(1) keepdim=False p=2 $input=0",
         lambda x: np.linalg.norm(x, axis=1)),
        ("torch.clamp c 1 1 0 y max=None min=-0.5 $input=0", lambda x: np.maximum(x, -0.5)),
        ("Tensor.expand e 1 1 0 y sizes=(2,2,3,4) $input=0", lambda x: np.stack([x, x])),
        ("torch.flatten f 1 1 0 y start_dim=1 end_dim=-1 $input=0", lambda x: x.reshape(2, 12)),
        ("Tensor.reshape r 1 1 0 y shape=(3,-1) $input=0", lambda x: x.reshape(3, 8)),
        ("F.glu g 1 1 0 y dim=2 $input=0",
         lambda x: x[..., :2] / (1 + np.exp(-x[..., 2:]))),
        ("nn.Softplus s 1 1 0 y beta=2 threshold=10", lambda x: np.log1p(np.exp(2 * x)) / 2),
        ("F.elu e 1 1 0 y alpha=0.7 $input=0", lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
        ("nn.Threshold t 1 1 0 y threshold=0.1 value=-3.0", lambda x: np.where(x > 0.1, x, -3)),
    ],
)  # fmt: skip
def test_operators(tmp_path, line, numpy):
    x = f32(2, 3, 4)
    close(one(tmp_path, line, x), numpy(x))


def test_half_precision_weights_round_as_their_module_did(tmp_path):
    import ml_dtypes

    narrow = ml_dtypes.bfloat16
    w, x = f32(4, 8).astype(narrow), f32(2, 8)
    line = (
        "nn.Linear l 1 1 0 y bias=False in_features=8 out_features=4 @weight=(4,8)bf16 #y=(2,4)f32"
    )
    got = one(tmp_path, line, x, weights={"l.weight": w})
    assert got.dtype == np.float32
    exact = x.astype(narrow).astype(np.float64) @ w.astype(np.float64).T
    np.testing.assert_array_equal(got, exact.astype(np.float32).astype(narrow).astype(np.float32))


def test_a_mask_known_at_run_time(tmp_path):
    x = f32(3, 4)
    lines = [
        "pnnx.Input in 0 1 0 #0=(3,4)f32",
        "torch.gt g 1 1 0 1 other=0 $input=0",
        "pnnx.Expression e 1 1 1 2 expr=[@0]",
        "Tensor.index i 2 1 0 2 3 $input=0 $expr=2",
        "torch.sum s 1 1 3 y $input=3",
        "pnnx.Output out 1 0 y",
    ]
    close(run(tmp_path, lines, [x]), x[x > 0].sum())


@pytest.mark.parametrize("size", [3, 4, 5])
def test_adaptive_max_pool_with_indices(tmp_path, size):
    x = f32(1, 2, 7)
    lines = [
        "pnnx.Input in 0 1 0 #0=(1,2,7)f32",
        f"F.adaptive_max_pool1d p 1 2 0 1 2 output_size=({size}) return_indices=True $input=0",
        "prim::TupleConstruct t 2 1 1 2 3",
        "pnnx.Output out 1 0 3",
    ]
    values, places = run(tmp_path, lines, [x])
    for i in range(size):
        start, end = i * 7 // size, -(-(i + 1) * 7 // size)
        close(values[..., i], x[..., start:end].max(-1))
        np.testing.assert_array_equal(places[..., i], start + x[..., start:end].argmax(-1))


def test_tied_weights_are_not_the_input(tmp_path):
    w, x = f32(4, 4), f32(2, 4)
    lines = [
        "pnnx.Input in 0 1 0 #0=(2,4)f32",
        "pnnx.Attribute a 0 1 1 @data=(4,4)f32",
        "nn.Linear b 2 1 1 0 y bias=False in_features=4 out_features=4 @weight=(4,4)f32",
        "pnnx.Output out 1 0 y",
    ]
    close(run(tmp_path, lines, [x], {"a.data": w, "b.weight": w}), x @ w.T)


def test_slice_assignment(tmp_path):
    x, src = f32(3, 5), f32(3, 2)
    line = "Tensor.slice_copy c 2 1 0 1 y dim=1 end=3 start=1 step=1 $self=0 $src=1"
    want = x.copy()
    want[:, 1:3] = src
    np.testing.assert_array_equal(one(tmp_path, line, x, src), want)
    with pytest.raises(ModelFormatError, match="lost"):
        one(tmp_path, "Tensor.slice_copy c 1 1 0 y dim=1 end=3 start=1 step=1 $self=0", x)


def test_open_sizes(tmp_path):
    lines = [
        "pnnx.Input in 0 1 0 #0=(1,2,?,?)f32",
        "pnnx.Expression e 1 1 0 1 expr=[mul(size(@0,2),size(@0,3)),2]",
        "Tensor.reshape r 2 1 0 1 y $input=0 $shape=1",
        "pnnx.Output out 1 0 y",
    ]
    path = write(tmp_path, lines)
    assert [str(dim) for dim in inputs(path)["in"].shape] == ["1", "2", "input0_2", "input0_3"]
    module = load(path)
    x = f32(1, 2, 3, 5)
    close(evaluate(module["main"], [x], module), x.reshape(15, 2))
    assert tuple(load(path, {"in": (1, 2, 3, 5)})["main"].ret_type.shape) == (15, 2)
    with pytest.raises(InputError):
        load(path, {"in": (1, 3, 3, 5)})


def test_control_flow_is_refused_with_a_hint(tmp_path):
    lines = [
        "pnnx.Input in 0 1 0 #0=(1)f32",
        "prim::If i 1 1 0 1",
        "pnnx.Output out 1 0 1",
    ]
    with pytest.raises(UnsupportedOpError, match=r"torch\.jit\.trace"):
        load(write(tmp_path, lines))


def test_all_unsupported_operators_at_once(tmp_path):
    lines = [
        "pnnx.Input in 0 1 0 #0=(1)f32",
        "aten::foo a 1 1 0 1",
        "aten::foo b 1 1 1 2",
        "nn.Bar c 1 1 2 3",
        "pnnx.Output out 1 0 3",
    ]
    with pytest.raises(UnsupportedOpError) as caught:
        load(write(tmp_path, lines))
    assert [(name, count) for name, count, _ in caught.value.ops] == [
        ("aten::foo", 2),
        ("nn.Bar", 1),
    ]
    assert "net.pnnx.param:4" in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        (["nn.ReLU a 1 1 1 0", "nn.ReLU b 1 1 0 1", "pnnx.Output o 1 0 1"], "cycle"),
        (["nn.ReLU a 1 1 7 0", "pnnx.Output o 1 0 0"], "nothing makes it"),
        (["pnnx.Input a 0 1 0 #0=(1)f32"], "no outputs"),
        (["pnnx.Input a 0 1 0 #0=(1)f32", "nn.Linear l 1 1 0 1", "pnnx.Output o 1 0 1"], "weight"),
        (["pnnx.Input a 0 1 0 #0=(2,3)f32", "nn.Linear l 1 1 0 1 @weight=(4,9)f32",
          "pnnx.Output o 1 0 1"], ""),
        (["pnnx.Input a 0 1 0 #0=(2)f32", "pnnx.Expression e 1 1 0 1 expr=add(@0,@1)",
          "pnnx.Output o 1 0 1"], "@1"),
        (["pnnx.Input a 0 1 0 #0=(2)f32", "pnnx.Expression e 1 1 0 1 expr=pow(9,999999999)",
          "pnnx.Output o 1 0 1"], "too large"),
    ],
)  # fmt: skip
def test_broken_networks(tmp_path, lines, match):
    with pytest.raises(IxionError) as caught:
        load(write(tmp_path, lines))
    assert match in str(caught.value)


def test_missing_bin(tmp_path):
    path = write(tmp_path, ["pnnx.Attribute a 0 1 0 @data=(1)f32", "pnnx.Output o 1 0 0"])
    (tmp_path / "net.pnnx.bin").unlink()
    with pytest.raises(ModelFormatError, match="missing"):
        load(path)


def test_mutated_networks_raise_only_our_errors(tmp_path):
    lines = [
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        CONV,
        POOL,
        "pnnx.Expression e 2 1 2 2 3 expr=add(mul(@0,2),@1)",
        "Tensor.reshape r 1 1 3 4 shape=(1,-1) $input=3",
        "pnnx.Output out 1 0 4",
    ]
    weights = {"c.bias": f32(4), "c.weight": f32(4, 3, 3, 3)}
    path = write(tmp_path, lines, weights)
    text = path.read_text()
    rng = random.Random(17)
    for _ in range(400):
        mutant = list(text)
        for _ in range(rng.choice([1, 1, 3])):
            mutant[rng.randrange(len(mutant))] = rng.choice("0123456789(),.=@#$- \nTrueNone")
        path.write_text("".join(mutant))
        try:
            load(path)
        except IxionError:
            continue


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent_steps(kind, x, states, weights, relu=False):
    """PyTorch's definition of one direction over x (steps, batch, size): outputs, last states."""
    w_ih, w_hh, b_ih, b_hh = weights
    h, *c = states
    outs = []
    for row in x:
        a, b = row @ w_ih.T + b_ih, h @ w_hh.T + b_hh
        if kind == "LSTM":
            i, f, g, o = np.split(a + b, 4, axis=1)
            c = [sigmoid(f) * c[0] + sigmoid(i) * np.tanh(g)]
            h = sigmoid(o) * np.tanh(c[0])
        elif kind == "GRU":
            (ar, az, an), (br, bz, bn) = np.split(a, 3, axis=1), np.split(b, 3, axis=1)
            z, n = sigmoid(az + bz), np.tanh(an + sigmoid(ar + br) * bn)
            h = (1 - z) * n + z * h
        else:
            h = np.maximum(a + b, 0) if relu else np.tanh(a + b)
        outs.append(h)
    return np.stack(outs), [h, *c]


def two_layers(kind, x, states, weights, relu):
    """Two layers in both directions, steps first."""
    finals = []
    for number in range(2):
        outs = []
        for way, back in enumerate((False, True)):
            place = 2 * number + way
            begin = [state[place] for state in states]
            out, last = recurrent_steps(
                kind, x[::-1] if back else x, begin, weights[place], relu
            )
            outs.append(out[::-1] if back else out)
            finals.append(last)
        x = np.concatenate(outs, 2)
    return [x, *(np.stack(parts) for parts in zip(*finals, strict=True))]


@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize(("kind", "gates", "relu"), [
    ("LSTM", 4, False), ("GRU", 3, False), ("RNN", 1, False), ("RNN", 1, True)
])  # fmt: skip
def test_recurrent_layers(tmp_path, kind, gates, relu, batch):
    """Two layers, both directions, batch first, initial states; batch 0 is a missing axis."""
    steps, size, hidden = 4, 3, 5
    entries, weights, spec = {}, [], []
    for number in range(2):
        for tail in ("", "_reverse"):
            width = size if number == 0 else 2 * hidden
            shapes = {
                f"weight_ih_l{number}{tail}": (gates * hidden, width),
                f"weight_hh_l{number}{tail}": (gates * hidden, hidden),
                f"bias_ih_l{number}{tail}": (gates * hidden,),
                f"bias_hh_l{number}{tail}": (gates * hidden,),
            }
            made = {name: f32(*shape) / 2 for name, shape in shapes.items()}
            entries |= {f"r.{name}": array for name, array in made.items()}
            weights.append(tuple(made.values()))
            spec += [f"@{n}=({','.join(map(str, a.shape))})f32" for n, a in made.items()]
    count = 2 if kind == "LSTM" else 1
    many = max(batch, 1)
    x, states = f32(steps, many, size), [f32(4, many, hidden) for _ in range(count)]
    want = two_layers(kind, x, states, weights, relu)
    names = " ".join(f"s{i}" for i in range(count))
    outs = ["y", *(f"e{i}" for i in range(count))]
    extra = f" nonlinearity={'relu' if relu else 'tanh'}" if kind == "RNN" else ""
    line = (
        f"nn.{kind} r {1 + count} {len(outs)} x {names} {' '.join(outs)} batch_first=True "
        f"bidirectional=True hidden_size={hidden} input_size={size} num_layers=2{extra} "
        + " ".join(spec)
    )
    given = [x.transpose(1, 0, 2), *states]
    if batch == 0:
        given = [x[:, 0], *(state[:, 0] for state in states)]
        want = [one[:, 0] for one in want]
    else:
        want[0] = want[0].transpose(1, 0, 2)
    shapes = [f"({','.join(map(str, array.shape))})f32" for array in given]
    lines = [
        *(f"pnnx.Input in{i} 0 1 {n} #{n}={s}"
          for i, (n, s) in enumerate(zip(["x", *names.split()], shapes, strict=True))),
        line, f"prim::TupleConstruct t {len(outs)} 1 {' '.join(outs)} t", "pnnx.Output out 1 0 t",
    ]  # fmt: skip
    module = load(write(tmp_path, lines, entries))
    assert "_sequence" in str(module["main"])
    for got in (evaluate(module["main"], given, module), ixion.compile(module)(*given)):
        for value, expected in zip(got, want, strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5)


def stored():
    folders = [
        path for name in ("samples", "upstream") for path in sorted(SAMPLES.glob(f"{name}/*"))
    ]
    return [pytest.param(path, id=path.name) for path in folders]


@pytest.mark.slow
@pytest.mark.parametrize("folder", stored())
def test_stored_network(folder):
    path = folder / f"{folder.name}.pnnx.param"
    if folder.name in REFUSED:
        with pytest.raises(IxionError):
            load(path)
        return
    for file in sorted(folder.glob("io*.npz")):
        data = np.load(file)
        args = [data[key] for key in sorted(data.files, key=len) if key.startswith("in")]
        open_sizes = dict(zip(inputs(path), [arg.shape for arg in args], strict=True))
        module = load(path, open_sizes if "?" in path.read_text() else None)
        got = evaluate(module["main"], args, module)
        results = got if isinstance(got, tuple) else (got,)
        want = [data[f"out{index}"] for index in range(len(results))]
        for value, expected in zip(results, want, strict=True):
            np.testing.assert_allclose(
                value.astype(np.complex128), expected.astype(np.complex128), rtol=1e-3, atol=1e-4
            )


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("F.glu g 1 1 0 y dim=1 $input=0", lambda x: x[:, :3] / (1 + np.exp(-x[:, 3:]))),
        ("torch.std s 1 1 0 y dim=(1) keepdim=False unbiased=True $input=0",
         lambda x: x.std(axis=1, ddof=1)),
        ("torch.chunk c 1 2 0 y z chunks=2 dim=1 $input=0", lambda x: x[:, :3]),
        ("torch.roll r 1 1 0 y dims=(1) shifts=(2) $input=0", lambda x: np.roll(x, 2, 1)),
        ("torch.roll r 1 1 0 y dims=(1) shifts=(-2) $input=0", lambda x: np.roll(x, -2, 1)),
        ("Tensor.repeat r 1 1 0 y sizes=(2,3) $input=0", lambda x: np.tile(x, (2, 3))),
        ("torch.narrow n 1 1 0 y dim=1 length=2 start=-3 $input=0", lambda x: x[:, -3:-1]),
        ("F.upsample u 1 1 0 y mode=nearest scale_factor=(2.0) size=None $input=0", None),
    ],
)  # fmt: skip
def test_operators_on_open_sizes(tmp_path, line, want):
    x = f32(2, 6)
    if want is None:
        x, want = f32(2, 3, 5), lambda x: x.repeat(2, axis=2)
    close(one(tmp_path, line, x, shapes=[f"({','.join(['?'] * x.ndim)})f32"]), want(x))
