"""How OmniGlot's characters are counted, chosen without its evaluation alphabets: those held out play the new one.

`python benchmarks/omniglot_count.py DIR NETWORK variants.json` counts each background alphabet that pretraining did not
see, the others of them being held out as in a run, once for every variant, and prints the estimates. NETWORK is the
`model.safetensors` of a stage `1-prototypical`; `--set pretrain.held_out=…` names the alphabets it did not see, if not
those of the recipe. The file maps a variant's name to its settings, such as {"silhouette": {"count.criterion":
"silhouette", "count.directions": 64, "count.shrinkage": 0.3}}. `--drawings N` keeps so many drawings of each
character that is counted, `--drawings 5-20` a number of each drawn from that range.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from autonovel import draws, recipe
from autonovel.counting import counting
from autonovel.counting.features import without
from autonovel.counting.probes import probe_sets
from autonovel.data import ImageSet, omniglot
from autonovel.data.groups import groups
from autonovel.data.splits import LabelledImages, known_and_new
from autonovel.embedding import features
from autonovel.first_model import new_model
from autonovel.job import Job
from autonovel.training import checkpoint
from autonovel.training.display import Silent


def problem(drawings: LabelledImages, alphabet: str, counts: tuple[int, int], seed: int) -> tuple[ImageSet, Tensor]:
    """Return the drawings with those of ``alphabet`` unlabelled and last, some of them left out, and their rows."""
    members = groups(drawings.names, (alphabet,))[alphabet]
    others = [number for number in range(len(drawings.names)) if number not in members]
    known, new = (tuple(drawings.names[number] for number in numbers) for numbers in (others, members))
    rows = [(drawings.labels == number).nonzero()[:, 0] for number in others]
    generator = draws.generator(seed, 44)
    for number in members:
        own = (drawings.labels == number).nonzero()[:, 0]
        size = int(torch.randint(counts[0], counts[1] + 1, (), generator=generator))
        rows.append(own[torch.randperm(len(own), generator=generator)[:size]])
    order = torch.cat(rows)
    kept = LabelledImages(drawings.images[order], drawings.labels[order], drawings.names)
    return known_and_new(kept, known, new), order


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("network", type=Path)
    parser.add_argument("variants", type=Path)
    parser.add_argument("--recipe", default="omniglot-fast")
    parser.add_argument("--set", action="append", default=[], help="a setting of all variants")
    parser.add_argument("--drawings", default="20", help="of each character that is counted: a number, or a range")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    low, _, high = arguments.drawings.partition("-")
    counts = (int(low), int(high or low))
    base = recipe.load(arguments.recipe, arguments.set).recipe
    drawings = omniglot.background(arguments.data, base.data.size)
    alphabets = base.pretrain.held_out
    whole = known_and_new(drawings, drawings.names[:-1], drawings.names[-1:])
    model = new_model(base, whole, arguments.seed)
    checkpoint.load_trunk(arguments.network, model)
    z = features(model, drawings.images)
    variants = json.loads(arguments.variants.read_text())
    true = {alphabet: len(members) for alphabet, members in groups(drawings.names, alphabets).items()}
    problems = {alphabet: problem(drawings, alphabet, counts, arguments.seed) for alphabet in alphabets}
    print(f"| variant | {' | '.join(f'{a} ({true[a]})' for a in alphabets)} | off by |")
    print(f"|---|{'---|' * len(alphabets)}---|")
    for name, changes in variants.items():
        found = []
        for alphabet, (images, order) in problems.items():
            others = json.dumps([other for other in alphabets if other != alphabet])
            changed = [f"{key}={json.dumps(value)}" for key, value in changes.items()]
            settings = recipe.load(
                arguments.recipe, [*arguments.set, *changed, f"pretrain.held_out={others}", "count.new_classes=auto"]
            ).recipe
            sets = probe_sets(images, settings, arguments.seed)
            taught = without(images, tuple(number for chosen in sets for number in chosen.classes))
            with tempfile.TemporaryDirectory() as folder:
                device = torch.device("cpu")
                job = Job(settings, images, None, None, arguments.seed, device, Path(folder), Silent())
                found.append(int(counting.count_from(job, taught, sets, [z[order]])["estimate"]))
        off = statistics.fmean(abs(n - true[a]) for n, a in zip(found, alphabets, strict=True))
        print(f"| {name} | {' | '.join(map(str, found))} | {off:.2f} |", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
