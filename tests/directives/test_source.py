"""Text, macros and binding: continued lines, headers, what is not C."""

import pytest
from tasuki_directives import forms as f
from tasuki_directives.diagnostics import BadInput
from tasuki_directives.source import Source

HEAD = """#pragma xmp nodes p(4)
#pragma xmp template t(0:99)
#pragma xmp distribute t(block) onto p
double a[100], b[100], s;
#pragma xmp align a[i] with t(i)
#pragma xmp align b[i] with t(i)
#pragma xmp shadow a[1]
"""


def statement_of(bound, read):
    span = read.program.code.statement_span(bound.statement)
    return span.source.text[span.start : span.end]


def test_continued_lines(read):
    found = read("#pragma xmp \\\n  nodes \\\r\n p(2, \\\n   2)\n#pragma xmp template t(0:\\\n9)\n")
    assert [form.name for form in found.forms] == ["p", "t"]
    assert [(b.pragma.first_line, b.pragma.last_line) for b in found.directives] == [(1, 4), (5, 6)]


def test_a_comment_that_ends_on_another_line(read):
    found = read(
        "#pragma xmp nodes p(2) /* two\nof them */\nint x;\n#pragma xmp nodes q(2) // q\nint y = 1 /* #pragma xmp */;\n"
    )
    assert [form.name for form in found.forms] == ["p", "q"] and not found.findings


def test_the_caret_of_a_continued_line(read):
    finding = read(HEAD + "void f(void) {\n#pragma xmp reflect (a) \\\n    width(1) \\\n    bogus\n}\n").findings[0]
    assert finding.span.source.place(finding.span.start) == (11, 5)


def test_macros(read):
    text = (
        "#define GRID 2\n#define NODES(n) nodes p(n)\n#pragma xmp NODES(GRID)\n#undef GRID\n#define GRID 3\n"
        "#define JOIN(x, y) x##y\n#pragma xmp nodes JOIN(q, 1)(GRID)\n"
    )
    found = read(text)
    assert [(form.name, form.extents) for form in found.forms] == [("p", [f.Expr.of(2)]), ("q1", [f.Expr.of(3)])]
    assert found.program.code.unit.main.text == text


def test_a_macro_of_the_command_line(read):
    assert read("#pragma xmp nodes p(COUNT)\n", "-DCOUNT=7").forms[0].extents == [f.Expr.of(7)]


def test_the_caret_of_a_macro_is_under_its_name(read):
    text = "#define WIDE 5\n" + HEAD + "void f(void) {\n#pragma xmp reflect (a) width(WIDE)\n}\n"
    finding = read(text).findings[0]
    span = finding.span
    assert finding.message == "width 5 goes beyond the shadow: dimension 0 of 'a' has 1 lower layers"
    assert span.source.text[span.start : span.end] == "WIDE"


def test_wrong_use_of_a_macro_is_told_at_its_line(read):
    with pytest.raises(BadInput, match=r'a\.c:3:.*macro "TWO" requires 2 arguments|a\.c:3:.*too few arguments'):
        read("#define TWO(x, y) x\n\n#pragma xmp nodes p(TWO(1))\n")


def test_what_is_switched_off_does_not_count(read):
    found = read(
        "#if 0\n#pragma xmp bogus\n#endif\n#ifdef ON\n#pragma xmp nodes p(2)\n#else\n#pragma xmp nodes q(2)\n#endif\n"
    )
    assert [form.name for form in found.forms] == ["q"] and not found.findings
    assert read("#if 0\n#pragma xmp nodes p(2)\n#endif\nint x;\n").program is None


def test_no_pragmas(read):
    assert read('int main(void) { return 0; }\nconst char *x = "\\n#pragma xmp loop";\n').program is None
    assert read("/*\n#pragma xmp bogus\n*/\n#pragma omp parallel\nint x;\n").program is None


def test_headers(read, tmp_path):
    (tmp_path / "mesh.h").write_text("#define SIZE 20\n#pragma xmp nodes p(4)\n#pragma xmp template t(0:SIZE-1)\n")
    found = read(
        '#include "mesh.h"\n#include <math.h>\n#pragma xmp distribute t(block) onto p\n'
        "double a[SIZE];\n#pragma xmp align a[i] with t(i)\n"
    )
    assert not found.findings
    assert [type(form).__name__ for form in found.forms] == ["Nodes", "Template", "Distribute", "Align"]
    assert found.directives[0].pragma.span.source.path.endswith("mesh.h")


def test_a_header_in_a_function(read, tmp_path):
    (tmp_path / "locals.h").write_text("double local[100], n;\n{ double inner; (void)inner; }\nn = 0;\n")
    found = read(
        HEAD + 'void f(void) {\n#include "locals.h"\n#pragma xmp align local[i] with t(i)\n#pragma xmp bcast (n)\n'
        '#pragma xmp tasks\n  {\n#include "locals.h"\n#pragma xmp bcast (missing)\n  }\n}\n'
    )
    assert found.messages == ["no variable 'missing' is declared here"]


def test_a_header_by_another_name(read, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "mesh.h").write_text(
        "#pragma xmp nodes p(4)\nstatic inline void f(double *x) {\n#pragma xmp bcast (x[0:2])\n  x[0:2] = 1;\n}\n"
        "static inline void g(double *x) {\n#pragma xmp bcast (x)\n  x[0:2] = 1;\n}\n"
    )
    (tmp_path / "link.h").symlink_to("mesh.h")
    for name in ("deep/../mesh.h", "link.h", "./mesh.h"):
        assert read(f'#include "{name}"\n').messages == ["':' may not stand here"], name
    found = read("#include <../mesh.h>\n", f"-I{tmp_path}/deep")
    assert found.messages == ["':' may not stand here"]
    assert found.directives[-1].place.function.spelling == "g"


