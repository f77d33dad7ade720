"""Pieces of programs that several foreign operators come down to, in Relay's operators.

Each function takes the emitter first and terms after it, and returns a term.
"""
