"""CPU time of a record in loops over a table, beside py-lmdb: nanoseconds, medians, least and greatest.

    python loops.py [ROUNDS]

A million records of 16 and 100 bytes, in memory (/dev/shm), in turn. CPU time, not time, so that it can be taken on a
machine that has other things to do; those still cost caches. Needs `pip install lmdb`.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time

import lmdb

import zubilo

RECORDS = 1_000_000


def singles(records) -> float:
    start = time.process_time()
    for _record in records:
        pass
    return (time.process_time() - start) / RECORDS * 1e9


def pairs(records) -> float:
    start = time.process_time()
    for _key, _value in records:
        pass
    return (time.process_time() - start) / RECORDS * 1e9


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    rng = random.Random(1)
    values = [rng.randbytes(100) for _ in range(1000)]
    records = [(b"record-%09d" % n, values[n % 1000]) for n in range(RECORDS)]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        env = zubilo.open(f"{folder}/zubilo", durability="nosync")
        with env.write() as w:
            w.table("t").put_many(records, sorted=True)
        other = lmdb.open(f"{folder}/lmdb", map_size=1 << 32)
        with other.begin(write=True) as txn:
            txn.cursor().putmulti(records, append=True)
        with env.read() as r, other.begin() as txn:
            t = r.table("t")
            works = {
                "keys, zubilo": lambda: singles(t.keys()),
                "keys, py-lmdb": lambda: singles(txn.cursor().iternext(values=False)),
                "values, zubilo": lambda: singles(t.values()),
                "values, py-lmdb": lambda: singles(txn.cursor().iternext(keys=False)),
                "keys and values, zubilo": lambda: pairs(t.items()),
                "keys and values, py-lmdb": lambda: pairs(iter(txn.cursor())),
            }
            took: dict[str, list[float]] = {name: [] for name in works}
            for turn in range(rounds + 1):
                for name, work in works.items():
                    each = work()
                    if turn:
                        took[name].append(each)
        env.close()
        other.close()
    for name, each in took.items():
        print(f"{name:26} {statistics.median(each):6.1f} ({min(each):.1f} to {max(each):.1f})")


if __name__ == "__main__":
    main()
