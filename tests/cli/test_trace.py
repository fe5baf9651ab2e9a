"""What a run records, how it is merged and added up, and the page made of it."""

import json
import os
import re
import shutil
import subprocess

import pytest

from tasuki import tables, timeline
from tasuki.checked import FileError
from tasuki.report.drawing import label_of


def spans(folder):
    events = json.loads((folder / "timeline.json").read_text())["traceEvents"]
    return [e for e in events if e["ph"] == "X"]


def test_every_command_of_every_epoch_is_there(traced):
    folder, _ = traced
    commands = [e for e in spans(folder) if e["cat"] == "command"]
    plans = [json.loads((folder / f"rank-{r}.json").read_text())["plans"][0] for r in (0, 1)]
    for rank, plan in enumerate(plans):
        seen = [(e["args"]["epoch"], e["args"]["command"]) for e in commands if e["pid"] == rank]
        assert sorted(seen) == [(epoch, i) for epoch in range(1, 22) for i in range(len(plan["commands"]))]
    puts = [e for e in commands if e["args"]["verb"] == "put"]
    assert puts and all(e["args"]["bytes"] > 0 and e["args"]["path"] == "shared:put" for e in puts)


def test_the_clocks_agree_a_wait_ends_after_its_signal_began(traced):
    folder, _ = traced
    traces = timeline.load(folder)
    began = {}
    for t in traces:
        for e in t.events:
            if e.kind == timeline.COMMAND and t.command(e)["verb"] == "signal":
                buffer = t.plans[e.operation]["buffers"][t.command(e)["dst"]]
                began[label_of(buffer), buffer.get("rank", 0), e.epoch] = e.begin
    checked = 0
    for t in traces:
        for e in t.events:
            command = t.command(e) if e.kind == timeline.COMMAND else {}
            if command.get("verb") == "wait" and e.epoch > command.get("lag", 0):
                buffer = t.plans[e.operation]["buffers"][command.get("src", 0)]
                assert e.end >= began[label_of(buffer), buffer.get("rank", 0), e.epoch - command.get("lag", 0)]
                checked += 1
    assert checked >= 40


def test_the_lanes_and_the_program_never_overlap_themselves(traced):
    folder, _ = traced
    by_row = {}
    for e in spans(folder):
        by_row.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    assert len(by_row) >= 6
    for row in by_row.values():
        row.sort()
        assert all(a[1] <= b[0] + 0.002 for a, b in zip(row, row[1:]))  # written with three decimals


def test_the_summary_adds_up(traced):
    _, summary = traced
    assert [r["rank"] for r in summary["ranks"]] == [0, 1]
    for r in summary["ranks"]:
        assert r["compute"] + r["exposed"] == pytest.approx(r["seconds"])
        assert r["exposed"] > 0 and 0 <= r["hidden"] <= r["compute"] + 1e-9
    assert [(o["operation"], o["epochs"]) for o in summary["operations"]] == [("halo p", 21)]


def test_exposed_and_hidden_of_a_known_timeline():
    ns = 1000
    plan = {"operation": "halo u", "paths": ["mpi"], "commands": [{"verb": "send", "peer": 1, "bytes": 8}]}
    start, wait, command = (timeline.KINDS.index(k) for k in ("start", "wait", "command"))
    events = [
        timeline.Event(start, 0, -1, 1, 0, 0, 1 * ns),
        timeline.Event(command, 0, 0, 1, 0, 1 * ns, 8 * ns),  # the program computes from 1 to 5
        timeline.Event(wait, 0, -1, 1, 0, 5 * ns, 9 * ns),
    ]
    trace = timeline.RankTrace(0, 1, "host", 0, 0, 0, [plan], events)
    row = timeline.rank_summary(trace)
    assert row["seconds"] == pytest.approx(9e-6)
    assert row["exposed"] == pytest.approx(5e-6)
    assert row["hidden"] == pytest.approx(4e-6)


