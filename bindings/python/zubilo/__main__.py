"""`python -m zubilo`: the command line of Zubilo."""

import sys

from . import _zubilo


def main() -> int:
    """Runs the command line of this process and gives its exit code."""
    return _zubilo.run_command(["zubilo", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
