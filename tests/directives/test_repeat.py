"""Which loops of the host are recorded as graphs of the GPU, and what is said of the others."""

import re

import pytest
from test_generated import emit

SETUP = """#pragma xmp nodes p[*]
#pragma xmp template t[100]
#pragma xmp distribute t[block] onto p
static double a[100], b[100];
static int last, times, *where = &last;
#pragma xmp align [i] with t[i] :: a, b
#pragma xmp shadow a[1]
int own(int);
"""
HEAD = "for (int n = 0; n < times; n++) {"
REFLECT = "#pragma xmp reflect (a) acc\n"
NEST = (
    "#pragma xmp loop on t[i]\n#pragma acc parallel loop default(present)\n  for (int i = 1; i < 99; i++) "
    "b[i] = a[i - 1] + last;\n"
)
SUM = (
    "#pragma xmp loop on t[i] reduction(+ : last)\n#pragma acc parallel loop default(present) {} reduction(+ : last)\n"
    "  for (int i = 1; i < 99; i++) last += a[i] > 0;\n"
)
RECORDED = "is recorded as a graph in its fourth iteration"
# The loop's head, its block, and what is said.
CASES = [
    (HEAD, REFLECT + NEST, RECORDED),
    (HEAD, NEST + ";\n" + NEST, RECORDED),
    ("for (n = 0, m = times; n < m; n += 2, m--) {", NEST, RECORDED),
    (HEAD, SUM.format("present(last)"), RECORDED),
    (HEAD, SUM.format(""), "is no graph: the host waits for 'last' of line"),
    (HEAD, NEST + "last++;\n", "is no graph: line .* is the host's"),
    (HEAD, NEST + "#pragma acc update self(b)\n", "is no graph: 'update' of line .* is the host's"),
    (HEAD, NEST + "#pragma xmp barrier acc\n", "is no graph: 'barrier' of line .* is the host's"),
    (HEAD, NEST.replace("default(present)", "present(a)"), "is no graph: line .* copies 'b'"),
    (HEAD, NEST.replace("loop default", "loop async(1) default"), "is no graph: line .* has the clause 'async'"),
    (HEAD, "#pragma xmp reflect (a) async(3) acc\n" + NEST, "is no graph: the host waits for the 'async' of line"),
    (HEAD, NEST.replace("+ last", "+ n"), "is no graph: line .* uses 'n', which changes"),
    (HEAD, "#pragma xmp reflect (a) width(n) acc\n" + NEST, "is no graph: line .* uses what changes"),
    ("for (n = 0; n < times; last = n++) {", NEST, "is no graph: line .* uses 'last', which changes"),
    ("for (n = 0; n < own(n); n++) {", NEST, "is no graph: its head calls a function"),
    ("for (; *where < times; (*where)++) {", NEST, "is no graph: its head sets what is no plain variable"),
    ("for (n = 0; n < times; n++, where[1] += 2) {", NEST, "is no graph: its head sets what is no plain variable"),
    ("for ((n) = *where; n < -times; ++(n)) {", NEST, RECORDED),
    ("while (last < times) {", NEST, "is no graph: it is no for statement with a block"),
]


@pytest.mark.parametrize("device", ["gpu", "emulated"])
def test_each_loop_is_explained(tmp_path, device):
    functions = "".join(
        f"void f{k}(void) {{\n  int n, m;\n  (void)n, (void)m;\n  {head}\n{block}\n  }}\n}}\n"
        for k, (head, block, _) in enumerate(CASES)
    )
    run, text = emit(tmp_path, SETUP + functions, "--explain", "--device", device)
    assert run.returncode == 0, run.stderr
    said = [line for line in run.stderr.splitlines() if "graph" in line]
    assert len(said) == len(CASES), said
    for (head, block, expected), line in zip(CASES, said):
        assert re.search(rf": the loop of line \d+ {expected}", line), (head, block, line)
    assert text.count("xacc_launches(") == sum(expected == RECORDED for _, _, expected in CASES)


def test_an_option_forbids_it(tmp_path):
    program = f"{SETUP}void f(void) {{\n  {HEAD}\n{NEST}  }}\n}}\n"
    run, text = emit(tmp_path, program, "--explain", "--device", "gpu", "--no-graphs")
    assert run.returncode == 0, run.stderr
    assert "is no graph: --no-graphs forbids it" in run.stderr
    assert "xacc_launches(" not in text


def test_of_loops_in_loops_the_inner_one_is_recorded(tmp_path):
    program = f"{SETUP}void f(void) {{\n  for (int m = 0; m < 2; m++) {{\n  {HEAD}\n{NEST}  }}\n{NEST}  }}\n}}\n"
    run, text = emit(tmp_path, program, "--explain", "--device", "gpu")
    assert run.returncode == 0, run.stderr
    assert re.search(rf"the loop of line 11 {RECORDED}", run.stderr)
    assert re.search("the loop of line 10 is no graph: line 11 is the host's", run.stderr)
    assert text.count("xacc_launches(") == 1
