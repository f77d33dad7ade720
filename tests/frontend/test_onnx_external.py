"""Weights in files beside the model: read where they may be, refused elsewhere."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ixion.base.errors import ModelFormatError
from ixion.frontend.onnx.model import parse_model, read_model

WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4)


def write(folder, location, offset=None, length=None):
    tensor = numpy_helper.from_array(WEIGHTS, "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    graph = helper.make_graph([], "g", [], [], [tensor])
    path = folder / "m.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


def weights(path):
    return read_model(path).graph.initializers["w"].numpy()


def test_a_range_of_a_file_beside(tmp_path):
    (tmp_path / "m.data").write_bytes(b"12345" + WEIGHTS.tobytes() + b"rest")
    np.testing.assert_array_equal(weights(write(tmp_path, "m.data", 5, 48)), WEIGHTS)


def test_the_rest_of_a_file_in_a_subfolder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "w").write_bytes(WEIGHTS.tobytes())
    np.testing.assert_array_equal(weights(write(tmp_path, "sub/w")), WEIGHTS)


def test_what_onnx_itself_saves(tmp_path):
    graph = helper.make_graph([], "g", [], [], [numpy_helper.from_array(WEIGHTS, "w")])
    path = tmp_path / "m.onnx"
    onnx.save(
        helper.make_model(graph), path, save_as_external_data=True, location="m.bin",
        size_threshold=0,
    )  # fmt: skip
    np.testing.assert_array_equal(weights(path), WEIGHTS)


@pytest.mark.parametrize(
    "location",
    ["/etc/passwd", "../secret", "sub/../../secret", "C:\\secret", "..\\secret", "", "a\0b", "\\x"],
)
def test_paths_that_leave_the_folder(tmp_path, location):
    (tmp_path / "secret").write_bytes(WEIGHTS.tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(ModelFormatError, match="outside the model's folder"):
        weights(write(folder, location))


@pytest.mark.parametrize("target", ["file", "folder"])
def test_links_that_leave_the_folder(tmp_path, target):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "w").write_bytes(WEIGHTS.tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    if target == "file":
        (folder / "w").symlink_to(tmp_path / "outside" / "w")
        location = "w"
    else:
        (folder / "sub").symlink_to(tmp_path / "outside")
        location = "sub/w"
    with pytest.raises(ModelFormatError, match="outside the model's folder"):
        weights(write(folder, location))


def test_a_model_folder_that_is_itself_a_link(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "w").write_bytes(WEIGHTS.tobytes())
    write(real, "w")
    (tmp_path / "link").symlink_to(real)
    np.testing.assert_array_equal(weights(tmp_path / "link" / "m.onnx"), WEIGHTS)


@pytest.mark.parametrize(
    ("offset", "length"), [(40, 48), (0, 49), (1 << 60, None), ("-4", 48), ("x", 48), (0, "1e9")]
)
def test_ranges_outside_the_file(tmp_path, offset, length):
    (tmp_path / "w").write_bytes(WEIGHTS.tobytes())
    with pytest.raises(ModelFormatError):
        weights(write(tmp_path, "w", offset, length))


def test_missing_and_too_short_files(tmp_path):
    with pytest.raises(ModelFormatError, match="missing"):
        weights(write(tmp_path, "w"))
    (tmp_path / "w").write_bytes(b"1234")
    with pytest.raises(ModelFormatError, match="does not fit the shape"):
        weights(write(tmp_path, "w"))


def test_a_folder_instead_of_a_file(tmp_path):
    (tmp_path / "w").mkdir()
    with pytest.raises(ModelFormatError, match="regular file"):
        weights(write(tmp_path, "w"))


def test_a_model_in_memory_has_no_folder(tmp_path):
    data = write(tmp_path, "w").read_bytes()
    with pytest.raises(ModelFormatError, match="not loaded from a folder"):
        parse_model(data).graph.initializers["w"].numpy()
