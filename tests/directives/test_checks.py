"""Each check: its message, and the text that its caret is under."""

import pytest

HEAD = """#define N 16
#pragma xmp nodes p(2, 2)
#pragma xmp template t(0:N-1, 0:N-1)
#pragma xmp distribute t(block, block) onto p
#pragma xmp template bare(0:N-1)
#pragma xmp nodes line(4)
#pragma xmp template c(0:N-1)
#pragma xmp distribute c(cyclic) onto line
double a[N][N], b[N][N], plain[N][N], s;
double d[N];
#pragma xmp align a[i][j] with t(j, i)
#pragma xmp align b[i][j] with t(j, i)
#pragma xmp align d[i] with c(i)
#pragma xmp shadow a[1][0:1]
"""
NEST = "  for (int i = 2; i < N - 2; i++)\n    for (int j = 2; j < N - 2; j++)\n      {}\n"


def at_file(line):
    return f"{HEAD}#pragma {line}\n"


def inside(line, statement="s = 0;", before=""):
    return f"{HEAD}void f(void) {{\n{before}#pragma {line}\n{statement}\n}}\n"


def nest(line, body):
    return inside(line, NEST.format(body))


ON = "xmp loop (j, i) on t(j, i)"
CASES = {
    # Clauses
    "unknown clause": (nest(ON + " scatter(1)", "s = 0;"), "unknown clause 'scatter' of 'loop'", "scatter"),
    "unknown clause, none known": (inside("xmp task on p(1,1) fast"), "unknown clause 'fast' of 'task'", "fast"),
    "unknown clause of acc": (inside("acc kernels quick"), "unknown clause 'quick' of 'kernels'", "quick"),
    "clause of another construct": (
        inside("acc enter data copyout(a)"),
        "unknown clause 'copyout' of 'enter data'",
        "copyout(a)",
    ),
    "doubled clause": (inside("xmp reflect (a) width(1,1) width(1,1)"), "clause 'width' stands twice", "width(1,1)"),
    "doubled on": (inside("xmp barrier on p on p"), "clause 'on' stands twice", "on p"),
    "doubled async": (inside("xmp bcast (s) async(1) acc async(2)"), "clause 'async' stands twice", "async(2)"),
    "doubled clause of acc": (inside("acc kernels async(1) async(2)"), "clause 'async' stands twice", "async(2)"),
    "in and out": (inside("xmp gmove in out", "a[0][0] = s;"), "in and out exclude each other", "out"),
    "expand and margin": (
        nest(ON + " expand(1,1) margin(1,1)", "s = 0;"),
        "expand and margin exclude each other",
        "margin(1,1)",
    ),
    "unknown directive": (inside("xmp scatter (a)"), "unknown directive 'scatter'", "scatter"),
    "unknown construct": (inside("acc prallel"), "unknown construct 'prallel'", "prallel"),
    "empty": (inside("xmp"), "this directive is empty", "#pragma xmp"),
    "syntax": (inside("xmp reflect a"), "'a' may not stand here", "a"),
    "too early": (inside("xmp reflect (a"), "'reflect' ends too early", "a"),
    "no on": (nest("xmp loop reduction(+: s)", "s = 0;"), "this loop lacks its clause 'on'", "loop reduction(+: s)"),
    "no argument": (inside("acc data copy"), "clause 'copy' lacks its argument", "copy"),
    "reduction without operator": (
        inside("acc parallel reduction(s)"),
        "a reduction needs an operator",
        "reduction(s)",
    ),
    "locations": (inside("xmp reduction(firstmax: s)"), "firstmax needs locations", "firstmax: s"),
    "width of reflect_do": (
        inside("xmp reflect_do (a) width(1,1)"),
        "clause 'width' belongs to reflect_init",
        "width(1,1)",
    ),
    "negative shadow": (at_file("xmp shadow b[-1][0]"), "a width of -1 layers", "-1"),
    "empty template": (at_file("xmp template e(5:3)"), "this range is empty", "5:3"),
    "star of nodes": (at_file("xmp nodes q(*, 2)"), "only the last extent may be *", "*"),
    "star of nodes, square": (at_file("xmp nodes q[2][*]"), "only the first extent may be *", "*"),
    # Dimensions
    "distribute": (
        at_file("xmp distribute bare(block, *) onto line"),
        "template 'bare' has 1 dimension, not 2",
        "distribute bare(block, *) onto line",
    ),
    "distribute onto": (
        at_file("xmp distribute bare(block) onto p"),
        "nodes 'p' have 2 dimensions, and 1 of the template's are distributed",
        "distribute bare(block) onto p",
    ),
    "align, array": (
        at_file("xmp align plain[i] with c(i)"),
        "'plain' has 2 dimensions, not 1",
        "align plain[i] with c(i)",
    ),
    "align, pointer to rows": (
        at_file("xmp align d[i] with c(i)").replace("double d[N];", "double (*d)[4];").rpartition("#pragma")[0],
        "'d' has 2 dimensions, not 1",
        "align d[i] with c(i)",
    ),
    "align, template": (
        at_file("xmp align plain[i][j] with c(i, j)"),
        "template 'c' has 1 dimension, not 2",
        "align plain[i][j] with c(i, j)",
    ),
    "shadow": (at_file("xmp shadow b[1]"), "'b' has 2 dimensions, not 1", "shadow b[1]"),
    "loop": (nest("xmp loop on t(i)", "s = 0;"), "'t' has 2 dimensions, not 1", "t(i)"),
    "task": (inside("xmp task on p(1)"), "'p' has 2 dimensions, not 1", "p(1)"),
    "reflect": (inside("xmp reflect (a) width(1)"), "'a' has 2 dimensions, not 1", "reflect (a) width(1)"),
    "expand": (nest(ON + " expand(1)", "s = 0;"), "expand has 1 widths, and 't' 2 subscripts", "1"),
    "section of acc": (inside("acc enter data copyin(d[0:2][0:3])"), "'d' has 1 dimension, not 2", "d[0:2][0:3]"),
    "collapse": (nest("acc parallel loop collapse(3)", "s = 0;"), "collapse(3) on a nest of 2", "collapse(3)"),
    "array beyond the template": (
        at_file(
            "xmp template short(N)\n#pragma xmp distribute short(cyclic) onto line\n"
            "#pragma xmp align e[i] with short(i)"
        ).replace("double d[N];", "double d[N], e[N];"),
        "dimension 0 of 'e' is on 0 to 15 of template 'short', which has 1 to 16",
        "align e[i] with short(i)",
    ),
    "blocks too short": (
        at_file("xmp distribute bare(block(3)) onto line"),
        "4 blocks of 3 do not hold the 16 indices of template 'bare'",
        "block(3)",
    ),
    "node 0": (inside("xmp task on line(0)"), "this subscript lies outside of 'line'", "0"),
    "node behind the last": (inside("xmp task on p[0][1:2]"), "this subscript lies outside of 'p'", "1:2"),
    "node behind the last, round": (inside("xmp bcast (s) from p(3, 1)"), "this subscript lies outside of 'p'", "3"),
    "template": (inside("xmp barrier on t(N, 0)"), "this subscript lies outside of 't'", "N"),
    "reduced twice": (inside("xmp reduction(+: s, s)"), "'s' is reduced twice", "+: s, s"),
    "reduced twice by a loop": (
        nest(ON + " reduction(+: s) reduction(max: s)", "s = 0;"),
        "'s' is reduced twice",
        "max: s",
    ),
    # Shadows
    "shadow on cyclic": (at_file("xmp shadow d[1]"), "dimension 0 of 'd' is cyclic, and cannot have a shadow", "1"),
    "full shadow on cyclic": (
        at_file("xmp shadow d[*]"),
        "dimension 0 of 'd' is cyclic, and cannot have a shadow",
        "*",
    ),
    "two shadows": (at_file("xmp shadow a[1][1]"), "'a' has two shadows", "shadow a[1][1]"),
    "width beyond the shadow": (
        inside("xmp reflect (a) width(1, 1)"),
        "width 1 goes beyond the shadow: dimension 1 of 'a' has 0 lower layers",
        "1",
    ),
    "upper width": (
        inside("xmp reflect (a) width(0:2, 0)"),
        "width 2 goes beyond the shadow: dimension 0 of 'a' has 1 upper layers",
        "0:2",
    ),
    "no shadow": (inside("xmp reflect (b)"), "'b' has no shadow", "reflect (b)"),
    "not aligned": (inside("xmp reflect (plain)"), "'plain' is not an aligned array", "reflect (plain)"),
    "leaves the shadow": (
        nest(ON, "b[i][j] = a[i - 1][j] + a[i][j + 1] + a[i + 2][j];"),
        "the reference leaves the shadow: it needs 2 upper layers in dimension 0 of 'a', which has 1",
        "i + 2",
    ),
    "leaves the shadow below": (
        nest(ON, "s = a[i][j - 1];"),
        "the reference leaves the shadow: it needs 1 lower layers in dimension 1 of 'a', which has 0",
        "j - 1",
    ),
    "leaves no shadow": (
        nest(ON, "s = b[i + 1][j];"),
        "the reference leaves the shadow: it needs 1 upper layers in dimension 0 of 'b', which has 0",
        "i + 1",
    ),
    "leaves it by expand": (
        nest(ON + " expand(0, 1)", "s = a[i - 1][j];"),
        "the reference leaves the shadow: it needs 2 lower layers in dimension 0 of 'a', which has 1",
        "i - 1",
    ),
    "leaves it by an offset of the loop": (
        nest("xmp loop (j, i) on t(j, i + 2)", "s = a[i][j];"),
        "the reference leaves the shadow: it needs 2 lower layers in dimension 0 of 'a', which has 1",
        "i",
    ),
    "leaves it by a macro": (
        nest(ON, "s = a[i + FAR][j];").replace("#define N", "#define FAR (1 + 2)\n#define N"),
        "the reference leaves the shadow: it needs 3 upper layers in dimension 0 of 'a', which has 1",
        "i + FAR",
    ),
    "neighbour of cyclic": (
        inside("xmp loop on c(i)", "for (int i = 1; i < N; i++) d[i] = d[i - 1];"),
        "the reference leaves the shadow: it needs 1 lower layers in dimension 0 of 'd', which has 0",
        "i - 1",
    ),
    # Loops
    "misaligned": (
        nest("xmp loop (j, i) on t(j, i)", "s = b[j][i];").replace("[j][i]", "[j][2]"),
        "misaligned loop: 'b' has 'j' in dimension 0, on which 'i' runs",
        "j",
    ),
    "other template": (
        inside("xmp loop on c(i)", "for (int i = 0; i < N; i++) d[i] = b[i][0];"),
        "misaligned loop: 'b' is aligned with 't', and the loop runs on 'c', which is distributed otherwise",
        "b[i][0]",
    ),
    "stride": (
        inside("xmp loop on t(*, i)", "for (int i = 0; i < N / 2; i++) b[2 * i][0] = 0;"),
        "misaligned loop: '2*i' in dimension 0 of 'b' leaves the node",
        "2 * i",
    ),
    "not distributed by the loop": (
        nest("xmp loop on t(*, i)", "b[i][j] = 0;"),
        "misaligned loop: 'b' has 'j' in dimension 1, on which no index of the loop runs",
        "j",
    ),
    "undistributed template": (
        inside("xmp loop on bare(i)", "for (int i = 0; i < N; i++) s = 0;"),
        "template 'bare' is not distributed",
        "bare(i)",
    ),
    "align with an undistributed template": (
        at_file("xmp align plain[i][*] with bare(i)"),
        "template 'bare' is not distributed",
        "align plain[i][*] with bare(i)",
    ),
    "index of no loop": (
        nest("xmp loop (j, k) on t(j, k)", "s = 0;"),
        "no for statement that follows has the index 'k'",
        "loop (j, k) on t(j, k)",
    ),
    "index not used": (
        nest("xmp loop (j, i) on t(j, *)", "s = 0;"),
        "index 'i' is not used by 'on'",
        "loop (j, i) on t(j, *)",
    ),
    "no index": (
        nest("xmp loop on t(1, 2)", "s = 0;"),
        "'on' names no index of the for statements that follow",
        "t(1, 2)",
    ),
    "not affine on": (nest("xmp loop on t(2*j, i)", "s = 0;"), "'2*j' is not an index plus or minus an offset", "2*j"),
    "not affine align": (
        at_file("xmp align plain[i][j] with t(2*j, i)"),
        "'2*j' is not an index plus or minus an offset",
        "2*j",
    ),
    "index without a template": (
        at_file("xmp align plain[i][j] with t(*, i)"),
        "index 'j' does not come with the template",
        "align plain[i][j] with t(*, i)",
    ),
    # Names
    "no template": (
        inside("xmp loop on u(i)", "for (int i = 0; i < N; i++) s = 0;"),
        "'u' is neither a template nor nodes",
        "u(i)",
    ),
    "no nodes": (
        at_file("xmp distribute bare(block) onto q"),
        "no nodes 'q' are declared",
        "distribute bare(block) onto q",
    ),
    "no array": (at_file("xmp align w[i] with c(i)"), "no variable 'w' is declared here", "align w[i] with c(i)"),
    "no variable": (inside("xmp bcast (w)"), "no variable 'w' is declared here", "bcast (w)"),
    "no variable of acc": (inside("acc enter data create(w)"), "no variable 'w' is declared here", "create(w)"),
    "template twice": (at_file("xmp template c(4)"), "'c' is declared twice", "template c(4)"),
    "distributed twice": (
        at_file("xmp distribute c(block) onto line"),
        "template 'c' is distributed twice",
        "distribute c(block) onto line",
    ),
    "aligned twice": (at_file("xmp align d[i] with c(i)"), "'d' is aligned twice", "align d[i] with c(i)"),
    "fixed twice": (
        inside("xmp template_fix c(0:3)"),
        "template 'c' is fixed by its declaration",
        "template_fix c(0:3)",
    ),
    # Places
    "outside of a function": (at_file("xmp barrier"), "'barrier' may not stand outside of a function", "barrier"),
    "loop without for": (inside(ON), "'loop' needs a for statement, and line 17 has none", "loop (j, i) on t(j, i)"),
    "acc loop without for": (
        inside("acc parallel loop"),
        "'parallel loop' needs a for statement, and line 17 has none",
        "parallel loop",
    ),
    "at the end of a block": (inside(ON, ""), "no statement follows 'loop' in its block", "loop (j, i) on t(j, i)"),
    "body of if": (
        inside("xmp barrier", "s = 0;", before="if (s > 0)\n"),
        "'barrier' may not stand here: it is no statement, and C wants one",
        "barrier",
    ),
    "between": (
        nest(ON + "\n#pragma xmp barrier", "s = 0;"),
        "'barrier' may not stand between 'loop' and its statement",
        "barrier",
    ),
    "in a struct": (
        f"{HEAD}struct x {{\n#pragma xmp nodes q(2)\n  int y;\n}};\n",
        "'nodes' may not stand in a struct",
        "nodes q(2)",
    ),
    "gmove without assignment": (
        inside("xmp gmove", "a[0][0];"),
        "'gmove' needs an assignment, and line 17 is none",
        "gmove",
    ),
    "array without sections": (
        inside("xmp array on c(:)", "d[0] = 1;"),
        "'array' needs array sections, and line 17 has none",
        "array on c(:)",
    ),
    "array on another template": (
        inside("xmp array on c(:)", "b[0][:] = 2;"),
        "'b' is aligned with 't', and not with 'c'",
        "b[0][:]",
    ),
    "tasks with others": (inside("xmp tasks", "{ s = 1; }"), "'tasks' holds tasks only, and line 17 is none", "tasks"),
    "communication in a region": (
        inside("acc parallel", "{\n#pragma xmp barrier\ns = 0;\n}"),
        "'barrier' communicates, and may not stand in the compute region of line 16",
        "barrier",
    ),
    "reduction in a region": (
        inside("acc kernels", "{\n#pragma xmp loop on c(i) reduction(+: s)\nfor (int i = 0; i < N; i++) s += d[i];\n}"),
        "'loop' communicates, and may not stand in the compute region of line 16",
        "loop on c(i) reduction(+: s)",
    ),
    "broken C": (inside("xmp barrier", "s = missing;"), "use of undeclared identifier 'missing'", "missing"),
}


