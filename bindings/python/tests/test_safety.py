"""No sequence of calls crashes the interpreter: what is closed, of another thread, of another process, in the
middle of something, at the end of everything."""

import copy
import gc
import os
import pickle
import signal
import sys
import threading
import time
import weakref

import pytest

import zubilo

HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


def in_thread(function):
    """What a function gives or raises in another thread."""
    result = []

    def call():
        try:
            result.append(function())
        except BaseException as error:
            result.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it hangs"
    return result[0]


def test_everything_of_a_closed_transaction_raises(fruit):
    r = fruit.read()
    t = r.table("fruit")
    c, it, keys, view = t.cursor(), iter(t.items()), t.keys(), t.view(b"apple")
    c.first(), next(it)
    r.close()
    r.close()
    uses = [
        lambda: t[b"apple"], lambda: t.get(b"apple"), lambda: b"apple" in t, lambda: len(t), lambda: bool(t),
        lambda: list(t), lambda: t.first(), lambda: t.items(), lambda: t.get_many([b"apple"]),
        lambda: t.view(b"apple"), lambda: t.cursor(), lambda: t.stats(), lambda: c.next(), lambda: c.current(),
        lambda: next(it), lambda: list(keys), lambda: len(keys), lambda: r.table("fruit"), lambda: r.tables(),
        lambda: r.id, lambda: r.__enter__(), lambda: t.options, lambda: list(t[b"a":b"b"]), lambda: t == {},
        lambda: t.get_many_into([b"apple"], bytearray(3)), lambda: t.count(b"a"), lambda: view[0],
        lambda: view.tobytes(), lambda: t.array(b"apple", "u1"),
    ]  # fmt: skip
    for number, use in enumerate(uses):
        with pytest.raises(ValueError):
            print(number, use())
    assert r.closed and "closed" in repr(r) and "closed" in repr(t) and repr(keys) and t.name == b"fruit"


def test_everything_of_an_ended_write_transaction_raises(env):
    w = env.write()
    t = w.table("t")
    t[b"a"] = b"1"
    c, it = t.cursor(), iter(t)
    w.commit()
    for use in [
        lambda: t[b"a"], lambda: t.__setitem__(b"b", b""), lambda: c.next(), lambda: next(it), lambda: w.table("t"),
        lambda: w.commit(), lambda: w.tables(), lambda: t.clear(), lambda: t.put_many([(b"a", b"")]),
        lambda: w.nested().__enter__(), lambda: w.id, lambda: t.pop(b"a"), lambda: t.next_sequence(),
    ]:  # fmt: skip
        with pytest.raises(zubilo.ClosedError):
            use()
    w.abort()


def test_a_closed_store_ends_its_transactions(path):
    env = zubilo.open(path)
    with env.write() as w:
        w.table("t")[b"a"] = b"1"
    r = env.read()
    view = r.table("t").view(b"a")
    env.close()
    env.close()
    assert r.closed and env.closed
    for use in [lambda: view[0], lambda: r.tables(), env.read, env.write, env.tables, env.info, env.check]:
        with pytest.raises(ValueError):
            use()
    with pytest.raises(zubilo.ClosedError):
        with env:
            pass
    with pytest.raises(zubilo.ClosedError):
        pickle.dumps(env)


def test_a_view_keeps_nothing_when_it_is_gone(fruit):
    with fruit.read() as r:
        t = r.table("fruit")
        for _ in range(10_000):
            t.view(b"apple")
        kept = [t.view(b"apple") for _ in range(500)]
    for view in kept:
        with pytest.raises(ValueError):
            view[0]
    assert fruit.info()["readers"] == []


def test_what_is_derived_from_a_view_keeps_the_snapshot(fruit):
    r = fruit.read()
    view = r.table("fruit").view(b"banana")
    part = view[1:3]
    r.close()
    with pytest.raises(ValueError):
        view.obj and view[0]
    assert len(fruit.info()["readers"]) == 1
    for n in range(20):
        with fruit.write() as w:
            w.table("fruit")[b"banana"] = b"%06d" % n
    assert bytes(part) == b"el"
    del part, view
    gc.collect()
    assert fruit.info()["readers"] == []


def test_views_in_cycles(fruit):
    class Node:
        pass

    node = Node()
    r = fruit.read()
    node.view, node.self, node.r = r.table("fruit").view(b"apple")[:], node, r
    gone = weakref.ref(node)
    del node, r
    gc.collect()
    assert gone() is None and fruit.info()["readers"] == []


