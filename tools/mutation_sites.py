"""Where a module can be broken, and how: an operator, a constant, a condition, a statement."""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
TEXT_MAX = 70
STORIES = ("invariant", "assert_never", "Arrow", "TransitionTable")
"""Calls whose texts are stories for people; a changed story breaks no decision."""


class Site(NamedTuple):
    """One possible break; `apply` changes the tree it was found in."""

    line: int
    scope: str
    before: str
    after: str
    apply: Callable[[], None]


def sites_of(path: Path) -> list[Site]:
    """Every break of a module, always in the same order."""
    return sites_in(ast.parse(path.read_text(encoding="utf-8")))


def sites_in(tree: ast.Module) -> list[Site]:
    """Every break of a tree, bound to that tree."""
    return list(_Finder().find(tree, "module"))


class _Finder:
    """Walks a tree and offers breaks; annotations, decorators and stories are left alone."""

    def find(self, node: ast.AST, scope: str) -> Iterator[Site]:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            scope = node.name if scope == "module" else f"{scope}.{node.name}"
        yield from self._offer(node, scope)
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            children = value if isinstance(value, list) else [value]
            for child in children:
                if isinstance(child, ast.AST) and not _is_left_alone(child):
                    yield from self.find(child, scope)

    def _offer(self, node: ast.AST, scope: str) -> Iterator[Site]:
        match node:
            case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
                comparison = COMPARISONS[type(operator)]()
                yield _site(node, scope, partial(_replace_item, node.ops, 0, comparison))
            case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if (
                type(operator) in ARITHMETIC
            ):
                yield _site(node, scope, partial(setattr, node, "op", ARITHMETIC[type(operator)]()))
            case ast.BoolOp(op=operator):
                other = ast.Or() if isinstance(operator, ast.And) else ast.And()
                yield _site(node, scope, partial(setattr, node, "op", other))
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield from self._offer_negation(node, test, scope)
            case ast.Constant(value=bool(value)):
                yield _site(node, scope, partial(setattr, node, "value", not value))
            case ast.Constant(value=int(value)):
                yield _site(node, scope, partial(setattr, node, "value", value + 1))
            case ast.Break():
                yield _site(node, scope, partial(_become, node, ast.Continue()))
            case ast.Continue():
                yield _site(node, scope, partial(_become, node, ast.Break()))
            case _:
                pass
        yield from self._offer_omissions(node, scope)

    def _offer_negation(
        self, node: ast.If | ast.While | ast.IfExp, test: ast.expr, scope: str
    ) -> Iterator[Site]:
        # A comparison is turned round by its operator already.
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            changed: ast.expr = test.operand
        else:
            changed = ast.UnaryOp(op=ast.Not(), operand=test)
        yield _site(test, scope, partial(setattr, node, "test", changed), changed)

    def _offer_omissions(self, node: ast.AST, scope: str) -> Iterator[Site]:
        """Leave a statement out: a call for its effect, an assignment to an attribute or item."""
        for field in ("body", "orelse"):
            statements = getattr(node, field, None)
            if not isinstance(statements, list):
                continue
            for index, statement in enumerate(statements):
                if _has_effect(statement):
                    left_out = ast.copy_location(ast.Pass(), statement)
                    apply = partial(_replace_item, statements, index, left_out)
                    yield _site(statement, scope, apply, left_out)


def _site(
    node: ast.AST, scope: str, apply: "partial[None]", changed: ast.AST | None = None
) -> Site:
    new = apply.args[-1] if changed is None else changed
    if changed is not None and not isinstance(changed, ast.Pass):
        after = _shown(changed)
    else:
        after = type(new).__name__ if isinstance(new, ast.AST) else repr(new)
    return Site(getattr(node, "lineno", 0), scope, _shown(node), after, apply)


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 3] + "..."


def _replace_item(items: list[ast.AST], index: int, new: ast.AST) -> None:
    items[index] = new


def _become(node: ast.AST, other: ast.AST) -> None:
    node.__class__ = other.__class__


def _has_effect(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name in STORIES:
            return False
        case ast.Expr(value=ast.Call() | ast.YieldFrom() | ast.Yield()):
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign():
            return True
        case ast.Delete():
            return True
        case _:
            return False


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in STORIES
        case ast.keyword(arg="strict"):
            # zip(strict=True) is an invariant: it finds bugs and decides nothing.
            return True
        case ast.JoinedStr() | ast.Raise() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__")]):
            return True
        case _:
            return False
