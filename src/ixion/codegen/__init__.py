"""Loop nests to machine code: emitter, vector math, targets, and the door to LLVM."""
