"""Documents that were whole once: bytes, lines and values of them changed, lost, doubled or made extreme."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

MOST_CHANGES = 4
EXTREMES = (
    b"", b"\0", b"-1", b"0", b"1e999", b"nan", b"inf", b"9" * 30, b"-" + b"9" * 5000, b"\xff\xfe", b"\xef\xbb\xbf",
    b"\r", b"\n\n", b'"', b"'", b",", b"[" * 3000, b"{" * 300, b"{}", b"[]", b"null", b"true", b"\xed\xa0\x80",
    b"\\ud800", b"../../../../etc/passwd", b"=cmd|' /C calc'!A0", b"<script>", b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff", b"\0" * 8,
)  # fmt: skip

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 30), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["", "\ud800", "0", "-1", "1e9", "../x", "new-1", 2**63, 2**64, -(2**70), 10**400]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def changed_bytes(draw: st.DrawFn, documents: Sequence[bytes]) -> bytes:
    """Return a document with a few of its bytes changed."""
    content = bytearray(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, MOST_CHANGES))):
        place = draw(st.integers(0, len(content)))
        end = min(place + draw(st.integers(0, 40)), len(content))
        match draw(st.integers(0, 6)):
            case 0:
                content[place:end] = draw(st.binary(max_size=8))
            case 1:
                content[place:place] = draw(st.sampled_from(EXTREMES))
            case 2:
                del content[place:end]
            case 3:
                del content[place:]
            case 4:
                content[place:place] = content[place:end]
            case 5 if place < len(content):
                content[place] ^= 1 << draw(st.integers(0, 7))
            case _:
                content[place:end] = draw(st.sampled_from(EXTREMES))
    return bytes(content)


@st.composite
def changed_lines(draw: st.DrawFn, documents: Sequence[bytes]) -> bytes:
    """Return a document with a few of its lines lost, doubled, moved or changed."""
    lines = draw(st.sampled_from(documents)).split(b"\n")
    for _ in range(draw(st.integers(1, MOST_CHANGES))):
        place = draw(st.integers(0, max(len(lines) - 1, 0)))
        match draw(st.integers(0, 3)):
            case 0 if lines:
                del lines[place]
            case 1 if lines:
                lines.insert(draw(st.integers(0, len(lines))), lines[place])
            case 2 if lines:
                lines[place] = draw(changed_bytes([lines[place]]))
            case _:
                lines.insert(place, draw(st.binary(max_size=20)))
    return b"\n".join(lines)


@st.composite
def changed_json(draw: st.DrawFn, documents: Sequence[bytes], lines: bool = False) -> bytes:
    """Return a JSON document (or lines of such) in which a few values are others, or are missing."""
    text = draw(st.sampled_from(documents))
    parts = [json.loads(part) for part in (text.splitlines() if lines else [text])]
    for _ in range(draw(st.integers(1, MOST_CHANGES))):
        place = draw(st.integers(0, len(parts) - 1))
        parts[place] = draw(_changed_value(parts[place]))
    return b"\n".join(json.dumps(part).encode(errors="surrogatepass") for part in parts) + b"\n"


@st.composite
def _changed_value(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(value)))
        kept = {k: v for k, v in value.items() if k != key}
        return kept if draw(st.integers(0, 5)) == 0 else kept | {key: draw(_changed_value(value[key]))}
    if isinstance(value, list) and value and draw(st.integers(0, 9)):
        place = draw(st.integers(0, len(value) - 1))
        new = [draw(_changed_value(value[place]))] * draw(st.integers(0, 2))
        return [*value[:place], *new, *value[place + 1 :]]
    return draw(values)


def documents_like(seeds: Sequence[bytes], kind: str) -> st.SearchStrategy[bytes]:
    """Return documents: anything at all, and whole ones that were changed; ``kind``: bytes, lines, json or jsonl."""
    ways = [st.binary(max_size=200), changed_bytes(seeds), st.sampled_from(list(seeds))]
    if kind in ("lines", "jsonl"):
        ways.append(changed_lines(seeds))
    if kind in ("json", "jsonl"):
        ways += [changed_json(seeds, kind == "jsonl")] * 2
    return st.one_of(ways)
