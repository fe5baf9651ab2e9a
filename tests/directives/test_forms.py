"""Every directive and clause, in both kinds of brackets: one typed form."""

import pytest
from tasuki_directives import forms as f
from tasuki_directives.reader import expression

# Round brackets, square brackets.
SAME = [
    ("nodes n(4)", "nodes n[4]"),
    ("nodes n(2, 3, *)", "nodes n[*][3][2]"),
    ("nodes n(2) = p(1:2)", "nodes n[2] = p[0:2]"),
    ("nodes n(2) = *", "nodes n[2] = *"),
    ("nodes(2, 4) :: n, m", "nodes[4][2] :: n, m"),
    ("template t(0:N-1)", "template t[N]"),
    ("template t(0:99, -1:M)", "template t[-1:M+2][100]"),
    ("template t(:, :)", "template t[:][:]"),
    ("template(0:9), distribute(block) onto p :: s, t", "template[10], distribute[block] onto p :: s, t"),
    ("distribute t(block) onto p", "distribute t[block] onto p"),
    ("distribute t(block(4), *, cyclic) onto q", "distribute t[cyclic][*][block(4)] onto q"),
    ("distribute t(cyclic(2*3)) onto p", "distribute t[cyclic(6)] onto p"),
    ("distribute t(gblock(lengths), gblock(*)) onto q", "distribute t[gblock(*)][gblock(lengths)] onto q"),
    ("align a[i][j] with t(j, i)", "align a[i][j] with t[i][j]"),
    ("align a[i][*] with t(i+1, *)", "align a[i][*] with t[*][i+1]"),
    ("align a[:] with t(:)", "align a[:] with t[:]"),
    ("align [i] with t(i), shadow[1] :: a, b", "align [i] with t[i], shadow[1] :: a, b"),
    ("template_fix(block) t(0:N-1)", "template_fix[block] t[N]"),
    ("template_fix t(0:N-1)", "template_fix t[0:N]"),
    ("task on p(2)", "task on p[1]"),
    ("task on q(1, 2:4) nocomm", "task on q[1:3][0] nocomm"),
    ("task on q(1, 1:4:2)", "task on q[0:2:2][0]"),
    ("task on t(5:9)", "task on t[5:5]"),
    ("loop on t(i)", "loop on t[i]"),
    ("loop (i, j) on t(i, j-1)", "loop [j][i] on t[j-1][i]"),
    ("loop (i, j) on t(i, j) expand(1, 0:2)", "loop (j, i) on t[j][i] expand(0:2, 1)"),
    ("loop on t(i, *) margin(1, 2)", "loop on t[*][i] margin[2][1]"),
    ("loop on t(i, j) peel_and_wait(n, -1, -2)", "loop on t[j][i] peel_and_wait(n, -2, -1)"),
    ("loop reduction(+: s, u) on t(i) reduction(max: m)", "loop on t[i] reduction(+: s, u) reduction(max: m)"),
    ("loop on t(i) reduction(firstmin: m/i, k/)", "loop on t[i] reduction(FirstMin: m/i, k/)"),
    ("array on t(:, 1:4)", "array on t[1:4][:]"),
    ("reduction(lastmax: m/i/) on p(1:2) async(3)", "reduction(lastmax: m/i/) async(3) on p[0:2]"),
    ("bcast (a, b[1]) from p(1) on p(1:3)", "bcast (a, b[1]) on p[0:3] from p[0]"),
    ("barrier on p(3:4)", "barrier on p[2:2]"),
    ("wait_async (1, n) on p(1)", "wait_async (1, n) on p[0]"),
    ("post(p(i), 5)", "post(p[i-1], 5)"),
    ("wait(p(1), tag)", "wait(p[0], tag)"),
    ("wait(p(n))", "WAIT(p[n - 1])"),
    ("coarray on p :: x, y", "COARRAY ON p :: x, y"),
]


