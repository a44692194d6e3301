"""Forked and spawned processes, pickles, asyncio."""

import asyncio
import concurrent.futures
import gc
import multiprocessing
import os
import pickle
import sys
import time

import pytest

import zubilo


def in_child(function):
    """Runs a function in a forked child; what it gives, as text."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            result = function()
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        os.write(write, repr(result).encode()[:4000])
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(pid, 0)
    text = os.read(read, 5000).decode()
    os.close(read)
    assert status == 0, f"the child ended with {status}: {text}"
    return text


def test_an_inherited_handle_opens_itself_again(fruit):
    def child():
        with fruit.read() as r:
            before = r.table("fruit")[b"apple"]
        with fruit.write() as w:
            w.table("fruit")[b"child"] = b"1"
        fruit.update(lambda w: w.table("fruit").put(b"group", b"2"))
        fruit.close()
        return before

    assert in_child(child) == "b'red'"
    with fruit.read() as r:
        assert r.table("fruit")[b"child"] == b"1" and r.table("fruit")[b"group"] == b"2"
    assert fruit.check()["problems"] == []


def test_inherited_transactions_raise(fruit):
    with fruit.read() as r:
        t = r.table("fruit")
        c, it = t.cursor(), iter(t.items())
        next(it), c.first()
        view = t.view(b"apple")

        def child():
            raised = []
            for use in [
                lambda: t[b"apple"], lambda: len(t), lambda: list(t), lambda: next(it), lambda: c.next(),
                lambda: r.table("fruit"), lambda: t.get_many([b"apple"]), lambda: t.view(b"apple"),
            ]:  # fmt: skip
                try:
                    raised.append(use())
                except zubilo.ForkedError:
                    raised.append(0)
            r.close()
            with fruit.read() as mine:
                raised.append(mine.table("fruit")[b"apple"])
            return raised

        assert in_child(child) == "[0, 0, 0, 0, 0, 0, 0, 0, b'red']"
        assert t[b"apple"] == b"red" and bytes(view) == b"red" and next(it)[0] == b"banana"


def test_a_fork_in_the_middle_of_a_write_transaction(fruit):
    with fruit.write() as w:
        t = w.table("fruit")
        t[b"date"] = b"brown"

        def child():
            raised = []
            for use in [lambda: t[b"apple"], lambda: t.put(b"a", b"b"), w.commit, lambda: w.table("x")]:
                try:
                    raised.append(use())
                except zubilo.ForkedError:
                    raised.append(0)
            w.abort()
            try:
                fruit.write(timeout=0.05)
            except zubilo.BusyError:
                raised.append("busy")
            return raised

        assert in_child(child) == "[0, 0, 0, 0, 'busy']"
        t[b"elder"] = b"black"
    with fruit.read() as r:
        assert len(r.table("fruit")) == 5
    assert fruit.check()["problems"] == []


def test_a_child_that_ends_the_usual_way(run):
    """Its finalizers run with everything that it inherited."""
    run(
        """
        import os, sys
        import zubilo
        env = zubilo.open("s", durability="lazy")
        with env.write() as w:
            w.table("t")[b"a"] = b"1"
        r = env.read()
        t = r.table("t")
        view = t.view(b"a")
        part = view[:]
        w = env.write()
        table = w.table("t")
        pid = os.fork()
        if pid == 0:
            del w, table
            sys.exit(7)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 7, status
        table[b"b"] = b"2"
        w.commit()
        assert bytes(part) == b"1"
        assert env.check()["problems"] == []
        """
    )


def test_arrays_in_a_forked_child(tmp_path):
    """The parent gives the snapshot up and the file becomes shorter: the child has what it had."""
    np = pytest.importorskip("numpy")
    env = zubilo.open(tmp_path / "s")
    rows, size = 40, 1 << 20
    with env.write() as w:
        t = w.table("t", int, zubilo.array("u1"))
        for n in range(rows):
            t[n] = np.full(size, n, "u1")
    r = env.read()
    array = r.table("t")[rows - 1]
    view = r.table("t").view(rows - 2)
    part = view[10:20]
    go_read, go_write = os.pipe()

    pid = os.fork()
    if pid == 0:
        os.close(go_write)
        try:
            os.read(go_read, 1)
            right = (array == rows - 1).all() and bytes(part) == bytes([rows - 2]) * 10
            try:
                bytes(view)
            except ValueError:
                os._exit(0 if right else 1)
            os._exit(2)
        finally:
            os._exit(3)
    del array, part, view
    r.close()
    gc.collect()
    with env.write() as w:
        w.drop("t")
    for n in range(30):
        with env.write() as w:
            w.table("small")[b"k"] = b"%d" % n
    assert os.path.getsize(tmp_path / "s") < rows * size / 2, "the file became shorter"
    os.write(go_write, b"x")
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"the child ended with {status}"
    env.close()


def test_a_pickled_handle(fruit):
    again = pickle.loads(pickle.dumps(fruit))
    with again.read() as r:
        assert r.table("fruit")[b"apple"] == b"red"
    again.close()


def test_a_pickle_makes_no_store(path):
    env = zubilo.open(path)
    text = pickle.dumps(env)
    env.close()
    for name in os.listdir(path.parent):
        os.remove(path.parent / name)
    with pytest.raises(FileNotFoundError):
        pickle.loads(text)


class Dataset:
    """What a data loader reads: as a data set of PyTorch is."""

    def __init__(self, env):
        self.env = env

    def __len__(self):
        with self.env.read() as r:
            return len(r.table("t"))

    def __getitem__(self, index):
        with self.env.read() as r:
            return int(r.table("t")[index].sum())


def sums(dataset, indices):
    return [dataset[index] for index in indices]


@pytest.fixture
def dataset(path):
    np = pytest.importorskip("numpy")
    env = zubilo.open(path)
    with env.write() as w:
        w.table("t", int, zubilo.array("i8", 100)).update((n, np.full(100, n)) for n in range(200))
    yield Dataset(env)
    env.close()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers(dataset, method):
    assert dataset[3] == 300
    context = multiprocessing.get_context(method)
    with concurrent.futures.ProcessPoolExecutor(4, mp_context=context) as pool:
        parts = pool.map(sums, [dataset] * 8, [range(start, 200, 8) for start in range(8)])
        assert sum(map(sum, parts)) == 100 * sum(range(200))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_data_loader_of_pytorch(dataset, method):
    torch_data = pytest.importorskip("torch.utils.data")
    with dataset.env.read() as r:
        assert len(r.table("t")) == 200
        loader = torch_data.DataLoader(dataset, 16, num_workers=4, multiprocessing_context=method)
        assert sum(int(batch.sum()) for batch in loader) == 100 * sum(range(200))


def test_asyncio(env):
    """The recipe of `docs/python.md`."""

    async def main():
        ticks = 0

        async def clock():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        clock_task = asyncio.create_task(clock())

        async def put(n):
            await asyncio.to_thread(env.update, lambda w: w.table("t").put(b"%03d" % n, b"x"))

        await asyncio.gather(*(put(n) for n in range(100)))

        def change():
            with env.write() as w:
                time.sleep(0.1)
                w.table("t")[b"slow"] = b"y"

        before = ticks
        await asyncio.to_thread(change)
        assert ticks > before + 10, "the loop went on"
        with env.read() as r:
            assert len(r.table("t")) == 101
        clock_task.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_beside_each_other(path, method):
    context = multiprocessing.get_context(method)
    with zubilo.open(path) as env:
        with env.write() as w:
            w.table("t", str, int)["n"] = 0
        workers = [context.Process(target=add, args=(env, 50)) for _ in range(3)]
        for worker in workers:
            worker.start()
        add(env, 50)
        for worker in workers:
            worker.join(120)
        assert [worker.exitcode for worker in workers] == [0, 0, 0]
        with env.read() as r:
            assert r.table("t")["n"] == 200


def add(env, times):
    for _ in range(times):
        with env.write() as w:
            t = w.table("t", str, int)
            t["n"] += 1


def test_the_command_line(fruit, path):
    import subprocess

    def command(*arguments):
        done = subprocess.run([sys.executable, "-m", "zubilo", *arguments], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    code, out, _ = command("get", str(path), "apple", "--table", "fruit")
    assert (code, out) == (0, "red\n"), (code, out, _)
    assert command("tables", str(path))[0] == 0
    assert command("--version")[1].split()[1] == zubilo.__version__
    assert command("nonsense")[0] == 2
    assert command("chk", str(path))[0] == 0
    assert command("get", str(path), "nothing", "--table", "fruit")[0] == 1
