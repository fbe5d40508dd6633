"""A person's corrections: which image is in which class, edits as data, and the run that goes on from them."""
