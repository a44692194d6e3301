"""Tables as mappings: everything that is read and changed with one key after the other."""

import collections.abc

import pytest

import zubilo


def test_the_program_of_the_documentation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zubilo.open("fruit.zubilo") as env:
        with env.write() as w:
            fruit = w.table("fruit")                 # made if it is not there
            fruit[b"apple"] = b"red"
            fruit.update({b"banana": b"yellow", b"cherry": b"red"})
        with env.read() as r:
            fruit = r.table("fruit")
            assert fruit[b"apple"] == b"red" and b"kiwi" not in fruit and len(fruit) == 3
            assert list(fruit.keys(prefix=b"b")) == [b"banana"]
            assert fruit.get_many([b"apple", b"kiwi"]) == [b"red", None]
            view = fruit.view(b"apple")              # a memoryview of the map
        assert env.update(lambda w: len(w.table("fruit"))) == 3
    with pytest.raises(ValueError):
        view[0]


def test_reading_is_that_of_a_mapping(fruit):
    with fruit.read() as r:
        t = r.table("fruit")
        assert isinstance(t, collections.abc.Mapping)
        assert not isinstance(t, collections.abc.MutableMapping)
        assert t[b"apple"] == b"red"
        assert t.get(b"kiwi") is None and t.get(b"kiwi", b"?") == b"?"
        with pytest.raises(KeyError, match="kiwi"):
            t[b"kiwi"]
        assert b"apple" in t and b"kiwi" not in t
        assert len(t) == 3 and bool(t)
        assert list(t) == [b"apple", b"banana", b"cherry"]
        assert list(reversed(t)) == [b"cherry", b"banana", b"apple"]
        assert dict(t) == {b"apple": b"red", b"banana": b"yellow", b"cherry": b"red"}
        assert t == dict(t) and t != {} and dict(t) == t
        assert t.first() == (b"apple", b"red") and t.last() == (b"cherry", b"red")
        assert dict(t.items()) == dict(t)
        match t:
            case {b"apple": colour}:
                assert colour == b"red"
            case _:
                pytest.fail("a table matches as a mapping")
        with pytest.raises(TypeError):
            hash(t)


def test_ranges_and_prefixes(env):
    keys = [b"a", b"ab", b"b", b"ba", b"c", b"\xff", b"\xff\xff"]
    for begin in (env.read, env.write):
        with env.write() as w:
            w.table("t").update((key, key * 2) for key in keys)
        with begin() as txn:
            t = txn.table("t")
            assert list(t.keys(b"ab", b"c")) == [b"ab", b"b", b"ba"]
            assert list(t.keys(b"ab", b"c", reverse=True)) == [b"ba", b"b", b"ab"]
            assert list(t[b"b":]) == [(key, key * 2) for key in keys[2:]]
            assert list(t[:b"b"]) == [(b"a", b"aa"), (b"ab", b"abab")]
            assert [key for key, _ in t[b"a":b"b":-1]] == [b"ab", b"a"]
            assert list(t.keys(prefix=b"b")) == [b"b", b"ba"]
            assert list(t.keys(prefix=b"\xff")) == [b"\xff", b"\xff\xff"]
            assert list(t.keys(prefix=b"")) == keys
            assert list(t.values(prefix=b"b", reverse=True)) == [b"baba", b"bb"]
            assert len(t.keys(b"ab", b"c")) == 3 and len(t.items(prefix=b"\xff")) == 2
            assert list(reversed(t.keys(b"ab"))) == keys[:0:-1]
            view = t.keys(b"b", b"c")
            assert list(view) == list(view) and b"ba" in view and b"a" not in view
            assert list(t.keys(b"c", b"a")) == []
            assert bool(t.keys(b"b")) and not t.keys(b"d", b"e")
            with pytest.raises(zubilo.InvalidError):
                t[b"a":b"c":2]
            with pytest.raises(TypeError):
                t.keys(b"a", prefix=b"b")


def test_views_are_sets(fruit):
    with fruit.read() as r:
        t = r.table("fruit")
        assert t.keys() & {b"apple", b"kiwi"} == {b"apple"}
        assert t.keys() | {b"kiwi"} == {b"apple", b"banana", b"cherry", b"kiwi"}
        assert t.keys() - {b"apple"} == {b"banana", b"cherry"}
        assert t.keys() == {b"apple", b"banana", b"cherry"}
        assert (b"apple", b"red") in t.items() and (b"apple", b"green") not in t.items()
        assert b"yellow" in t.values() and b"blue" not in t.values()


