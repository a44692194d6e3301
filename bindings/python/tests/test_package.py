"""The package itself: types, documentation, version."""

import importlib.metadata
import inspect
import pathlib
import subprocess
import sys

import pytest

import zubilo

CLASSES = [
    zubilo.Env, zubilo.ReadTxn, zubilo.WriteTxn, zubilo.Nested, zubilo.Table, zubilo.WriteTable, zubilo.Records,
    zubilo.Cursor,
]  # fmt: skip


def test_everything_public_has_a_docstring():
    for name in zubilo.__all__:
        thing = getattr(zubilo, name)
        if name != "__version__":
            assert inspect.getdoc(thing), name
    for cls in CLASSES:
        for name, member in vars(cls).items():
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{cls.__name__}.{name}"


def test_help_is_a_manual():
    text = subprocess.run([sys.executable, "-m", "pydoc", "zubilo"], capture_output=True, text=True).stdout
    for word in ["get_many", "snapshot", "with zubilo.open", "group", "released", "zubilo.errors", "import_lmdb"]:
        assert word in text, word


def test_the_version_is_one():
    try:
        importlib.metadata.version("zubilo")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is used from its folder")
    assert importlib.metadata.version("zubilo") == zubilo.__version__
    assert (pathlib.Path(zubilo.__file__).parent / "py.typed").exists()


def test_stubs_agree_with_the_extension():
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "zubilo", "--ignore-disjoint-bases"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_typed_program(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(program)], capture_output=True, text=True, cwd=tmp_path
    )
    wrong = [n for n, line in enumerate(PROGRAM.splitlines(), 1) if "wrong" in line]
    reported = sorted({int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line})
    assert reported == wrong, done.stdout


PROGRAM = '''
import zubilo

with zubilo.open("store", durability="lazy") as env:
    with env.write() as w:
        t = w.table("t", str, int)
        t["a"] = 1
        t[b"a"] = 1  # wrong
        t["a"] = "1"  # wrong
        count: int = t["a"]
        t.update({"b": 2})
        env.nothing()  # wrong
    with env.read() as r:
        names: list[str] = list(r.table("t", str, int))
        value: int | None = r.table("t", str, int).get("a")
        none: int = r.table("t", str, int).get("a")  # wrong
        r.table("t", str, int)["a"] = 5  # wrong
        for key, number in r.table("t", str, int)["a":"b"]:
            print(key.upper(), number + 1)
    total: int = env.update(lambda w: len(w.table("t")))
'''
