"""Train the digit classifier that ships inside the package and write its files.

The data are scikit-learn's 1,797 real handwritten digits, 8 by 8 pixels of 17 grey levels. A fixed
fifth is held out and never seen by training. The network is two 3x3 convolutions, a pool and a
dense layer (9,930 parameters); training is Adam on the cross-entropy with one-pixel shifts, in
numpy alone. Everything random comes from one seed.

    pip install '.[train]'
    python examples/train_digits.py -o src/ixion/data

writes digits.onnx, digits.pnnx.param with digits.pnnx.bin, and digits_heldout.npz (uint8 images
and labels).
"""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

SEED = 20
HELD_OUT = 360
CHANNELS = (16, 32)
CLASSES = 10
WHITE = 16  # the brightest grey level of the data set

Params = dict[str, np.ndarray]


# --- data ------------------------------------------------------------------------------------


def load_digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training images and labels, then held-out ones: uint8 [N, 8, 8] and uint8 [N]."""
    from sklearn.datasets import load_digits as load

    digits = load()
    images = digits.images.astype(np.uint8)
    labels = digits.target.astype(np.uint8)
    order = np.random.default_rng(SEED).permutation(len(images))
    held, rest = order[:HELD_OUT], order[HELD_OUT:]
    return images[rest], labels[rest], images[held], labels[held]


def to_input(images: np.ndarray) -> np.ndarray:
    """Grey levels uint8 [N, 8, 8] to the network's input, float32 [N, 1, 8, 8] in 0..1."""
    return images[:, None].astype(np.float32) / WHITE


