"""Planning off line from the command line: no ranks are started, so a launcher that cannot be run does no harm."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NO_MPI = {"TASUKI_MPIEXEC": "/bin/false"}
HALO = ["halo", "--machine", "torus-36", "--extents", "24x24x24", "--width", "2", "--fields", "p,q", "--dtype", "f32"]


def test_explain_shows_the_pieces_of_a_rank(tasuki):
    text = tasuki("explain", *HALO, "--split", "3x2x6", "--rank", 35, **NO_MPI)
    assert "halo p,q on rank 35 of 36: 208 pieces" in text or "halo p,q on rank 35 of 36: " in text
    assert "predicted µs" in text and "p +00" in text and " mpi " in text
    assert "prices of machine torus-36: from the paper's figures" in text
    data = tasuki("explain", *HALO, "--rank", "-1", "--periodic", "1,0,1", "--json", **NO_MPI)
    assert [answer["rank"] for answer in data["ranks"]] == list(range(36))
    assert all(piece["path"] in ("mpi", "self") for answer in data["ranks"] for piece in answer["pieces"])
    assert data["options"]["periodic"] == [True, False, True] and data["options"]["shadow"] == 2


def test_explain_takes_a_file_and_other_numbers_of_ranks(tasuki, tmp_path):
    file = ROOT / "machines" / "tca-64.json"
    text = tasuki(
        "explain", "halo", "--machine", file, "--ranks", 20, "--extents", "32x32", "--memory", "device", **NO_MPI
    )
    assert " of 20: " in text and "peer:put" in text
    transfer = ["explain", "transfer", "--machine", "h200-4", "--target", 3, "--plans", tmp_path]
    assert "contiguous" in tasuki(*transfer, "--columns", 64, "--stride", 64, **NO_MPI)
    assert len(list(tmp_path.glob("plan-*.json"))) == 4
    assert tasuki("verify", tmp_path, "--json")["operations"][0]["ok"]
    assert tasuki("explain", "broadcast", "--machine", "torus-36", "--bytes", 4096, **NO_MPI)


def test_predictions_of_several_machines_and_numbers_of_ranks(tasuki):
    numbers = ["-n", 36, "-n", 48, "--json"]
    data = tasuki("predict", "halo", "--machine", "torus-36", *numbers, "--extents", "192x192x192", **NO_MPI)
    rows = data["predictions"]
    assert [(row["machine"], row["ranks"]) for row in rows] == [("torus-36", 36), ("torus-36", 48)]
    assert all(row["operation"].startswith("halo ") for row in rows)
    assert all(0 < row["us"] < 1e5 and row["back_to_back_us"] > 0 for row in rows)
    text = tasuki(
        "predict",
        "allreduce",
        "--machine",
        "cpu-cluster",
        "--machine",
        "tca-64",
        "-n",
        16,
        "-n",
        32,
        "--count",
        1000,
        **NO_MPI,
    )
    assert "times the fastest" in text and "prices of machine cpu-cluster: typical of 2025: not measured" in text
    assert "cpu-cluster, 16 ranks" in tasuki(
        "predict", "broadcast", "--machine", "cpu-cluster", "-n", 16, "--bytes", 4096, "--why", **NO_MPI
    )
    mesh = tasuki("predict", "exchange", "--machine", "cpu-cluster", "-n", 4, "--mesh", 16, "--json", **NO_MPI)
    assert mesh["predictions"][0]["us"] > 0
    assert "--machine is missing" in tasuki("predict", "barrier", status=1, **NO_MPI)
    wrong = tasuki("predict", "barrier", "--machine", "torus-36", "-n", 40, status=1, **NO_MPI)
    assert "torus of 3 x 2 x 6, which grows in its first dimension: give a multiple of 12" in wrong
    assert "give a multiple of 16" in tasuki("predict", "barrier", "--machine", "tca-64", "-n", 72, status=1, **NO_MPI)
    assert tasuki("predict", "barrier", "--machine", "tca-64", "-n", 80, "--json", **NO_MPI)["predictions"][0]["us"] > 0


HYBRID = ["halo", "--machine", "tca-64", "-n", 8, "--extents", "128x128x256", "--split", "2x4x1", "--dtype", "f32"]
HYBRID += ["--periodic", "none", "--memory", "device", "--no-corners", "--shadow", "1x1x0"]


def test_each_direction_of_a_halo_takes_its_path(tasuki):
    data = tasuki("explain", *HYBRID, "--path", "i=mpi,j=peer:put", "--rank", 1, "--json", **NO_MPI)
    pieces = data["ranks"][0]["pieces"]
    by_side = {piece["piece"].split()[1].replace("+", "-"): piece["path"] for piece in pieces}
    assert by_side == {"-00": "mpi:staged", "0-0": "peer:put"}
    text = tasuki("explain", *HYBRID, "--path", "i=mpi,j=peer", "--rank", 1, **NO_MPI)
    assert "balance: " not in text  # each piece has one network
    text = tasuki("explain", *HYBRID, "--rank", 1, **NO_MPI)
    assert re.search(r"^balance: links of the GPU: \d+ bytes, ends after .* us; alone it would take .* us$", text, re.M)
    assert re.search(r"^balance: network outside: \d+ bytes, ", text, re.M)
    wrong = tasuki("explain", *HYBRID, "--path", "l=mpi", status=1, **NO_MPI)
    assert "there is no direction 'l'; this halo has i, j, k" in wrong
    wrong = tasuki("explain", *HYBRID, "--path", "j=shared", status=1, **NO_MPI)
    assert "no path can carry" in wrong and "when path 'shared' is forced" in wrong


def test_boxes_are_mapped_to_ranks(tasuki, tmp_path):
    ring = {"tasuki_machine": 1, "ranks": {"count": 8, "per_host": 1, "per_island": 8, "gpus": True}}
    ring["inside"] = {"kind": "torus", "extents": [8], "bandwidth": 4e9, "latency": 1e-6}
    ring["paths"] = {"peer:put": {"latency": 2e-6, "bandwidth": 2.8e9, "per_run": 1e-8}}
    file = tmp_path / "ring.json"
    file.write_text(json.dumps(ring))
    halo = ["explain", "halo", "--machine", file, *HYBRID[5:], "--path", "peer:put", "--json"]

    def seconds(*options):
        return tasuki(*halo, *options, **NO_MPI)["ranks"][0]["predicted"]["us"]

    row, hops = seconds("--mapping", "row"), seconds("--reorder")
    assert hops < 0.9 * row and seconds("--mapping", "hops") == hops and seconds() == row
    assert seconds("--mapping", "0,1,2,3,7,6,5,4") < row
    for given, why in (
        ("0,1,2,3", "option 'given' has 4 entries, but the grid has 8 boxes"),
        ("0,1,2,3,4,5,6,6", "names rank 6 for box 6 and for box 7; every rank has one box"),
        ("rows", "option 'mapping' is 'rows'; it is row, column, blocks, hops or given"),
    ):
        assert why in tasuki("explain", *halo[1:-1], "--mapping", given, status=1, **NO_MPI)
    ring["uses"] = {"mpi:staged": "outside"}
    file.write_text(json.dumps(ring))
    wrong = tasuki(*halo[:-1], status=1, **NO_MPI)
    assert 'uses.mpi:staged: is "outside", but the file has no network "outside"' in wrong


def test_collectives_are_explained_with_their_candidates(tasuki):
    text = tasuki("explain", "allreduce", "--machine", "torus-36", "--ranks", 12, "--count", 100, **NO_MPI)
    assert "algorithm: " in text and "<- chosen" in text and "us predicted" in text
    assert "which was asked for" in tasuki(
        "explain", "alltoall", "--machine", "torus-36", "--ranks", 5, "--algorithm", "pairwise", **NO_MPI
    )
    data = tasuki("plan", "barrier", "--machine", "host-2core", "--summary", "--json", **NO_MPI)
    assert data["operation"] == "barrier"
    for kind, option in (("barrier", "--count"), ("allgather", "--op"), ("allreduce", "--root"), ("scan", "--ordered")):
        tasuki("plan", kind, "--machine", "host-2core", "--summary", option, 0, status=2, **NO_MPI)  # it has none
    ordered = tasuki("plan", "allreduce", "--machine", "host-2core", "--ordered", "--passes", **NO_MPI)
    assert "allreduce" in ordered


def test_collectives_on_gpus_are_planned_for_paths_between_gpus(tasuki, tmp_path):
    on_gpus = ["--machine", "h200-2", "--memory", "device"]
    for kind in ("allreduce", "barrier"):
        text = tasuki("explain", kind, *on_gpus, "--plans", tmp_path, **NO_MPI)
        assert "peer:ll" in text and "shared:put" not in text and "cannot be shared" not in text
        assert tasuki("verify", tmp_path, "--json")["operations"][0]["ok"]
    assert "peer:" in tasuki("explain", "broadcast", "--bytes", 4096, *on_gpus, **NO_MPI)


@pytest.mark.parametrize("kind", ["neighbour-alltoall", "neighbour-allgather"])
def test_neighbour_collectives_are_explained_off_line_and_on_ranks(tasuki, tmp_path, kind):
    shown = tasuki(
        "explain", kind, "--machine", "tca-64", "--split", "4x16", "--periodic", "1,0", "--rank", "5", "--json"
    )
    pieces = shown["ranks"][0]["pieces"]
    assert len([piece for piece in pieces if piece["from"] == 5]) == 4
    tasuki("plan", kind, "--machine", "tca-64", "--split", "4x16", "--out", tmp_path / "plans")
    assert "64" in tasuki("verify", tmp_path / "plans")
    live = tasuki("explain", kind, "-n", "2", "--split", "2", "--count", "33", "--json")
    assert {piece["bytes"] for piece in live["ranks"][0]["pieces"]} == {33 * 8}


def test_beside_a_computation_one_engine_pays(tasuki):
    shape = ["allreduce", "--machine", "host-2core", "--count", 2097152]
    text = tasuki("explain", *shape, "--beside", 5000, **NO_MPI)
    assert "beside a computation of 5000.00 us" in text and re.search(r"^pays: inline$", text, re.M)
    told = tasuki("explain", *shape, "--beside", 5000, "--json", **NO_MPI)["ranks"][0]["beside"]
    assert [way["engine"] for way in told["ways"]] == ["inline", "thread"] and told["us"] == pytest.approx(5000)
    assert all(way["us"] == pytest.approx(5000 + way["exposed_us"]) for way in told["ways"])
    copies = ["broadcast", "--machine", "h200-2", "--bytes", 1 << 26, "--beside", 2000, "--json"]
    assert tasuki("explain", *copies, **NO_MPI)["ranks"][0]["beside"]["pays"] == "thread"  # there are 32 cores
    halo = ["halo", "--machine", "h200-2", "--extents", "512x512x512", "--memory", "device", "--beside", 400, "--json"]
    ways = {way["engine"]: way for way in tasuki("explain", *halo, **NO_MPI)["ranks"][0]["beside"]["ways"]}
    assert {"stream", "stream, beside", "kernel"} <= set(ways)
    assert ways["kernel"]["us"] < ways["stream, beside"]["us"] < ways["stream"]["us"]
    live = tasuki("explain", "halo", "-n", 2, "--extents", "16x12", "--beside", 30, "--json")
    assert all(answer["beside"] == live["ranks"][0]["beside"] for answer in live["ranks"])
    assert "pays: " in tasuki("explain", "broadcast", "-n", 2, "--bytes", 1000, "--beside", 0.5)
    assert "-3" in tasuki("explain", *shape, "--beside", -3, status=2, **NO_MPI)
    assert "--beside is nan" in tasuki("explain", *shape, "--beside", "nan", status=1, **NO_MPI)


def test_off_line_and_live_options_mean_the_same(tasuki, tmp_path):
    """The live command on 2 ranks, and off line with a machine like it: the same pieces."""
    options = ["halo", "--extents", "16x12", "--fields", "a,b", "--no-periodic", "--shadow", 2, "--width", 1]
    options += ["--copies", 2, "--dtype", "i32", "--path", "shared:put", "--rank", 1, "--json"]
    live = tasuki("explain", *options, "-n", 2)
    off = tasuki("explain", *options, "--machine", "host-2core", **NO_MPI)
    assert off["ranks"][0]["plan"] == live["ranks"][1]["plan"]


def test_off_line_the_epoch_is_predicted(tasuki, tmp_path):
    """Whatever the operation; what is not measured has a star, and a line that explains it."""
    for kind in ["halo", "allreduce"]:
        text = tasuki("explain", kind, "--machine", "host-2core", "--rank", 1, **NO_MPI)
        assert text.count("predicted: an epoch takes") == 1 and "busy: core of rank 1" in text
        assert "* not measured" not in text
        data = tasuki("explain", kind, "--machine", "host-2core", "--rank", 1, "--json", **NO_MPI)["ranks"][0]
        assert 0 < data["predicted"]["us"] <= data["predicted"]["back_to_back_us"] * 1.001
        assert data["predicted"]["text"] in text and not data["pieces"][0]["guess"]
    machine = tmp_path / "bare.json"
    machine.write_text(json.dumps({"tasuki_machine": 1, "ranks": {"count": 2}}))
    text = tasuki("explain", "allgather", "--machine", machine, **NO_MPI)
    assert "* not measured on this machine: priced with" in text and "2.64* │" in text
    assert "not measured on this machine: self, shared:read" in text.split("predicted: ")[1]


def test_a_network_moves_messages_by_itself(tasuki):
    """So the core is busy for a share of each message's latency, not for the time that its bytes travel."""
    broadcast = ["--bytes", 64 << 20, "--trees", 3, "--arity", 3]
    data = tasuki("explain", "broadcast", "--machine", "torus-36", *broadcast, "--json", **NO_MPI)["ranks"][0]
    told = re.search(r"the network moves (\d+) messages; sending them keeps core busy for ([\d.]+) us", data["text"])
    assert told and "sending keeps core" not in data["text"]
    loops = [loop["count"] for loop in data["plan"]["loops"]]
    sends = [command for command in data["plan"]["commands"] if command["verb"] == "send"]
    messages = sum(loops[send["loop"]] if "loop" in send else 1 for send in sends)
    assert messages == int(told[1]) and float(told[2]) == pytest.approx(messages * 0.2 * 2)  # 2 us each
    assert float(told[2]) < data["predicted"]["us"]


