"""Kinds of tables, folders, recipes and settings that a stranger may send, each with the command that meets it."""

from bad_input import USAGE, BadInput, folder, make_broken, no_utf8, photos, png, recipe, setting, table
from bad_runs import RUNS

from odd_files import colour, encoded
from runs import TINY

ROWS = b"path,label\na.png,cat\nb.png,\nc.png,\n"


INPUTS: tuple[BadInput, ...] = (
    table("empty", "a table without a byte", b"", "needs path"),
    table("header", "column names and no rows", b"path,label\n", "has no rows"),
    table("wrong-columns", "columns of other names", b"image,class\na.png,cat\n", "has the columns image, class"),
    table("no-label", "no column of labels", b"path\na.png\n", "needs path and label"),
    table("missing-files", "none of the files is there", b"path,label\nx.png,cat\ny.png,\n", "none of the 2 files"),
    table("contradiction", "a file named twice, with two labels", ROWS + b"a.png,dog\n", "names a.png twice"),
    table("blank-path", "a row without a path", ROWS + b",cat\n", "has no path"),
    table(
        "too-many-cells", "a row with more cells than columns", ROWS + b"a.png,cat,x,y\n", "has 4 cells for 2 columns"
    ),
    table("nul", "NUL characters", b"path,label\na.png\0,cat\n", "NUL characters"),
    table("split", "a split there is not", b"path,label,split\na.png,cat,\nb.png,,dev\n", "has the split 'dev'"),
    table("blank-test", "a test image without a label", b"path,label,split\na.png,cat,\nb.png,,test\n", "has no label"),
    table("huge-cell", "a cell of two million characters", ROWS + b"x" * 2_000_000 + b",cat\n", "cannot be read"),
    table("huge-header", "a column name of a million characters", b"x" * 10**6 + b",label\n", "cannot be read"),
    table("open-quote", "a quote that never closes", ROWS + b'"' + b"z" * 1_500_000, "cannot be read"),
    table("a-picture", "a picture under a table's name", encoded(colour(1), "PNG"), "NUL characters"),
    table("no-parquet", "words under a Parquet table's name", b"PAR1 words PAR1", "as Parquet", "table.parquet"),
    table("cut-parquet", "a Parquet table without its end", b"PAR1" + bytes(100), "as Parquet", "table.parquet"),
    table("parquet-bytes", "a Parquet table of texts that are no UTF-8", no_utf8(), "as Parquet", "table.parquet"),
    table("other-ending", "a spreadsheet's own file", b"PK\x03\x04", "its name must end in", "table.xlsx"),
    folder("empty", "no file in it", lambda place: None, "no images"),
    folder("no-images", "no image in it", lambda place: (place / "notes.txt").write_text("x"), "no images"),
    folder("all-broken", "not one image that can be read", lambda place: photos(place, make_broken), "can be read"),
    folder(
        "loose-test",
        "test images without classes",
        lambda place: png(place / "test" / "a.png"),
        "outside of class folders",
    ),
    folder(
        "no-pile",
        "nothing to be discovered",
        lambda place: [png(place / c / f"{n}.png") for c in "ab" for n in "xyz"],
        "discover",
    ),
    folder(
        "strange-truth",
        "a truth.csv of other files",
        lambda place: (
            [png(place / n) for n in ("cat/1.png", "2.png")]
            + [(place / "truth.csv").write_text("path,label\nx.png,a\n")]
        ),
        "not among the images",
    ),
    folder(
        "truth-columns",
        "a truth.csv of other columns",
        lambda place: (
            [png(place / n) for n in ("cat/1.png", "2.png")] + [(place / "truth.csv").write_text("a,b\n1,2\n")]
        ),
        "needs path and label",
    ),
    BadInput(
        "folder: missing",
        "a folder that is not there",
        "run --data DIR",
        lambda place, run: ["run", TINY, "--data", place / "none", "--set", "data.source=folder", "--out", place / "o"],
        USAGE,
        "is not a folder",
    ),
    BadInput(
        "folder: discover missing",
        "a folder that is not there",
        "discover DIR",
        lambda place, run: ["discover", place / "none"],
        USAGE,
        "none",
    ),
    recipe("empty-key", "a line that is no TOML", b"= 3", "not valid TOML"),
    recipe("bytes", "bytes that are no text", b"\xff\xfe\0", "not UTF-8"),
    recipe("unknown", "a setting there is not", b"[joint]\nlearning_rate = 1\n", "unknown setting"),
    recipe("type", "a text where a number is needed", b'[joint]\nlr = "fast"\n', "must be of type float"),
    recipe("bounds", "a number out of bounds", b"[joint]\nlr = -1.0\n", "joint.lr"),
    recipe("nan", "a number that is none", b"[joint]\nlr = nan\n", "finite number"),
    recipe("deep", "brackets without end", b"[joint]\nk = " + b"[" * 5000, "recipe"),
    recipe("table-for-value", "a table where a value is needed", b"[joint.lr]\nx = 1\n", "unknown setting"),
    setting("no equals sign", "joint.lr", "section.key=value"),
    setting("no key", "=3", "section.key=value"),
    setting("a setting there is not", "joint.learning=3", "unknown setting"),
    setting("a word for a number", "joint.lr=fast", "must be of type float"),
    setting("a preset there is not", "preset=best", "no preset"),
    setting("brackets without end", "joint.k=" + "[" * 5000, "joint.k"),
    setting("a number of 5,000 digits", "joint.k=" + "9" * 5000, "joint.k"),
    setting("not a number", "joint.lr=nan", "finite number"),
    *RUNS,
)
