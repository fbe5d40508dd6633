"""autonovel: discover new visual categories among unlabelled images, guided by known ones."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autonovel.editing.edited import open_run
    from autonovel.estimator import Discoverer

__version__ = "0.1.0"
__all__ = ["Discoverer", "__version__", "open_run"]


def __getattr__(name: str) -> Any:
    """Import the estimator, and torch with it, only when somebody asks for it; likewise ``open_run``."""
    if name == "Discoverer":
        from autonovel.estimator import Discoverer

        return Discoverer
    if name == "open_run":
        from autonovel.editing.edited import open_run

        return open_run
    raise AttributeError(f"module 'autonovel' has no attribute {name!r}")
