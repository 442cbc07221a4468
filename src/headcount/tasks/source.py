"""The text of code: its syntax tree where the source is there and is what runs, else its bytecode."""

import __future__

import ast
import functools
import linecache
import operator
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
LEFT_OUT = frozenset(("annotation", "returns", "decorator_list", "type_comment", "type_params", "kind", "ctx"))
"""Fields of a syntax tree that change no value: what decorators return is the function that is looked at."""

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_texts: weakref.WeakKeyDictionary[types.CodeType, str] = weakref.WeakKeyDictionary()


def code_text(code: types.CodeType) -> str:
    """What code does, as text: the same in every process, and on every line of any file.

    It is found once per process: a file that is edited afterwards does not change what is running.
    """
    text = _texts.get(code)
    if text is None:
        node = _node_of(code)
        text = _bytecode(code) if node is None else f"source {_root(node)}"
        _texts[code] = text
    return text


def _node_of(code: types.CodeType) -> Function | None:
    """The syntax tree of code; None where there is no source, or where it gives other code than this."""
    source = "".join(linecache.getlines(code.co_filename))
    if not source:
        return None
    codes, functions = _compiled(source, code.co_filename, code.co_flags & FUTURES)
    if code not in codes:
        return None
    nodes = [each for each in functions if _begins(each) == code.co_firstlineno]
    places = {position for position in code.co_positions() if None not in position}
    inside = [node for node in nodes if _name(node) == code.co_name and all(_holds(node, place) for place in places)]
    # Of functions within each other the outer one holds the places of the inner one too.
    return min(inside, key=_extent, default=None)


@functools.lru_cache(maxsize=8)
def _compiled(source: str, file: str, flags: int) -> tuple[frozenset[types.CodeType], list[Function]]:
    """The code and the syntax trees of all functions in a file."""
    try:
        module, tree = compile(source, file, "exec", flags, dont_inherit=True), ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return frozenset(), []
    return frozenset(_codes(module)), [node for node in ast.walk(tree) if isinstance(node, Function)]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _begins(node: Function) -> int:
    """The line on which Python says that the function begins: that of its first decorator."""
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])


def _name(node: Function) -> str:
    return getattr(node, "name", "<lambda>")


def _holds(node: Function, place: tuple) -> bool:
    line, end_line, column, end_column = place
    if (line, column) in ((_begins(node), 0), (node.lineno, node.col_offset)):  # where the function begins to run
        return True
    return (node.lineno, node.col_offset) <= (line, column) and (end_line, end_column) <= _end(node)


def _end(node: Function) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _extent(node: Function) -> tuple[int, int]:
    return _end(node)[0] - node.lineno, _end(node)[1] - node.col_offset


def _root(node: Function) -> str:
    """A function without its name and without its defaults, whose values are looked at."""
    given = node.args
    names = [[each.arg for each in part] for part in (given.posonlyargs, given.args, given.kwonlyargs)]
    rest = [None if each is None else each.arg for each in (given.vararg, given.kwarg)]
    body = node.body if isinstance(node.body, list) else [ast.Return(node.body)]
    return f"{names} {rest} {_text(_without_docstring(body))}"


def _without_docstring(body: list[Any]) -> list[Any]:
    first = body[0] if body else None
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if is_text else body


def _text(part: Any) -> str:
    """A syntax tree as text, without what is empty: a later Python may add such fields."""
    if isinstance(part, list):
        return f"[{' '.join(map(_text, part))}]"
    if not isinstance(part, ast.AST):
        return repr(part)
    fields = {name: value for name, value in ast.iter_fields(part) if name not in LEFT_OUT and value not in (None, [])}
    if isinstance(part, ast.Constant):
        fields = {"value": part.value}
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
        fields |= {"decorators": part.decorator_list, "body": _without_docstring(part.body)}
    words = (f"{name}={_text(value)}" for name, value in sorted(fields.items()))
    return f"{type(part).__name__}({' '.join(words)})"


def _bytecode(code: types.CodeType) -> str:
    """The instructions of code with all that they refer to."""
    constants = [_bytecode(each) if isinstance(each, types.CodeType) else _constant(each) for each in code.co_consts]
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    version = sys.version_info[:2]
    return f"bytecode {version} {counts} {names} {constants} {code.co_code.hex()} {code.co_exceptiontable.hex()}"


def _constant(value: Any) -> str:
    """A constant as text; the order of a set differs from process to process."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_constant, value))})"
    if isinstance(value, tuple):
        return f"({' '.join(map(_constant, value))})"
    return f"{type(value).__name__} {value!r}"
