"""Downloads, against a server of our own: whole, checked, going on where they stopped, clear when they cannot."""

import hashlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from autonovel.data import fetch as fetching
from autonovel.data.catalogue import DATASETS, Dataset, RemoteFile
from autonovel.data.fetch import fetch
from autonovel.errors import InputError, UsageError

CONTENT = bytes(range(256)) * 4000


@dataclass
class Host:
    """A server of ``content`` at /data.bin: what it was asked for, and how well it behaves."""

    address: str = ""
    content: bytes = CONTENT
    ranges: bool = True  # understands the header Range
    most: int = len(CONTENT)  # bytes after which it hangs up
    silent: float = 0.0  # seconds until it answers
    stalls: bool = False  # does not hang up, but sends nothing more
    asked: list[str | None] = field(default_factory=list)
    sent: int = 0
    closing: threading.Event = field(default_factory=threading.Event)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(handler.headers["Range"])
        self.closing.wait(self.silent)
        if handler.path != "/data.bin":
            return handler.send_error(404)
        asked = handler.headers["Range"] if self.ranges else None
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if asked and start >= len(self.content):
            return handler.send_error(416)
        handler.send_response(206 if asked else 200)
        handler.send_header("Content-Length", str(len(self.content) - start))
        handler.end_headers()
        body = self.content[start : start + self.most]
        self.sent += len(body)
        handler.wfile.write(body)
        if self.stalls:
            self.closing.wait(5.0)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    host = Host()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(fetching, "PAUSE", 0.0)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        host.address = f"http://127.0.0.1:{server.server_address[1]}/data.bin"
        yield host
        host.closing.set()
        server.shutdown()
        thread.join()


def entry(address: str, content: bytes = CONTENT) -> Dataset:
    file = RemoteFile("data.bin", address, hashlib.md5(content).hexdigest())
    return Dataset("small", "Small", (file,), (), "", "", "")