NESTED = """for (int i = 1; i < N - 1; i++) {{
#pragma xmp loop (j) on t(j, *)
  for (int j = 1; j < N - 1; j++) {}
}}
"""
CASES["nested loop directives"] = (
    inside("xmp loop (i) on t(*, i)", NESTED.format("b[i][j] = a[i][j + 1] + a[i + 3][j];")),
    "the reference leaves the shadow: it needs 3 upper layers in dimension 0 of 'a', which has 1",
    "i + 3",
)


@pytest.mark.parametrize("name", CASES)
def test_faults(fault, name):
    text, message, under = CASES[name]
    found, caret = fault(text)
    assert (found, caret) == (message, under)


FINE = {
    "nested loop directives": inside("xmp loop (i) on t(*, i)", NESTED.format("b[i][j] = a[i - 1][j];")),
    "shadow": nest(ON, "b[i][j] = a[i - 1][j] + a[i + 1][j] + a[i][j + 1];"),
    "both orders of acc and xmp": nest(ON + "\n#pragma acc loop", "b[i][j] = 0;").replace(
        "void f(void) {", "void f(void) {\n#pragma acc parallel\n{"
    )
    + "}",
    "loop in a region": inside("acc kernels", "{\n#pragma xmp loop on c(i)\nfor (int i = 0; i < N; i++) d[i] = 0;\n}"),
    "not affine": nest(ON, "s = a[i * i][j] + a[(int)s][j];"),
    "fixed element": nest(ON, "s = a[0][j];"),
    "not distributed": nest(ON, "s = plain[j + 5][i];"),
    "run-time shadow": nest(ON, "s = a[i + (int)s][j];"),
    "full shadow": nest(ON, "s = b[i + 9][j - 9];").replace("void f", "#pragma xmp shadow b[*][*]\nvoid f"),
    "loop over a serial index": inside("xmp loop on t(*, i)", "for (int i = 0; i < N; i++) b[i][0] = 0;"),
    "tasks": inside("xmp tasks", "{\n#pragma xmp task on p(1,1)\ns = 0;\n#pragma xmp task on p(2,2)\n{ s = 1; }\n}"),
    "task on a template element": inside("xmp task on t(0, 0)", "{ s = 1; }"),
    "equal mapping": nest("xmp loop (j, i) on t2(j, i)", "b[i][j] = 0;").replace(
        "void f",
        "#pragma xmp template t2(0:N-1, 0:N-1)\n#pragma xmp distribute t2(block, block) onto p\nvoid f",
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_nothing_to_say(read, name):
    assert not [str(finding) for finding in read(FINE[name]).findings]


def test_a_message_whole(read, tmp_path):
    text = inside("xmp loop (j, i) \\\n\ton t(j, k)", "for (int i = 0; i < N; i++) s = 0;")
    finding = str(read(text).findings[0])
    assert finding == (
        f"{tmp_path}/a.c:16:13: error: no for statement that follows has the index 'j'\n"
        "    #pragma xmp loop (j, i) \\\n"
        "                ^~~~~~~~~~~~~\n"
        "    remedy: the indices are i"
    )


def test_all_faults_of_a_file_are_told(read):
    found = read(inside("xmp reflect (b)\n#pragma xmp reflect (plain)\n#pragma xmp fetch")).messages
    assert found == ["unknown directive 'fetch'", "'b' has no shadow", "'plain' is not an aligned array"]
