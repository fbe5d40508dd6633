"""Training: the one loop, schedules, optimisers, checkpoints, guards and progress."""
