"""How many new classes there are, where nobody said: when a run counts, on which features, and in which words."""
