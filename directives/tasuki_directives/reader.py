"""From the tokens of a pragma to its typed form: the grammar, then what brackets mean."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import lark

from . import forms, openacc
from .diagnostics import Findings, Span
from .expressions import NotAllowed
from .forms import Expr
from .meaning import Meaning
from .source import TOKEN, Pragma

GRAMMAR = Path(__file__).with_name("grammar.lark")
TERMINALS = {"NAME", "NUMBER", "BITS", "EQUALITY", "RELATION", "SHIFT"}
DIRECTIVES = [
    "nodes",
    "template",
    "distribute",
    "align",
    "shadow",
    "coarray",
    "local_alias",
    "template_fix",
    "task",
    "tasks",
    "loop",
    "array",
    "reflect",
    "reflect_init",
    "reflect_do",
    "reduce_shadow",
    "gmove",
    "barrier",
    "reduction",
    "bcast",
    "wait_async",
    "post",
    "wait",
    "lock",
    "unlock",
    "dimension",
]
REFLECT_CLAUSES = ["width", "orthogonal", "async", "acc"]
CLAUSES = {
    "task": ["nocomm"],
    "tasks": ["nocomm"],
    "loop": ["on", "expand", "margin", "peel_and_wait", "reduction"],
    "array": ["on"],
    "reflect": REFLECT_CLAUSES,
    "reflect_init": REFLECT_CLAUSES,
    "reflect_do": ["async", "acc"],
    "reduce_shadow": REFLECT_CLAUSES,
    "gmove": ["in", "out", "async", "acc"],
    "barrier": ["on", "acc"],
    "reduction": ["on", "async", "acc"],
    "bcast": ["from", "on", "async", "acc"],
    "wait_async": ["on"],
}
SYMBOLS = {"LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "COMMA": ",", "COLON": ":", "STAR": "*", "EQUAL": "="}
SYMBOLS |= {"SLASH": "/", "NAME": "a name", "NUMBER": "a number", "$END": "the end of the directive"}


def _cache() -> str | bool:
    """Where the tables of the grammar are kept, which take longer to make than to read: lark makes them anew if the
    grammar or its own version differs. False if there is no such place."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tasuki"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # the second: there is no home
        return False
    return str(folder / "directives.lark") if os.access(folder, os.W_OK) else False


@functools.cache
def parser() -> lark.Lark:
    text = GRAMMAR.read_text()
    rules = "\n".join(line for line in text.split("\n") if not line.startswith("//"))
    words = set(re.findall(r"(?<![\w\"])(_?[A-Z][A-Z_]+)\b", rules)) - TERMINALS
    keywords = "\n".join(f"{word}.2: /{word.lower().lstrip('_')}\\b/i" for word in sorted(words))
    return lark.Lark(
        f"{text}\n{keywords}\n",
        cache=_cache(),
        parser="lalr",
        lexer="contextual",
        start=["xmp", "acc", "expr"],
        propagate_positions=True,
        maybe_placeholders=True,
    )


@functools.cache
def expression(text: str) -> Expr | None:
    """What an expression of C means, if the grammar of directives has it."""
    tokens = " ".join(m[0] for m in TOKEN.finditer(text) if m.lastgroup != "comment")
    try:
        meaning = Meaning(set(), lambda begin, end: None, None)
        return meaning.expr(meaning.transform(parser().parse(tokens, start="expr")))
    except (lark.exceptions.LarkError, NotAllowed):
        return None


