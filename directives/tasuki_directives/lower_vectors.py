"""Innermost loops whose iterations may run as vectors: OpenMP's `simd`, where the text shows that none needs others."""

from __future__ import annotations

import re

from clang.cindex import CursorKind, StorageClass, TypeKind

from . import forms, lower_loops
from .c_code import ARRAYS, identity
from .lower_loops import changed_in, header_of
from .lower_names import TYPES, NotTranslated, words
from .openacc import COMPUTE_CONSTRUCTS

SUMS = {"+": r"[+-]=", "*": r"\*=", "&": "&=", "|": r"\|=", "^": r"\^="}
# Functions of <math.h> without a state.
PURE = re.compile(
    r"(fabs|sqrt|cbrt|exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|pow|hypot|fma"
    r"|floor|ceil|trunc|round|rint|nearbyint|copysign)[fl]?|abs|labs|llabs"
)
JUMPS = (CursorKind.RETURN_STMT, CursorKind.GOTO_STMT, CursorKind.BREAK_STMT, CursorKind.LABEL_STMT)
INNER = (CursorKind.FOR_STMT, CursorKind.WHILE_STMT, CursorKind.DO_STMT, CursorKind.SWITCH_STMT)


ARITHMETIC = {kind.value for kind in TYPES if kind is not TypeKind.BOOL}


class Ordered(Exception):
    """Why a loop stays as it is."""


def loop(low, bound, form: forms.Loop) -> None:
    """The directive, and `simd` on the innermost loops of its nest: or why not."""
    lower_loops.loop(low, bound, form)
    if not low.options.simd or low.options.check:
        return
    own = low.code.span(bound.statement)
    inner = [
        low.code.span(b.statement)
        for b, span in low.program.statements
        if b is not bound and isinstance(b.form, forms.Loop) and own.holds(span)
    ]
    for name, statement in low.code.loops(bound.statement):
        span = low.code.span(statement)
        innermost = not any(c.kind in INNER for c in low.code.walk(statement)[1:])
        if not innermost or span is None or any(other.holds(span) and other != own for other in inner):
            continue
        if _is_the_compilers(low, span):
            continue
        try:
            simd = f"omp simd{_clauses(low, bound, form, name, statement)}"
        except (Ordered, NotTranslated) as reason:
            text = reason.message if isinstance(reason, NotTranslated) else str(reason)
            said = f"the loop of line {span.source.place(span.start)[0]} keeps its order: {text}"
        else:
            low.late.append((span.source, span.start, f'_Pragma("{simd}") '))
            said = f"the iterations of line {span.source.place(span.start)[0]} may be vectors: {simd}"
        low.explained.append((bound, said))


def _is_the_compilers(low, span) -> bool:
    """Whether a loop is in a nest that becomes a kernel, or OpenMP's."""
    return (low.options.kernels or low.options.openmp) and any(
        isinstance(b.form, forms.Acc) and b.form.construct in COMPUTE_CONSTRUCTS and around.holds(span)
        for b, around in low.program.statements
    )


def _clauses(low, bound, form: forms.Loop, name: str, loop) -> str:
    span = low.code.span(loop)
    _plain(low, bound, name, loop)
    changed, _ = changed_in(low, loop)
    sums = {v: r for r in form.reductions for v, places in zip(r.variables, r.locations) if not places}
    uses: dict = {}
    for use in low.used.held(span):
        uses.setdefault(use.name, []).append(use)
    declared = {c.spelling: c for c in low.code.walk(loop) if c.kind is CursorKind.VAR_DECL}
    written, private, reduced = [], [], []
    for one in sorted(changed - {name}):
        if one in declared:
            if not _is_scalar(declared[one]) or declared[one].storage_class is StorageClass.STATIC:
                raise Ordered(f"'{one}' is no scalar of an iteration")
        elif low.symbols.array(one, bound) is not None:
            written.append(one)
        elif one in sums and one in uses:
            _combines(low, loop, sums[one].operator, one, len(uses[one]))
            reduced.append(f"reduction({sums[one].operator} : {one})")
        elif one in uses and _is_private(low, bound, uses[one], one, loop):
            private.append(one)
        else:
            raise Ordered(f"it sets '{one}', which other iterations may need")
    if not written and not reduced:
        raise Ordered("it sets nothing that vectors are for")
    _references(low, bound, name, loop, uses, written, changed - {name})
    listed = [f"private({', '.join(private)})"] if private else []
    return "".join(f" {one}" for one in [*listed, *reduced])


