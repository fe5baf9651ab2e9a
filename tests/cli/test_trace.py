"""What a run records, how it is merged and added up, and the page made of it."""

import json
import re
import shutil
import subprocess

import pytest

from tasuki import timeline
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


def test_a_program_that_is_stopped_has_no_trace_but_the_status_of_timeout(tasuki, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import time\ntime.sleep(60)\n")
    tasuki("trace", "--timeout", 1, "-n", 1, "-o", tmp_path / "run", script, status=124)


# Appended to a copy of the page: presses every tab and notes which section shows.
PRESS = """<script>
onload = async () => {
  const seen = [];
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.click();
    await new Promise((done) => setTimeout(done, 50));
    seen.push([...document.querySelectorAll("section")].filter((s) => s.offsetHeight > 0).map((s) => s.id).join("+"));
  }
  const ink = document.querySelector("canvas").height > 100;
  document.title = "PRESSED " + seen.join(" ") + (ink ? " ink" : "");
};
</script></body>"""


def browse(page, *options):
    browser = shutil.which("chromium")
    if not browser:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", *options]
    command += ["--virtual-time-budget=3000", "--window-size=1200,900", f"file://{page}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]


def test_the_report_opens_in_a_browser_and_its_tabs_work(tasuki, traced, tmp_path):
    folder = tmp_path / "report"
    shutil.copytree(traced[0], folder)
    (folder / "info.json").write_text(json.dumps({"usable": [{"what": "x", "usable": True, "text": "</script>"}],
                                                  "topology": ["2 ranks"]}))  # fmt: skip
    (folder / "limit.json").write_text('{"limit": [{"bytes": 1, "us": 1}]}')
    (folder / "other.json").write_text("{}")
    made = tasuki("report", folder, "--json")
    assert made["ignored"] == ["other.json"]
    page = folder / "report.html"
    text = page.read_text()
    assert not re.search(r'(src|href)="(?!data:)', text)  # nothing is fetched
    pressed = tmp_path / "pressed.html"
    pressed.write_text(text.replace("</body>", PRESS))
    shown, console = browse(pressed, "--dump-dom")
    assert console == []
    assert "PRESSED machine topology plan timeline benchmarks ink" in shown
    picture = tmp_path / "page.png"
    browse(page, f"--screenshot={picture}")
    assert picture.stat().st_size > 10000


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
    assert "left out, being damaged" in page and "these have written nothing: 1" in page and "there" in page
    assert f"left out: broken.json: {tmp_path}/broken.json: not JSON at line 1" in tasuki("report", tmp_path)
