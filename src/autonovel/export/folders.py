"""A folder per class, with the image files in it."""

from pathlib import Path

from autonovel.export.job import Export, FreeNames, fit
from autonovel.storage import writing
from autonovel.words import counted, of_images


def write(job: Export, path: Path) -> str:
    """Write the folders under ``path``."""
    job.check_images()
    taken = FreeNames()
    places = {name: (path / taken.free(fit(name)), FreeNames()) for name in job.class_names}
    for folder, _ in places.values():
        writing.make_folder(folder)
    count = 0
    for row, line in job.watched(job.kept()):
        job.put(row, *places[line["class_name"]])
        count += 1
    return f"{of_images(count)} in {counted(len(places), 'folder', 'folders')}.{job.left_out()}"
