"""ONNX files: our own reader of the format, and the import into the IR."""