def test_every_element_type_is_known(tasuki):
    from tasuki.cli import shapes

    where = ["--machine", "host-2core", "--count", 3, "--json"]
    defaults = {"root": 0, "ordered": False, "in_place": False, "memory": "host", "shared": None, "algorithm": "auto"}
    for name in [*shapes.NUMBERS, *shapes.PAIRS]:
        op = "minloc" if name in shapes.PAIRS else "sum"
        options = {**defaults, **dict.fromkeys(("trees", "arity", "chunk"), 0), "count": 3, "path": "auto"}
        options |= {"dtype": shapes.NUMBERS.get(name, name), "op": op}
        made = shapes.planned("allreduce", shapes.machine_of("host-2core", 2), shapes.checked("allreduce", options))
        expects = json.loads(made.plan(0).json())["expects"]
        assert name in {expect.get("dtype") for expect in expects}, name
    assert "'op' is minloc, which has no meaning" in tasuki(
        "explain", "allreduce", *where[:4], "--op", "minloc", status=1, **NO_MPI
    )
    live = tasuki("explain", "reduce", "-n", 2, "--count", 3, "--dtype", "f64_i32", "--op", "maxloc", "--json")
    assert {expect.get("dtype") for expect in live["ranks"][0]["plan"]["expects"]} == {None, "f64_i32"}
    assert "pip install ml_dtypes" in tasuki("explain", "halo", *where[:2], "--dtype", "bf16", status=1, **NO_MPI)