def test_a_folder_that_cannot_be_written_is_an_error(tasuki, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    program = ["himeno", "-n", 2, "--size", "32x32x64", "--iterations", "3"]
    assert "it must name a folder that can be written" in tasuki(*program, status=1, TASUKI_TRACE=str(file))


def test_the_plans_of_a_trace_verify(tasuki, traced):
    folder, _ = traced
    assert [r["ok"] for r in tasuki("verify", folder, "--json")["operations"]] == [True]


def test_broken_plans_are_found(tasuki, traced, tmp_path):
    plans = [json.loads((traced[0] / f"rank-{r}.json").read_text())["plans"][0] for r in (0, 1)]
    files = [tmp_path / f"plan-{r}.json" for r in (0, 1)]
    files[0].write_text(json.dumps(plans[0]))
    assert "the plan of rank 1 is missing" in tasuki("verify", files[0], status=1)
    signals = [i for i, c in enumerate(plans[1]["commands"]) if c["verb"] == "signal"]
    broken = {**plans[1], "commands": [dict(c) for c in plans[1]["commands"]]}
    broken["commands"][signals[0]]["index"] = 7
    files[1].write_text(json.dumps(broken))
    assert "problems" in tasuki("verify", *files, status=1)
    broken["commands"][0]["verb"] = "shout"
    files[1].write_text(json.dumps(broken))
    assert "plan-1.json: plan JSON, commands[0].verb" in tasuki("verify", *files, status=1)


def test_a_damaged_trace_says_so(traced, tmp_path):
    for name in ("rank-0.json", "rank-1.json"):
        shutil.copy(traced[0] / name, tmp_path)
    file = tmp_path / "rank-1.json"
    whole = file.read_text()
    for text, expected in (
        (whole[:2000], "rank-1.json: not JSON at line"),
        (whole.replace('"format": 1,', '"format": 9,', 1), "no trace of format 1"),
        (re.sub(r"\[3,0,0,", "[3,0,999,", whole, count=1), "is of command 999; operation 0 has"),
        (re.sub(r"\[3,0,0,", "[3,-1,0,", whole, count=1), "is of operation -1; there are 1"),
        (re.sub(r"\[3,0,0,", "[3,0,[0],", whole, count=1), "it must be 7 whole numbers"),
        (whole.replace('"operation": "halo p",', "", 1), "rank-1.json: plans[0] has no 'operation'"),
        (whole.replace('"verb":"signal"', '"verb":"shout"', 1), "rank-1.json: plans[0]: plan JSON, commands["),
        (whole.replace('"ranks": 2,', '"ranks": "2",', 1), "ranks is '2'; it must be a whole number"),
        (whole.replace('"ranks": 2,', '"ranks": 1000000000000,', 1), "is of a run on 1000000000000 ranks"),
    ):
        file.write_text(text)
        with pytest.raises(FileError, match=re.escape(expected)):
            timeline.load(tmp_path)
    file.unlink()
    with pytest.raises(FileError, match="these have written nothing: 1"):
        timeline.load(tmp_path)
    zero = tmp_path / "rank-0.json"
    zero.write_text(zero.read_text().replace('"ranks": 2,', '"ranks": 1000000000000,', 1))
    with pytest.raises(FileError, match="nothing: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 999999999989 more"):
        timeline.load(tmp_path)


def test_the_status_of_a_program_that_fails_is_passed_on_with_its_trace(finished, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, tasuki\nprint('hello')\ncontext = tasuki.Context()\n"
        "tasuki.Halo(tasuki.Field(tasuki.Grid(context, (8,)))).run()\ncontext.close()\nsys.exit(3)\n"
    )
    folder = tmp_path / "run"
    done = finished("trace", "--json", "-n", 1, "-o", folder, script)
    assert done.returncode == 3 and "hello" in done.stderr, done.stderr
    assert json.loads(done.stdout)["status"] == 3 and (folder / "timeline.json").exists()


def test_a_failed_trace_says_which_ranks_are_missing(tasuki, traced, tmp_path):
    """A program that leaves what rank 1 recorded, and fails before rank 0 has."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, shutil\n"
        "rank = int(os.environ.get('OMPI_COMM_WORLD_RANK', os.environ.get('PMI_RANK', '0')))\n"
        f"if rank == 1: shutil.copy({str(traced[0] / 'rank-1.json')!r}, os.environ['TASUKI_TRACE'])\n"
        "sys.exit(3 if rank == 1 else 0)\n"
    )
    other = tmp_path / "other"
    other.mkdir()
    told = tasuki("trace", "-n", 2, "-o", other, script, status=3)
    assert "ended with status 3; " in told and "rank-1.json is of 2 ranks; there are files of 1; " in told
    assert "these have written nothing: 0" in told
    script.write_text("import sys\nsys.exit(4)\n")
    told = tasuki("trace", "-n", 2, "-o", tmp_path / "none", script, status=4)
    assert "on 2 ranks ended with status 4 and left no trace in " in told


def test_a_program_that_is_stopped_has_no_trace_but_the_status_of_timeout(tasuki, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import time\ntime.sleep(60)\n")
    tasuki("trace", "--timeout", 1, "-n", 1, "-o", tmp_path / "run", script, status=124)


# Appended to a copy of the page. It presses every tab and notes which section shows and whether its first row can be
# seen, and turns the wheel over the timeline.
PRESS = """<script>
onload = async () => {
  const soon = () => new Promise((done) => setTimeout(done, 50));
  const seen = [], canvas = document.querySelector("canvas"), bar = document.querySelector("header");
  const said = (what, yes) => { if (!yes) seen.push("BUT " + what); };
  const shown = () => [...document.querySelectorAll("section")].filter((s) => s.offsetHeight > 0);
  const top = () => shown()[0].getBoundingClientRect().top;
  await soon();
  said("hidden at the start", top() >= bar.offsetHeight - 1);
  for (const tab of document.querySelectorAll("[role=tab]")) {
    scrollTo(0, 500);
    tab.click();
    await soon();
    said("rows of " + tab.dataset.name + " below the bar", scrollY === 0 && top() >= bar.offsetHeight - 1);
    said(tab.dataset.name + " wider than the screen", document.documentElement.scrollWidth <= innerWidth);
    const words = [...shown()[0].querySelectorAll("th:first-child")];
    said("words of " + tab.dataset.name + " cut into letters", words.every((cell) => cell.offsetHeight < 60));
    seen.push(shown().map((s) => s.id).join("+"));
    if (tab.dataset.name === "timeline") {
      const ink = () => canvas.toDataURL(), first = ink();
      const turn = (options) =>
        canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: 99, cancelable: true, ...options }));
      said("the wheel does not scroll", turn({}) && ink() === first);
      said("Ctrl and the wheel do not zoom", !turn({ ctrlKey: true }) && ink() !== first);
      document.querySelector("[data-zoom=all]").click();
      const whole = ink();
      canvas.focus();
      said("the wheel does not zoom after a click", !turn({ deltaY: -99 }) && ink() !== whole);
      document.querySelector("[data-zoom=all]").click();
      const left = canvas.getBoundingClientRect().left;
      const finger = (type, id, x) => canvas.dispatchEvent(new PointerEvent(type, {
        pointerId: id, pointerType: "touch", clientX: left + x, clientY: 300, bubbles: true }));
      canvas.setPointerCapture = () => {};
      finger("pointerdown", 7, 200); finger("pointerdown", 8, 250);
      finger("pointermove", 8, 320);
      finger("pointerup", 7, 200); finger("pointerup", 8, 320);
      said("two fingers do not zoom", ink() !== whole);
      if (canvas.height > 100) seen.push("ink");
    }
  }
  document.title = "PRESSED " + seen.join(" ");
};
</script></body>"""
SEEN = "PRESSED tab-time tab-machine tab-topology tab-plan tab-timeline ink tab-benchmarks"


def browse(page, *options, width=1200):
    browser = shutil.which("chromium")
    if not browser:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", *options]
    command += ["--virtual-time-budget=3000", f"--window-size={width},900", f"file://{page}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


@pytest.fixture
def report(tasuki, traced, tmp_path):
    """The page of a folder with a trace and other files, and what the command said."""
    folder = tmp_path / "report"
    shutil.copytree(traced[0], folder)
    rows = [
        {"what": "x", "usable": True, "text": "</script>"},
        {"what": "y", "usable": False, "fault": False, "text": "for others"},
        {"what": "z", "usable": False, "text": "broken"},
    ]
    (folder / "info.json").write_text(json.dumps({"usable": rows, "topology": ["2 ranks"]}))
    (folder / "limit.json").write_text('{"limit": [{"bytes": 1, "us": 1}]}')
    (folder / "other.json").write_text("{}")
    return folder / "report.html", tasuki("report", folder, "--json")


def test_the_report_has_the_command_lines_names_and_units_that_fit(report, tasuki, traced):
    page, made = report
    assert made["ignored"] == ["other.json"]
    text = page.read_text()
    assert not re.search(r'(src|href)="(?!data:)', text)  # nothing is fetched
    for title, columns, rows in tables.trace_tables(traced[1]):
        assert f"<h2>{title}</h2>" in text
        assert all(f">{column.lstrip('>')}</th>" in text for column in columns)
        assert all(f">{cell}</td>" in text for row in rows for cell in row if cell is not None)
    for word in ("yes", "not here", "no"):
        assert f"<td>{word}</td>" in text


# 500 is the narrowest window that Chromium makes.
@pytest.mark.parametrize(("where", "width"), [("", 500), ("#plan", 1200), ("#benchmarks", 500)])
def test_the_report_opens_in_a_browser_and_its_tabs_work(report, tmp_path, where, width):
    page, _ = report
    pressed = tmp_path / "pressed.html"
    pressed.write_text(page.read_text().replace("</body>", PRESS))
    shown, console = browse(f"{pressed}{where}", "--dump-dom", width=width)
    assert console == []
    assert SEEN in shown and "BUT" not in re.search("<title>(.*?)</title>", shown)[1]
    pictures = []
    for options in ([], ["--force-dark-mode"]):
        picture = tmp_path / f"page{len(options)}.png"
        browse(f"{page}{where}", f"--screenshot={picture}", *options, width=width)
        assert picture.stat().st_size > 8000
        pictures.append(picture.read_bytes())
    assert pictures[0] != pictures[1]


def test_the_report_needs_matplotlib_for_figures_only(finished, traced, tmp_path):
    """Without it the figures of results are named as left out, and all else is there."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "matplotlib.py").write_text("raise ImportError('no matplotlib')\n")
    path = f"{tmp_path / 'modules'}:{os.environ['PYTHONPATH']}"
    folder = tmp_path / "run"
    shutil.copytree(traced[0], folder)
    done = finished("report", "--json", folder, PYTHONPATH=path)
    assert done.returncode == 0 and json.loads(done.stdout)["left_out"] == {}, done.stderr
    peers = {"tasuki": {"median_us": 134000, "p10_us": 1, "p90_us": 2}}
    case = {"group": "halo", "case": "8^3", "bytes": 8, "peers": peers}
    (folder / "cases.json").write_text(json.dumps({"cases": [case]}))
    done = finished("report", "--json", folder, PYTHONPATH=path)
    told = json.loads(done.stdout)["left_out"]
    assert done.returncode == 0 and "pip install 'tasuki[plot]'" in told["figures of results"]
    page = (folder / "report.html").read_text()
    assert "134 ms" in page and "figures of results" in page and "halo, medians" in page


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.134, "134 ms"), (4.063e-6, "4.06 µs"), (9.9996e-7, "1.00 µs"), (12.5, "12.5 s"), (1234.5, "1230 s"),
     (2.5e-8, "25.0 ns"), (0, "0"), (1.5e-10, "0.15 ns"), (999.6e-6, "1.00 ms"), (1e-3, "1.00 ms")],
)  # fmt: skip
def test_units_fit(seconds, text):
    assert tables.duration(seconds) == text


def test_a_folder_without_anything_is_an_error(tasuki, tmp_path):
    assert "nothing to report on" in tasuki("report", tmp_path, status=1)


def test_the_report_leaves_out_what_is_damaged_and_says_so(tasuki, traced, tmp_path):
    shutil.copy(traced[0] / "rank-0.json", tmp_path)  # without rank 1
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "cases.json").write_text('{"cases": 5}')
    told = tasuki("report", tmp_path, status=1)
    assert "nothing to report on" in told and "cases.json: cases is 5; it must be a list" in told
    info = {"usable": [{"what": "MPI", "usable": True, "text": "there"}], "topology": ["2 ranks"]}
    (tmp_path / "info.json").write_text(json.dumps(info))
    made = tasuki("report", tmp_path, "--json", "--output", tmp_path / "new" / "page.html")
    assert sorted(made["left_out"]) == ["broken.json", "cases.json", "the trace (rank-*.json)"]
    page = (tmp_path / "new" / "page.html").read_text()
    assert "<h2>left out</h2>" in page and "these have written nothing: 1" in page and "there" in page
    assert f"left out: broken.json: {tmp_path}/broken.json: not JSON at line 1" in tasuki("report", tmp_path)
