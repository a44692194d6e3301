"""A state machine: the whole interface of tables against `sortedcontainers.SortedDict`."""

import shutil
import tempfile

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sortedcontainers import SortedDict

import zubilo

KEYS = st.binary(max_size=3) | st.sampled_from([b"", b"\xff", b"\xff\xff", b"k" * 900])
VALUES = st.binary(max_size=20) | st.integers(0, 20_000).map(lambda n: b"v" * n)
EDGES = st.none() | KEYS


class Store(RuleBasedStateMachine):
    """A store with one write transaction at a time, and snapshots that stay open."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.env = zubilo.open(self.folder + "/store", durability="nosync")
        with self.env.write() as w:
            w.table("t")
        self.committed = SortedDict()
        self.model = SortedDict()
        self.w = None
        self.snapshots = []

    def teardown(self):
        assert self.env.check()["problems"] == []
        self.env.close()
        shutil.rmtree(self.folder)

    @precondition(lambda self: self.w is None)
    @rule()
    def begin(self):
        self.w = self.env.write()
        self.t = self.w.table("t")

    def writing(self):
        return self.w is not None

    @precondition(writing)
    @rule()
    def commit(self):
        self.w.commit()
        self.w, self.committed = None, self.model.copy()

    @precondition(writing)
    @rule()
    def abort(self):
        self.w.abort()
        self.w, self.model = None, self.committed.copy()

    @precondition(writing)
    @rule(data=st.data())
    def undone(self, data):
        """A nested level that fails."""
        try:
            with self.w.nested():
                self.t.update(data.draw(st.dictionaries(KEYS, VALUES, max_size=5)))
                if self.t:
                    self.t.popitem()
                raise LookupError
        except LookupError:
            pass

    @precondition(writing)
    @rule(key=KEYS, value=VALUES)
    def put(self, key, value):
        self.t[key] = self.model[key] = value

    @precondition(writing)
    @rule(key=KEYS, value=VALUES)
    def setdefault(self, key, value):
        assert self.t.setdefault(key, value) == self.model.setdefault(key, value)

    @precondition(writing)
    @rule(key=KEYS, value=VALUES)
    def insert(self, key, value):
        assert self.t.insert(key, value) == (key not in self.model)
        self.model.setdefault(key, value)

    @precondition(writing)
    @rule(key=KEYS)
    def delete(self, key):
        try:
            del self.t[key]
        except KeyError:
            assert key not in self.model
        else:
            del self.model[key]

    @precondition(writing)
    @rule(key=KEYS)
    def pop(self, key):
        assert self.t.pop(key, None) == self.model.pop(key, None)

    @precondition(lambda self: self.w is not None and self.model)
    @rule()
    def popitem(self):
        assert self.t.popitem() == self.model.popitem()

    @precondition(writing)
    @rule(pairs=st.lists(st.tuples(KEYS, VALUES), max_size=30), by_order=st.booleans())
    def put_many(self, pairs, by_order):
        self.t.put_many(pairs, sorted=by_order)
        self.model.update(pairs)

    @precondition(writing)
    @rule(prefix=st.binary(min_size=1, max_size=2))
    def delete_prefix(self, prefix):
        gone = [key for key in self.model if key.startswith(prefix)]
        assert self.t.delete_range(prefix=prefix) == len(gone)
        for key in gone:
            del self.model[key]

    @precondition(writing)
    @rule(start=KEYS, stop=EDGES)
    def delete_range(self, start, stop):
        gone = [key for key in self.model if start <= key and (stop is None or key < stop)]
        assert self.t.delete_range(start, stop) == len(gone)
        for key in gone:
            del self.model[key]

    @precondition(writing)
    @rule(seed=st.integers(0, 5))
    def change_while_iterating(self, seed):
        """Removes what it passes; adds keys in front, which it then does not pass."""
        seen = []
        for i, (key, value) in enumerate(self.t.items()):
            assert self.model[key] == value
            seen.append(key)
            if i % 6 == seed:
                del self.t[key], self.model[key]
        assert seen == sorted(seen)

    @rule(key=KEYS, value=VALUES)
    def update_by_group(self, key, value):
        if self.w is None:
            self.env.update(lambda w: w.table("t").put(key, value))
            self.model[key] = self.committed[key] = value

    @precondition(lambda self: len(self.snapshots) < 4)
    @rule()
    def snapshot(self):
        r = self.env.read()
        t = r.table("t")
        views = [(t.view(key), self.committed[key]) for key in list(self.committed)[:3]]
        self.snapshots.append((r, t, self.committed.copy(), views, t.cursor()))

    @precondition(lambda self: self.snapshots)
    @rule(index=st.integers(0, 3))
    def close_snapshot(self, index):
        r, t, _, views, _ = self.snapshots.pop(index % len(self.snapshots))
        r.close()
        for view, _ in views:
            with pytest.raises(ValueError):
                bytes(view)
        with pytest.raises(zubilo.ClosedError):
            len(t)

    def readable(self):
        """Tables and what they hold."""
        for _, t, model, _, _ in self.snapshots:
            yield t, model
        if self.w is not None:
            yield self.t, self.model

    @rule(start=EDGES, stop=EDGES, reverse=st.booleans())
    def ranges(self, start, stop, reverse):
        for t, model in self.readable():
            keys = [key for key in model if (start is None or start <= key) and (stop is None or key < stop)]
            if reverse:
                keys.reverse()
            assert list(t.keys(start, stop, reverse=reverse)) == keys
            assert list(t.items(start, stop, reverse=reverse)) == [(key, model[key]) for key in keys]
            assert len(t.values(start, stop)) == len(keys)

    @rule(prefix=st.binary(max_size=2))
    def prefixes(self, prefix):
        for t, model in self.readable():
            assert list(t.keys(prefix=prefix)) == [key for key in model if key.startswith(prefix)]

    @rule(keys=st.lists(KEYS, max_size=40))
    def get_many(self, keys):
        for t, model in self.readable():
            assert t.get_many(keys) == [model.get(key) for key in keys]
            assert [t.get(key, b"?") for key in keys] == [model.get(key, b"?") for key in keys]
            assert [key in t for key in keys] == [key in model for key in keys]

    @rule(moves=st.lists(st.one_of(KEYS, st.sampled_from(["next", "prev", "first", "last"])), max_size=15))
    def cursors(self, moves):
        for t, model in self.readable():
            cursor, keys, at = t.cursor(), list(model), None
            for move in moves:
                if isinstance(move, bytes):
                    found = cursor.seek(move)
                    at = model.bisect_left(move)
                else:
                    found = getattr(cursor, move)()
                    before = at
                    at = {
                        "first": 0,
                        "last": len(keys) - 1,
                        "next": 0 if at is None else at + 1,
                        "prev": len(keys) - 1 if at is None else at - 1,
                    }[move]
                    # At an end the cursor keeps its place.
                    if not 0 <= at < len(keys):
                        assert found is None
                        at = before if before is not None and 0 <= before <= len(keys) else None
                        if not keys or at is None:
                            cursor, at = t.cursor(), None
                        continue
                expected = (keys[at], model[keys[at]]) if at < len(keys) else None
                assert found == expected, (move, at, keys)

    @invariant()
    def all_agree(self):
        for t, model in self.readable():
            assert len(t) == len(model)
            assert t.first() == (model.peekitem(0) if model else None)
            assert t.last() == (model.peekitem(-1) if model else None)
        for _, _, _, views, _ in self.snapshots:
            assert all(bytes(view) == value for view, value in views)


Store.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, print_blob=True)
TestStore = Store.TestCase
