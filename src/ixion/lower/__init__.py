"""From formed kernels to a program: loop nests, steps, and a memory plan."""
