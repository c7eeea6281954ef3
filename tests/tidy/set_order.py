"""Finds places where the order of a set could get out: whatever walks one, unless order is lost.

Sets of strings are ordered by a hash that differs from process to process, so a walk over one
makes two runs of the same history differ. What is a set is told by annotations and assignments of
the same module; a walk that does not matter says so: `# tidy: any order, because ...`.
"""

import ast

EXCUSE = "# tidy: any order, because "
SET_NAMES = ("set", "frozenset", "AbstractSet", "MutableSet", "Set")
SET_METHODS = ("union", "difference", "intersection", "symmetric_difference", "copy")
ORDER_LOST = (
    "sorted",
    "set",
    "frozenset",
    "len",
    "any",
    "all",
    "sum",
    "min",
    "max",
    "dict",
    "Counter",
)
WALKS = ("list", "tuple", "enumerate", "zip", "map", "filter", "iter", "reversed", "deque", "next")


class SetWalks(ast.NodeVisitor):
    """Collects the lines of one module on which a set is walked and its order kept."""

    def __init__(self, tree: ast.Module) -> None:
        self.lines: list[int] = []
        self._attributes: frozenset[str] = frozenset(_set_attributes(tree))
        self._names: list[dict[str, bool]] = [_set_names(tree.body)]
        self._order_lost = 0
        self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        names = {argument.arg: _is_set_type(argument.annotation) for argument in arguments}
        self._names.append({**names, **_set_names(node.body)})
        self.generic_visit(node)
        self._names.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_For(self, node: ast.For) -> None:
        self._check(node.iter)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        self._check(node.value)
        self.generic_visit(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._visit_losing_order(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._visit_comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._visit_comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._visit_comprehension(node)

    def _visit_comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> None:
        for generator in node.generators:
            self._check(generator.iter)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Name) and function.id in ORDER_LOST:
            self._visit_losing_order(node)
            return
        if isinstance(function, ast.Name) and function.id in WALKS:
            for argument in node.args:
                self._check(argument)
        if isinstance(function, ast.Attribute):
            if function.attr in ("join", "extend", "fromkeys") and node.args:
                self._check(node.args[0])
            if function.attr == "pop" and not node.args:
                self._check(function.value)
        self.generic_visit(node)

    def _visit_losing_order(self, node: ast.AST) -> None:
        self._order_lost += 1
        self.generic_visit(node)
        self._order_lost -= 1

    def _check(self, walked: ast.expr) -> None:
        if not self._order_lost and self._is_set(walked):
            self.lines.append(walked.lineno)

    def _is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name(id=name):
                return next((scope[name] for scope in self._names[::-1] if name in scope), False)
            case ast.Attribute(attr=name):
                return name in self._attributes
            case ast.BinOp(left=left, op=ast.Sub() | ast.BitOr() | ast.BitAnd() | ast.BitXor()):
                return self._is_set(left)
            case ast.IfExp(body=one, orelse=other):
                return self._is_set(one) or self._is_set(other)
            case ast.Call(func=ast.Name(id=name)):
                return name in ("set", "frozenset")
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                return method in SET_METHODS and self._is_set(value)
            case _:
                return False


def _is_set_type(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Subscript(value=ast.Name(id=name)) | ast.Name(id=name):
            return name in SET_NAMES
        case ast.Constant(value=str(text)):
            return text.split("[")[0] in SET_NAMES
        case ast.BinOp(left=left, right=right):
            return _is_set_type(left) or _is_set_type(right)
        case _:
            return False


def _is_set_value(value: ast.expr | None) -> bool:
    match value:
        case ast.Set() | ast.SetComp():
            return True
        case (
            ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Subscript(value=ast.Name(id=name)))
        ):
            return name in ("set", "frozenset")
        case _:
            return False


def _set_names(body: list[ast.stmt]) -> dict[str, bool]:
    """The names that a scope binds, and whether to a set; functions inside have their own."""
    names: dict[str, bool] = {}
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = _is_set_type(node.annotation)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    names[target.id] = names.get(target.id, False) or _is_set_value(node.value)
        waiting.extend(ast.iter_child_nodes(node))
    return names


def _set_attributes(tree: ast.Module) -> list[str]:
    """The attributes that classes of a module declare as sets, by name."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and _is_set_type(node.annotation):
            if isinstance(node.target, ast.Attribute):
                names.append(node.target.attr)
            elif isinstance(node.target, ast.Name):
                names.append(node.target.id)
        if isinstance(node, ast.Assign) and _is_set_value(node.value):
            names += [target.attr for target in node.targets if isinstance(target, ast.Attribute)]
    return names
