"""Text for a terminal that holds names by strangers: signs that would steer the terminal are shown, not obeyed."""

import re

# all of C0 but tab and line feed, DEL, C1, signs that turn the direction of writing, halves of characters
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return ``text`` with such signs as their codes.

    Examples:
        >>> visible("\x1b[31mred\u202e")
        '\\x1b[31mred\\u202e'
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def is_text(name: str) -> bool:
    """Tell whether a document can hold ``name``: names of files may be any bytes, as Python smuggles them through."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