def _plain(low, bound, name: str, loop) -> None:
    """Its head is one that OpenMP takes, and its body one piece of code without a state of its own."""
    span, whole = low.code.span(loop), low.code.span(bound.statement)
    if not name:
        raise Ordered("its head has no index")
    header = header_of(low, loop, name)
    text = f"{header.first} ; {header.end}"
    changed, _ = changed_in(low, loop)
    if header.down or header.step != "1":
        raise Ordered("its indices are not one after the other")
    if re.search(r"[\w)]\s*\((?!int\)|long\))|[\[.]|->", text) or set(words(header.end)) & changed:
        raise Ordered("its range may change")
    body = list(loop.get_children())[-1]
    if name in changed_in(low, body)[0]:
        raise Ordered(f"it sets '{name}'")
    around = span.source.text[bound.pragma.span.end : whole.end]
    if re.search(r"#\s*pragma\s+(?!xmp|acc)|_Pragma", around):
        raise Ordered("the program has pragmas of the compiler for it")
    if low.program.pragmas.held(span):
        raise Ordered("there are directives in it")
    for cursor in low.code.walk(loop):
        kind = cursor.kind
        if kind in JUMPS:
            raise Ordered("a jump leaves it")
        if kind is CursorKind.CALL_EXPR:
            _pure(cursor)
        if kind is CursorKind.MEMBER_REF_EXPR:
            raise Ordered("it refers to members of structs")
        if kind is CursorKind.UNARY_OPERATOR:
            place = low.code.span(cursor)
            if place is None or place.source.as_c[place.start] in "*&":
                raise Ordered("it takes addresses, or follows them")


def _pure(call) -> None:
    if re.fullmatch(r"f(max|min)[fl]?", call.spelling):
        better = "x > v ? x : v" if "max" in call.spelling else "x < v ? x : v"
        raise Ordered(f"compilers have no vectors for '{call.spelling}'; write v = {better}")
    if not PURE.fullmatch(call.spelling or ""):
        raise Ordered(f"it calls '{call.spelling}'" if call.spelling else "it calls a function")


def _is_scalar(declaration) -> bool:
    kind = declaration.type.get_canonical()
    return kind.kind.value in ARITHMETIC and not kind.is_volatile_qualified()


# ---- variables
def _is_private(low, bound, uses: list, name: str, loop) -> bool:
    """A scalar of the function that only this loop uses, and each iteration sets before it uses it."""
    declaration = uses[0].declaration
    if not _is_scalar(declaration) or declaration.semantic_parent.kind is not CursorKind.FUNCTION_DECL:
        return False
    own = identity(declaration)
    if declaration.storage_class is StorageClass.STATIC or len(uses) != sum(
        identity(use.declaration) == own for use in low.uses_of[id(_function(low, bound))]
    ):
        return False
    body = list(loop.get_children())[-1]
    for statement in body.get_children() if body.kind is CursorKind.COMPOUND_STMT else [body]:
        span = low.code.span(statement)
        if span is None or not span.holds(uses[0].span):
            continue
        text = span.source.as_c[span.start : span.end]
        return re.match(rf"{name}\s*=(?!=)", text) is not None and not (len(uses) > 1 and span.holds(uses[1].span))
    return False


def _function(low, bound):
    own = identity(bound.place.function)
    return next(f for f in low.functions if identity(f) == own)


def _combines(low, loop, operator: str, name: str, uses: int) -> None:
    """Whether all that a loop does with the variable of a reduction is to combine it."""
    found = 0
    for statement in _statements(low, loop):
        text = _text(low, statement)
        if operator in SUMS:
            found += re.match(rf"{name}\s*{SUMS[operator]}", text) is not None
        elif operator in ("max", "min"):
            found += _bounds(re.sub(r"\s", "", text), operator, name)
    if found != uses:
        raise Ordered(f"it does not only combine '{name}' by {operator}")


