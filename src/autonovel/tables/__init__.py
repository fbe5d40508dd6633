"""Results beside the paper's: its numbers, ours over seeds, and both as tables."""
