"""Folders of image files for the tests."""

from pathlib import Path

from PIL import Image

from autonovel.data import sample


def write_digits(root: Path, per_class: int = 40) -> Path:
    """Write the first digits of each class of the sample as PNGs, in the sample's own order.

    0 to 4 are class folders, 5 to 9 are in ``unlabelled``; ``truth.csv`` names them.
    """
    source = sample.load()
    lines = ["path,label"]
    for digit in range(10):
        rows = (source.labels == digit).nonzero()[:per_class, 0]
        folder = root / (str(digit) if digit < 5 else "unlabelled")
        folder.mkdir(parents=True, exist_ok=True)
        for number, row in enumerate(rows.tolist()):
            name = f"{digit}-{number:04d}.png"
            Image.fromarray(source.images[row, 0].numpy()).save(folder / name)
            if digit >= 5:
                lines.append(f"unlabelled/{name},{digit}")
    (root / "truth.csv").write_text("\n".join(lines) + "\n")
    return root
