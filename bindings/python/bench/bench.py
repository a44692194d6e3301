"""Measures zubilo beside the other embedded key-value stores that Python programs use.

    python bench.py [--records 1000000] [--json FILE] [ENGINE...]

One table of records with keys of 16 bytes and values of 100 bytes, the same for all. Engines take turns. Figures are
medians of several rounds after one that is not counted, with the least and the greatest. Reads come from memory.
What an engine cannot do stays empty. Needs `pip install lmdb diskcache plyvel rocksdict`; what is missing is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import dbm
import json
import multiprocessing
import os
import platform
import random
import shelve
import shutil
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from importlib import metadata

KEY_COUNT = 100_000
BATCH = 1000
DURABLE = 200
LOADED = 300_000


def key_of(n: int) -> bytes:
    return b"record-%09d" % n


class Engine:
    """A store in a folder. `get` and the like are made for a loop: looked up once."""

    name = ""
    package: str | None = None
    # Whether several processes can have it open.
    shares = True

    def __init__(self, folder: str):
        self.folder = folder

    def path(self) -> str:
        return os.path.join(self.folder, self.name)

    @contextlib.contextmanager
    def reading(self):
        """Gives functions: get(key), get_many(keys) or None, items(), keys()."""
        raise NotImplementedError

    def load(self, pairs) -> None:
        """Stores many records, in batches, not flushed one by one."""
        raise NotImplementedError

    def put_durably(self, pairs) -> None:
        """Stores records one by one, each on disk before the next."""
        raise NotImplementedError

    def close(self) -> None:
        pass


class Zubilo(Engine):
    name, package = "zubilo", "zubilo"

    def open(self):
        import zubilo

        return zubilo.open(self.path())

    @contextlib.contextmanager
    def reading(self):
        with self.open() as env, env.read() as r:
            t = r.table("t")
            yield t.get, t.get_many, t.items, t.keys

    def load(self, pairs):
        with self.open() as env:
            for batch in batches(pairs, 100_000):
                with env.write() as w:
                    w.table("t").put_many(batch)

    def put_durably(self, pairs):
        with self.open() as env:
            for key, value in pairs:
                with env.write() as w:
                    w.table("t")[key] = value


class PyLmdb(Engine):
    name, package = "py-lmdb", "lmdb"

    def open(self):
        import lmdb

        return lmdb.open(self.path(), map_size=1 << 34, subdir=True)

    @contextlib.contextmanager
    def reading(self):
        env = self.open()
        with env.begin() as txn:
            cursor = txn.cursor()
            yield txn.get, cursor.getmulti, lambda: iter(txn.cursor()), lambda: txn.cursor().iternext(values=False)
        env.close()

    def load(self, pairs):
        env = self.open()
        for batch in batches(pairs, 100_000):
            with env.begin(write=True) as txn:
                txn.cursor().putmulti(batch)
        env.close()

    def put_durably(self, pairs):
        env = self.open()
        for key, value in pairs:
            with env.begin(write=True) as txn:
                txn.put(key, value)
        env.close()


class Sqlite(Engine):
    name, package = "sqlite3", None

    def open(self):
        db = sqlite3.connect(self.path(), isolation_level=None, check_same_thread=False)
        db.execute("pragma journal_mode=wal")
        db.execute("pragma synchronous=full")
        db.execute("pragma mmap_size=17179869184")
        db.execute("create table if not exists t (k blob primary key, v blob) without rowid")
        return db

    @contextlib.contextmanager
    def reading(self):
        db = self.open()
        db.execute("begin")
        one = "select v from t where k = ?"

        def get(key):
            return db.execute(one, (key,)).fetchone()[0]

        def get_many(keys):
            places = ",".join("?" * len(keys))
            return dict(db.execute(f"select k, v from t where k in ({places})", keys))

        items, keys = "select k, v from t order by k", "select k from t order by k"
        yield get, get_many, lambda: db.execute(items), lambda: db.execute(keys)
        db.close()

    def load(self, pairs):
        db = self.open()
        for batch in batches(pairs, 100_000):
            db.execute("begin")
            db.executemany("insert or replace into t values (?, ?)", batch)
            db.execute("commit")
        db.close()

    def put_durably(self, pairs):
        db = self.open()
        for pair in pairs:
            db.execute("insert or replace into t values (?, ?)", pair)
        db.close()


class DiskCache(Engine):
    name, package = "diskcache", "diskcache"

    def open(self):
        import diskcache

        return diskcache.Cache(self.path(), eviction_policy="none", size_limit=1 << 40)

    @contextlib.contextmanager
    def reading(self):
        with self.open() as cache:
            yield cache.get, None, lambda: ((key, cache[key]) for key in cache), cache.iterkeys

    def load(self, pairs):
        with self.open() as cache:
            for batch in batches(pairs, 100_000):
                with cache.transact():
                    for key, value in batch:
                        cache.set(key, value)


class Plyvel(Engine):
    name, package = "plyvel", "plyvel"
    shares = False

    def open(self):
        import plyvel

        return plyvel.DB(self.path(), create_if_missing=True, lru_cache_size=1 << 28)

    @contextlib.contextmanager
    def reading(self):
        db = self.open()
        yield db.get, None, lambda: db.iterator(), lambda: db.iterator(include_value=False)
        db.close()

    def load(self, pairs):
        db = self.open()
        for batch in batches(pairs, 100_000):
            with db.write_batch() as wb:
                for key, value in batch:
                    wb.put(key, value)
        db.compact_range()
        db.close()

    def put_durably(self, pairs):
        db = self.open()
        for key, value in pairs:
            db.put(key, value, sync=True)
        db.close()


class RocksDict(Engine):
    name, package = "rocksdict", "rocksdict"
    shares = False

    def open(self):
        import rocksdict

        return rocksdict.Rdict(self.path(), rocksdict.Options(raw_mode=True))

    @contextlib.contextmanager
    def reading(self):
        db = self.open()
        yield db.get, db.get, db.items, db.keys
        db.close()

    def load(self, pairs):
        import rocksdict

        db = self.open()
        for batch in batches(pairs, 100_000):
            wb = rocksdict.WriteBatch(raw_mode=True)
            for key, value in batch:
                wb.put(key, value)
            db.write(wb)
        db.flush()
        db.compact_range(None, None)
        db.close()

    def put_durably(self, pairs):
        import rocksdict

        db = self.open()
        options = rocksdict.WriteOptions()
        options.sync = True
        db.set_write_options(options)
        for key, value in pairs:
            db[key] = value
        db.close()


class Dbm(Engine):
    name, package = "dbm", None

    @contextlib.contextmanager
    def reading(self):
        with dbm.open(self.path(), "r") as db:
            yield db.get, None, lambda: ((key, db[key]) for key in db.keys()), db.keys

    def load(self, pairs):
        with dbm.open(self.path(), "c") as db:
            for key, value in pairs:
                db[key] = value


class Shelve(Engine):
    name, package = "shelve", None

    @contextlib.contextmanager
    def reading(self):
        with shelve.open(self.path(), "r") as db:
            get = db.get
            yield (lambda key: get(key.decode())), None, db.items, db.keys

    def load(self, pairs):
        with shelve.open(self.path(), "c") as db:
            for key, value in pairs:
                db[key.decode()] = value


ENGINES = [Zubilo, PyLmdb, Sqlite, DiskCache, Plyvel, RocksDict, Dbm, Shelve]


def batches(pairs, size):
    batch = []
    for pair in pairs:
        batch.append(pair)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def timed(work, count: int) -> float:
    """Operations a second."""
    start = time.perf_counter()
    work()
    return count / (time.perf_counter() - start)


def get_all(get, keys):
    for key in keys:
        get(key)


def read_in_process(cls, folder, keys, barrier):
    """What one of several reading processes does; opening is not counted."""
    with cls(folder).reading() as (get, *_):
        get_all(get, keys[:1000])
        barrier.wait()
        get_all(get, keys)
        barrier.wait()


def processes(cls, folder, keys) -> float:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(5)
    workers = [context.Process(target=read_in_process, args=(cls, folder, keys, barrier)) for _ in range(4)]
    for worker in workers:
        worker.start()
    barrier.wait(120)
    start = time.perf_counter()
    barrier.wait(120)
    took = time.perf_counter() - start
    for worker in workers:
        worker.join()
    return 4 * len(keys) / took


def threads(get, keys) -> float:
    workers = [threading.Thread(target=get_all, args=(get, keys)) for _ in range(4)]

    def work():
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    return timed(work, 4 * len(keys))


class Figures:
    """Rates of rows and engines, one a round."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, list[float]]] = {}

    def note(self, row: str, engine: Engine, rate: float) -> None:
        self.rows.setdefault(row, {}).setdefault(engine.name, []).append(rate)


