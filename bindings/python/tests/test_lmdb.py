"""Coming from LMDB: the import, and the example with images and labels."""

import pathlib
import runpy

import pytest

import zubilo

lmdb = pytest.importorskip("lmdb")

HERE = pathlib.Path(__file__).parent


def test_all_tables_are_taken_over(tmp_path):
    env = lmdb.open(str(tmp_path / "old"), max_dbs=5, map_size=1 << 24)
    named = {name: env.open_db(name, **options) for name, options in [
        (b"plain", {}), (b"many", {"dupsort": True}), (b"ints", {"integerkey": True}),
        (b"fixed", {"dupsort": True, "dupfixed": True}), (b"reversed", {"reverse_key": True}),
    ]}  # fmt: skip
    with env.begin(write=True) as txn:
        txn.put(b"unnamed", b"record")
        for n in range(3000):
            txn.put(b"%05d" % n, b"v%d" % n, db=named[b"plain"])
            txn.put(b"k%d" % (n % 10), b"%05d" % n, db=named[b"many"])
            txn.put(n.to_bytes(8, "little"), b"x", db=named[b"ints"])
            txn.put(b"k", n.to_bytes(4, "big"), db=named[b"fixed"])
            txn.put(b"%05d" % n, b"r", db=named[b"reversed"])
        txn.put(b"big", b"b" * 100_000, db=named[b"plain"])
    told = []
    count = zubilo.import_lmdb(tmp_path / "old", tmp_path / "new", main_table="rest", progress=lambda *a: told.append(a))
    assert count == 15_001 + 1 + 5 or count == 15_002
    with zubilo.open(tmp_path / "new") as store, store.read() as r, env.begin() as txn:
        assert r.tables() == [b"fixed", b"ints", b"many", b"plain", b"rest", b"reversed"]
        assert dict(r.table("rest"))[b"unnamed"] == b"record"
        for name, db in named.items():
            assert list(r.table(name).items()) == list(txn.cursor(db=db)), name
    env.close()


def test_what_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        zubilo.import_lmdb(tmp_path / "no", tmp_path / "new")
    (tmp_path / "text").write_text("text" * 10_000)
    with pytest.raises(zubilo.LmdbError):
        zubilo.import_lmdb(tmp_path / "text", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    env = lmdb.open(str(tmp_path / "old"), subdir=False)
    with env.begin(write=True) as txn:
        for n in range(5000):
            txn.put(b"%d" % n, b"")
    (tmp_path / "there").write_text("mine")
    with pytest.raises(FileExistsError):
        zubilo.import_lmdb(tmp_path / "old", tmp_path / "there")
    assert (tmp_path / "there").read_text() == "mine"
    with pytest.raises(zubilo.StoppedError):
        zubilo.import_lmdb(tmp_path / "old", tmp_path / "new", progress=lambda *_: False)
    assert not (tmp_path / "new").exists()
    assert zubilo.import_lmdb(tmp_path / "old", tmp_path / "new") == 5000


def test_a_place_beside_the_old_one(tmp_path):
    folder = tmp_path / "data"
    env = lmdb.open(str(folder))
    with env.begin(write=True) as txn:
        txn.put(b"a", b"1")
    env.close()
    assert zubilo.import_lmdb(f"{folder}/") == 1
    with zubilo.open(tmp_path / "data.zubilo") as store, store.read() as r:
        assert dict(r.table("main")) == {b"a": b"1"}
    with pytest.raises(FileExistsError):
        zubilo.import_lmdb(folder)


def test_the_example(tmp_path, monkeypatch, capsys):
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(HERE.parent / "examples" / "images.py"), run_name="__main__")
    assert "of 100 right" in capsys.readouterr().out
