"""PNNX files (`.pnnx.param` with `.pnnx.bin`): the reader and the import into the IR."""