def test_views_are_read_only(fruit):
    with fruit.read() as r:
        view = r.table("fruit").view(b"apple")
        assert view.readonly
        with pytest.raises(TypeError):
            view[0] = 1
        with pytest.raises(TypeError):
            type(view.obj)()
    with fruit.write() as w:
        for use in (lambda t: t.view(b"apple"), lambda t: t.array(b"apple", "u1"), lambda t: t.items(view=True)):
            with pytest.raises(zubilo.InvalidError):
                use(w.table("fruit"))


def test_nothing_can_be_made_without_a_store():
    for cls in [zubilo.Env, zubilo.ReadTxn, zubilo.WriteTxn, zubilo.Table, zubilo.WriteTable, zubilo.Cursor]:
        for make in (cls, lambda: cls.__new__(cls), lambda: object.__new__(cls)):
            with pytest.raises(TypeError):
                make()

    class Mine(zubilo.Table):
        pass

    with pytest.raises(TypeError):
        Mine()


def test_transactions_do_not_travel(fruit):
    with fruit.read() as r:
        for thing in (r, r.table("fruit"), r.table("fruit").cursor(), iter(r.table("fruit"))):
            with pytest.raises(TypeError):
                pickle.dumps(thing)
    with fruit.write() as w:
        with pytest.raises(TypeError):
            pickle.dumps(w)


def test_a_write_transaction_belongs_to_its_thread(env):
    with env.write() as w:
        t = w.table("t")
        t[b"a"] = b"1"
        it, c = iter(t), t.cursor()
        for use in [
            lambda: t[b"a"], lambda: t.put(b"b", b""), lambda: w.commit(), lambda: w.abort(), lambda: next(it),
            lambda: c.next(), lambda: w.table("t"), lambda: w.nested().__enter__(), lambda: t.clear(),
            lambda: w.__exit__(None, None, None), lambda: len(t), lambda: w.nested().__exit__(None, None, None),
        ]:  # fmt: skip
            assert isinstance(in_thread(use), zubilo.ThreadError)
        assert in_thread(lambda: repr(w)) and in_thread(lambda: repr(t)) and not in_thread(lambda: w.closed)
        t[b"c"] = b"2"
    assert len(env.read().table("t")) == 2


def test_a_write_transaction_dropped_elsewhere_is_aborted_by_its_thread(env):
    box = [env.write()]
    box[0].table("t")[b"a"] = b"1"
    in_thread(lambda: box.clear())
    # Without the global lock an object is freed in the thread that made it, which here has ended it at once.
    if HAS_GIL:
        assert isinstance(in_thread(lambda: env.write(timeout=0.05)), zubilo.BusyError)
    with env.write() as w:
        assert w.tables() == []


def test_a_thread_that_ends_in_a_write_transaction(env):
    box = []

    def begin():
        box.append(env.write())
        box[0].table("t")[b"a"] = b"1"

    in_thread(begin)
    with env.write(timeout=5) as w:
        assert w.tables() == []
    with pytest.raises(zubilo.ThreadError):
        box[0].commit()
    box.clear()


def test_two_write_transactions_of_one_thread(env):
    with env.write():
        for begin in (env.write, lambda: env.write(timeout=0)):
            with pytest.raises(zubilo.BusyError, match="this thread"):
                begin()
        with pytest.raises(zubilo.BusyError):
            env.update(lambda w: None)
    w = env.write()
    del w
    env.write().abort()


def test_waiting_for_another_writer(env):
    with env.write():
        start = time.monotonic()
        assert isinstance(in_thread(lambda: env.write(timeout=0.1)), zubilo.BusyError)
        assert time.monotonic() - start >= 0.1
        for wrong in (-1, float("nan")):
            assert isinstance(in_thread(lambda wrong=wrong: env.write(timeout=wrong)), zubilo.InvalidError)


def test_closures_of_a_group_commit(env):
    kept = []

    def fails(w):
        kept.append((w, w.table("t")))
        w.table("t")[b"lost"] = b""
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        env.update(fails)
    w, t = kept[0]
    for use in (lambda: w.table("t"), lambda: t[b"a"], lambda: w.tables()):
        with pytest.raises(zubilo.ClosedError):
            use()

    def reenters(w):
        for again in (lambda: env.update(lambda w: None), env.write):
            with pytest.raises(zubilo.BusyError):
                again()
        with pytest.raises(zubilo.InvalidError):
            w.commit()
        w.abort()
        with pytest.raises(zubilo.ClosedError):
            w.table("t")
        return "done"

    assert env.update(reenters) == "done"
    assert env.tables() == []
    with pytest.raises(TypeError):
        env.update(5)
    with pytest.raises(SystemExit):
        env.update(lambda w: sys.exit(3))
    assert env.update(lambda w: w) is not None