@pytest.mark.parametrize("written", SAME, ids=[r for r, _ in SAME])
def test_both_brackets_mean_the_same(forms, written):
    round_form, square_form = forms(written[0]), forms(written[1])
    assert round_form
    assert round_form == square_form


def index(text):
    return f.Sub(None, "index", expression(text))


def between(lower, upper, step=None):
    return f.Sub(None, "range", expression(lower), expression(upper), expression(step) if step else None)


def number(value):
    return f.Expr.of(value)


def layers(lower, upper, periodic=False):
    return f.Width(None, number(lower), number(upper), periodic)


def reference(name, *subs):
    return f.Reference(None, name, list(subs) or None)


MEANS = [
    ("nodes n(2, *)", f.Nodes(None, "n", [None, number(2)])),
    ("template t(8)", f.Template(None, "t", [between("1", "9")])),
    ("template t[8]", f.Template(None, "t", [between("0", "8")])),
    ("template t(:)", f.Template(None, "t", [None])),
    (
        "distribute t(block, cyclic(3), *) onto q",
        f.Distribute(
            None,
            "t",
            [f.Distribution(None, "none"), f.Distribution(None, "cyclic", number(3)), f.Distribution(None, "block")],
            "q",
        ),
    ),
    ("align a[i][*] with t(i-1, *)", f.Align(None, "a", ["i", "*"], "t", [f.Sub(None, "star"), index("i-1")])),
    ("shadow a[1][0:2][*]", f.Shadow(None, "a", [layers(1, 1), layers(0, 2), f.Width(None, None, None)])),
    ("task on q(2, 1:3)", f.Task(None, reference("q", between("0", "3"), index("1")))),
    ("tasks nocomm", f.Tasks(None, True)),
    ("tasks", f.Tasks(None, False)),
    ("task on p", f.Task(None, reference("p"))),
    (
        "loop (i, j) on t(j, i) expand(1, 2:3)",
        f.Loop(None, ["i", "j"], reference("t", index("i"), index("j")), expand=[layers(2, 3), layers(1, 1)]),
    ),
    (
        "loop on t[i] peel_and_wait(7, -1)",
        f.Loop(None, [], reference("t", index("i")), peel_and_wait=f.Peel(None, number(7), [layers(-1, -1)])),
    ),
    ("reflect (a, s.b)", f.Reflect(None, "reflect", ["a", "s.b"])),
    (
        "reflect (a) async(n) acc orthogonal width(/periodic/1, 0:2, 0)",
        f.Reflect(
            None, "reflect", ["a"], [layers(1, 1, True), layers(0, 2), layers(0, 0)], True, expression("n"), True
        ),
    ),
    ("reflect_init (a) width(1) acc", f.Reflect(None, "reflect_init", ["a"], [layers(1, 1)], acc=True)),
    ("reflect_do (a) async(2)", f.Reflect(None, "reflect_do", ["a"], asynchronous=number(2))),
    ("reduce_shadow (a) width(1)", f.Reflect(None, "reduce_shadow", ["a"], [layers(1, 1)])),
    ("gmove", f.Gmove(None)),
    ("gmove in async(1)", f.Gmove(None, "in", number(1))),
    ("gmove out acc", f.Gmove(None, "out", None, "*")),
    ("gmove acc(a, b)", f.Gmove(None, "collective", None, ["a", "b"])),
    ("barrier", f.Barrier(None)),
    ("barrier acc on p", f.Barrier(None, reference("p"), True)),
    ("reduction(+: s) acc", f.ReductionOf(None, f.Reduction(None, "+", ["s"], [[]]), acc=True)),
    ("bcast (a) acc async(1)", f.Bcast(None, ["a"], asynchronous=number(1), acc=True)),
    ("wait_async (1, 2)", f.WaitAsync(None, [number(1), number(2)])),
    ("wait", f.Wait(None, None, None)),
    ("local_alias b => a", f.LocalAlias(None, "b", "a")),
    ("coarray :: x:[*], y:[4][*]", None),
    ("lock(k[1])", f.Lock(None, "lock", "k[1]")),
    ("unlock(k)", f.Lock(None, "unlock", "k")),
    ("template_fix t(1:N)", f.TemplateFix(None, "t", None, [between("1", "N+1")])),
    ("template_fix(gblock(m)) t", f.TemplateFix(None, "t", [f.Distribution(None, "gblock", expression("m"))], None)),
]


