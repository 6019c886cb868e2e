"""Small faults that can be made in a module, one at a time, on its syntax tree.

Left out: docstrings, messages of errors, annotations, protocols, `dtype` and the like.
"""

import ast
from collections import Counter
from typing import NamedTuple

_OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_COMPARISONS = {
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
_PAIRS = (
    ("max", "min"),
    ("maximum", "minimum"),
    ("ceil", "floor"),
    ("any", "all"),
    ("argmax", "argmin"),
    ("sf", "cdf"),
    ("isf", "ppf"),
    ("sinh", "cosh"),
    ("log1p", "log"),
    ("expm1", "exp"),
    ("next_plus", "next_minus"),
    ("up", "down"),
    ("left", "right"),
)
_NAMES = dict(_PAIRS) | {second: first for first, second in _PAIRS} | {"sum": "max"}
# Of these calls the first argument may stand alone: a safety factor less.
_DROPPED = {"nextafter", "next_plus", "next_minus", "abs", "maximum", "minimum"}
_DROPPED |= {"max", "min", "clip", "sqrt", "square"}
_SKIPPED = {"dtype", "out", "copy", "repr", "default"}
_STILL = (ast.Import, ast.ImportFrom, ast.Raise, ast.Pass, ast.Assert)


class Mutation(NamedTuple):
    """One fault: in which statement of which function, of what, and how it is made.

    The last is how many are called the same before it.
    """

    statement: ast.stmt
    owner: tuple
    node: ast.AST
    what: str
    make: object
    before: int = 0

    @property
    def lines(self):
        """The first and the last line of the statement, or of its head."""
        first, last = self.statement.lineno, self.statement.end_lineno
        if hasattr(self.statement, "body"):
            last = max(first, self.statement.body[0].lineno - 1)
        return first, last

    @property
    def in_function(self):
        """Whether it lies in the body of a function."""
        return any(isinstance(item, ast.FunctionDef) for item in self.owner)

    @property
    def key(self):
        """What it is called wherever its lines move: function, statement and fault."""
        owner = ".".join(item.name for item in self.owner) or "module"
        statement = ast.unparse(self.statement).splitlines()[0]
        ordinal = f" | {self.before + 1}" if self.before else ""
        return f"{owner} | {statement[:70]} | {self.fault}{ordinal}"

    @property
    def fault(self):
        """What is made of which expression."""
        return f"{self.what} in `{ast.unparse(self.node).splitlines()[0][:70]}`"

    def __str__(self):
        return f"{self.node.lineno}: {self.fault}"


def mutations(tree):
    """List all mutations of a module's tree, in a fixed order."""
    found, called = [], Counter()
    for mutation in _of_block(tree.body, ()):
        found.append(mutation._replace(before=called[mutation.key]))
        called[mutation.key] += 1
    return found


def mutated(source, place):
    """Return the tree of a module with the mutation at a place of the list."""
    tree = ast.parse(source)
    chosen = mutations(tree)[place]
    new = chosen.make(chosen.node)
    if new is not chosen.node:
        tree = _Replacement(chosen.node, new).visit(tree)
    return ast.fix_missing_locations(tree)


class _Replacement(ast.NodeTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        if node is self.old:
            return ast.copy_location(self.new, node)
        return self.generic_visit(node)


def _setting(**fields):
    """Return a function that changes fields of a node in place."""

    def make(node):
        for name, value in fields.items():
            setattr(node, name, value)
        return node

    return make


def _without(path, place):
    """Return a function that takes an item out of a list in a node."""

    def make(node):
        items = node
        for step in path:
            items = items[step] if isinstance(step, int) else getattr(items, step)
        del items[place]
        return node

    return make


def _part(name):
    return lambda node: getattr(node, name)


def _of_block(body, owner):
    for statement in body:
        if isinstance(statement, _STILL) or _is_text(statement):
            continue
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            marks = [*getattr(statement, "bases", ()), *statement.decorator_list]
            names = {getattr(mark, "id", None) for mark in marks}
            if not names & {"Protocol", "abstractmethod"}:
                yield from _of_block(statement.body, (*owner, statement))
            continue
        for node, what, make in _of_statement(statement, owner):
            yield Mutation(statement, owner, node, what, make)
        for name in ("body", "orelse", "finalbody"):
            yield from _of_block(getattr(statement, name, []), owner)
        for handler in getattr(statement, "handlers", []):
            yield from _of_block(handler.body, owner)


def _is_text(statement):
    value = getattr(statement, "value", None)
    return isinstance(statement, ast.Expr) and isinstance(value, ast.Constant)


def _of_statement(statement, owner):
    def nothing(node):
        return ast.Pass()

    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    value = getattr(statement, "value", None)
    if not owner:
        # Names of types, and what is exported.
        listed = getattr(targets[0], "id", None) == "__all__"
        if listed or isinstance(value, ast.Subscript) or _is_union(value):
            return
    if isinstance(statement, ast.AugAssign):
        yield statement, "left out", nothing
        other = _OPERATORS.get(type(statement.op))
        if other:
            yield statement, f"{other.__name__} instead", _setting(op=other())
    elif isinstance(statement, ast.Expr) or (
        isinstance(statement, ast.Assign) and isinstance(targets[0], ast.Subscript)
    ):
        yield statement, "left out", nothing
    elif isinstance(statement, ast.If):
        yield statement, "never", _setting(test=ast.Constant(False))
        if not any(isinstance(item, ast.Raise) for item in statement.body):
            yield statement, "always", _setting(test=ast.Constant(True))
    elif isinstance(statement, ast.For) and isinstance(statement.iter, ast.Tuple):
        for place in range(len(statement.iter.elts)):
            yield statement, f"without item {place}", _without(("iter", "elts"), place)
    for target in targets:
        if isinstance(target, ast.Subscript):
            yield from _of_expression(target.slice)
    for item in getattr(statement, "items", []):
        yield from _of_expression(item.context_expr)
    for name in ("value", "test", "iter"):
        yield from _of_expression(getattr(statement, name, None))


def _is_union(value):
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr)


def _of_expression(node):
    if node is None or isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.Call) and _name(node.func) in ("errstate", "field", "cast"):
        return
    for what, make in _here(node):
        yield node, what, make
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.keyword) and child.arg not in _SKIPPED:
            yield from _of_expression(child.value)
        elif isinstance(child, ast.comprehension):
            yield from _of_expression(child.iter)
            for condition in child.ifs:
                yield from _of_expression(condition)
        elif isinstance(child, ast.expr):
            yield from _of_expression(child)


