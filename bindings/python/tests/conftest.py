"""What all tests use: a store of their own, and programs run in another interpreter."""

import subprocess
import sys
import textwrap

import pytest

import zubilo


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.zubilo"


@pytest.fixture
def env(path):
    with zubilo.open(path) as env:
        yield env


@pytest.fixture
def fruit(env):
    """A store with a table of three records."""
    with env.write() as w:
        w.table("fruit").update({b"apple": b"red", b"banana": b"yellow", b"cherry": b"red"})
    return env


@pytest.fixture
def run(tmp_path):
    """Runs a program in a fresh interpreter, in development mode, which must not crash."""

    def run(program, *arguments, code=0, timeout=120):
        command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", textwrap.dedent(program)]
        done = subprocess.run(
            [*command, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, cwd=tmp_path
        )
        assert done.returncode == code, f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Fatal" not in done.stderr, done.stderr
        return done

    return run