@pytest.mark.parametrize("text, form", MEANS, ids=[t for t, _ in MEANS])
def test_forms(forms, text, form):
    found = forms(text)
    if form is not None:
        assert found == [form]
    else:
        assert [type(each).__name__ for each in found] == ["Coarray", "Coarray"]


@pytest.mark.parametrize("operator", ["+", "*", "-", "&", "|", "^", "&&", "||", "max", "min", "MAX"])
def test_operators_of_reductions(forms, operator):
    assert forms(f"reduction({operator}: s)")[0].reduction.operator == operator.lower()


def clause(name, *items, modifier=None):
    return f.Clause(None, name, modifier, list(items) or None)


def section(variable, *subs):
    return f.Section(None, variable, list(subs))


ACC = [
    ("parallel", "parallel", []),
    ("kernels loop gang, vector", "kernels loop", [clause("gang"), clause("vector")]),
    ("loop collapse(2) seq", "loop", [clause("collapse", number(2)), clause("seq")]),
    (
        "parallel loop reduction(max: s) async(n) vector_length(64*2)",
        "parallel loop",
        [
            clause("reduction", expression("s"), modifier="max"),
            clause("async", expression("n")),
            clause("vector_length", number(128)),
        ],
    ),
    (
        "data copyin(a[0:n][2:4], b)",
        "data",
        [clause("copyin", section("a", between("0", "n"), between("2", "6")), expression("b"))],
    ),
    (
        "enter data create(a[:n])",
        "enter data",
        [clause("create", section("a", f.Sub(None, "range", None, expression("n"))))],
    ),
    ("exit data delete(a) finalize", "exit data", [clause("delete", expression("a")), clause("finalize")]),
    ("update self(a) if(n > 2)", "update", [clause("self", expression("a")), clause("if", expression("n > 2"))]),
    ("host_data use_device(a)", "host_data", [clause("use_device", expression("a"))]),
    ("wait", "wait", []),
    ("wait(1, 2) async", "wait", [clause("wait", number(1), number(2)), clause("async")]),
    ("atomic update", "atomic", [clause("update")]),
    ("declare create(a)", "declare", [clause("create", expression("a"))]),
    ("routine seq", "routine", [clause("seq")]),
    (
        "PARALLEL Loop Private(x) firstprivate(y)",
        "parallel loop",
        [clause("private", expression("x")), clause("firstprivate", expression("y"))],
    ),
    ("data copyin(readonly: a)", "data", [clause("copyin", expression("a"), modifier="readonly")]),
    ("loop tile(2, *)", "loop", [clause("tile", number(2), expression("*") or f.Expr.atom("*"))]),
]


@pytest.mark.parametrize("text, construct, clauses", ACC, ids=[t for t, _, _ in ACC])
def test_openacc(forms, text, construct, clauses):
    assert forms(text, language="acc") == [f.Acc(None, construct, clauses)]


def test_expressions():
    same = [
        ("2*(i+1)-1", "i*2 + 1"),
        ("N - 1 + 1", "N"),
        ("(i)", "i"),
        ("0x10 + 010", "24"),
        ("-7/2", "-3"),
        ("7 % 4", "3"),
        ("n*m", "m * n"),
        ("i - i", "0"),
    ]
    for one, other in same:
        assert expression(one) == expression(other), (one, other)
    assert expression("i + 2*j - 3").terms == (("i", 1), ("j", 2))
    assert str(expression("f(i, 2) + (a > b ? 1 : n->m) + x[3]"))
    assert expression("i +") is None
    assert expression("1 / 0") is None
