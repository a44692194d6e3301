"""From an LMDB data set of images and labels to a store, and a tiny model trained from it.

The data set is made on the spot, as many are: pickled or raw images under their numbers, labels beside them. It
is imported, given types, and read in batches without a copy. Needs `pip install lmdb numpy`.
"""

import tempfile
from pathlib import Path

import lmdb
import numpy as np

import zubilo

SIZE = 16
IMAGES = 1000


def make_image(rng: np.random.Generator, label: int) -> np.ndarray:
    """A bar, upright for label 0 and lying for label 1, somewhere in noise."""
    image = rng.integers(0, 90, (SIZE, SIZE), dtype="u1")
    at = rng.integers(0, SIZE - 3)
    bar = image[:, at : at + 3] if label == 0 else image[at : at + 3, :]
    bar += 120
    return image


def make_lmdb(path: Path) -> None:
    """The old data set: two named databases, keys are numbers as text."""
    rng = np.random.default_rng(1)
    env = lmdb.open(str(path), max_dbs=2, map_size=1 << 26)
    images, labels = env.open_db(b"images"), env.open_db(b"labels")
    with env.begin(write=True) as txn:
        for n in range(IMAGES):
            label = int(rng.integers(2))
            txn.put(b"%06d" % n, make_image(rng, label).tobytes(), db=images)
            txn.put(b"%06d" % n, b"%d" % label, db=labels)
    env.close()


def convert(old: Path, new: Path) -> None:
    """Imports the data set as it is, then makes tables with types of it."""
    print(zubilo.import_lmdb(old, new), "records imported")
    with zubilo.open(new) as env, env.read() as r, env.write() as w:
        image = zubilo.array("u1", (SIZE, SIZE))
        w.table("image", int, image).update(
            (int(key), np.frombuffer(value, "u1").reshape(SIZE, SIZE)) for key, value in r.table("images").items()
        )
        w.table("label", int, "u8").update((int(key), int(value)) for key, value in r.table("labels").items())
        w.drop("images")
        w.drop("labels")


def train(path: Path) -> np.ndarray:
    """Logistic regression over what rows and columns hold, in batches of 100."""
    weights = np.zeros(2 * SIZE + 1)
    rng = np.random.default_rng(2)
    batch = np.empty((100, SIZE, SIZE), "u1")
    with zubilo.open(path, read_only=True) as env, env.read() as r:
        images, labels = r.table("image"), r.table("label")
        for _ in range(30):
            for numbers in rng.permutation(IMAGES - 100).reshape(-1, 100):
                missing = images.get_many_into(numbers, batch)  # 100 images, without the interpreter
                assert not missing
                wanted = np.array(labels.get_many(numbers))
                inputs = features(batch)
                guessed = 1 / (1 + np.exp(-inputs @ weights))
                weights += 0.5 * inputs.T @ (wanted - guessed) / len(numbers)
    return weights


def features(images: np.ndarray) -> np.ndarray:
    """How uneven each row and each column is, and a constant."""
    pixels = images / 255
    parts = [pixels.std(axis=1), pixels.std(axis=2), np.full((len(images), 1), 0.1)]
    return np.concatenate(parts, axis=1)


def main() -> None:
    """Makes, imports, trains, tests."""
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder) / "lmdb", Path(folder) / "images.zubilo"
        make_lmdb(old)
        convert(old, new)
        weights = train(new)
        right = 0
        with zubilo.open(new) as env, env.read() as r:
            images, labels = r.table("image"), r.table("label")
            for number in range(IMAGES - 100, IMAGES):
                image = images[number]  # an array over the map
                right += int((features(image[np.newaxis])[0] @ weights > 0) == labels[number])
            del image
        print(right, "of 100 right")
        assert right > 80


if __name__ == "__main__":
    main()