def silent(name: str, done: int, total: int | None) -> None:
    pass


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_comes_whole_and_its_progress_is_told(host: Host, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    to = tmp_path / "new" / "folder"
    assert fetch(entry(host.address), to, lambda *now: told.append(now)) == [to / "data.bin"]
    assert (to / "data.bin").read_bytes() == CONTENT and names(to) == ["data.bin"]
    assert told[0] == ("data.bin", 0, len(CONTENT)) and told[-1] == ("data.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told) and len(told) > 3


def test_what_is_there_and_right_is_not_asked_for(host: Host, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT)
    assert fetch(entry(host.address), tmp_path, silent) == [tmp_path / "data.bin"]
    assert host.asked == []


def test_what_is_there_and_wrong_is_replaced(host: Host, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"another file")
    fetch(entry(host.address), tmp_path, silent)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_an_interrupted_download_goes_on(host: Host, tmp_path: Path) -> None:
    def interrupt(name: str, done: int, total: int | None) -> None:
        if done > len(CONTENT) // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(entry(host.address), tmp_path, interrupt)
    assert names(tmp_path) == ["data.bin.partial"]
    kept, host.sent = (tmp_path / "data.bin.partial").stat().st_size, 0
    assert kept > len(CONTENT) // 2
    fetch(entry(host.address), tmp_path, silent)
    assert host.asked == [None, f"bytes={kept}-"] and host.sent == len(CONTENT) - kept
    assert (tmp_path / "data.bin").read_bytes() == CONTENT and names(tmp_path) == ["data.bin"]


def test_a_server_that_cannot_go_on_sends_all(host: Host, tmp_path: Path) -> None:
    host.ranges = False
    (tmp_path / "data.bin.partial").write_bytes(CONTENT[:5000])
    fetch(entry(host.address), tmp_path, silent)
    assert host.asked == ["bytes=5000-"] and (tmp_path / "data.bin").read_bytes() == CONTENT


def test_a_connection_that_breaks_is_opened_again(host: Host, tmp_path: Path) -> None:
    host.most = len(CONTENT) // 3
    fetch(entry(host.address), tmp_path, silent)
    assert len(host.asked) == 4 and host.sent == len(CONTENT)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


def test_a_connection_that_brings_nothing_more_is_given_up(host: Host, tmp_path: Path) -> None:
    (tmp_path / "data.bin.partial").write_bytes(CONTENT[:5000])
    host.most = 0
    with pytest.raises(InputError, match=r"ended after 5,000 of 1,024,000 bytes\. 5,000 bytes are kept"):
        fetch(entry(host.address), tmp_path, silent)
    assert names(tmp_path) == ["data.bin.partial"]
    host.most = len(CONTENT)
    fetch(entry(host.address), tmp_path, silent)
    assert (tmp_path / "data.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("stale", [b"x" * 5000, b"x" * 2 * len(CONTENT)])
def test_a_stale_beginning_is_dropped(host: Host, tmp_path: Path, stale: bytes) -> None:
    (tmp_path / "data.bin.partial").write_bytes(stale)
    fetch(entry(host.address), tmp_path, silent)
    assert host.asked == [f"bytes={len(stale)}-", None] and (tmp_path / "data.bin").read_bytes() == CONTENT


def test_a_whole_partial_file_needs_no_byte(host: Host, tmp_path: Path) -> None:
    (tmp_path / "data.bin.partial").write_bytes(CONTENT)
    fetch(entry(host.address), tmp_path, silent)
    assert host.sent == 0 and names(tmp_path) == ["data.bin"]


def test_a_wrong_checksum_keeps_nothing(host: Host, tmp_path: Path) -> None:
    host.content = b"changed"
    expected, found = hashlib.md5(CONTENT).hexdigest(), hashlib.md5(b"changed").hexdigest()
    with pytest.raises(InputError, match=f"MD5 {found}; the official file has {expected}"):
        fetch(entry(host.address), tmp_path, silent)
    assert names(tmp_path) == []


def test_a_file_that_is_not_there_is_named(host: Host, tmp_path: Path) -> None:
    address = host.address.replace("data.bin", "gone.bin")
    with pytest.raises(
        InputError, match=r"gone\.bin could not be reached: the server answered 404 Not Found"
    ) as caught:
        fetch(entry(address), tmp_path, silent)
    assert f"download the file by hand to {tmp_path.resolve()} as data.bin" in str(caught.value)
    assert names(tmp_path) == []


def test_a_server_that_does_not_answer_is_named(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT", 0.1)
    host.silent = 5.0
    with pytest.raises(InputError, match=r"could not be reached: .*timed out"):
        fetch(entry(host.address), tmp_path, silent)


def test_a_server_that_falls_silent_is_asked_again(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "TIMEOUT", 0.1)
    monkeypatch.setattr(fetching, "CHUNK", 1000)
    host.stalls, host.most = True, len(CONTENT) // 2 + 1
    fetch(entry(host.address), tmp_path, silent)
    assert len(host.asked) == 2 and (tmp_path / "data.bin").read_bytes() == CONTENT


def test_being_offline_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1:1/data\.bin could not be reached: .*refused") as caught:
        fetch(entry("http://127.0.0.1:1/data.bin"), tmp_path, silent)
    assert "Check the network, or download the file by hand" in str(caught.value)


def test_a_folder_that_cannot_be_written_is_named(host: Host, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot write .*data\.bin: .*choose another folder with --to"):
        fetch(entry(host.address), tmp_path / "file", silent)


def test_a_missing_pooch_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(InputError, match=r"-m pip install 'pooch>="):
        fetch("cifar10", tmp_path, silent)


def test_an_unknown_dataset_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'mnist'; those known are cifar10, cifar100, svhn, omniglot"):
        fetch("mnist", tmp_path, silent)


def test_the_catalogue_has_the_published_numbers() -> None:
    counts = {name: [split.count for split in entry.splits] for name, entry in DATASETS.items()}
    assert counts == {
        "cifar10": [50_000, 10_000],
        "cifar100": [50_000, 10_000],
        "svhn": [73_257, 26_032],
        "omniglot": [19_280, 13_180],
        "imagenet": [1_281_167, 50_000],
    }
    for name, dataset in DATASETS.items():
        assert dataset.name == name and dataset.terms and dataset.citation
        for file in dataset.files:
            assert len(file.md5) == 32 and file.address.endswith(f"/{file.name}")
