"""The parts of `run.py`: networks, engines, processes, timing and reports."""