def measure_writes(engines, pairs, turn, figures):
    """Into stores of their own, which are gone afterwards."""
    for engine in engines:
        folder = tempfile.mkdtemp(dir=engine.folder)
        fresh = type(engine)(folder)
        rate = timed(lambda fresh=fresh: fresh.load(pairs), len(pairs))
        if turn:
            figures.note(f"put {len(pairs):,} in batches, any order", engine, rate)
        if turn and type(engine).put_durably is not Engine.put_durably:
            singles = [(b"durable-%08d" % n, b"v" * 100) for n in range(DURABLE)]
            rate = timed(lambda fresh=fresh, singles=singles: fresh.put_durably(singles), DURABLE)
            figures.note("durable puts one by one", engine, rate)
        shutil.rmtree(folder)


def measure_reads(engines, keys, records, turn, figures):
    hot = (keys[:BATCH] * (len(keys) // BATCH + 1))[: len(keys)]
    groups = [keys[i : i + BATCH] for i in range(0, len(keys), BATCH)]
    for engine in engines:
        with engine.reading() as (get, get_many, items, all_keys):

            def scan():
                n = 0
                for _key, _value in items():
                    n += 1
                assert n >= records, n

            def scan_keys():
                n = 0
                for _key in all_keys():
                    n += 1
                assert n >= records, n

            works = [
                ("get one by one", lambda: get_all(get, keys), len(keys)),
                ("get one by one, 1,000 hot keys", lambda: get_all(get, hot), len(keys)),
                (f"get {BATCH:,} at once", lambda: [get_many(g) for g in groups], len(keys)),
                ("iterate keys and values", scan, records),
                ("iterate keys", scan_keys, records),
            ]
            for row, work, count in works:
                if " at once" in row and not get_many:
                    continue
                rate = timed(work, count)
                if turn:
                    figures.note(row, engine, rate)
            if turn and engine.name not in ("dbm", "shelve"):
                figures.note("4 reading threads", engine, threads(get, keys))
        if turn and engine.shares:
            figures.note("4 reading processes", engine, processes(type(engine), engine.folder, keys))


def found(names, folder) -> list[Engine]:
    """The engines of these names, or all, that are installed."""
    engines = []
    for cls in ENGINES:
        if names and cls.name not in names:
            continue
        version = "with Python"
        if cls is Sqlite:
            version = sqlite3.sqlite_version
        if cls.package:
            try:
                version = metadata.version(cls.package)
                __import__(cls.package)
            except ImportError:
                print(f"{cls.name}: not installed", file=sys.stderr)
                continue
        print(f"{cls.name} {version}", file=sys.stderr)
        engines.append(cls(folder))
    return engines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="where the stores are made (default: a temporary folder)")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("engines", nargs="*", help=", ".join(e.name for e in ENGINES))
    options = parser.parse_args()
    folder = tempfile.mkdtemp(dir=options.folder)
    figures = Figures()
    rng = random.Random(1)
    values = [rng.randbytes(100) for _ in range(1000)]
    order = list(range(options.records))
    rng.shuffle(order)
    pairs = [(key_of(n), values[n % 1000]) for n in order]
    keys = [key_of(rng.randrange(options.records)) for _ in range(KEY_COUNT)]
    try:
        engines = found(options.engines, folder)
        for engine in engines:
            engine.load(pairs)
        for turn in range(options.rounds + 1):
            measure_reads(engines, keys, options.records, turn, figures)
            measure_writes(engines, pairs[:LOADED], turn, figures)
    finally:
        shutil.rmtree(folder)
    report(figures.rows, [engine.name for engine in engines], options)


def report(rows, names, options) -> None:
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"Python {platform.python_version()}{'' if gil else ' without GIL'}; thousand operations a second, ", end="")
    print(f"medians of {options.rounds} rounds, least and greatest\n")
    print("| row | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))

    def text(rate: float) -> str:
        return f"{rate / 1000:,.0f}" if rate >= 10_000 else f"{rate / 1000:.2f}"

    for row, rates in rows.items():
        best = max(statistics.median(all_of) for all_of in rates.values())
        cells = []
        for name in names:
            if name not in rates:
                cells.append("")
                continue
            middle = statistics.median(rates[name])
            shown = f"**{text(middle)}**" if middle == best else text(middle)
            cells.append(f"{shown} ({text(min(rates[name]))} to {text(max(rates[name]))})")
        print(f"| {row} | " + " | ".join(cells) + " |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
