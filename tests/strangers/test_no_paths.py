"""No document that leaves this machine says where on it anything lies."""

from pathlib import Path

import pytest

from absolute_paths import paths_in
from autonovel import open_run
from autonovel.export import export_run
from autonovel.report.command import report_run


@pytest.mark.parametrize(
    "form", ["csv", "folders", "fiftyone", "labelstudio", pytest.param("onnx", marks=pytest.mark.full)]
)
def test_no_export_says_where_it_came_from(form: str, finished_with_files: Path, tmp_path: Path) -> None:
    open_run(finished_with_files).rename("new-1", "seven")
    to = tmp_path / "out" / ("export" + {"csv": ".csv", "onnx": ".onnx"}.get(form, ""))
    to.parent.mkdir()
    export_run(finished_with_files, form, to)
    files = [to] if to.is_file() else [path for path in to.rglob("*") if path.is_file()]
    assert files
    assert not {path.name: found for path in files if (found := paths_in(path.read_bytes(), tmp_path))}


def test_no_report_says_where_it_came_from(finished_with_files: Path, tmp_path: Path) -> None:
    report_run(finished_with_files, tmp_path / "single.html", None, True, 0)
    report_run(finished_with_files, tmp_path / "many", None, False, 0)
    files = [tmp_path / "single.html", *(path for path in (tmp_path / "many").rglob("*") if path.is_file())]
    assert len(files) > 3
    assert not {path.name: found for path in files if (found := paths_in(path.read_bytes(), tmp_path))}
