"""What only a hostile program does, each case once a crash or a wrong answer, and calls at random."""

import os
import random
import signal
import sys
import threading

import pytest

import zubilo


def test_types_that_nest_without_end(env):
    spec = int
    for _ in range(200_000):
        spec = (int, spec)
    with env.write() as w:
        with pytest.raises(TypeError, match="nest"):
            w.table("deep", key=spec)
        fits = int
        for _ in range(16):
            fits = (int, fits)
        w.table("fits", key=fits, value=int)
        while isinstance(spec, tuple):
            spec = spec[1]
        # What the store notes may be damaged, or the work of an enemy.
        w.table("typed", key=str, value=int)
        w.table("zubilo.types", raw=True)[b"typed"] = b"table<" + b"(" * 300_000
    with env.read() as r:
        with pytest.raises(zubilo.TypesError):
            r.table("typed")
        assert r.table("fits").types[1] == "i64"


def test_hashes_of_pairs(env):
    """The tuple of a pair is used again where nobody kept it; its hash must not be."""
    with env.write() as w:
        w.table("t").update((b"%03d" % n, b"%d" % n) for n in range(100))
    with env.read() as r:
        t = r.table("t")
        pairs = [(b"%03d" % n, b"%d" % n) for n in range(100)]
        assert list(map(hash, t.items())) == list(map(hash, pairs))
        assert list(map(set(pairs).__contains__, t.items())) == [True] * 100


def test_a_coroutine_that_leaves_in_the_middle(env):
    """Stacks of greenlets are moved away while others run."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("greenlets need the global lock")
    greenlet = pytest.importorskip("greenlet")
    main = greenlet.getcurrent()
    box = []

    def change(w):
        box.append(w)
        w.table("t")[b"a"] = b"1"
        main.switch()
        w.table("t")[b"b"] = b"2"
        return 5

    def elsewhere(depth):
        if depth:
            return elsewhere(depth - 1)
        t = box[-1].table("t")
        t[b"c"] = b"3"
        return list(t.items()), box[-1].tables()

    other = greenlet.greenlet(lambda: env.update(change))
    other.switch()
    assert sorted([3, 1, 2], key=lambda n: elsewhere(n * 10)[1][0]) == [3, 1, 2]
    with pytest.raises(zubilo.BusyError):
        env.update(lambda w: None)
    assert other.switch() == 5
    with env.read() as r:
        assert dict(r.table("t")) == {b"a": b"1", b"b": b"2", b"c": b"3"}

    other = greenlet.greenlet(lambda: env.update(change))
    other.switch()
    del other
    assert env.update(lambda w: len(w.table("t"))) == 3

    def progress(done, total):
        main.switch()

    other = greenlet.greenlet(lambda: env.check(progress=progress))
    other.switch()
    assert env.check()["problems"] == []
    while not other.dead:
        other.switch()


@pytest.mark.parametrize("use", [
    "r.table('t')[b'k']", "list(r.table('t').items())", "r.table('t').get_many([b'k'] * 3)", "r.table('t').first()",
    "r.table('t').get_all(b'k')", "r.table('t').get(big)", "r.table('t').get_many([big])", "t[b'k']",
    "list(t.items())", "t.pop(b'k')", "t.cursor().first()", "t.setdefault(b'k', b'')", "t.put(b'a', big)",
    "t.put_many([(b'a', big)])", "w.table('j', bytes, 'json').put(b'a', 'x' * (80 << 20))", "t.get_many([b'k'])",
    "t.put_many((b'%09d' % n, bytes(1000)) for n in range(200_000))", "t.last()", "t.popitem()",
])  # fmt: skip
def test_no_memory(run, use, monkeypatch):
    # Builds without the global lock set a GiB of addresses aside for objects, below the limit.
    monkeypatch.setenv("MIMALLOC_ARENA_RESERVE", "0")
    run(
        f"""
        import resource
        import zubilo
        env = zubilo.open("s", durability="nosync")
        big = bytearray(200 << 20)
        with env.write() as w:
            w.table("t")[b"k"] = big
        r = env.read()
        w = env.write()
        t = w.table("t")
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (100 << 20), -1))
        try:
            {use}
        except (MemoryError, zubilo.KeyTooLongError):
            failed = True
        else:
            failed = False
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        assert failed
        w.abort()
        with env.write() as w:
            w.table("t")[b"a"] = b"1"
        assert env.check()["problems"] == []
        """
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_in_a_group_commit(env):
    """The child's changes are refused, and functions of other threads do not run there again."""
    pids, inside = [], threading.Event()
    queued = threading.Event()

    def forks(w):
        w.table("t")[b"parent"] = b"1"
        inside.set()
        queued.wait(30)
        pids.append(os.fork())

    def other(w):
        if pids and pids[-1] == 0:
            os._exit(9)
        w.table("t")[b"other"] = b"1"

    def lead():
        try:
            env.update(forks)
        except zubilo.ForkedError:
            code = 0
        except BaseException:
            code = 2
        else:
            code = 3
        if pids[-1] == 0:
            try:
                with env.write() as w:
                    w.abort()
            except zubilo.BusyError:
                code = 4
            os._exit(code)

    first = threading.Thread(target=lead)
    first.start()
    inside.wait(30)
    second = threading.Thread(target=lambda: env.update(other))
    second.start()
    queued.set()
    first.join(60)
    second.join(60)
    _, status = os.waitpid(pids[0], 0)
    assert os.waitstatus_to_exitcode(status) == 0
    with env.read() as r:
        assert sorted(r.table("t")) == [b"other", b"parent"]
    assert env.check()["problems"] == []


