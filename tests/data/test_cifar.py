"""CIFAR's files: read exactly, from folder and archive; anything else is refused, and nothing in it runs."""

import io
import os
import pickle
import pickletools
import struct
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autonovel.data import cifar
from autonovel.errors import InputError, UsageError

CLASSES = {"cifar10": 10, "cifar100": 100}


class Python2Pickler(pickle._Pickler):
    """Writes text, bytes and numpy's names as Python 2 did, which is what the official files contain."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_text(self, value: str | bytes) -> None:
        raw = value.encode("latin-1") if isinstance(value, str) else value
        self.write((b"U" + bytes([len(raw)]) if len(raw) < 256 else b"T" + struct.pack("<i", len(raw))) + raw)
        self.memoize(value)

    def save_name(self, value: Any, name: str | None = None) -> None:
        self.write(f"c{value.__module__.replace('numpy._core', 'numpy.core')}\n{value.__name__}\n".encode())
        self.memoize(value)

    dispatch[str] = dispatch[bytes] = save_text
    dispatch[type] = dispatch[type(len)] = dispatch[type(os.path.join)] = save_name


def python2(value: Any) -> bytes:
    out = io.BytesIO()
    Python2Pickler(out, protocol=2).dump(value)
    return out.getvalue()


def pixels(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, 3072), dtype=np.uint8)


def files(variant: str, n: int = 4) -> dict[str, Any]:
    """Return the contents of all files of a small CIFAR, by name."""
    names = [f"class {number}" for number in range(CLASSES[variant])]
    if variant == "cifar100":
        labels = [99 - number for number in range(n)]
        return {
            "train": {"data": pixels(n), "fine_labels": labels, "coarse_labels": [0] * n, "filenames": ["a.png"] * n},
            "test": {"data": pixels(n, 9), "fine_labels": labels, "coarse_labels": [0] * n},
            "meta": {"fine_label_names": names, "coarse_label_names": ["all"]},
        }
    parts = {f"data_batch_{part}": {"data": pixels(n, part), "labels": [part] * n} for part in range(1, 6)}
    test = {"data": pixels(n, 9), "labels": [0] * n, "batch_label": "testing batch 1 of 1"}
    return {**parts, "test_batch": test, "batches.meta": {"label_names": names, "num_vis": 3072}}


def write(folder: Path, contents: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else python2(content))


def archive(path: Path, contents: dict[str, bytes], linked: bool = False) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if linked:
                member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0
            tar.addfile(member, io.BytesIO(content))


def refused(tmp_path: Path, content: Any, entry: str = "test") -> str:
    """Return the message with which CIFAR-100's test split is refused when a file holds ``content``."""
    write(tmp_path / "cifar-100-python", {**files("cifar100"), entry: content})
    with pytest.raises(InputError) as caught:
        cifar.load(tmp_path, "cifar100", "test")
    message = str(caught.value)
    assert str(tmp_path / "cifar-100-python") in message
    assert f"autonovel data fetch cifar100 --to {tmp_path}" in message
    return message


@pytest.mark.parametrize("inside", [False, True])
def test_cifar10_is_read_from_its_folder(tmp_path: Path, inside: bool) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    write(folder, files("cifar10"))
    train = cifar.load(folder if inside else tmp_path, "cifar10", "train")
    assert train.images.shape == (20, 3, 32, 32) and train.images.dtype == torch.uint8
    assert train.labels.tolist() == [part for part in range(1, 6) for _ in range(4)]
    assert train.names == tuple(f"class {number}" for number in range(10))
    red, green, blue = pixels(4, 3)[1].reshape(3, 32, 32)
    assert torch.equal(train.images[9], torch.from_numpy(np.stack([red, green, blue])))
    assert len(cifar.load(tmp_path if not inside else folder, "cifar10", "test").images) == 4


def test_cifar100_has_fine_labels(tmp_path: Path) -> None:
    write(tmp_path / "cifar-100-python", files("cifar100"))
    test = cifar.load(tmp_path, "cifar100", "test")
    assert test.labels.tolist() == [99, 98, 97, 96] and len(test.names) == 100
    assert np.array_equal(test.images.flatten(1).numpy(), pixels(4, 9))