def test_settings_of_ranks_are_not_for_planning_off_line(finished):
    command = ["explain", "allreduce", "--machine", "host-2core", "--ranks", 8]
    plain = finished(*command, **NO_MPI)
    assert plain.stderr == ""
    done = finished(*command, TASUKI_ALGORITHM="allreduce:ring", TASUKI_ISLAND="2", TASUKI_PATH="mpi", **NO_MPI)
    assert done.returncode == 0 and done.stdout == plain.stdout
    assert [line.split(" is set")[0] for line in done.stderr.splitlines()] == [
        "note: TASUKI_ALGORITHM",
        "note: TASUKI_ISLAND",
        "note: TASUKI_PATH",
    ]
    assert "give --algorithm" in done.stderr


def test_plan_writes_every_rank_and_verify_reads_them(tasuki, tmp_path):
    out = tmp_path / "new" / "plans"
    text = tasuki("plan", *HALO, "--out", out, "--summary", **NO_MPI)
    assert re.search(
        r"halo p,q on 36 ranks of torus-36: 36 plans written to .*rank-N.json, \d+ to \d+ bytes a rank", text
    )
    assert "send" in text and sorted(file.name for file in out.iterdir())[-1] == "rank-9.json"
    report = tasuki("verify", out, "--json")["operations"][0]
    assert (report["ranks"], report["ok"], report["classes"]) == (36, True, None)
    report = tasuki("verify", out, "--neighbourhoods", "--json")["operations"][0]
    assert report["ok"] and 1 <= report["classes"] <= 36
    assert "by neighbourhoods" in tasuki("verify", out, "--neighbourhoods")
    tasuki("plan", *HALO, "--out", out, "--ranks", 8, **NO_MPI)  # the others do not stay
    assert len(list(out.iterdir())) == 8 and tasuki("verify", out)

    plan = json.loads((out / "rank-5.json").read_text())
    send = next(command for command in plan["commands"] if command["verb"] == "send")
    send["tag"] = 1000
    (out / "rank-5.json").write_text(json.dumps(plan))
    for how in [], ["--neighbourhoods"]:
        assert "rank 5" in tasuki("verify", out, *how, status=1) or how
    send["verb"] = "sing"
    (out / "rank-5.json").write_text(json.dumps(plan))
    assert "rank-5.json: plan JSON, commands[" in tasuki("verify", out, status=1)
    (out / "rank-5.json").unlink()
    assert "the plan of rank 5 is missing" in tasuki("verify", out, status=1)


