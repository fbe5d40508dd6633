"""Edits as data: what each does, what it refuses, and that undoing takes everything back."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autonovel.editing.edits import (
    KINDS,
    Junk,
    JunkClass,
    Merge,
    Move,
    Rename,
    Split,
    Undo,
    as_line,
    from_line,
    in_force,
    replay,
)
from autonovel.editing.sorting import JUNK, UNREADABLE, EditError, Sorting
from autonovel.spreadsheet import harmless


def found() -> Sorting:
    """Ten images: a, b known (0, 1); new-1 … new-3 (2 … 4) with 3, 2 and 1 images; one unreadable file."""
    return Sorting.found(
        [f"i{n}" for n in range(10)], [0, 0, 1, 2, 2, 2, 3, 3, 4, UNREADABLE], ["a", "b", "new-1", "new-2", "new-3"], 2
    )


def same(one: Sorting, other: Sorting) -> bool:
    plain = [dataclasses.asdict(s) | {"class_of": s.class_of.tolist()} for s in (one, other)]
    return plain[0] == plain[1]


def test_rename_changes_the_name_alone() -> None:
    now = Rename(2, "  cat   fish ").apply(found())
    assert now.names[2] == "cat fish"
    assert same(dataclasses.replace(now, names=found().names), found())


def test_merge_moves_images_and_answers_and_drops_the_class() -> None:
    now = Merge((3, 4), 2).apply(found())
    assert now.class_of.tolist() == [0, 0, 1, 2, 2, 2, 2, 2, 2, UNREADABLE]
    assert now.names == {0: "a", 1: "b", 2: "new-1"}
    assert now.answers == (0, 1, 2, 2, 2)
    assert Merge((2,), 0).apply(now).answers == (0, 1, 0, 0, 0), "what was merged before goes along"


def test_split_gives_a_number_never_used_before_and_predictions_go_to_the_larger_part() -> None:
    small = Split(2, ("i3",), "odd").apply(found())
    assert small.class_of.tolist()[3:6] == [5, 2, 2] and small.names[5] == "odd"
    assert small.answers[2] == 2
    large = Split(2, ("i3", "i4"), "odd").apply(found())
    assert large.answers[2] == 5
    even = Split(3, ("i6",), "odd").apply(found())
    assert even.answers[3] == 3, "as large as the rest: the class itself"
    again = Split(2, ("i4",), "odder").apply(Merge((5,), 0).apply(small))
    assert 6 in again.names and 5 not in again.names


def test_a_known_class_that_is_split_keeps_its_answers() -> None:
    grown = Move(("i8", "i7"), 0).apply(found())
    assert Split(0, ("i1", "i8", "i7"), "x").apply(grown).answers[0] == 0


def test_junk_and_back() -> None:
    now = Junk(("i3", "i8")).apply(found())
    assert now.class_of.tolist()[3] == JUNK and now.names == found().names
    assert Move(("i3",), 2).apply(now).class_of.tolist()[3] == 2
    whole = JunkClass(2).apply(found())
    assert whole.answers[2] == JUNK and 2 not in whole.names
    assert (whole.class_of == JUNK).sum() == 3


def test_the_answer_matrix_adds_what_was_merged_and_sets_junk_apart() -> None:
    now = JunkClass(4).apply(Merge((3,), 1).apply(found()))
    p = np.array([[0.1, 0.2, 0.3, 0.15, 0.25]], dtype=np.float32)
    assert (p @ now.answer_matrix())[0] == pytest.approx([0.1, 0.35, 0.3, 0, 0, 0.25])


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Rename(9, "x"), "no class 9"),
        (Rename(0, "x"), "known class"),
        (Rename(2, "new-2"), "merge"),
        (Rename(2, "a"), "merge"),
        (Rename(2, "new-1"), "already"),
        (Rename(2, " "), "cannot be called"),
        (Rename(2, "a\x00b"), "cannot be called"),
        (Rename(2, "x" * 121), "120"),
        (Rename(2, "junk"), "junk"),
        (Merge((2,), 2), "itself"),
        (Merge((), 2), "at least two"),
        (Merge((3, 3), 2), "twice"),
        (Merge((0,), 2), "known class"),
        (Merge((7,), 2), "no class 7"),
        (Merge((2,), 7), "no class 7"),
        (Split(2, ("i0",), "x"), "not in 'new-1'"),
        (Split(2, ("i3", "i4", "i5"), "x"), "all images"),
        (Split(2, (), "x"), "no image"),
        (Split(2, ("i3",), "b"), "already"),
        (Move(("nix", "i0"), 2), "no image nix"),
        (Move(("i9",), 2), "could not be read"),
        (Move(("i3",), 2), "already"),
        (Move(("i3",), 8), "no class 8"),
        (Move(("i3",), JUNK), "no class -1"),
        (Junk(("nix",)), "no image nix"),
        (JunkClass(1), "known class"),
        (Undo(), "by itself"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(edit: Any, words: str) -> None:
    with pytest.raises(EditError, match=words):
        edit.apply(found())


def test_junk_twice_is_refused() -> None:
    with pytest.raises(EditError, match="already"):
        Junk(("i3",)).apply(Junk(("i3",)).apply(found()))


def test_undo_takes_back_the_last_edit_in_force() -> None:
    made = [Rename(2, "x"), Rename(3, "y"), Undo(), Rename(4, "z"), Undo(), Undo()]
    assert in_force(made[:3]) == made[:1]
    assert in_force(made) == []
    with pytest.raises(EditError, match="no edit left"):
        in_force([*made, Undo()])


def test_a_class_is_called_by_its_name_or_numbered() -> None:
    sorting = Sorting.found(["a", "b", "c"], [0, 1, 2], ["1", "2", "new-1"], 2)
    assert [sorting.number(name) for name in ("1", "2", "#1", 0, 1, 2)] == [0, 1, 1, 0, 1, 2]


def test_images_and_classes_may_be_called_as_our_csv_files_call_them() -> None:
    ids = ["=laptop/Bild 10 ü.jpg", "'+odd", "b"]
    sorting = Sorting.found(ids, [0, 0, 1], ["=laptop", "-b"], 0)
    for row, name in enumerate(ids):
        assert sorting.rows([name]).tolist() == sorting.rows([harmless(name)]).tolist() == [row]
    assert sorting.number("=laptop") == sorting.number("'=laptop") == 0 and sorting.number("'-b") == 1
    with pytest.raises(EditError, match="no image '=b"):
        sorting.rows(["'=b"])


def test_images_need_one_name_each() -> None:
    with pytest.raises(EditError, match="one name each"):
        Sorting.found(["a", "a"], [0, 0], ["x"], 1)


numbers = st.integers(-1, 8)
images = st.lists(st.sampled_from([f"i{n}" for n in range(10)]), max_size=4).map(tuple)
wishes = st.one_of(
    st.builds(Rename, numbers, st.sampled_from(["x", "y", "new-1", "a", ""])),
    st.builds(Merge, st.lists(numbers, max_size=3).map(tuple), numbers),
    st.builds(Split, numbers, images, st.sampled_from(["p", "q", "r", "s"])),
    st.builds(Move, images, numbers),
    st.builds(Junk, images),
    st.builds(JunkClass, numbers),
    st.just(Undo()),
)


@given(st.lists(wishes, max_size=30))
def test_any_edits_followed_by_as_many_undos_are_nothing(given_edits: list[Any]) -> None:
    made: list[Any] = []
    for wish in given_edits:
        try:
            now = replay(found(), [*made, wish])
        except EditError:
            continue
        made.append(wish)
        assert set(now.class_of.tolist()) <= {*now.names, JUNK, UNREADABLE}, "every image is in a class that exists"
        assert set(now.answers) <= {*now.names, JUNK}
        assert len(set(now.names.values())) == len(now.names), "no two classes share a name"
        assert [now.names[n] for n in range(2)] == ["a", "b"], "known classes stay"
        assert (now.class_of == UNREADABLE).sum() == 1
        assert replay(found(), [from_line(as_line(edit)) for edit in made]).class_of.tolist() == now.class_of.tolist()
    undos = [Undo()] * len(in_force(made))
    assert same(replay(found(), [*made, *undos]), found())


@given(st.lists(wishes, max_size=12))
def test_each_undo_leads_to_the_sorting_before(given_edits: list[Any]) -> None:
    past = [found()]
    made: list[Any] = []
    for wish in given_edits:
        if isinstance(wish, Undo):
            continue
        try:
            past.append(wish.apply(past[-1]))
        except EditError:
            continue
        made.append(wish)
    for expected in reversed(past[:-1]):
        made.append(Undo())
        assert same(replay(found(), made), expected)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({}, "kind None"),
        ({"edit": "explode"}, "kinds are"),
        ({"edit": ["rename"]}, "kinds are"),
        ({"edit": "rename", "number": "2", "name": "x"}, "'number'"),
        ({"edit": "rename", "number": True, "name": "x"}, "'number'"),
        ({"edit": "rename", "number": 2}, "'name'"),
        ({"edit": "merge", "numbers": 3, "into": 2}, "list of numbers"),
        ({"edit": "move", "images": ["a", 3], "to": 2}, "list of texts"),
        ({"edit": "move", "images": "i3", "to": 2}, "list of texts"),
    ],
)
def test_edits_from_outside_are_checked(line: dict[str, Any], words: str) -> None:
    with pytest.raises(EditError, match=words):
        from_line(line)


def test_every_kind_goes_to_json_and_back() -> None:
    made = [
        Rename(2, "x"),
        Merge((3,), 2),
        Split(2, ("i3",), "y"),
        Move(("i3",), 2),
        Junk(("i4",)),
        JunkClass(2),
        Undo(),
    ]
    assert {edit.kind for edit in made} == set(KINDS)
    assert [from_line(as_line(edit) | {"time": "later"}) for edit in made] == made