def test_a_handler_that_begins_what_the_program_waits_for(env):
    taken, kept = threading.Event(), []
    go = threading.Event()

    def hold():
        with env.write():
            taken.set()
            go.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(30)

    def handler(*_):
        if not kept:
            go.set()
            thread.join(30)
            kept.append(env.write())

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(zubilo.BusyError, match="this thread"):
            env.write(timeout=30)
    finally:
        signal.signal(signal.SIGALRM, old)
    kept[0].abort()


class EvilInt(int):
    def __index__(self):
        raise ZeroDivisionError

    __eq__ = __hash__ = __index__


class EvilText(str):
    def __hash__(self):
        raise ZeroDivisionError

    def __eq__(self, other):
        return True

    def encode(self, *_):
        return None


class EvilBytes(bytes):
    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        raise ZeroDivisionError

    __eq__ = __hash__ = __bytes__ = __getitem__


WEIRD = [
    None, True, -1, 0, 1, 2**31, 2**32, 2**63, 2**64 - 1, 2**64, 10**30, -(2**63), 1.5, float("nan"), float("inf"),
    "", "\ud800", "\0", "x" * 100_000, b"", b"\0", b"x" * 100_000, [], {}, (), object(), int, bytes, [1, 2], print,
    bytearray(5), memoryview(b"abc")[::2], range(3), ..., NotImplemented, type, Exception(), EvilInt(5),
    EvilText("t"), EvilBytes(b"000005"), b"000003", "t", b"t", "u", (b"000001", b"2"),
]  # fmt: skip
SPECIAL = {
    "__getitem__", "__setitem__", "__delitem__", "__contains__", "__eq__", "__lt__", "__and__", "__or__", "__sub__",
    "__xor__", "__len__", "__iter__", "__next__", "__reversed__", "__enter__", "__exit__", "__reduce_ex__", "__call__",
}  # fmt: skip
NAMES = (
    "start stop prefix reverse view key value version raw create adopt duplicates counted integer_keys fixed_values "
    "align release_gil default dtype shape timeout compact sorted count"
).split()


def test_calls_at_random(env):
    """Any method of anything with any arguments gives something or raises."""
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    with env.write() as w:
        w.table("t").update((b"%06d" % n, b"v%d" % n) for n in range(500))
    for _ in range(20):
        with env.read() as r:
            w = env.write(timeout=10)
            pool = [
                env, r, w, r.table("t"), r.table("t").cursor(), w.table("t"), w.table("i", int, (str, bytes)),
                w.table("d", duplicates=True), w.table("c", counted=True), w.table("d").cursor(), w.nested(),
            ]  # fmt: skip
            for _ in range(1000):
                thing = rng.choice(pool[:11] + pool[-30:])
                name = rng.choice([n for n in dir(thing) if n in SPECIAL or not n.startswith("_")])
                # Ends are rare, and files stay in the test's folder.
                if name in ("close", "commit", "abort", "__exit__") and rng.random() < 0.98:
                    continue
                if thing is env and name in ("close", "copy", "__exit__", "update", "write"):
                    continue
                arguments = [rng.choice(WEIRD + pool[-5:]) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]))]
                named = {rng.choice(NAMES): rng.choice(WEIRD) for _ in range(rng.choice([0, 0, 0, 1, 2]))}
                try:
                    given = getattr(thing, name)
                    given = given(*arguments, **named) if callable(given) else given
                except Exception:
                    continue
                if type(given).__module__.startswith("zubilo") or isinstance(given, memoryview):
                    pool.append(given)
            w.abort()
    with env.read() as r:
        assert r.table("t")
    assert env.check()["problems"] == []


