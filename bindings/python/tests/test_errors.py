"""Bad input: each a clear exception, of the package's and of Python's own, and nothing lost."""

import json
import os
import pickle
import subprocess
import sys

import pytest

import zubilo


def test_the_classes():
    for name in zubilo.errors.__all__:
        cls = getattr(zubilo, name)
        assert issubclass(cls, zubilo.Error) and cls.__doc__ and cls.__module__ == "zubilo.errors"
    for cls, base in [
        (zubilo.NoSuchTableError, KeyError), (zubilo.FileMissingError, FileNotFoundError), (zubilo.IoError, OSError),
        (zubilo.ClosedError, ValueError), (zubilo.TypesError, TypeError), (zubilo.AccessError, PermissionError),
    ]:  # fmt: skip
        assert issubclass(cls, base)


def test_files(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        zubilo.open(tmp_path / "no", create=False)
    assert isinstance(caught.value, zubilo.Error) and caught.value.errno == 2
    with pytest.raises(FileNotFoundError):
        zubilo.open(tmp_path / "no" / "store")
    with pytest.raises(zubilo.NotAStoreError, match="directory"):
        zubilo.open(tmp_path)
    text = tmp_path / "text"
    text.write_text("not a store, but more than a page of text" * 1000)
    with pytest.raises(zubilo.NotAStoreError, match="left as it is"):
        zubilo.open(text)
    assert text.read_text().startswith("not a store")
    for wrong in (5, None, object()):
        with pytest.raises(TypeError):
            zubilo.open(wrong)
    with pytest.raises(ValueError):
        zubilo.open("a\0b")


def test_arguments(path):
    for arguments in [{"durability": "maybe"}, {"verify": 1}, {"page_size": 1000}, {"page_size": "x"}, {"max_size": -1}]:
        with pytest.raises((zubilo.Error, TypeError, OverflowError)):
            zubilo.open(path, **arguments)
    assert not path.exists()
    with pytest.raises(TypeError):
        zubilo.open(path, nothing=1)


@pytest.mark.parametrize("secret", [{"key": bytes(range(32))}, {"passphrase": "a horse"}, {"passphrase": b"a\xffhorse"}])
def test_encrypted_stores(path, secret):
    with zubilo.open(path, **secret) as env:
        with env.write() as w:
            w.table("t")[b"key"] = b"what nobody reads" * 1000
        with pickle.loads(pickle.dumps(env)) as again, again.read() as r:
            assert r.table("t")[b"key"].startswith(b"what")
    assert b"what nobody reads" not in path.read_bytes()
    for wrong in ({}, {"key": b"x" * 32}, {"passphrase": "a hose"}):
        with pytest.raises(zubilo.EncryptionError):
            zubilo.open(path, **wrong)
    for wrong in ({"key": b"short"}, {"key": "text" * 8}, {"passphrase": 5}, {"redo_log": -1}):
        with pytest.raises((zubilo.InvalidError, TypeError, OverflowError)):
            zubilo.open(path, **wrong)
    with zubilo.open(path, **secret) as env, env.read() as r:
        assert len(r.table("t")) == 1
    with zubilo.open(path.with_name("plain"), redo_log=1 << 20) as env:
        for n in range(20):
            env.update(lambda w: w.table("t").__setitem__(b"%d" % n, b"x"))
    with pytest.raises(zubilo.EncryptionError):
        zubilo.open(path.with_name("plain"), **secret)
    command = [sys.executable, "-m", "zubilo", "stat", "--json", path.with_name("plain")]
    stat = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert stat["redo_log_bytes"] > 0 and stat["encrypted"] is False
    with zubilo.open(path.with_name("plain")) as env, env.read() as r:
        assert len(r.table("t")) == 20


def test_keys_and_values(env):
    with env.write() as w:
        t = w.table("t")
        with pytest.raises(zubilo.KeyTooLongError):
            t[b"k" * (env.max_key_len + 1)] = b""
        t[b"k" * env.max_key_len] = b"fits"
        with pytest.raises(zubilo.KeyTooLongError):
            w.table("n" * 5000)
        d = w.table("d", duplicates=True)
        with pytest.raises(zubilo.ValueTooLongError):
            d[b"k"] = b"v" * 5000
        # An error of one record leaves the others.
        with pytest.raises(TypeError):
            t.put_many([(b"a", b"1"), (b"b", "text")])
        with pytest.raises(TypeError):
            t.put_many([b"ab", b"cd", 5])
        assert len(t) in (1, 2)
    assert env.check()["problems"] == []


def test_tables(env):
    with env.read() as r:
        with pytest.raises(KeyError, match="there is no table"):
            r.table("no")
        with pytest.raises(zubilo.NoSuchTableError) as caught:
            r.table("no")
        assert str(caught.value) == 'there is no table "no"'
    with env.write() as w:
        w.table("a")
        w.table("b")
        with pytest.raises(zubilo.TableExistsError):
            w.rename("a", "b")
        with pytest.raises(zubilo.IncompatibleError):
            w.table("a", counted=True)
        with pytest.raises(zubilo.InvalidError):
            w.table("aligned", duplicates=True, align=8)
        with pytest.raises(zubilo.InvalidError):
            w.table("x", align=3)


def test_reading_only(fruit, path):
    fruit.close()
    with zubilo.open(path, read_only=True) as env:
        with pytest.raises(zubilo.ReadOnlyError):
            env.write()
        with pytest.raises(zubilo.ReadOnlyError):
            env.update(lambda w: None)
        with env.read() as r:
            t = r.table("fruit")
            for change in (lambda: t.__setitem__(b"a", b""), lambda: t.clear(), lambda: t.update({})):
                with pytest.raises(AttributeError):
                    change()
            with pytest.raises(TypeError):
                t[b"a"] = b""


def test_a_store_that_is_full(path):
    with zubilo.open(path, max_size=1 << 20) as env:
        with pytest.raises(zubilo.MapFullError):
            with env.write() as w:
                w.table("t").put_many((b"%d" % n, b"x" * 1000) for n in range(5000))
        with env.write() as w:
            w.table("t")[b"a"] = b"fits"
        assert env.check()["problems"] == []


def test_too_many_readers(path):
    with zubilo.open(path, max_readers=2) as env:
        readers = []
        with pytest.raises(zubilo.ReadersFullError):
            for _ in range(5000):
                readers.append(env.read())
        for r in readers:
            r.close()
        env.read().close()


def test_damaged_files(fruit, path):
    with fruit.write() as w:
        w.table("t").put_many((b"%06d" % n, os.urandom(50)) for n in range(5000))
    # Damage of the last commit would be found at open, and the one before be opened.
    for n in range(8):
        fruit.update(lambda w, n=n: w.table("last").put(b"%d" % n, b""))
    fruit.close()
    whole = path.read_bytes()
    found = 0
    for page in range(4, len(whole) // 4096):
        damaged = bytearray(whole)
        damaged[page * 4096 : page * 4096 + 300] = os.urandom(300)
        path.write_bytes(damaged)
        try:
            with zubilo.open(path) as env:
                found += bool(env.check()["problems"])
                with env.read() as r:
                    for name in r.tables():
                        t = r.table(name)
                        list(t.items()), list(reversed(t)), t.get_many([b"%06d" % n for n in range(5000)])
        except zubilo.Error:
            found += 1
    assert found > 10
    path.write_bytes(whole)
    with zubilo.open(path) as env:
        assert env.check()["problems"] == []
