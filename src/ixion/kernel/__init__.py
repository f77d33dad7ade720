"""Schedules: how formed kernels become loop nests, fastest known way first."""