def shifted(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each image of [N, 1, 8, 8] moved by -1, 0 or 1 pixel in both directions."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns = rng.integers(0, 3, (2, len(x)))
    windows = sliding_window_view(padded, (8, 8), axis=(2, 3))
    return windows[np.arange(len(x)), :, rows, columns]


# --- the network and its gradients -------------------------------------------------------------


def initial(rng: np.random.Generator) -> Params:
    """He-normal weights; shapes as ONNX and PNNX store them: OIHW and [out, in]."""
    first, second = CHANNELS
    features = second * 4 * 4

    def he(*shape: int) -> np.ndarray:
        fan_in = int(np.prod(shape[1:]))
        return (rng.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32)

    return {
        "conv1.weight": he(first, 1, 3, 3),
        "conv1.bias": np.zeros(first, np.float32),
        "conv2.weight": he(second, first, 3, 3),
        "conv2.bias": np.zeros(second, np.float32),
        "fc.weight": he(CLASSES, features) * np.float32(0.5),
        "fc.bias": np.zeros(CLASSES, np.float32),
    }


def patches(x: np.ndarray) -> np.ndarray:
    """[N, C, H, W] to the 3x3 neighbourhoods [N, H, W, C*9], zero outside the image."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


def conv(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """3x3 convolution with padding 1, and the patches that the gradient needs."""
    columns = patches(x)
    y = columns @ weight.reshape(len(weight), -1).T + bias
    return y.transpose(0, 3, 1, 2), columns


def conv_gradient(
    grad: np.ndarray, columns: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of input, weight and bias. The input's is a convolution with the flipped kernel."""
    rows = grad.transpose(0, 2, 3, 1).reshape(-1, len(weight))
    grad_weight = (rows.T @ columns.reshape(len(rows), -1)).reshape(weight.shape)
    flipped = weight[:, :, ::-1, ::-1].swapaxes(0, 1)
    grad_x, _ = conv(grad, np.ascontiguousarray(flipped), np.float32(0))
    return grad_x, grad_weight, rows.sum(0)


def forward(params: Params, x: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Logits [N, 10] for x [N, 1, 8, 8], and what the backward pass reads."""
    a1, columns1 = conv(x, params["conv1.weight"], params["conv1.bias"])
    r1 = np.maximum(a1, 0)
    a2, columns2 = conv(r1, params["conv2.weight"], params["conv2.bias"])
    r2 = np.maximum(a2, 0)
    n, c, h, w = r2.shape
    pooled = r2.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))
    features = pooled.reshape(n, -1)
    logits = features @ params["fc.weight"].T + params["fc.bias"]
    return logits, (a1, columns1, a2, columns2, r2, pooled, features)


def gradients(params: Params, x: np.ndarray, labels: np.ndarray) -> Params:
    """Gradient of the mean cross-entropy with respect to every parameter."""
    logits, (a1, columns1, a2, columns2, r2, pooled, features) = forward(params, x)
    shifted_logits = np.exp(logits - logits.max(1, keepdims=True))
    grad = shifted_logits / shifted_logits.sum(1, keepdims=True)
    grad[np.arange(len(x)), labels] -= 1
    grad /= len(x)
    grad_features = (grad @ params["fc.weight"]).reshape(pooled.shape)
    spread = np.repeat(np.repeat(pooled, 2, 2), 2, 3)
    grad2 = np.repeat(np.repeat(grad_features, 2, 2), 2, 3) * (r2 == spread) * (a2 > 0)
    grad1, weight2, bias2 = conv_gradient(grad2, columns2, params["conv2.weight"])
    _, weight1, bias1 = conv_gradient(grad1 * (a1 > 0), columns1, params["conv1.weight"])
    return {
        "conv1.weight": weight1,
        "conv1.bias": bias1,
        "conv2.weight": weight2,
        "conv2.bias": bias2,
        "fc.weight": grad.T @ features,
        "fc.bias": grad.sum(0),
    }


def train(images: np.ndarray, labels: np.ndarray, epochs: int, batch: int = 64) -> Params:
    """Adam (Kingma and Ba, 2015) with decoupled weight decay and a cosine learning rate."""
    rng = np.random.default_rng(SEED)
    params = initial(rng)
    first = {name: np.zeros_like(value) for name, value in params.items()}
    second = {name: np.zeros_like(value) for name, value in params.items()}
    x = to_input(images)
    steps = epochs * (len(x) // batch)
    for step in range(steps):
        if step % (steps // epochs) == 0:
            order = rng.permutation(len(x))
        start = step % (steps // epochs) * batch
        chosen = order[start : start + batch]
        rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * step / steps))
        for name, grad in gradients(params, shifted(x[chosen], rng), labels[chosen]).items():
            first[name] += 0.1 * (grad - first[name])
            second[name] += 0.01 * (grad**2 - second[name])
            mean = first[name] / (1 - 0.9 ** (step + 1))
            spread = np.sqrt(second[name] / (1 - 0.99 ** (step + 1))) + 1e-8
            params[name] -= (rate * (mean / spread + 1e-2 * params[name])).astype(np.float32)
    return params


def accuracy(params: Params, images: np.ndarray, labels: np.ndarray) -> float:
    """Fraction of images whose largest logit is at the label."""
    logits, _ = forward(params, to_input(images))
    return float((logits.argmax(1) == labels).mean())


# --- files -------------------------------------------------------------------------------------


def write_onnx(params: Params, path: Path) -> None:
    """One image at a time: input `image` [1, 1, 8, 8], output `logits` [1, 10]."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    node = helper.make_node
    nodes = [
        node("Conv", ["image", "conv1.weight", "conv1.bias"], ["a1"], name="conv1", **conv),
        node("Relu", ["a1"], ["r1"], name="relu1"),
        node("Conv", ["r1", "conv2.weight", "conv2.bias"], ["a2"], name="conv2", **conv),
        node("Relu", ["a2"], ["r2"], name="relu2"),
        node("MaxPool", ["r2"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p"], ["f"], name="flatten", axis=1),
        node("Gemm", ["f", "fc.weight", "fc.bias"], ["logits"], name="fc", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, CLASSES])],
        [numpy_helper.from_array(value, name) for name, value in params.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.producer_name = "ixion"
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def write_pnnx(params: Params, param_path: Path) -> None:
    """The same network as PNNX: the text at `param_path`, the weights as a zip beside it."""
    lines = pnnx_lines(params)
    operands = {word for line in lines for word in line.split() if word.startswith("#")}
    param_path.write_text("\n".join(["7767517", f"{len(lines)} {len(operands)}", *lines, ""]))
    with zipfile.ZipFile(param_path.with_suffix(".bin"), "w", zipfile.ZIP_STORED) as archive:
        for name, value in sorted(params.items()):
            entry = zipfile.ZipInfo(name)  # its date is fixed, so equal weights give equal files
            archive.writestr(entry, np.ascontiguousarray(value, "<f4").tobytes())


def pnnx_lines(params: Params) -> list[str]:
    """One line an operator: type, name, operand counts, operands, then key=value pairs."""
    first, second = CHANNELS
    shapes = ["1,1,8,8"]
    shapes += [f"1,{first},8,8"] * 2 + [f"1,{second},8,8"] * 2
    shapes += [f"1,{second},4,4", f"1,{second * 16}", f"1,{CLASSES}"]

    def line(kind: str, name: str, inputs: list[int], outputs: list[int], *pairs: str) -> str:
        operands = [*inputs, *outputs]
        head = f"{kind:<24} {name:<24} {len(inputs)} {len(outputs)}"
        described = [f"#{k}=({shapes[k]})f32" for k in operands]
        return " ".join([head, *map(str, operands), *pairs, *described])

    def weights(name: str) -> list[str]:
        keys = (f"{name}.bias", f"{name}.weight")
        dims = [",".join(map(str, params[key].shape)) for key in keys]
        return [f"@bias=({dims[0]})f32", f"@weight=({dims[1]})f32"]

    def conv(channels: tuple[int, int]) -> list[str]:
        fixed = "bias=True dilation=(1,1) groups=1 in_channels={} kernel_size=(3,3) "
        fixed += "out_channels={} padding=(1,1) padding_mode=zeros stride=(1,1)"
        return [fixed.format(*channels)]

    pool = "ceil_mode=False dilation=(1,1) kernel_size=(2,2) padding=(0,0) return_indices=False"
    dense = f"bias=True in_features={second * 16} out_features={CLASSES}"
    return [
        line("pnnx.Input", "pnnx_input_0", [], [0]),
        line("nn.Conv2d", "conv1", [0], [1], *conv((1, first)), *weights("conv1")),
        line("nn.ReLU", "relu1", [1], [2]),
        line("nn.Conv2d", "conv2", [2], [3], *conv((first, second)), *weights("conv2")),
        line("nn.ReLU", "relu2", [3], [4]),
        line("nn.MaxPool2d", "pool", [4], [5], pool, "stride=(2,2)"),
        line("torch.flatten", "flatten", [5], [6], "end_dim=-1 start_dim=1 $input=5"),
        line("nn.Linear", "fc", [6], [7], dense, *weights("fc")),
        line("pnnx.Output", "pnnx_output_0", [7], []),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Train and export the digit classifier.")
    parser.add_argument("-o", "--out", type=Path, default=Path("src/ixion/data"))
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()
    images, labels, held_images, held_labels = load_digits()
    params = train(images, labels, args.epochs)
    print(f"training accuracy {accuracy(params, images, labels):.4f}")
    print(f"held-out accuracy {accuracy(params, held_images, held_labels):.4f}")
    args.out.mkdir(parents=True, exist_ok=True)
    write_onnx(params, args.out / "digits.onnx")
    write_pnnx(params, args.out / "digits.pnnx.param")
    np.savez_compressed(args.out / "digits_heldout.npz", images=held_images, labels=held_labels)


if __name__ == "__main__":
    main()