class Reader:
    """Reads pragmas in their order: whether a name stands for nodes decides what its numbers mean."""

    def __init__(self, findings: Findings):
        self.findings = findings
        self.nodes: set[str] = set()

    def read(self, pragma: Pragma) -> list[forms.Directive]:
        """The directives of one pragma; none if it cannot be read, which is then among the findings."""
        tokens = pragma.tokens
        if not tokens:
            self.findings.error(pragma.span, "this directive is empty", "name a directive, or delete the line")
            return []
        if pragma.language == "acc":
            return self._acc(pragma)
        name = tokens[0].text.lower()
        if name not in DIRECTIVES:
            self.findings.error(
                tokens[0].span,
                f"unknown directive '{tokens[0].text}'",
                f"the directives are {', '.join(DIRECTIVES[:-1])}",
            )
            return []
        return self._parse(pragma, "xmp", name, tokens, lambda meaning, tree: meaning.transform(tree))

    def _acc(self, pragma: Pragma) -> list[forms.Directive]:
        words = [token.text.lower() for token in pragma.tokens]
        construct = " ".join(words[:2])
        if construct not in openacc.CONSTRUCTS:
            construct = words[0]
        if construct not in openacc.CONSTRUCTS:
            known = ", ".join(openacc.CONSTRUCTS)
            self.findings.error(
                pragma.tokens[0].span, f"unknown construct '{pragma.tokens[0].text}'", f"the constructs are {known}"
            )
            return []
        count = len(construct.split())

        def form(meaning: Meaning, tree: lark.Tree) -> list[forms.Directive]:
            own, clauses = meaning.transform(tree)
            span = Span(pragma.span.source, pragma.tokens[0].span.start, pragma.span.end)
            if own is not None:
                if construct not in openacc.ARGUMENTS_FIRST:
                    raise NotAllowed(own.span, f"'{construct}' takes no argument", "delete the parentheses")
                own.name = construct
                clauses.insert(0, own)
            self._check_clauses(construct, clauses, own)
            return [forms.Acc(span, construct, clauses)]

        return self._parse(pragma, "acc", construct, pragma.tokens[count:], form)

    def _check_clauses(self, construct: str, clauses: list[forms.Clause], own: forms.Clause | None) -> None:
        seen: set[str] = set()
        known = openacc.CONSTRUCTS[construct][1]
        compute = construct in openacc.COMPUTE_CONSTRUCTS
        for clause in clauses:
            if clause is own:
                continue
            name = clause.name
            if name not in known:
                listed = f"its clauses are {', '.join(known)}" if known else "it has no clauses"
                raise NotAllowed(clause.span, f"unknown clause '{name}' of '{construct}'", listed)
            repeated = name in openacc.REPEATED and not (compute and name in openacc.ONCE_IN_COMPUTE)
            if name in seen and not repeated:
                raise NotAllowed(clause.span, f"clause '{name}' stands twice", "delete one of them")
            seen.add(name)
            self._check_argument(construct, clause)

    @staticmethod
    def _check_argument(construct: str, clause: forms.Clause) -> None:
        name = clause.name
        if name in openacc.NEED_ARGUMENT and clause.items is None:
            raise NotAllowed(clause.span, f"clause '{name}' lacks its argument", f"write {name}(...)")
        if name in openacc.NO_ARGUMENT and clause.items is not None:
            raise NotAllowed(clause.span, f"clause '{name}' takes no argument", f"write {name}")
        operators = {"+", "*", "-", "&", "|", "^", "&&", "||", "max", "min"}
        if name == "reduction" and clause.modifier not in operators:
            raise NotAllowed(
                clause.span, "a reduction needs an operator", "write reduction(+: variable), or max, min, ..."
            )
        if name != "reduction" and clause.modifier in operators - {"max", "min"}:
            raise NotAllowed(clause.span, f"clause '{name}' has no operator", "delete it and the colon")

    def _parse(self, pragma: Pragma, start: str, name: str, tokens: list, form) -> list[forms.Directive]:
        text, starts = "", []
        for token in tokens:
            starts.append(len(text))
            text += token.text + " "

        def span(begin: int, end: int) -> Span:
            """Of characters of the joined text."""
            covered = [t.span for t, at in zip(tokens, starts) if at < end and at + len(t.text) > begin]
            if not covered:
                return pragma.span
            return Span(covered[0].source, min(s.start for s in covered), max(s.end for s in covered))

        end = Span(pragma.span.source, max(pragma.span.end - 1, pragma.span.start), pragma.span.end)
        try:
            return form(Meaning(self.nodes, span, pragma.span), parser().parse(text, start=start))
        except lark.exceptions.VisitError as error:
            if not isinstance(error.orig_exc, NotAllowed):
                raise
            fault = error.orig_exc
        except NotAllowed as error:
            fault = error
        except lark.exceptions.UnexpectedToken as error:
            at_end = error.token.type == "$END"
            place = end if at_end else span(error.token.start_pos, error.token.start_pos + len(error.token))
            fault = self._unexpected(name, "" if at_end else str(error.token), place, set(error.expected))
        except lark.exceptions.UnexpectedCharacters as error:
            at = error.pos_in_stream
            word = text[at:].split(" ")[0]
            fault = self._unexpected(name, word, span(at, at + len(word)), set(error.allowed or ()))
        self.findings.error(fault.span, fault.message, fault.remedy)
        return []

    @staticmethod
    def _unexpected(name: str, word: str, place: Span, expected: set[str]) -> NotAllowed:
        wanted = {e.lower().lstrip("_") for e in expected if e not in SYMBOLS}
        known = CLAUSES.get(name, [])
        if (
            word
            and re.match(r"[A-Za-z_]", word)
            and "NAME" not in expected
            and (wanted & set(known) or "$END" in expected)
        ):
            listed = f"its clauses are {', '.join(known)}" if known else "it has no clauses"
            return NotAllowed(place, f"unknown clause '{word}' of '{name}'", listed)
        found = f"'{word}' may not stand here" if word else f"'{name}' ends too early"
        readable = sorted({SYMBOLS.get(e, e.lower().lstrip("_")) for e in expected if not e.startswith("__")})
        if len(readable) > 8 and "NAME" in expected:
            readable = ["a name", "an expression"]
        return NotAllowed(place, found, f"expected: {', '.join(readable[:8])}")
