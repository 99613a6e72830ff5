"""Benchmarks, run by hand. Each prints ratios from one run, the two sides alternating."""
