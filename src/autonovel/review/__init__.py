"""Review: a page on this machine alone, where a person looks at the classes of a run and corrects them."""

from autonovel.review.serving import serve

__all__ = ["serve"]