def test_plan_shows_its_passes(tasuki):
    text = tasuki("plan", *HALO, "--passes", "--rank", 3, **NO_MPI)
    assert "rank 3 after pass '" in text and "halo p,q" in text and "36 plans" not in text
    data = tasuki("plan", "broadcast", "--machine", "torus-36", "--summary", "--json", **NO_MPI)
    assert data["operation"].startswith("broadcast") and data["bytes"]["least"] > 0
    moved = {row["verb"]: row["bytes"] for row in data["summary"]}
    assert moved["recv"] == moved["send"] == 35 << 20


def test_many_ranks_are_verified_by_neighbourhoods(tasuki, tmp_path):
    machine = tmp_path / "large.json"
    machine.write_text(json.dumps({"tasuki_machine": 1, "ranks": {"count": 300, "per_host": 4}}))
    tasuki("plan", "halo", "--machine", machine, "--extents", "90x100", "--out", tmp_path / "plans", **NO_MPI)
    report = tasuki("verify", tmp_path / "plans", "--json")["operations"][0]
    assert report["ok"] and report["ranks"] == 300 and 0 < report["classes"] < 300
    # Fewer ranks that are too large to be followed together: 256 with 26 neighbours each.
    tasuki(
        "plan",
        "halo",
        "--machine",
        machine,
        "--ranks",
        256,
        "--extents",
        "24x24x24",
        "--out",
        tmp_path / "plans",
        **NO_MPI,
    )
    report = tasuki("verify", tmp_path / "plans", "--json")["operations"][0]
    assert report["ok"] and report["ranks"] == 256 and 0 < report["classes"] < 256


