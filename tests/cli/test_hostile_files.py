"""Files that others have written: what stands in them is shown, and neither a terminal nor a browser obeys it."""

import json
import re
import shutil
from html.parser import HTMLParser

ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\r"
TAG = "<img src=x onerror=alert(1)>"
NO_MPI = {"TASUKI_MPIEXEC": "/bin/false"}
HALO = ["halo", "--machine", "host-2core", "--extents", "12x13", "--split", "2x1", "--fields", "u"]


def plan_files(tasuki, folder):
    tasuki("plan", *HALO, "--out", folder, **NO_MPI)
    return sorted(folder.glob("rank-*.json"))


def change(file, function):
    data = json.loads(file.read_text())
    function(data)
    file.write_text(json.dumps(data))


def is_plain(text):
    return all(c.isprintable() or c in "\n\t" for c in text)


def test_verify_obeys_no_word_of_a_plan_file(finished, tasuki, tmp_path):
    files = plan_files(tasuki, tmp_path / "plans")
    for file in files:
        change(file, lambda plan: plan.update(operation=f"halo {ESCAPES}[red]u[/red]"))
    done = finished("verify", *files)
    assert done.returncode == 0 and is_plain(done.stdout + done.stderr)
    assert r"\x1b[2J" in done.stdout and "[red]u[/red]" in done.stdout

    def rename(plan):
        for buffer in plan["buffers"]:
            if "name" in buffer:
                buffer["name"] += ESCAPES

    change(files[0], rename)  # a problem that names the buffer
    done = finished("verify", *files)
    assert done.returncode == 1 and is_plain(done.stdout + done.stderr)
    assert r"\x1b[2J" in done.stdout and "has no such buffer" in " ".join(done.stdout.split())
    done = finished("verify", files[0])  # a failure that names the operation
    assert done.returncode == 1 and is_plain(done.stderr) and "is missing" in done.stderr
    hostile = tmp_path / f"plan{ESCAPES}.json"
    hostile.write_text('{"operation": 1, "buffers": [], "commands": []}')
    done = finished("verify", hostile)
    assert done.returncode == 1 and is_plain(done.stdout + done.stderr)


class Page(HTMLParser):
    """The tags and attributes of a page, and the texts of its scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.handlers, self.scripts, self.inside = [], [], [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.handlers += [name for name, _ in attributes if name.startswith("on")]
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "script"

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


def test_no_word_of_a_file_becomes_part_of_the_report(tasuki, traced, tmp_path):
    folder = tmp_path / "report"
    shutil.copytree(traced[0], folder)
    for file in folder.glob("rank-*.json"):

        def rename(trace):
            trace["host"] = TAG
            for plan in trace["plans"]:
                plan["operation"] = f"<!--<script>{TAG}</script>"
                plan["paths"] = [f"{path}\"'{TAG}" for path in plan["paths"]]
                for buffer in plan["buffers"]:
                    if "name" in buffer:
                        buffer["name"] = TAG

        change(file, rename)
    times = {"median_us": 2, "p10_us": 1, "p90_us": 3}
    cases = [{"group": TAG, "case": f"{n} B {TAG}", "bytes": n, "peers": {"tasuki": times, TAG: times}}
             for n in (8, 16, 32)]  # fmt: skip
    (folder / "bench.json").write_text(json.dumps({"cases": cases, "machine": {TAG: TAG}}))
    (folder / "info.json").write_text(
        json.dumps({"usable": [{"what": TAG, "usable": True, "text": TAG}], "topology": [TAG]})
    )
    constants = {"latency": 1e-6, "bandwidth": 1e9, "per_run": 1e-9}
    profile = {"machine": TAG, "version": 1, "paths": {TAG: constants}}
    (folder / f"p{TAG.replace('/', '')}.json").write_text(json.dumps(profile))
    (folder / f"broken{TAG.replace('/', '')}.json").write_text("{")
    assert tasuki("report", folder, "--json")["left_out"]
    page = Page((folder / "report.html").read_text())
    assert page.handlers == [] and page.tags.count("script") == 2
    rows = json.loads(page.scripts[0])["rows"]
    assert rows and all("<" not in script for script in page.scripts[:1])
    assert any("onerror" in span[3] or "shared" in span[3] for row in rows for span in row["spans"])
    assert page.scripts[1].strip().startswith("// The report's tabs")
    assert not re.search(r"<!--", (folder / "report.html").read_text())


def test_plot_writes_into_its_folder_only(tasuki, tmp_path):
    times = {"median_us": 2, "p10_us": 1, "p90_us": 3}
    cases = [{"group": "../../out", "case": f"{n} B", "bytes": n, "peers": {"tasuki": times}} for n in (8, 16, 32)]
    results = tmp_path / "a" / "b" / "bench.json"
    results.parent.mkdir(parents=True)
    results.write_text(json.dumps({"cases": cases}))
    written = tasuki("plot", results, "--output", tmp_path / "a" / "b" / "figures", "--json")["figures"]
    assert written and all(
        (tmp_path / "a" / "b" / "figures") in (tmp_path / name).resolve().parents for name in written
    )
