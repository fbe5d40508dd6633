"""Kinds of run folders, lists, datasets and models that a stranger may send, each with the command that meets it."""

import gzip

from bad_input import (
    FOLDER,
    USAGE,
    BadInput,
    changed,
    cifar,
    dataset,
    document,
    listed_in,
    model_of_pickles,
    recipe_with,
    shard,
    stolen,
    weights,
)

from runs import TINY

DEEP = b"[" * 200_000

RUNS: tuple[BadInput, ...] = (
    document("run.json", "missing", lambda content: None, "is missing"),
    document("run.json", "empty", lambda content: b"", "cannot be read"),
    document("run.json", "cut", lambda content: content[:100], "cannot be read"),
    document("run.json", "no object", lambda content: b"[1, 2]", "run-folder format None"),
    document("run.json", "brackets without end", lambda content: DEEP, "cannot be read"),
    document("run.json", "bytes that are no text", lambda content: b"\xff\xfe", "cannot be read"),
    document(
        "run.json", "of a later version", changed(format=2, versions={"autonovel": "9.9"}), "written by autonovel 9.9"
    ),
    document("run.json", "not finished", changed(finished=...), "is not finished"),
    document("run.json", "a recipe that is a list", changed(recipe=[1]), "recipe is '[1]' where an object is needed"),
    document("run.json", "a recipe without a name", changed(recipe={}), "its recipe has no name"),
    document("run.json", "no seed", changed(seed=...), "lacks seed"),
    document("run.json", "nothing but its format", lambda content: b'{"format": 1}', "lacks recipe", "count"),
    document("run.json", "images of three numbers", changed(images=[1, 2, 3]), "not four"),
    document("discovery.csv", "missing", lambda content: None, "cannot be read"),
    document("discovery.csv", "bytes that are no text", lambda content: b"\xff" + content, "cannot be read"),
    document(
        "discovery.csv", "a column lost", lambda content: content.replace(b"confidence", b"sure", 1), "lacks confidence"
    ),
    document("discovery.csv", "a row cut short", lambda content: content + b"x,x.png\n", "lacks"),
    document("discovery.csv", "words for numbers", lambda content: content.replace(b",0.", b",zero", 1), "no number"),
    document(
        "discovery.csv",
        "an infinite number",
        lambda content: content + b"z,,ok,,0,0,inf,1,0.1,0,0.1,0.1\n",
        "no number",
    ),
    document(
        "discovery.csv",
        "a class there is not",
        lambda content: content + b"z,,ok,,99,?,0.5,1,0.1,0,0.1,0.1\n",
        "in class 99",
    ),
    document(
        "discovery.csv", "an id twice", lambda content: content + content.splitlines()[-1] + b"\n", "one name each"
    ),
    document("classes.json", "missing", lambda content: None, "is missing"),
    document(
        "classes.json",
        "a number that is a text",
        lambda content: content.replace(b'"id": 3', b'"id": "3"'),
        "where a whole number",
    ),
    document(
        "classes.json",
        "a gap in the numbers",
        lambda content: content.replace(b'"id": 3', b'"id": 33'),
        "not numbered from 0 on",
    ),
    document("edits.jsonl", "a line that is no JSON", lambda content: b'{"edit"\n{}\n', "is damaged"),
    document("edits.jsonl", "an edit there is not", lambda content: b'{"edit": "explode"}\n', "does not fit the run"),
    document(
        "edits.jsonl",
        "an edit of a class there is not",
        lambda content: b'{"edit": "rename", "number": 77, "name": "x"}\n',
        "no class 77",
    ),
    document("edits.jsonl", "one undo too many", lambda content: b'{"edit": "undo"}\n', "no edit left to undo"),
    document("results.json", "no object", lambda content: b"7", "not the results of a run", "table"),
    document(
        "results.json", "scores that are texts", changed(systems={"rankstats": {"acc": "x"}}), "finite number", "table"
    ),
    document("results.json", "no times", changed(seconds={}), "seconds.total", "table"),
    document("results.json", "cut", lambda content: content[:50], "cannot be read", "report"),
    document("embedding.safetensors", "cut", lambda content: content[:99], "cannot be read", "report"),
    document(
        "embedding.safetensors", "a pickle", lambda content: b"cos\nsystem\n(S'true'\ntR.", "cannot be read", "report"
    ),
    document(
        "embedding.safetensors",
        "a header of 2⁶⁰ bytes",
        lambda content: (2**60).to_bytes(8, "little") + content[8:],
        "cannot be read",
        "report",
    ),
    document(
        "model.safetensors",
        "a pickle",
        lambda content: b"cos\nsystem\n(S'true'\ntR.",
        "cannot be read",
        "export",
        "out.onnx",
        "--to",
        "onnx",
    ),
    document(
        "model.safetensors", "cut", lambda content: content[:-8], "cannot be read", "export", "out.onnx", "--to", "onnx"
    ),
    document(
        "metrics.jsonl",
        "epochs that are texts",
        lambda content: b'{"stage": "3-joint", "epoch": "x", "loss/a": 1}\n',
        "is damaged",
        "report",
    ),
    BadInput(
        "run folder: missing",
        "a run folder that is not there",
        "edits RUN",
        lambda place, run: ["edits", place / "none"],
        FOLDER,
        "there is no run folder",
    ),
    BadInput(
        "run folder: other",
        "a folder that is no run",
        "export RUN",
        lambda place, run: ["export", place, place / "o.csv", "--to", "csv"],
        FOLDER,
        "run.json is missing",
    ),
    BadInput(
        "run folder: names another file",
        "a run folder that names a private file as its image",
        "export RUN --to folders",
        stolen,
        USAGE,
        "is not the image it was",
    ),
    BadInput(
        "run folder: recipe of another version",
        "a run with a setting this version does not know",
        "export RUN",
        lambda place, run: (recipe_with(run, "joint.spin"), ["export", run, place / "o.csv", "--to", "csv"])[1],
        USAGE,
        "another version of autonovel",
    ),
    BadInput(
        "predict: nothing",
        "no such file",
        "predict RUN FILE",
        lambda place, run: ["predict", run, place / "none.jpg"],
        USAGE,
        "there is no file or folder",
    ),
    BadInput(
        "predict: empty list",
        "a list without a path",
        "predict RUN --from LIST",
        listed_in(b"\n\n"),
        USAGE,
        "no images",
    ),
    BadInput(
        "predict: endless line",
        "a list that is one line of 3 MB",
        "predict RUN --from LIST",
        listed_in(b"x" * 3_000_000),
        USAGE,
        "is no list",
    ),
    dataset("cifar", "no file at all", "cifar10-fast", lambda place: None, "holds neither"),
    dataset(
        "cifar", "a pickle that would run code", "cifar10-fast", cifar(b"cos\nsystem\n(S'true'\ntR."), "was refused"
    ),
    dataset("cifar", "words", "cifar10-fast", cifar(b"words, words"), "damaged"),
    dataset(
        "cifar",
        "an archive that is none",
        "cifar10-fast",
        lambda place: (place / "cifar-10-python.tar.gz").write_bytes(b"x" * 100),
        "damaged",
    ),
    dataset(
        "cifar",
        "an archive of other files",
        "cifar10-fast",
        lambda place: (place / "cifar-10-python.tar.gz").write_bytes(gzip.compress(bytes(10240))),
        "lacks",
    ),
    dataset(
        "svhn",
        "words",
        "svhn-fast",
        lambda place: [(place / f"{n}_32x32.mat").write_bytes(b"words") for n in ("train", "test")],
        "damaged",
    ),
    dataset(
        "omniglot",
        "a zip file that is none",
        "omniglot-fast",
        lambda place: [(place / f"images_{n}.zip").write_bytes(b"PK no zip") for n in ("background", "evaluation")],
        "zip",
    ),
    BadInput(
        "shards: no tar",
        "a shard that is no tar file",
        "run --data DIR",
        lambda place, run: (
            shard(place),
            ["run", TINY, "--data", place, "--set", "data.source=shards", "--out", place / "o"],
        )[1],
        USAGE,
        "tar file",
    ),
    BadInput(
        "weights: pickle",
        "weights as a pickle",
        "run --set pretrain.weights=FILE",
        weights,
        USAGE,
        "not a safetensors file",
    ),
    BadInput(
        "model: pickle",
        "a model of transformers as a pickle",
        "discover --backbone hf:DIR",
        model_of_pickles,
        USAGE,
        "could run code when read",
    ),
)
