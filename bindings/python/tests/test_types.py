"""Typed tables: order, encodings shared with Rust, checks at open, arrays in place."""

import math
import pickle
import random
import struct

import pytest

import zubilo

np = pytest.importorskip("numpy")

INTS = [0, 1, -1, 255, 256, -256, 2**31, -(2**31), 2**63 - 1, -(2**63)]
TEXTS = ["", "a", "ab", "b", "é", "z", "\x00", "a\x00", "a\x00b", "a\x01", "𝄞", "\uffff"]
BYTES = [b"", b"\x00", b"\x00\x00", b"\x00\xff", b"\x01", b"a", b"a\x00", b"ab", b"\xff"]
FLOATS = [0.0, 1.5, -1.5, math.inf, -math.inf, 1e-300, -1e-300, 3.0]


@pytest.mark.parametrize(
    "kind, values",
    [
        (int, INTS),
        (str, TEXTS),
        (bytes, BYTES),
        (float, FLOATS),
        (bool, [False, True]),
        ("u64", [0, 1, 255, 2**64 - 1]),
        ("i16", [-(2**15), -1, 0, 2**15 - 1]),
        ("u8", [0, 7, 255]),
        ((str, int), [(text, n) for text in TEXTS for n in INTS]),
        ((bytes, bytes), [(a, b) for a in BYTES for b in BYTES]),
        ((int, (str, bytes), "u32"), [(n, (t, b), 5) for n in INTS[:3] for t in TEXTS for b in BYTES[:4]]),
    ],
    ids=str,
)
def test_keys_come_back_in_the_order_of_python(env, kind, values):
    shuffled = random.Random(1).sample(values, len(values))
    with env.write() as w:
        t = w.table("t", kind, int)
        t.update((key, i) for i, key in enumerate(shuffled))
        assert list(t) == sorted(values)
    with env.read() as r:
        t = r.table("t", kind, int)
        assert list(t) == sorted(values)
        assert all(t[key] == i for i, key in enumerate(shuffled))
        assert t.get_many(shuffled) == list(range(len(values)))
        middle = sorted(values)[len(values) // 2]
        assert list(t.keys(middle)) == [key for key in sorted(values) if key >= middle]
        # Without types they are as the store notes them.
        assert list(r.table("t")) == sorted(values)


def test_prefixes_of_typed_keys(env):
    with env.write() as w:
        t = w.table("t", (str, int), "json")
        t.update({("a", 1): 1, ("a", 2): 2, ("ab", 1): 3})
        assert list(t.keys(prefix=("a",))) == [("a", 1), ("a", 2)]
        names = w.table("names", str)
        names.update({"ab": b"", "abc": b"", "b": b""})
        assert list(names.keys(prefix="ab")) == ["ab", "abc"]
        with pytest.raises(TypeError):
            t.keys(prefix=("a", 1))
        with pytest.raises(TypeError):
            w.table("n", int).keys(prefix=1)


def test_the_bytes_are_those_of_the_crate_zubilo_typed(env):
    """The same table is in `crates/zubilo-typed/tests/order.rs`."""
    with env.write() as w:
        for i, (kind, value, encoded) in enumerate(
            [
                (int, -2, b"\x7f\xff\xff\xff\xff\xff\xff\xfe"),
                ("u32", 258, b"\x00\x00\x01\x02"),
                ("i8", -1, b"\x7f"),
                (float, 1.0, b"\xbf\xf0\0\0\0\0\0\0"),
                (float, -1.0, b"\x40\x0f" + b"\xff" * 6),
                ("f32", 1.0, b"\xbf\x80\0\0"),
                (bool, True, b"\x01"),
                (str, "a\0é", b"a\0\xc3\xa9"),
                ((str, int), ("a\0", -1), b"a\0\xff\0\0\x7f\xff\xff\xff\xff\xff\xff\xff"),
                ((bytes, bytes), (b"x", b"y\0"), b"x\0\0y\0"),
                ((("u8", str), str), ((1, "a"), "b"), b"\x01a\0\0b"),
                ("native-u32", 258, b"\x02\x01\x00\x00"),
            ]
        ):
            t = w.table(f"t{i}", kind, bytes)
            t[value] = b""
            assert list(w.table(f"t{i}", raw=True)) == [encoded], kind
            assert list(t) == [value]
        noted = {name: types for name, types in w.table("zubilo.types").items()}
        assert noted[b"t0"] == b"table<i64, bytes>" and noted[b"t8"] == b"table<(str,i64), bytes>"
        assert noted[b"t10"] == b"table<((u8,str),str), bytes>"


def test_values_of_all_kinds(env):
    document = {"a": [1, 2.5, None, "é"], "b": {}}
    with env.write() as w:
        w.table("json", int, "json")[1] = document
        w.table("pickle", int, "pickle")[1] = {1, 2, 3}
        w.table("text", int, str)[1] = "ünï"
        w.table("pair", int, (str, float))[1] = ("a", 0.5)
        multi = w.table("multi", str, int, duplicates=True)
        for n in (5, -3, 9):
            multi.add("k", n)
        assert multi.get_all("k") == [-3, 5, 9] and multi.options["fixed_values"]
    with env.read() as r:
        assert r.table("json")[1] == document
        assert r.table("text")[1] == "ünï"
        assert r.table("pair")[1] == ("a", 0.5)
        assert list(r.table("multi").items()) == [("k", -3), ("k", 5), ("k", 9)]
        with pytest.raises(zubilo.TypesError, match="value='pickle'"):
            r.table("pickle")
        assert r.table("pickle", int, "pickle")[1] == {1, 2, 3}


def test_types_are_checked_at_open(env):
    with env.write() as w:
        w.table("t", str, int)["a"] = 1
        w.table("plain")[b"a"] = b"1"
    for begin in (env.read, env.write):
        with begin() as txn:
            for key, value in [(bytes, int), (str, float), (str, "u64"), (int, int)]:
                with pytest.raises(zubilo.TypesError, match="table<str, i64>"):
                    txn.table("t", key, value)
            with pytest.raises(zubilo.TypesError, match="without types"):
                txn.table("plain", str, str)
            assert txn.table("plain", bytes, bytes)[b"a"] == b"1"
            assert txn.table("t", raw=True)[b"a"] == bytes([128, 0, 0, 0, 0, 0, 0, 1])
    with env.write() as w:
        assert w.table("plain", str, str, adopt=True)["a"] == "1"
        with pytest.raises(zubilo.TypesError):
            w.table("t", str, int, version="2")
        w.table("v", str, int, version="fields 1")
        with pytest.raises(zubilo.TypesError):
            w.table("v", str, int, version="fields 2")
    with env.read() as r:
        assert r.table("plain")["a"] == "1"


def test_wrong_types_are_refused(env):
    with env.write() as w:
        t = w.table("t", (str, int), int)
        for key in ["a", ("a",), ("a", "b"), (b"a", 1), ["a", 1], None]:
            with pytest.raises(TypeError):
                t[key] = 1
        with pytest.raises(TypeError):
            t["a", 1] = "text"
        with pytest.raises(OverflowError):
            t["a", 1] = 2**63
        with pytest.raises(OverflowError):
            w.table("u", "u8")[256] = b""
        for kind in [list, None.__class__, "nothing", (str,), (), (str,) * 7, ("json", str), object()]:
            with pytest.raises(TypeError):
                w.table("x", kind)
        for kind in ["json", "pickle", zubilo.array("f4")]:
            with pytest.raises(zubilo.TypesError):
                w.table("x", kind)
        with pytest.raises(zubilo.TypesError):
            w.table("x", str, "json", duplicates=True)
        with pytest.raises(zubilo.InvalidError):
            w.table("zubilo.types", str, str)
        bytes_table = w.table("b")
        for key in ["text", 5, None, 1.5, ("a",), [b"a"]]:
            with pytest.raises(TypeError):
                bytes_table[key] = b""
            with pytest.raises(TypeError):
                bytes_table.get(key)
        with pytest.raises(TypeError, match="encode"):
            bytes_table["text"]
        with pytest.raises(UnicodeEncodeError):
            w.table("s", str)["\ud800"] = b""


def test_bytes_that_are_no_value_of_the_type(env):
    with env.write() as w:
        w.table("n", int, int)[1] = 1
        w.table("n", raw=True)[b"short"] = b"bad"
        w.table("s", bytes, str)[b"k"] = "a"
        w.table("s", raw=True)[b"k"] = b"\xff\xfe"
        w.table("p", (str, int))["a", 1] = b""
        w.table("p", raw=True)[b"no end"] = b""
        w.table("j", str, "json")["a"] = 1
        w.table("j", raw=True)[b"a"] = b"{"
    with env.read() as r:
        for table in ("n", "p"):
            with pytest.raises(zubilo.DecodeError):
                list(r.table(table))
        with pytest.raises(zubilo.DecodeError):
            r.table("s")[b"k"]
        with pytest.raises(ValueError):
            r.table("j")["a"]


def test_arrays_lie_over_the_map(env):
    images = np.random.default_rng(1).integers(0, 256, (50, 28, 28), dtype="u1")
    with env.write() as w:
        t = w.table("images", int, zubilo.array("u1", (28, 28)))
        t.update(enumerate(images))
        vectors = w.table("vectors", int, zubilo.array("f8"))
        vectors[1] = np.arange(7.0)
        vectors[2] = [1.0, 2.0]
        with pytest.raises(TypeError, match="astype"):
            vectors[3] = np.arange(7)
        with pytest.raises(zubilo.InvalidError, match="shape"):
            t[1] = np.zeros((28, 27), "u1")
        with pytest.raises(TypeError):
            w.table("objects", int, zubilo.array(object))
        assert (t[3] == images[3]).all() and (vectors[1] == np.arange(7.0)).all()
    with env.read() as r:
        t = r.table("images")
        assert t.types == ("i64", "aligned<[1/1] le>")
        array = t[7]
        assert (array == images[7]).all() and array.shape == (28, 28)
        assert not array.flags.writeable and not array.flags.owndata
        assert (t.array(7) == array).all()
        assert t.array(7).ctypes.data == array.ctypes.data, "both lie over the map"
        assert t.array(7, "u4", (7, 28)).shape == (7, 28)
        with pytest.raises(ValueError):
            array[0, 0] = 1
        with pytest.raises(ValueError):
            array.flags.writeable = True
        assert all((a == b).all() for a, b in zip(t.values(), images, strict=True))
        assert (r.table("vectors")[2] == [1.0, 2.0]).all()
        assert r.table("vectors")[1].flags.aligned
        with pytest.raises(zubilo.TypesError):
            r.table("images", int, zubilo.array("u1", (28, 29)))
        with pytest.raises(zubilo.DecodeError):
            t.array(7, "u1", (3, 3))
    # The array keeps the snapshot.
    assert (array == images[7]).all()


def test_structured_arrays(env):
    dtype = np.dtype([("x", "<f4"), ("y", "<i4")])
    data = np.array([(1.5, 2), (3.5, 4)], dtype)
    with env.write() as w:
        w.table("s", str, zubilo.array(dtype, 2))["a"] = data
    with env.read() as r:
        assert (r.table("s")["a"] == data).all() and r.table("s")["a"].dtype == dtype


def test_get_many_into(env):
    data = np.random.default_rng(1).random((100, 16), dtype="f4")
    with env.write() as w:
        w.table("t", int, zubilo.array("f4", 16)).update(enumerate(data))
    with env.read() as r:
        t = r.table("t")
        out = np.zeros((100, 16), "f4")
        order = np.random.default_rng(2).permutation(100)
        assert t.get_many_into(order, out) == [] and (out == data[order]).all()
        out[:] = 7
        assert t.get_many_into([5, 1000, 6, -1], out[:4]) == [1, 3]
        assert (out[0] == data[5]).all() and (out[1] == 7).all() and (out[2] == data[6]).all()
        assert t.get_many_into([], out[:0]) == []
        with pytest.raises(zubilo.InvalidError, match="rows"):
            t.get_many_into([1, 2], out[:3])
        with pytest.raises(zubilo.InvalidError, match="bytes"):
            t.get_many_into([1, 2], out[:2, :8].copy())
        with pytest.raises((ValueError, BufferError)):
            t.get_many_into([1, 2], out[:2, :8])
        with pytest.raises((ValueError, BufferError)):
            t.get_many_into([1], data[:1].tobytes())
        flat = bytearray(64)
        assert t.get_many_into([3], memoryview(flat).cast("B", (1, 64))) == [] and flat == data[3].tobytes()
    with env.write() as w:
        out = np.zeros((2, 16), "f4")
        assert w.table("t").get_many_into([9, 1000], out) == [1] and (out[0] == data[9]).all()


def test_values_of_any_buffer(env):
    with env.write() as w:
        t = w.table("t")
        t[bytearray(b"a")] = memoryview(b"xyz")[::1]
        t[b"n"] = np.arange(3, dtype="<u2")
        assert t[b"a"] == b"xyz" and t[memoryview(b"n")] == struct.pack("<3H", 0, 1, 2)
        with pytest.raises(TypeError):
            t[b"strided"] = np.arange(6)[::2]


def test_names_of_types(env):
    with env.write() as w:
        t = w.table("ü", str, int)
        assert t.name == "ü".encode() and repr(t).startswith("<zubilo table")
        with pytest.raises(TypeError):
            w.table(5)
    assert pickle.loads(pickle.dumps(zubilo.array("f4", 3))) == zubilo.Array("f4", (3,))