def _name(function):
    return getattr(function, "id", getattr(function, "attr", None))


def _here(node):
    """Yield what can be done to one node, itself and not its parts."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, str):
            if value in _NAMES:
                yield f"{_NAMES[value]} instead", _setting(value=_NAMES[value])
        elif isinstance(value, (int, float)):
            other = not value if isinstance(value, bool) else value + 1
            if isinstance(value, float):
                other = value / 2 if value else 1.0
            yield f"{other!r} instead", lambda node: ast.Constant(other)
    elif isinstance(node, ast.BinOp):
        other = _OPERATORS.get(type(node.op))
        if other:
            yield f"{other.__name__} instead", _setting(op=other())
        if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div)):
            yield "left side alone", _part("left")
        if isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
            yield "right side alone", _part("right")
    elif isinstance(node, ast.UnaryOp):
        yield f"without {type(node.op).__name__}", _part("operand")
    elif isinstance(node, ast.Compare):
        others = [_COMPARISONS[type(op)]() for op in node.ops]
        for place, other in enumerate(others):
            ops = [*node.ops[:place], other, *node.ops[place + 1 :]]
            yield f"{type(other).__name__} instead", _setting(ops=ops)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"{type(other).__name__} instead", _setting(op=other)
        for place in range(len(node.values)):
            rest = node.values[:place] + node.values[place + 1 :]
            less = ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0]
            yield f"without term {place}", lambda node, less=less: less
    elif isinstance(node, ast.IfExp):
        yield "always", _part("body")
        yield "never", _part("orelse")
    elif isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        for at, each in enumerate(node.generators):
            path = ("generators", at)
            for place in range(len(each.ifs)):
                yield "without if", _without((*path, "ifs"), place)
            if isinstance(each.iter, ast.Tuple):
                for place in range(len(each.iter.elts)):
                    make = _without((*path, "iter", "elts"), place)
                    yield f"without item {place}", make
    elif isinstance(node, ast.Attribute) and node.attr == "inf":
        yield "minus", lambda node: ast.UnaryOp(ast.USub(), node)
    elif isinstance(node, (ast.Name, ast.Attribute)) and _name(node) in _NAMES:
        other = _NAMES[_name(node)]
        field = "id" if isinstance(node, ast.Name) else "attr"
        yield f"{other} instead", _setting(**{field: other})
    elif isinstance(node, ast.Call):
        name = _name(node.func)
        if name in _DROPPED and node.args:
            for place in range(len(node.args)):
                yield f"argument {place} alone", lambda node, i=place: node.args[i]
        if name in ("max", "min") and not node.args:
            func = ast.Attribute(node.func.value, "mean", ast.Load())
            kept = [item for item in node.keywords if item.arg == "axis"]
            yield "mean instead", _setting(func=func, keywords=kept)
