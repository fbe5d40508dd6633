"""What a setting is: a typed value that knows its meaning, its source and its bounds."""

from collections.abc import Collection
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

from autonovel.errors import UsageError

T = TypeVar("T")

CODE = "published code"
OURS = "ours"
L2C = "published code of KCL and MCL, OmniGlot"
DTC = "published code of DTC"


def setting(
    default: T,
    doc: str,
    source: str = OURS,
    *,
    choices: Collection[Any] = (),
    low: float | None = None,
    high: float | None = None,
) -> T:
    """Return a dataclass field that knows its meaning, its source and its bounds."""
    made: Any = field(
        default=default, metadata={"doc": doc, "source": source, "choices": choices, "low": low, "high": high}
    )
    return made  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A group of settings; checks choices and bounds when made."""

    def __post_init__(self) -> None:
        for f in fields(self):
            self.check(f, getattr(self, f.name))

    def check(self, f: "Field[Any]", value: Any) -> None:
        """Say so if ``value`` is out of the bounds of the setting ``f``, or none of its choices."""
        where, meta = f.name, f.metadata
        given = value if isinstance(value, tuple) else (value,)
        if meta.get("choices") and (wrong := [v for v in given if v not in meta["choices"]]):
            found = f"{where} has {wrong[0]!r}; each" if isinstance(value, tuple) else f"{where} is {value!r}; it"
            other = f" (Their number is another setting: {where}s.)" if hasattr(self, f"{where}s") else ""
            raise UsageError(f"{found} must be one of {', '.join(map(str, meta['choices']))}.{other}")
        if meta.get("low") is not None and any(v < meta["low"] for v in given):
            raise UsageError(f"{where} is {value!r}; it must be at least {meta['low']}.")
        if meta.get("high") is not None and any(v > meta["high"] for v in given):
            raise UsageError(f"{where} is {value!r}; it must be at most {meta['high']}.")