def test_many_threads_share_commits(env):
    failed = []

    def work(number):
        for i in range(100):
            try:
                env.update(lambda w, i=i: w.table("t").put(b"%d-%d" % (number, i), b"") if i % 10 else 1 / 0)
            except ZeroDivisionError:
                failed.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(failed) == 40 and len(env.read().table("t")) == 360
    assert env.info()["newest"] <= 2 + 400


def test_a_table_that_changes_under_its_iterator(env):
    with env.write() as w:
        t = w.table("t")
        t.update((b"%04d" % n, b"") for n in range(1000))
        seen = []
        for key in t:
            seen.append(key)
            t.delete(key)
            if len(seen) % 100 == 0:
                t[b"%04d+" % len(seen)] = b"ahead"
        assert seen == sorted(seen) and len(set(seen)) == len(seen) == 1010 and len(t) == 0
        t.update((b"%04d" % n, b"") for n in range(1000))
        backwards = []
        for key in reversed(t):
            backwards.append(key)
            t[key + b"behind"] = b""
        assert backwards == sorted(backwards, reverse=True) and len(backwards) == 1000
        it = iter(t)
        next(it)
        t.clear()
        assert next(it, "end") == "end" and next(it, "end") == "end"
        it = iter(t)
        w.drop("t")
        with pytest.raises(zubilo.NoSuchTableError):
            next(it)


def test_many_values_that_change_under_an_iterator(env):
    with env.write() as w:
        t = w.table("t", bytes, int, duplicates=True)
        for n in range(600):
            t.add(b"k", n)
        seen = []
        for _, value in t.items():
            seen.append(value)
            t.remove(b"k", value)
            t.add(b"k", value - 10_000)
        assert seen == list(range(600))


def test_iterators_that_call_back(env):
    """What Python runs in the middle of a call may use the same transaction."""
    with env.write() as w:
        t = w.table("t")

        def pairs():
            for n in range(50_000):
                if n % 10_000 == 0:
                    t[b"inner%d" % n] = b""
                    list(t.keys(b"inner"))
                yield b"%d" % n, b""

        assert t.put_many(pairs()) == 50_000

        class Key:
            def __iter__(self):
                w.abort()
                return iter([(b"a", b"b")])

        with pytest.raises(zubilo.ClosedError):
            t.put_many(Key())

    class Closing:
        def __init__(self, r):
            self.r = r

        def __index__(self):
            self.r.close()
            return 1

    with env.write() as w:
        w.table("n", int, int)[1] = 5
    r = env.read()
    with pytest.raises(ValueError):
        r.table("n")[Closing(r)]


def test_a_generator_that_closes_what_it_is_read_by(fruit):
    r = fruit.read()
    t = r.table("fruit")

    def keys():
        yield b"apple"
        r.close()

    with pytest.raises(zubilo.ClosedError):
        t.get_many(keys())


def test_readers_in_many_threads_while_their_transaction_is_closed(env):
    with env.write() as w:
        w.table("t").update((b"%06d" % n, b"x" * 50) for n in range(20_000))
    keys = [b"%06d" % n for n in range(0, 20_000, 7)]
    for _ in range(10):
        r = env.read()
        t = r.table("t")
        slow = r.table("t", release_gil=True)
        works = [
            lambda: [t[key] for key in keys], lambda: t.get_many(keys), lambda: list(t.items()),
            lambda: [slow[key] for key in keys], lambda: [t.view(key)[0] for key in keys],
        ]  # fmt: skip
        wrong = []

        def work(function, wrong=wrong):
            try:
                while True:
                    function()
            except (zubilo.ClosedError, ValueError):
                pass
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(function,)) for function in works]
        for thread in threads:
            thread.start()
        time.sleep(0.02)
        r.close()
        with env.write() as w:
            w.table("t").update((key, b"y" * 60) for key in keys)
        for thread in threads:
            thread.join(60)
        assert not wrong
    gc.collect()
    assert env.info()["readers"] == []


def test_one_iterator_in_many_threads(env):
    with env.write() as w:
        w.table("t").update((b"%06d" % n, b"") for n in range(50_000))
    with env.read() as r:
        it = iter(r.table("t").items())
        seen, lock = [], threading.Lock()

        def work():
            mine = []
            while True:
                try:
                    mine.append(next(it)[0])
                except zubilo.BusyError:
                    continue
                except StopIteration:
                    break
            with lock:
                seen.extend(mine)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert sorted(seen) == [b"%06d" % n for n in range(50_000)]


