"""Code as a sequence of syntax tokens: the kinds of its nodes, with brackets around each node and what is below it.

Names and literals have a kind but no text, so renamed code has the same tokens. Comments have none.
"""

import hashlib
from functools import cache
from typing import NamedTuple

import numpy as np
import tree_sitter
import tree_sitter_python
from numpy.typing import NDArray

COMMENT = "comment"


class TokenSequence(NamedTuple):
    values: NDArray[np.uint64]  # of a bracket or of a node's kind: the same in every process
    rows: NDArray[np.int32]  # the line of each, from 0


@cache
def _language() -> tree_sitter.Language:
    return tree_sitter.Language(tree_sitter_python.language())


@cache
def _value(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


CLOSING = _value(")")


def tokenize(text: str) -> TokenSequence:
    """Nothing here recurses: code may be nested arbitrarily deep."""
    cursor = tree_sitter.Parser(_language()).parse(text.encode("utf-8", "replace")).walk()
    opening = _value("(")
    values: list[int] = []
    rows: list[int] = []
    around: list[bool] = []  # for each enclosing node: whether it has tokens
    row = 0
    while True:
        node = cursor.node
        has_tokens = node is not None and node.is_named and node.type != COMMENT
        if node is not None and has_tokens:
            row = node.start_point[0]
            values += opening, _value(node.type)
            rows += row, row
        if cursor.goto_first_child():
            around.append(has_tokens)
            continue
        while True:
            if has_tokens:
                values.append(CLOSING)
                rows.append(row)
            if cursor.goto_next_sibling():
                break
            if not cursor.goto_parent():
                return TokenSequence(np.array(values, np.uint64), np.array(rows, np.int32))
            has_tokens = around.pop()
