"""Where recipes depart from the paper, as their runs have told."""

from collections.abc import Sequence

from autonovel.tables.naming import Results, commit_of, in_order, name_as_asked, name_of


def departures(results: Sequence[Results]) -> list[str]:
    """Return where each recipe departs from the paper; where runs differ in that, which commits have said what.

    What no run of the recipe as it was has said is due to changed settings, which are named too; so they are where it
    has said two things at one commit.
    """
    said: dict[str, dict[str, list[Results]]] = {}
    for r in results:
        text = "; ".join(r.get("departures") or []) or "nowhere that it says"
        said.setdefault(str(r["recipe"]), {}).setdefault(text, []).append(r)
    lines = []
    for recipe, texts in sorted(said.items()):
        plain = {text: {commit_of(r) for r in runs if name_as_asked(r) == recipe} for text, runs in texts.items()}
        for text, runs in sorted(texts.items()):
            of = f" at {', '.join(sorted({commit_of(r) for r in runs}))}" if len(texts) > 1 else ""
            twice = any(plain[text] & commits for other, commits in plain.items() if other != text)
            whole = [r for r in runs if r.get("primary") in r["systems"]] or runs  # not what stands in a row of its own
            names = in_order({name_of(r) if twice else name_as_asked(r) for r in whole})
            changes = [name.removeprefix(recipe).strip() for name in names if name != recipe]
            if changes and (twice or recipe not in names):
                of += f"{' as it is or' if recipe in names else ''} with {' or '.join(changes)}"
            lines += ["", f"`{recipe}`{of} departs from the paper: {text}."]
    return lines
