"""Descriptions of types, and what the extension needs of the standard library for them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any


@dataclasses.dataclass(frozen=True)
class Array:
    """Arrays as values, made by `zubilo.array`."""

    dtype: Any
    shape: tuple[int, ...] | None = None


def array(dtype: Any, shape: int | tuple[int, ...] | None = None) -> Array:
    """Describes values that are NumPy arrays: `w.table("images", key=int, value=zubilo.array("u1", (28, 28)))`.

    They are stored aligned and read in place: what `t[key]` gives is a read-only array over the map. Without
    a shape they have one dimension and any length.
    """
    if isinstance(shape, int):
        shape = (shape,)
    return Array(dtype, None if shape is None else tuple(shape))


def to_json(value: Any) -> str:
    """The JSON of a value, without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


from_json = json.loads


def array_of_text(text: str) -> Array | None:
    """The description that a store notes for arrays, or None if it is not one of ours."""
    import ast

    from numpy.lib.format import descr_to_dtype

    shape: tuple[int, ...] | None = None
    if text.endswith("]") and not text.startswith("["):
        text, _, inner = text[:-1].partition("[")
        shape = tuple(int(n) for n in inner.split(",") if n)
    elif (at := text.rfind("][")) >= 0:
        shape = tuple(int(n) for n in text[at + 2 : -1].split(",") if n)
        text = text[: at + 1]
    try:
        description: Any = ast.literal_eval(text) if text.startswith("[") else text
        return Array(descr_to_dtype(description), shape)
    except (TypeError, ValueError, SyntaxError):
        return None