@pytest.mark.parametrize("variant", ["cifar10", "cifar100"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_archive_gives_what_the_folder_gives(tmp_path: Path, variant: str, split: str) -> None:
    layout = cifar.CIFAR_LAYOUTS[variant]
    contents = {name: python2(content) for name, content in files(variant).items()}
    write(tmp_path / "unpacked" / layout.folder, contents)
    (tmp_path / "packed").mkdir()
    members = {f"{layout.folder}/{name}": content for name, content in contents.items()}
    archive(tmp_path / "packed" / layout.archive, {"../evil": b"x", **members})
    unpacked = cifar.load(tmp_path / "unpacked", variant, split)
    packed = cifar.load(tmp_path / "packed", variant, split)
    assert torch.equal(unpacked.images, packed.images) and torch.equal(unpacked.labels, packed.labels)
    assert unpacked.names == packed.names
    assert [path.name for path in (tmp_path / "packed").iterdir()] == [layout.archive]
    assert not (tmp_path / "evil").exists()


def test_an_incomplete_folder_gives_way_to_the_archive(tmp_path: Path) -> None:
    contents = {name: python2(content) for name, content in files("cifar100").items()}
    archive(tmp_path / "cifar-100-python.tar.gz", {f"cifar-100-python/{name}": c for name, c in contents.items()})
    write(tmp_path / "cifar-100-python", {"train": contents["train"]})
    assert cifar.locate(tmp_path, "cifar100", "train").name == "cifar-100-python.tar.gz"
    assert len(cifar.load(tmp_path, "cifar100", "train").images) == 4


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_files_written_by_python_3_are_read(tmp_path: Path, protocol: int) -> None:
    contents = {name: pickle.dumps(content, protocol) for name, content in files("cifar100").items()}
    write(tmp_path / "cifar-100-python", contents)
    assert np.array_equal(cifar.load(tmp_path, "cifar100", "test").images.flatten(1).numpy(), pixels(4, 9))


def test_order_in_memory_and_byte_order_are_respected(tmp_path: Path) -> None:
    test = {"data": np.asfortranarray(pixels(3)), "fine_labels": np.array([1, 2, 3], dtype=">i4")}
    write(tmp_path, {**files("cifar100"), "test": test})
    read = cifar.load(tmp_path, "cifar100", "test")
    assert np.array_equal(read.images.flatten(1).numpy(), pixels(3)) and read.labels.tolist() == [1, 2, 3]


# ---- malicious pickles


class Calls:
    """Pickles to a call of ``function``."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> Any:
        return self.function, self.arguments


def numpy_load(mark: Path) -> Calls:
    inner = mark.with_name("inner.npy")
    np.save(inner, np.array([Calls(os.system, f"touch {mark}")], dtype=object), allow_pickle=True)
    return Calls(np.load, str(inner), None, True)


# Each makes the file ``mark`` when an ordinary unpickler reads it.
PAYLOADS: dict[str, Callable[[Path], bytes]] = {
    "os.system": lambda mark: pickle.dumps(Calls(os.system, f"touch {mark}"), 2),
    "eval": lambda mark: pickle.dumps(Calls(eval, f"open({str(mark)!r}, 'w').close()"), 4),
    "exec among the pixels": lambda mark: python2({"data": Calls(exec, f"open({str(mark)!r}, 'w').close()")}),
    "getattr": lambda mark: (
        f"cbuiltins\ngetattr\n(cbuiltins\n__import__\n(Vos\ntRVsystem\ntR(Vtouch {mark}\ntR.".encode()
    ),
    "numpy.load": lambda mark: pickle.dumps(numpy_load(mark), 2),
    "numpy.memmap": lambda mark: pickle.dumps(Calls(np.memmap, str(mark), "uint8", "w+", 0, (1,)), 4),
    "dotted name": lambda mark: pickle.dumps(Calls(Path.touch, Calls(Path, str(mark))), 4),
    "opcode INST": lambda mark: f"(S'touch {mark}'\nios\nsystem\n.".encode(),
    "opcode OBJ": lambda mark: f"(cos\nsystem\nS'touch {mark}'\no.".encode(),
}


@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.parametrize("entry", ["test", "meta"])
def test_a_malicious_pickle_is_refused_and_not_run(tmp_path: Path, name: str, entry: str) -> None:
    mark = tmp_path / "mark"
    payload = PAYLOADS[name](mark)
    message = refused(tmp_path, payload, entry)
    assert "is not a CIFAR file and was refused" in message and "Nothing in it was run" in message
    assert not mark.exists()
    pickle.loads(payload, encoding="latin1")  # an ordinary unpickler would have run it
    assert mark.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cthis\ns\n.",
        b"cnumpy.f2py\ncompile\n.",
        b"cnumpy\nndarray.__init_subclass__\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x0bdtype.alias\x93.",
        b"cnumpy.core.multiarray\nfromfile\n.",
        b"c__builtin__\neval\n.",
        b"ccopy_reg\n_reconstructor\n.",
        b"c_codecs\ndecode\n.",
        b"c_codecs\nencode\n(Vaaaa\nVrot13\ntR.",
        b"cnumpy\ndtype\n(VO8\nI0\nI1\ntR.",  # an array of objects
        b"cnumpy\ndtype\n}b.",  # would change the function behind the name
        b"\x80\x02cnumpy\nndarray\n)\x81.",  # NEWOBJ
        b"\x80\x02\x82\x01.",  # EXT1
        b"Pid\n.",  # PERSID
        b"Nr\xff\xff\xff\x7f.",  # a memo of 32 GB
    ],
)
def test_what_no_cifar_file_needs_is_refused(tmp_path: Path, content: bytes) -> None:
    assert "is not a CIFAR file and was refused" in refused(tmp_path, content)
    assert "this" not in sys.modules  # a refused name is not even imported


# ---- damaged files


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": pixels(4)[:, :-1]}, "(4, 3071), uint8; (n, 3072), uint8 is needed"),
        ({"data": pixels(4).astype(np.int64)}, "(4, 3072), int64"),
        ({"data": pixels(0)}, "(0, 3072), uint8"),
        ({"data": [1, 2]}, "images as list; an array is needed"),
        ({"fine_labels": [0, 1, 2, 100]}, "labels from 0 to 100; 0 to 99 are possible"),
        ({"fine_labels": [0, 1, 2, -1]}, "labels from -1 to 2"),
        ({"fine_labels": [0, 1, 2]}, "4 images but 3 labels"),
        ({"fine_labels": [0, 1, 2, "3"]}, "not a list of whole numbers"),
        ({"fine_labels": "abcd"}, "not a list of whole numbers"),
    ],
)
def test_wrong_entries_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    found = refused(tmp_path, {**files("cifar100")["test"], **change})
    assert message in found


def test_wrong_documents_are_named(tmp_path: Path) -> None:
    assert "it needs an entry 'fine_labels' and has ['data', 'labels']" in refused(
        tmp_path, {"data": pixels(1), "labels": [0]}
    )
    assert "it holds a list, not a dict" in refused(tmp_path, [1, 2])
    assert "holds 2 class names; 100 different ones are needed" in refused(
        tmp_path, {"fine_label_names": ["a", "b"]}, "meta"
    )
    assert "7 bytes follow its end" in refused(tmp_path, python2(files("cifar100")["test"]) + b"garbage")
    assert "it has int where a text is needed" in refused(tmp_path, {1: 2})


@pytest.mark.parametrize("kept", [0, 1, 100, 5000, -1])
def test_truncated_files_are_named(tmp_path: Path, kept: int) -> None:
    content = python2(files("cifar100")["test"])
    assert len(content) > 5000
    assert "cannot be read: it is damaged" in refused(tmp_path, content[:kept])


ALLOWED = [opcode.code.encode("latin-1") for opcode in pickletools.opcodes if opcode.name in cifar.OPCODES.split()]
SMALL = python2({"data": pixels(1)[:, :20], "fine_labels": [1, 2], "filenames": ["a.png"]})


@settings(max_examples=300)
@given(st.binary(max_size=60) | st.lists(st.sampled_from(ALLOWED) | st.binary(max_size=3)).map(b"".join))
def test_random_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(InputError), cifar.explained(Path("file"), ""):
        cifar._pixels(cifar._decode(content)["data"])


@settings(max_examples=300)
@given(st.integers(0, len(SMALL) - 1), st.binary(max_size=2))
def test_a_changed_file_is_read_or_refused(place: int, new: bytes) -> None:
    content = SMALL[:place] + new + SMALL[place + 1 :]
    try:
        with cifar.explained(Path("file"), ""):
            values = list(cifar._decode(content).values())
    except InputError:
        return
    harmless = (str, bytes, int, list, dict, tuple, type(None), cifar._Array, cifar._Dtype, cifar._Name)
    assert all(isinstance(value, harmless) for value in values)


def test_missing_files_are_named(tmp_path: Path) -> None:
    contents = files("cifar10")
    del contents["data_batch_3"]
    write(tmp_path / "cifar-10-batches-py", contents)
    with pytest.raises(InputError, match=r"missing: data_batch_3\. .*autonovel data fetch cifar10 --to"):
        cifar.load(tmp_path, "cifar10", "train")
    assert len(cifar.load(tmp_path, "cifar10", "test").images) == 4
    with pytest.raises(InputError, match="is no folder"):
        cifar.load(tmp_path / "nowhere", "cifar10", "test")
    with pytest.raises(UsageError, match="choose cifar10 or cifar100"):
        cifar.load(tmp_path, "cifar10", "extra")


@pytest.mark.parametrize(
    ("damage", "message"),
    [("truncated", "damaged"), ("no gzip", "damaged"), ("links", "lacks"), ("lacking", "lacks cifar-100-python/test,")],
)
def test_damaged_archives_are_named(tmp_path: Path, damage: str, message: str) -> None:
    path = tmp_path / "cifar-100-python.tar.gz"
    members = {f"cifar-100-python/{name}": python2(content) for name, content in files("cifar100").items()}
    archive(path, members, linked=damage == "links")
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:9000])
    elif damage == "no gzip":
        path.write_bytes(b"hello")
    elif damage == "lacking":
        archive(path, {name.replace("cifar-100-python/", ""): content for name, content in members.items()})
    with pytest.raises(InputError, match=rf"tar\.gz .*{message}.*autonovel data fetch cifar100 --to"):
        cifar.load(tmp_path, "cifar100", "test")


def test_a_file_too_large_to_be_cifar_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cifar, "LARGEST", 1000)
    assert "no official file exceeds 1,000" in refused(tmp_path, files("cifar100")["test"])
