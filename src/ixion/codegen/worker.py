"""A process that compiles LLVM text for its parent: ``python -m ixion.codegen.worker``.

It reads requests from its standard input and writes replies to its standard output, as blocks: the
target as JSON, then the text; the object file in return.  An empty reply says that the text did
not compile.  It ends with its input.
"""

from __future__ import annotations

import json
import sys
from typing import IO

from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen.blocks import read_block, write_block
from ixion.codegen.llvm import compile_text


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answers requests until they end."""
    while (described := read_block(requests)) is not None:
        fields = json.loads(described)
        target = Target(**{**fields, "features": tuple(fields["features"])})
        text = read_block(requests) or b""
        try:
            write_block(replies, compile_text(text.decode(), target))
        except CodegenError:
            write_block(replies, b"")


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