def test_what_can_be_done_with_an_iterator(fruit):
    """Its class is made by hand: what Python does with every object must be refused or work."""
    with fruit.read() as r:
        it = iter(r.table("fruit").items())
        cls = type(it)
        for wrong in (
            cls, lambda: object.__new__(cls), lambda: copy.copy(it), lambda: pickle.dumps(it), lambda: weakref.ref(it),
            lambda: type("Sub", (cls,), {}), lambda: setattr(cls, "__next__", None), lambda: cls.__next__(1),
            lambda: setattr(it, "__class__", int), lambda: setattr(it, "x", 1),
        ):  # fmt: skip
            with pytest.raises((TypeError, AttributeError)):
                wrong()
        assert iter(it) is it and it.__next__() == (b"apple", b"red") and cls.__doc__
        del it, cls
        gc.collect()
        for part in ("keys", "values", "items"):
            it = iter(getattr(r.table("fruit"), part)())
            assert len(list(it)) == 3 and next(it, None) is None and next(it, None) is None


def test_pairs_that_are_kept_do_not_change(fruit):
    with fruit.read() as r:
        t = r.table("fruit")
        kept = []
        for pair in t.items():
            kept.append(pair)
        assert kept == sorted(dict(t).items())
        it = iter(t.items())
        first = next(it)
        second = next(it)
        assert first == (b"apple", b"red") and second == (b"banana", b"yellow")


def test_ctrl_c_ends_long_work(tmp_path, run):
    run(
        """
        import os, signal, threading, time, sys
        import zubilo
        env = zubilo.open("s", durability="nosync")
        with env.write() as w:
            w.table("t").put_many(((b"%08d" % n, b"x" * 100) for n in range(300_000)), sorted=True)

        # The handler raises once each time that the main thread arms it: a second exception in the middle
        # of the first one's `except` would leave the sender at work for ever.
        armed = [False]

        def handler(*_):
            if armed[0]:
                armed[0] = False
                raise KeyboardInterrupt

        signal.signal(signal.SIGINT, handler)

        def unraisable(what):
            # Python drops what is raised inside of a finalizer: then the next signal counts.
            armed[0] = issubclass(what.exc_type, KeyboardInterrupt)

        sys.unraisablehook = unraisable

        def interrupted(work):
            heard = threading.Event()

            def send():
                while not heard.wait(0.02):
                    os.kill(os.getpid(), signal.SIGINT)

            sender = threading.Thread(target=send)
            sender.start()
            try:
                armed[0] = True
                while True:
                    work()
            except KeyboardInterrupt:
                heard.set()
            sender.join()

        def copy():
            env.copy("copy")
            os.remove("copy")

        with env.read() as r:
            t = r.table("t")
            interrupted(lambda: len(t.keys(b"0")))
            interrupted(lambda: sum(1 for _ in t.items()))
            interrupted(env.check)
            interrupted(copy)
            # It may have been whole already.
            if os.path.exists("copy"):
                with zubilo.open("copy", create=False) as whole:
                    assert whole.check()["problems"] == []
        with env.write() as w:
            interrupted(lambda: w.table("u").put_many((b"%08d" % n, b"") for n in range(100_000)))
        holder = threading.Event()
        done = threading.Event()
        def hold():
            with env.write():
                holder.set()
                done.wait(30)
        thread = threading.Thread(target=hold)
        thread.start()
        holder.wait()
        interrupted(env.write)
        done.set()
        thread.join()
        env.close()
        """
    )


def test_progress_functions(env, tmp_path):
    with env.write() as w:
        w.table("t").put_many((b"%08d" % n, b"x" * 100) for n in range(50_000))
    told = []
    env.copy(tmp_path / "a", progress=lambda done, total: told.append((done, total)))
    assert told and told[-1][0] == told[-1][1]
    report = env.check(progress=lambda done, total: told.append((done, total)))
    assert report["problems"] == [] and report["entries"] == 50_000
    with pytest.raises(zubilo.StoppedError):
        env.copy(tmp_path / "b", progress=lambda done, total: False)
    with pytest.raises(ZeroDivisionError):
        env.copy(tmp_path / "b", compact=True, progress=lambda done, total: 1 / 0)
    assert not (tmp_path / "b").exists()
    with pytest.raises(FileExistsError):
        env.copy(tmp_path / "a")
    with zubilo.open(tmp_path / "a", create=False) as copy:
        assert len(copy.read().table("t")) == 50_000