@pytest.mark.parametrize(
    "collective",
    [
        ["allreduce", "--count", "8", "--algorithm", "doubling"],
        ["reduce", "--count", "8", "--algorithm", "binomial"],
        ["broadcast", "--algorithm", "binomial"],
    ],
)
def test_collectives_of_many_ranks_are_verified_together(tasuki, finished, tmp_path, collective):
    where = ["--machine", "host-2core", "--ranks", 300, "--out", tmp_path / "plans"]
    tasuki("plan", *collective, *where, **NO_MPI)
    report = tasuki("verify", tmp_path / "plans", "--json")["operations"][0]
    assert report["ok"] and report["ranks"] == 300 and report["classes"] is None and report["not_verified"] is None
    done = finished("verify", tmp_path / "plans", "--neighbourhoods", "--json")
    report = json.loads(done.stdout)["operations"][0]
    assert done.returncode == 3
    assert not report["ok"] and not report["problems"] and "neighbourhoods are for plans" in report["not_verified"]


def test_what_is_too_large_is_not_verified(tasuki, finished, tmp_path):
    """Bruck's all-to-all passes blocks on, in more lanes than the verifier follows."""
    plans, halo = tmp_path / "plans", tmp_path / "halo"
    tasuki("plan", "alltoall", "--machine", "host-2core", "--ranks", 64, "--count", 1, "--out", plans, **NO_MPI)
    done = finished("verify", plans, "--json")
    report = json.loads(done.stdout)["operations"][0]
    assert done.returncode == 3
    assert not report["ok"] and report["problems"] == []
    assert "more than the verifier follows" in report["not_verified"] and "pass on" in report["not_verified"]
    text = " ".join(finished("verify", plans).stdout.split())
    assert "not verified" in text and "alltoall: not verified: the plans have" in text and "problems" not in text
    # A problem elsewhere counts more.
    tasuki("plan", *HALO, "--ranks", 8, "--out", halo, **NO_MPI)
    assert finished("verify", halo, plans).returncode == 3
    plan = json.loads((halo / "rank-5.json").read_text())
    next(command for command in plan["commands"] if command["verb"] == "send")["tag"] = 1000
    (halo / "rank-5.json").write_text(json.dumps(plan))
    assert finished("verify", halo, plans).returncode == 1


