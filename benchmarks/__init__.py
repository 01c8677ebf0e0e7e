"""The evidence: the paper's tables and ours, speed, guarantees. Run as ``python -m benchmarks``."""