def test_a_fault_in_a_header_is_told_there(read, tmp_path):
    (tmp_path / "mesh.h").write_text("int x;\n#pragma xmp nodes p(0)\n")
    assert str(read('#include "mesh.h"\n').findings[0]).startswith(
        f"{tmp_path}/mesh.h:2:21: error: an extent of 0 nodes"
    )


def test_the_operator_pragma_is_refused(read):
    assert read('_Pragma("xmp nodes p(2)")\nint x;\n').messages == [
        "a directive that _Pragma makes has no place in the text"
    ]


def test_several_directives_on_a_statement(read):
    body = "for (int i = 0; i < 100; i++) { a[i] = 0; }"
    found = read(f"{HEAD}void f(void) {{\n#pragma xmp loop on t(i)\n#pragma acc parallel loop\n{body}\n}}\n")
    assert not found.findings
    assert [statement_of(bound, found) for bound in found.directives[-2:]] == [body, body]


def test_bodies_without_braces(read):
    inner = "for (int i = 0; i < 100; i++) a[i] = 0;"
    text = f"""{HEAD}void f(int n) {{
  for (int k = 0; k < n; k++)
#pragma xmp loop on t(i)
    {inner}
  if (n > 1)
    s = 1;
  else
#pragma xmp task on p(1)
    s = 2;
  switch (n) {{
  case 1:
#pragma xmp barrier
    s = 3;
  }}
}}
"""
    found = read(text)
    assert not found.findings
    assert statement_of(found.directives[-3], found) == inner
    assert statement_of(found.directives[-2], found) == "s = 2;"


def test_a_nest_starts_after_other_statements(read):
    found = read(
        HEAD + "void f(void) {\n  s = 0;\n  { int i = 0; s = i; }\n"
        "#pragma xmp loop on t(i)\n  for (int i = 0; i < 9; i++) s = 1;\n  s = 4;\n}\n"
    )
    assert not found.findings
    assert statement_of(found.directives[-1], found).startswith("for (int i = 0; i < 9")


def test_what_is_not_c_is_replaced_by_the_same_length(tmp_path):
    text = "x[0:4] = y[:][i ? 1 : 2]; z[0:n]:[img] = q ? r[1] : w[2]; int c[4]:[*];"
    source = Source(tmp_path / "a.c", text)
    assert source.as_c == "x[0  ] = y[0][i ? 1 : 2]; z[0  ]       = q ? r[1] : w[2]; int c[4]    ;"
    assert [text[s.span.start : s.span.end] for s in source.sections if s.coindex] == [":[img]", ":[*]"]
    assert len(source.sections) == 5
    assert Source("a.c", "v[b ? 0 : 1:2];").as_c == "v[0          ];"
    text = "k(xmp_desc_of(t), xmp_desc_of(x->a[1]));"
    assert Source("a.c", text).as_c == "k(((void*)0)    , ((void*)0)          );"


def test_sections(read):
    found = read(
        HEAD
        + "void f(void) {\n#pragma xmp gmove\n  a[0:50] = b[50:50];\n#pragma xmp array on t(:)\n  a[:] = b[:] + 1;\n}\n"
    )
    assert not found.findings
    assert [statement_of(bound, found) for bound in found.directives[-2:]] == [
        "a[0:50] = b[50:50];",
        "a[:] = b[:] + 1;",
    ]


def test_text_that_is_not_ascii(read):
    found = read(
        HEAD + 'void f(void) {\n  const char *x = "日本語é"; (void)x; /* é */\n'
        "#pragma xmp reflect (b) // é\n#pragma xmp loop on t(i)\n  for (int i = 0; i < 9; i++) b[i + 1] = 0;\n}\n"
    )
    spans = [finding.span for finding in found.findings]
    assert [s.source.text[s.start : s.end] for s in spans] == ["reflect (b)", "i + 1"]


def test_parameters_pointers_members_and_sizes_of_run_time(read):
    text = """#pragma xmp nodes p(4)
#pragma xmp template t(:)
#pragma xmp distribute t(block) onto p
int n;
double late[n];
#pragma xmp align late[i] with t(i)
double *flat, (*rows)[8];
#pragma xmp align flat[i][*] with t(i)
struct field {
  double *values;
#pragma xmp align values[i] with t(i)
#pragma xmp shadow values[1]
} x;
void f(int m, double v[m], double (*w)[3]) {
#pragma xmp align v[i] with t(i)
#pragma xmp align w[i][*] with t(i)
#pragma xmp shadow v[1]
#pragma xmp template_fix t(0:m-1)
#pragma xmp reflect (v, x.values)
#pragma xmp loop on t(i)
  for (int i = 1; i < m - 1; i++) late[i] = v[i - 1] + x.values[i + 1] + w[i][2];
}
void g(double v[10]) {
#pragma xmp template u(0:9)
#pragma xmp distribute u(cyclic) onto p
#pragma xmp align v[i] with u(i)
}
"""
    assert not [str(finding) for finding in read(text).findings]


def test_the_innermost_declaration_counts(read):
    text = (
        HEAD
        + """void f(double x[100]) {
  { double x[4][4]; (void)x; }
  double y[2][2];
  { double y[100]; (void)y;
#pragma xmp align x[i] with t(i)
#pragma xmp align y[i] with t(i)
  }
  (void)y;
}
"""
    )
    assert not [str(finding) for finding in read(text).findings]