def test_following_together_is_priced():
    from tasuki.cli.verify import is_too_costly

    signal = {"verb": "signal", "loop": 0, "lag": 6}
    plan = {"buffers": [{"ring": 4}, {}], "loops": [{"count": 100}], "commands": [{"lane": 1, "verb": "put"}, signal]}
    assert is_too_costly([plan] * 10, 0) is None
    assert is_too_costly([plan] * 100_000, 0).startswith("to follow 8 epochs of 10100000 commands in 200000 lanes")


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        (["plan", "halo"], 2, "Missing option '--machine'"),
        (["plan", "halo", "--machine", "torus-36"], 2, "give --out FOLDER, --summary or --passes"),
        (["plan", *HALO, "--summary", "--ranks", "37"], 1, "36 ranks, and 37 were asked for"),
        (["plan", *HALO, "--summary", "--split", "5x1x1"], 1, "split"),
        (["plan", *HALO, "--summary", "--split", "6x6"], 2, "--split has 2 entries, but --extents has 3 dimensions"),
        (["plan", *HALO, "--passes", "--rank", "36"], 1, "--rank is 36; there are ranks 0 to 35"),
        (["explain", *HALO, "--periodic", "1,1"], 2, "--periodic has 2 entries, but --extents has 3 dimensions"),
        (["explain", *HALO, "--periodic", "maybe"], 2, "'maybe' is not all, none, or a 1 or a 0"),
        (["explain", *HALO, "--shadow", "1"], 2, "--width 2 is more than --shadow 1"),
        (["explain", *HALO, "--fields", "p,p"], 2, "different names such as p,q"),
        (["explain", *HALO, "--dtype", "f8"], 2, "'f8' is none of f16, f32, f64, bf16"),
        (["explain", *HALO, "--memory", "device"], 1, "rank 0 has no GPU"),
        (["explain", *HALO, "--path", "pigeon"], 1, "there is no path 'pigeon'"),
        (["explain", *HALO, "--engine", "thread"], 2, "--engine is for ranks that run"),
        (["explain", "halo", "--machine", "torus-37"], 1, "nor a machine of that name; with Tasuki come"),
        (["verify", "--neighbourhoods", "--epochs", "3", "."], 2, "--epochs is for all ranks together"),
    ],
)
def test_wrong_input_is_one_clear_line(tasuki, arguments, status, expected):
    assert expected in tasuki(*arguments, status=status, **NO_MPI)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not JSON at byte"),
        ("[]", "is [], not an object"),
        ('{"tasuki_machine": 2}', "is version 2, but this Tasuki reads version 1"),
        ('{"tasuki_machine": 1}', "ranks: is missing"),
        ('{"tasuki_machine": 1, "ranks": {"count": 8}, "paths": {"mpi": {"bandwith": 1}}}', "unknown key"),
    ],
)
def test_a_damaged_machine_file_says_where(tasuki, tmp_path, text, expected):
    file = tmp_path / "machine.json"
    file.write_text(text)
    told = tasuki("explain", "halo", "--machine", file, status=1, **NO_MPI)
    assert f"machine file {file}: " in told and expected in told


def test_the_documented_commands_run(finished, tmp_path):
    """Every `tasuki ...` of the page on machines; files that it only names are there."""
    text = (ROOT / "docs" / "machines.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    commands = [line for language, block in blocks if not language for line in block.splitlines()]
    assert len(commands) >= 3
    (tmp_path / "my-cluster.json").write_text('{"tasuki_machine": 1, "ranks": {"count": 8, "per_host": 4}}')
    for command in commands:
        words = command.split()
        assert words[0] == "tasuki"
        words = [str(tmp_path / word) if word in ("my-cluster.json", "plans") else word for word in words[1:]]
        words = ["8" if word == "512" else word for word in words]
        done = finished(*words, **NO_MPI)
        assert done.returncode == 0, f"{command}: {done.stderr}"