def test_changing_is_that_of_a_mapping(env):
    with env.write() as w:
        t = w.table("t")
        assert isinstance(t, collections.abc.MutableMapping) and not t
        t[b"a"] = b"1"
        t.update({b"b": b"2"})
        t.update([(b"c", b"3"), (b"a", b"4")])
        assert dict(t) == {b"a": b"4", b"b": b"2", b"c": b"3"}
        assert t.setdefault(b"a", b"x") == b"4" and t.setdefault(b"d", b"5") == b"5"
        assert t.pop(b"a") == b"4" and t.pop(b"a", None) is None
        with pytest.raises(KeyError):
            t.pop(b"a")
        del t[b"b"]
        with pytest.raises(KeyError):
            del t[b"b"]
        assert t.popitem() == (b"d", b"5") and list(t) == [b"c"]
        assert not t.insert(b"c", b"x") and t.insert(b"e", b"y")
        assert t.delete(b"e") and not t.delete(b"e")
        t.clear()
        assert len(t) == 0 and t.first() is None and t.last() is None
        with pytest.raises(KeyError):
            t.popitem()
        with pytest.raises(TypeError):
            t.pop()
        assert [t.next_sequence(), t.next_sequence(5), t.next_sequence()] == [0, 1, 6]


def test_an_exception_aborts_and_a_block_commits(env):
    with pytest.raises(RuntimeError):
        with env.write() as w:
            w.table("t")[b"a"] = b"1"
            raise RuntimeError
    assert env.tables() == []
    with env.write() as w:
        w.table("t")[b"a"] = b"1"
        w.commit()
    with env.write() as w:
        w.table("t")[b"a"] = b"2"
        w.abort()
    assert w.closed
    with env.read() as r:
        assert r.table("t")[b"a"] == b"1"
        assert env.update(lambda w: w.table("t").pop(b"a")) == b"1"
        assert r.table("t")[b"a"] == b"1" and r.lag == 1


def test_nested_levels(env):
    with env.write() as w:
        t = w.table("t")
        t[b"a"] = b"1"
        with pytest.raises(RuntimeError):
            with w.nested():
                t[b"a"] = b"2"
                w.table("other")[b"x"] = b"y"
                raise RuntimeError
        assert t[b"a"] == b"1" and w.tables() == [b"t"]
        with w.nested() as same:
            assert same is w
            t[b"b"] = b"2"
            with pytest.raises(zubilo.InvalidError):
                w.commit()
        assert len(t) == 2


def test_a_table_made_in_an_undone_level_is_gone(env):
    with env.write() as w:
        with pytest.raises(RuntimeError):
            with w.nested():
                lost = w.table("lost")
                lost[b"a"] = b"1"
                raise RuntimeError
        other = w.table("other")
        other[b"o"] = b"2"
        # It has the number that the lost one had.
        with pytest.raises(zubilo.NoSuchTableError):
            lost[b"a"]
        assert dict(other) == {b"o": b"2"}


def test_many_values_under_a_key(env):
    with env.write() as w:
        t = w.table("tags", duplicates=True)
        for value in (b"3", b"1", b"2"):
            assert t.add(b"k", value)
        assert not t.add(b"k", b"1")
        t[b"k"] = b"4"
        t[b"other"] = b"x"
        assert t.get_all(b"k") == [b"1", b"2", b"3", b"4"] and t.get_all(b"no") == []
        assert t.count(b"k") == 4 and t[b"k"] == b"1" and len(t) == 5
        assert t.has(b"k", b"2") and not t.has(b"k", b"9")
        assert list(t.items())[:2] == [(b"k", b"1"), (b"k", b"2")]
        assert t.remove(b"k", b"2") and not t.remove(b"k", b"2")
        with pytest.raises(zubilo.ManyValuesError):
            t.pop(b"k")
        assert t.popitem() == (b"other", b"x")
    with env.read() as r:
        t = r.table("tags")
        assert t.get_all(b"k") == [b"1", b"3", b"4"] and t.options["duplicates"]
        assert list(t.values(reverse=True)) == [b"4", b"3", b"1"]
    with env.write() as w:
        with pytest.raises(zubilo.IncompatibleError, match="duplicates"):
            w.table("tags", duplicates=False)


def test_counted_tables(env):
    with env.write() as w:
        t = w.table("t", int, str, counted=True)
        t.update((n, str(n)) for n in range(0, 1000, 10))
    for begin in (env.read, env.write):
        with begin() as txn:
            t = txn.table("t")
            assert t.at(0) == (0, "0") and t.at(7) == (70, "70") and t.at(-1) == (990, "990")
            assert t.rank(70) == 7 and t.rank(71) == 8
            assert len(t.keys(100, 200)) == 10
            for index in (100, -101, 2**62, -(2**63)):
                with pytest.raises(IndexError):
                    t.at(index)
    with env.write() as w:
        with pytest.raises(zubilo.IncompatibleError):
            w.table("uncounted").at(0)


