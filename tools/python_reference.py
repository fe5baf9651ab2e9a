"""The Python reference of the documentation site, read from the package's source and its core's stub.

Nothing is imported. Signatures, overloads and docstrings come out as reStructuredText for Sphinx's Python domain.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path


def public_names(source: str) -> list[str]:
    """What `__all__` of a source lists."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [name for name in ast.literal_eval(node.value) if not name.startswith("__")]
    return []


def with_fields(lines: list[str], names: frozenset[str]) -> list[str]:
    """`name: text` becomes a field where `name` is an argument. Its text ends with the next one, an empty line, a line
    of several arguments (`blocks, threads: text`) or what is raised."""
    found: list[str] = []
    within = False
    for line in lines:
        name, colon, text = line.partition(": ")
        if colon and name in names:
            found += [*([] if within or not found or not found[-1] else [""]), f":param {name}: {text}"]
            within = True
        else:
            several = bool(colon) and all(one in names for one in name.split(", "))
            if within and (several or line.startswith("Raises ")):
                found.append("")
                within = False
            within = within and bool(line)
            found.append(f"    {line}" if within else line)
    return found


def as_rst(docstring: str | None, names: frozenset[str] = frozenset()) -> list[str]:
    """Lines of a docstring; what follows a colon and is indented is code. `names`: the arguments."""
    lines = with_fields(inspect.cleandoc(docstring or "").splitlines(), names)
    for i in range(len(lines) - 2):
        if lines[i].endswith(":") and not lines[i + 1].strip() and lines[i + 2].startswith("    "):
            lines[i] += ":"
    return lines


def directive(kind: str, signatures: list[str], options: list[str], body: list[str]) -> list[str]:
    head = [f".. {kind}:: {signatures[0]}", *("   " + " " * (len(kind) + 3) + one for one in signatures[1:])]
    return [*head, *(f"   {option}" for option in options), "", *("   " + line if line else "" for line in body), ""]


def decorators(node: ast.FunctionDef) -> list[str]:
    return [ast.unparse(one) for one in node.decorator_list]


def signature(node: ast.FunctionDef, in_class: bool) -> str:
    arguments = node.args
    if in_class and "staticmethod" not in decorators(node):
        first = arguments.posonlyargs or arguments.args
        del first[0]  # self
    returns = ast.unparse(node.returns) if node.returns and ast.unparse(node.returns) != "None" else ""
    return f"{node.name}({ast.unparse(arguments)})" + (f" -> {returns}" if returns else "")


def names_of(node: ast.FunctionDef) -> frozenset[str]:
    arguments = node.args
    return frozenset(one.arg for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs])


def functions(nodes: list[ast.FunctionDef], in_class: bool) -> list[str]:
    """One entry for all overloads of a name, with what each of them says."""
    static = ["staticmethod"] if "staticmethod" in decorators(nodes[0]) else []
    options = [f":{one}:" for one in static]
    body: list[str] = []
    for node in nodes:
        said = as_rst(ast.get_docstring(node), names_of(node))
        body += [*said, ""] if said and said != body[: len(said)] else []
    kind = "py:method" if in_class else "py:function"
    return directive(kind, [signature(node, in_class) for node in nodes], options, body)


def grouped(body: list[ast.stmt]) -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and not any(one.endswith(".setter") for one in decorators(node)):
            found.setdefault(node.name, []).append(node)
    return found


def class_entry(node: ast.ClassDef) -> list[str]:
    bases = [ast.unparse(base) for base in node.bases]
    settable = {n.name for n in node.body if isinstance(n, ast.FunctionDef) and f"{n.name}.setter" in decorators(n)}
    body = [f"Derives from `{base}`.\n" for base in bases] + [*as_rst(ast.get_docstring(node)), ""]
    made = [node.name]
    for name, nodes in grouped(node.body).items():
        if name == "__init__":
            made = [signature(one, True).replace("__init__", node.name) for one in nodes]
            for one in nodes:
                body += [*as_rst(ast.get_docstring(one), names_of(one)), ""]
        elif "property" in decorators(nodes[0]):
            options = [f":type: {ast.unparse(nodes[0].returns)}"] if nodes[0].returns else []
            said = as_rst(ast.get_docstring(nodes[0])) + ([] if name not in settable else ["", "Can be set."])
            body += directive("py:property", [name], options, said)
        elif not name.startswith("_"):
            body += functions(nodes, True)
    kind = "py:exception" if bases == ["RuntimeError"] else "py:class"
    return directive(kind, made, [], body)


def constant(node: ast.AnnAssign, after: ast.stmt | None) -> list[str]:
    """What is said about a value is the text that follows it."""
    text = after.value if isinstance(after, ast.Expr) else None
    said = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else None
    return directive("py:data", [ast.unparse(node.target)], [], as_rst(said))


def reference(stub: str, init: str, modules: list[str]) -> str:
    """The entries of all public names, which the stub or one of the modules' sources defines, in their order."""
    defined: dict[str, list[str]] = {}
    for text in [stub, *modules]:
        body = ast.parse(text).body
        for node, after in zip(body, [*body[1:], None]):
            if isinstance(node, ast.ClassDef):
                defined[node.name] = class_entry(node)
            elif isinstance(node, ast.AnnAssign):
                defined[ast.unparse(node.target)] = constant(node, after)
        for name, nodes in grouped(body).items():
            defined[name] = functions(nodes, False)
    wanted = public_names(init)
    if more := [name for text in modules for name in public_names(text)]:  # which the package's `__all__` takes in
        wanted = sorted({*wanted, *more})
    missing = [name for name in wanted if name not in defined]
    if missing:
        raise ValueError(f"neither the stub nor the package's source defines {', '.join(missing)}")
    lines = [".. py:module:: tasuki", "", ".. default-role:: code", ""]
    for name in wanted:
        lines += defined[name]
    return textwrap.dedent("\n".join(lines))


def of_package(package: Path) -> str:
    def text(file: Path) -> str:
        return file.read_text(encoding="utf-8")

    sources = [text(file) for file in sorted(package.glob("*.py")) if file.name != "__init__.py"]
    return reference(text(package / "_core.pyi"), text(package / "__init__.py"), sources)