def test_numbers_of_open_at_the_edge(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("page_size", "max_size", "max_readers", "reserve", "dirty_limit", "mode", "durability", "verify"):
        for weird in WEIRD:
            try:
                zubilo.open(tmp_path / f"{name}", **{name: weird}).close()
            except Exception:
                pass
            for left in os.listdir(tmp_path):
                os.chmod(tmp_path / left, 0o600)
                os.remove(tmp_path / left)
    for path in WEIRD[15:] + ["/dev/zero", "/dev/null", "/proc/self/mem", "/proc/self/maps", "/", ".", "x" * 300]:
        with pytest.raises(Exception):
            zubilo.open(path, create=False)


def test_arrays_that_are_not_plain(env):
    np = pytest.importorskip("numpy")
    with env.write() as w:
        t = w.table("t", int, zubilo.array("f8", (2, 3)))
        whole = np.arange(24.0).reshape(4, 6)
        t[1] = whole[::2, ::2]
        t[2] = whole[:2, :3].T.copy().T
        t[3] = [[1, 2, 3], [4, 5, np.nan]]
        t[4] = np.full((2, 3), 7.0)[::-1, ::-1]
        for wrong in (np.zeros((3, 2)), np.zeros((2, 3), "f4"), np.zeros(6), 5.0, np.zeros((2, 3), ">f8"), None, "x"):
            with pytest.raises((zubilo.Error, TypeError, ValueError)):
                t[5] = wrong
        s = w.table("s", int, zubilo.array("f8", ()))
        s[1] = np.float64(2.5)
        e = w.table("e", int, zubilo.array("i4"))
        e[1] = np.zeros(0, "i4")
        w.table("raw").update({b"a": b"x" * 17, b"b": b"12345678"})
    with env.read() as r:
        t = r.table("t")
        assert (t[1] == whole[::2, ::2]).all() and (t[2] == whole[:2, :3]).all() and np.isnan(t[3][1, 2])
        assert (t[4] == 7).all() and r.table("s")[1] == 2.5 and len(r.table("e")[1]) == 0
        raw = r.table("raw")
        for arguments in (("f8",), ("f8", (2**32, 2**32)), ("f8", (2**61, 8)), ("O",), ("V0",), ("f8", -1), ("f8", (2, 2))):
            with pytest.raises((zubilo.Error, TypeError, ValueError, OverflowError)):
                raw.array(b"a", *arguments)
        assert raw.array(b"b", "f8").shape == (1,)
        with pytest.raises(ValueError):
            raw.array(b"b", "u1").flags.writeable = True


def test_recursion_through_calls_back(env):
    """Calls that call themselves end with `RecursionError`, before the stack does."""
    with env.write() as w:
        w.table("t")[b"a"] = b"1"
    with env.read() as r:
        t = r.table("t")

        def keys():
            t.get_many(keys())
            yield b"a"

        class Same:
            def __eq__(self, other):
                return self in t.values()

            __hash__ = None

        for call in (
            lambda: t.get_many(keys()),
            lambda: Same() in t.values(),
            lambda: check_in_check(env),
        ):
            with pytest.raises(RecursionError):
                call()


def check_in_check(env):
    env.check(progress=lambda *_: check_in_check(env))


def test_small_stacks(env, tmp_path):
    size = threading.stack_size(64 << 10)
    try:
        done = []

        def work():
            with env.write() as w:
                w.table("t").update((b"%06d" % n, b"x" * 3000) for n in range(3000))
            env.copy(tmp_path / "copy", compact=True)
            with env.read() as r:
                assert len(list(r.table("t").items())) == 3000
            done.append(env.check()["problems"])

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(120)
        assert done == [[]]
    finally:
        threading.stack_size(size)
