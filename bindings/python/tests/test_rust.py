"""One store for Python and Rust: typed tables that one writes and the other reads. `ZUBILO_INTEROP` names the
program `interop`, which `test.sh` builds."""

import os
import subprocess

import pytest

import zubilo

np = pytest.importorskip("numpy")
PROGRAM = os.environ.get("ZUBILO_INTEROP")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="ZUBILO_INTEROP does not name the program")

COUNT = 200
TYPES = {
    "numbers": (int, str),
    "scores": ((str, "u32"), float),
    "flags": (bytes, bool),
    "native": ("native-u64", "f32"),
    "tags": (str, "i16"),
    "vectors": ("u32", zubilo.array("f4", 4)),
}


def rust(what, path):
    done = subprocess.run([PROGRAM, what, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def text(n):
    return f"ключ {n % 7}\0{n}"


def records(table):
    """What `interop` writes."""
    for n in range(COUNT):
        yield {
            "numbers": ((n - COUNT // 2) * 46_116_860_184_273_879, text(n)),
            "scores": ((text(n), n), n / -3.0),
            "flags": (bytes([0, n, 255]), n % 3 == 0),
            "native": (2**64 - 1 - n * 257, float(np.float32(n) * np.float32(0.1))),
            "tags": (text(n % 7), n * 300 - 30_000),
            "vectors": (n, np.array([n, 0.5, -0.0, np.inf], "f4")),
        }[table]


def raw(path):
    """All records of all tables, as bytes, with the table of types."""
    with zubilo.open(path) as env, env.read() as r:
        return {name: list(r.table(name, raw=True).items()) for name in r.tables()}


def python_writes(path):
    with zubilo.open(path) as env, env.write() as w:
        for name, (key, value) in TYPES.items():
            t = w.table(name, key, value, duplicates=True if name == "tags" else None)
            for k, v in records(name):
                t[k] = v


@pytest.mark.parametrize("typed", [True, False])
def test_what_rust_writes(path, typed):
    rust("write", path)
    with zubilo.open(path) as env, env.read() as r:
        for name, (key, value) in TYPES.items():
            # The store notes the types, so they need not be named.
            t = r.table(name, key, value) if typed else r.table(name)
            due = sorted(records(name), key=lambda record: record if name == "tags" else record[0])
            found = list(t.items())
            assert [key for key, _ in found] == [key for key, _ in due], name
            for (_, a), (_, b) in zip(found, due, strict=True):
                assert np.array_equal(a, b) if name == "vectors" else (a == b and type(a) is type(b)), name


def test_what_python_writes(path, tmp_path):
    python_writes(path)
    rust("check", path)
    other = tmp_path / "rust.zubilo"
    rust("write", other)
    rust("check", other)
    assert raw(path) == raw(other), "to the byte, the notes of types too"


def test_both_at_once(path):
    python_writes(path)
    with zubilo.open(path) as env, env.read() as before:
        rust("add", path)
        assert 2**63 - 1 not in before.table("numbers")
        with env.read() as r:
            assert r.table("numbers").last() == (2**63 - 1, "from Rust")
        with env.write() as w:
            del w.table("numbers")[2**63 - 1]
        rust("check", path)


def test_other_types_are_refused_by_both(path):
    with zubilo.open(path) as env, env.write() as w:
        w.table("numbers", int, bytes)
    done = subprocess.run([PROGRAM, "check", path], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and "numbers" in done.stderr
    os.remove(path)
    rust("write", path)
    with zubilo.open(path) as env, env.read() as r:
        with pytest.raises(zubilo.TypesError):
            r.table("numbers", int, bytes)