def test_the_end_of_the_interpreter(run):
    for end in ["", "sys.exit(0)", "os._exit(0)", "gc.collect()", "env.close()", "del env"]:
        run(
            f"""
            import gc, os, sys, threading, warnings
            import zubilo
            env = zubilo.open("s", durability="lazy")
            with env.write() as w:
                w.table("t").update({{b"a": b"1", b"b": b"2"}})
            class Late:
                def __init__(self, *things): self.things = things
                def __del__(self):
                    for thing in self.things:
                        try:
                            len(thing)
                        except Exception:
                            pass
            r = env.read()
            t = r.table("t")
            view = t.view(b"a")
            late = Late(t, view, t.items(), env)
            late.self = late
            part = view[:]
            it = iter(t.items()); next(it)
            held = env.write()
            table = held.table("t")
            table[b"c"] = b"3"
            more = Late(table, held)
            sys.modules["keep"] = [late, more, part]
            {end}
            """
        )


def test_threads_that_the_end_overtakes(run):
    run(
        """
        import threading, time
        import zubilo
        env = zubilo.open("s", durability="nosync")
        with env.write() as w:
            w.table("t").update((b"%06d" % n, b"x" * 100) for n in range(50_000))
        def reads():
            with env.read() as r:
                t = r.table("t", release_gil=True)
                keys = [b"%06d" % n for n in range(1000)]
                while True:
                    t.get_many(keys)
                    for _ in t.items(): pass
                    t[b"000001"]
        def writes():
            while True:
                with env.write() as w:
                    w.table("u").put_many((b"%d" % n, b"") for n in range(1000))
        def updates():
            while True:
                env.update(lambda w: w.table("v").put(b"a", b"b"))
        for work in (reads, reads, writes, updates, updates):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
        """
    )


def test_subinterpreters_are_refused(run):
    run(
        """
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        import zubilo
        other = interpreters.create()
        program = '''
        try:
            import zubilo
        except ImportError as error:
            pass
        else:
            raise SystemExit("imported")
        '''
        import textwrap
        failed = interpreters.run_string(other, textwrap.dedent(program))
        assert failed is None, failed
        """
    )


def test_signals_in_the_middle(fruit):
    hits = []

    def handler(*_):
        with fruit.read() as r:
            hits.append(r.table("fruit")[b"apple"])

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        with fruit.write() as w:
            t = w.table("numbers")
            t.put_many((b"%d" % n, b"") for n in range(30_000))
            for n in range(3000):
                t[b"%d" % n] = b"again"
            assert sum(1 for _ in t) == 30_000
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert hits and set(hits) == {b"red"}


def test_handles_of_one_store_in_one_process(path):
    a = zubilo.open(path)
    b = zubilo.open(os.fspath(path).encode())
    with a.write() as w:
        w.table("t")[b"a"] = b"1"
        with pytest.raises(zubilo.BusyError):
            b.write()
    a.close()
    with b.read() as r:
        assert r.table("t")[b"a"] == b"1"
    b.close()


@pytest.mark.skipif(HAS_GIL, reason="needs a build without GIL")
def test_the_extension_does_not_bring_the_lock_back(run, monkeypatch):
    monkeypatch.delenv("PYTHON_GIL", raising=False)
    run("import sys, zubilo, warnings; assert not sys._is_gil_enabled()")


@pytest.mark.skipif(HAS_GIL, reason="needs a build without GIL")
def test_threads_without_the_global_lock(env):
    assert not sys._is_gil_enabled(), "run the tests with PYTHON_GIL=0: a package they use may bring the lock back"
    with env.write() as w:
        w.table("t").update((b"%06d" % n, b"%d" % n) for n in range(10_000))
    stop = time.monotonic() + 10
    shared = [env.read()]
    wrong = []

    def work(seed):
        while time.monotonic() < stop:
            try:
                r = shared[0]
                t = r.table("t")
                assert t[b"%06d" % seed] == b"%d" % seed
                view = t.view(b"%06d" % seed)
                assert sum(1 for _ in t.keys(b"005")) == 5000
                assert bytes(view) == b"%d" % seed
                if seed == 1:
                    shared[0] = env.read()
                    r.close()
                if seed == 2:
                    env.update(lambda w: w.table("u").put(b"a", b"b"))
            except ValueError:
                pass
            except BaseException as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
