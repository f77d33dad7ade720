"""Foreign model files into the IR."""
