"""Later images: files through a delivered model, what its probabilities mean, and the rows they become."""