def _statements(low, loop):
    """All within a loop whose values nobody takes."""
    for cursor in low.code.walk(loop):
        children = list(cursor.get_children())
        if cursor.kind is CursorKind.COMPOUND_STMT:
            yield from children
        elif cursor.kind is CursorKind.IF_STMT:
            yield from children[1:]
        elif cursor.kind is CursorKind.FOR_STMT:
            yield children[-1]


def _bounds(text: str, operator: str, name: str) -> int:
    """How many references to the variable there are in `v = x > v ? x : v` or `if (x > v) v = x`; 0: it is neither."""
    chosen = re.fullmatch(rf"{name}=\(?(.+?)([<>])=?(.+?)\)?\?(.+):(.+)", text)
    if chosen:
        left, sign, right, yes, no = chosen.groups()
        larger, smaller = (left, right) if sign == ">" else (right, left)
        best, worst = (larger, smaller) if operator == "max" else (smaller, larger)
        simple = name in (best, worst) and re.fullmatch(r"\w+", left) and re.fullmatch(r"\w+", right)
        return 3 if simple and (yes, no) == (best, worst) else 0
    put = re.fullmatch(r"if\((\w+)([<>])=?(\w+)\)\{?(\w+)=(\w+);?\}?", text)
    if put:
        left, sign, right, to, value = put.groups()
        larger, smaller = (left, right) if sign == ">" else (right, left)
        best, worst = (larger, smaller) if operator == "max" else (smaller, larger)
        return 2 if (to, value) == (worst, best) and worst == name else 0
    return 0


def _text(low, cursor) -> str:
    span = low.code.span(cursor)
    return span.source.as_c[span.start : span.end] if span is not None else ""


# ---- arrays
def _references(low, bound, name: str, loop, uses: dict, written: list, changed: set) -> None:
    """Whether no iteration refers to what another one writes, and all is adjacent in memory."""
    arrays: dict = {}
    for use in low.code.array_uses(loop):
        arrays.setdefault(use.name, []).append(use)
    several = len([one for one in uses if one in arrays or low.symbols.array(one, bound) is not None]) > 1
    for one, found in uses.items():
        declaration = found[0].declaration
        info, kind = low.symbols.array(one, bound), declaration.type.get_canonical()
        if info is None and _is_scalar(declaration):
            continue
        if info is None and kind.kind not in (*ARRAYS, TypeKind.POINTER):
            raise Ordered(f"'{one}' is no number")
        mine = arrays.get(one, [])
        dimensions = info.dimensions if info is not None else len(low.code.extents(declaration))
        if len(mine) != len(found) or any(len(use.indices) != dimensions for use in mine):
            raise Ordered(f"it has references to '{one}' without an index for each dimension")
        if info is not None and any(info.distribution(at) == "cyclic" for at in range(dimensions)):
            raise Ordered(f"'{one}' is cyclic")
        _adjacent(one, name, mine, one in written, changed)
        is_pointer = kind.kind is TypeKind.POINTER and info is None
        if written and several and (is_pointer or declaration.kind is CursorKind.PARM_DECL):
            raise Ordered(f"'{one}' may share memory with what it writes")


def _adjacent(array: str, name: str, uses: list, written: bool, changed: set) -> None:
    for use in uses:
        for at, index in enumerate(use.indices):
            last = at == len(use.indices) - 1
            odd = [one for one in index.names if not re.fullmatch(r"\w+", one)] if index is not None else []
            along = index is not None and name in index.names
            if index is None or odd or along and (not last or dict(index.terms)[name] != 1):
                raise Ordered(f"elements of '{array}' are not adjacent")
            if written and set(index.names) & changed:
                raise Ordered(f"which elements of '{array}' it writes changes in it")
        if written and (use.indices != uses[0].indices or name not in use.indices[-1].names):
            raise Ordered(f"an iteration may need elements of '{array}' that another one writes")