def test_integer_keys(env):
    with env.write() as w:
        t = w.table("native", "native-u64", bytes)
        t.update((n, b"") for n in (300, 2, 70000))
        assert list(t) == [2, 300, 70000]
        raw = w.table("raw", integer_keys=True)
        for n in (300, 2, 70000):
            raw[n.to_bytes(4, "little")] = b""
        assert [int.from_bytes(key, "little") for key in raw] == [2, 300, 70000]
        with pytest.raises(zubilo.InvalidError):
            raw[b"three"] = b""


def test_cursors(fruit):
    for begin in (fruit.read, fruit.write):
        with begin() as txn:
            c = txn.table("fruit").cursor()
            assert c.next() == (b"apple", b"red") and c.current() == (b"apple", b"red")
            assert c.seek(b"b") == (b"banana", b"yellow") and c.prev() == (b"apple", b"red")
            assert c.prev() is None and c.last() == (b"cherry", b"red") and c.next() is None
            assert c.seek_exact(b"kiwi") is None and c.seek_exact(b"cherry")[0] == b"cherry"
            assert c.first() == (b"apple", b"red")
            assert [key for key, _ in c] == [b"banana", b"cherry"]
            assert isinstance(c, collections.abc.Iterator)
            with pytest.raises(TypeError):
                c.seek("text")


def test_a_cursor_changes_a_table(fruit):
    with fruit.write() as w:
        t = w.table("fruit")
        c = t.cursor()
        assert not c.delete()
        c.seek(b"banana")
        assert c.delete() and c.current() == (b"cherry", b"red")
        t[b"c"] = b"new"
        assert c.next() == (b"cherry", b"red") or c.current() == (b"cherry", b"red")
        assert list(t) == [b"apple", b"c", b"cherry"]
    with fruit.read() as r:
        with pytest.raises(zubilo.ReadOnlyError):
            r.table("fruit").cursor().delete()


def test_bulk_changes(env):
    with env.write() as w:
        t = w.table("t")
        pairs = [(b"%06d" % (n * 7919 % 100_000), b"%d" % n) for n in range(50_000)]
        assert t.put_many(pairs) == 50_000 and len(t) == 50_000
        assert t.put_many(((b"z%06d" % n, b"") for n in range(20_000)), sorted=True) == 20_000
        assert dict(pairs) == {key: value for key, value in t.items(b"", b"z")}
        assert t.delete_range(prefix=b"z") == 20_000
        assert t.delete_range(b"050000", b"060000") == len([k for k, _ in pairs if b"050000" <= k < b"060000"])
        with pytest.raises(TypeError):
            t.delete_range()
        # Of equal keys the last one counts, sorted or not.
        t.put_many([(b"same", b"1"), (b"other", b""), (b"same", b"2")])
        assert t[b"same"] == b"2"
        assert t.put_many([]) == 0


def test_get_many(fruit):
    with fruit.read() as r:
        t = r.table("fruit")
        assert t.get_many((b"cherry", b"no", b"apple"), b"-") == [b"red", b"-", b"red"]
        assert t.get_many(iter([bytearray(b"apple")])) == [b"red"] and t.get_many([]) == []
        views = t.get_many([b"banana"], view=True)
        assert bytes(views[0]) == b"yellow"
        for wrong in ("apple", b"apple"):
            with pytest.raises(TypeError):
                t.get_many(wrong)
        with pytest.raises(TypeError):
            t.get_many(["apple"])
    with fruit.write() as w:
        assert w.table("fruit").get_many([b"cherry", b"no"]) == [b"red", None]
    with pytest.raises(ValueError):
        views[0][0]


def test_reading_while_other_threads_run(fruit):
    with fruit.read() as r:
        t = r.table("fruit", release_gil=True)
        assert t[b"apple"] == b"red" and t.get(b"kiwi") is None


def test_tables_are_dropped_and_renamed(env):
    with env.write() as w:
        w.table("a", str, int)["x"] = 1
        w.rename("a", "b")
        assert w.tables() == [b"b", b"zubilo.types"]
        assert dict(w.table("b")) == {"x": 1}
        w.drop("b")
        with pytest.raises(zubilo.NoSuchTableError):
            w.table("b", create=False)
        w.table("b")[b"bytes"] = b"now"
        assert w.table(b"b").name == b"b"


def test_values_of_every_size(env):
    sizes = [0, 1, 1000, 4000, 5000, 100_000, 3_000_000]
    with env.write() as w:
        t = w.table("t")
        for size in sizes:
            t[b"%d" % size] = b"x" * size
        t[b""] = b"empty key"
    with env.read() as r:
        t = r.table("t")
        for size in sizes:
            assert t[b"%d" % size] == b"x" * size
            assert bytes(t.view(b"%d" % size)) == b"x" * size
        assert t[b""] == b"empty key"
        assert [len(value) for value in t.get_many([b"%d" % size for size in sizes])] == sizes
