"""Runs across hosts made of namespaces (tools/hosts.py): results, islands, and what survivors say when a rank on
another host is killed, the network is cut or a host stands still. Skipped by name where hosts cannot be made."""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import time

DEADLINE = 4.0  # seconds that survivors may wait
CUT = "the deadline of 4 s has passed"


def load(path: str):
    spec = importlib.util.spec_from_file_location("tasuki_hosts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Cases:
    def __init__(self, tool, hosts, mpiexec: str, binaries: str):
        self.tool = tool
        self.hosts = hosts
        self.mpiexec = mpiexec
        self.binaries = binaries
        self.failures = 0

    def start(self, ranks: int, program: str, *arguments: str, recover=False) -> subprocess.Popen:
        command = [os.path.join(self.binaries, program), *arguments]
        return self.hosts.start(
            ranks, command, recover, self.mpiexec, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def text_of(self, process: subprocess.Popen, seconds: float) -> str:
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.end_ranks()
            text, _ = process.communicate()
            text += f"\nstopped after {seconds:g} s\n"
        return text

    def end_ranks(self) -> None:
        for host in range(self.hosts.count):
            self.hosts.signal(host, 9)

    def report(self, name: str, text: str, wanted: list[str], status: int = 0) -> None:
        missing = [pattern for pattern in wanted if not re.search(pattern, text)]
        print(f"{name}: {'FAILED' if missing or status else 'ok'}", flush=True)
        if missing or status:
            self.failures += 1
            print(f"status {status}; not found: {missing}\n{text}")

    def right(self, name: str, wanted: list[str], ranks: int, program: str, *arguments: str) -> None:
        process = self.start(ranks, program, *arguments)
        text = self.text_of(process, 100)
        self.report(name, text, wanted, process.returncode)

    def disturbed(self, name: str, victim: int, disturb, survivors: dict[int, str], mend) -> None:
        """The survivors are those whose words still reach the launcher, which is on host 0."""
        process = self.start(
            4, "killed_rank", str(victim), "auto", "inline", "host", "wait", str(DEADLINE), recover=True
        )
        line = ""
        while "under way" not in line:
            line = process.stdout.readline()
            if not line:
                break
        disturb()
        begin = time.monotonic()
        said = ""
        while time.monotonic() - begin < 3 * DEADLINE and said.count("survivor ") < len(survivors):
            line = process.stdout.readline()
            said += line
            if not line:
                break
        mend()
        self.end_ranks()
        said += self.text_of(process, 20)
        self.report(name, said, [f"survivor {rank} after {what}" for rank, what in survivors.items()])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", help="tools/hosts.py")
    parser.add_argument("mpiexec", help="the MPI's launcher")
    parser.add_argument("binaries", help="the folder of himeno, apart and killed_rank")
    arguments = parser.parse_args()
    tool = load(arguments.tool)
    why = tool.why_not() or tool.why_not_by(arguments.mpiexec)
    if why:
        print(f"SKIPPED: {why}")
        return 0
    hosts = tool.Hosts.up(2, "10gbit")
    try:
        cases = Cases(tool, hosts, arguments.mpiexec, arguments.binaries)
        good = ["4 ranks, 2 hosts, 2 islands", *(f"rank {r}: 0 wrong" for r in range(4))]
        cases.right("memory between hosts", good, 4, "apart", "1")
        cases.right("collectives between hosts", good, 4, "apart", "collectives")
        bits = ["every bit as in the serial run", r"path auto \(mpi, shared:"]
        size = ("--device", "cpu", "--size", "33x18x21", "--iterations", "5", "--verify")
        cases.right("Himeno, a halo of faces, edges and corners", bits, 4, "himeno", *size, "--split", "2x2x1")
        cases.right("Himeno, three ranks on two hosts", bits[:1], 3, "himeno", *size, "--split", "1x1x3")

        nothing = lambda: None  # noqa: E731
        told = {r: r"\d\.\d\d s: .*rank [23] .*on host tasuki-1" for r in (1, 2)}
        cases.disturbed("a rank is killed on the other host", 3, nothing, told, nothing)
        late = {0: rf"[45]\.\d\d s: .*{CUT}", 1: r"[45]\.\d\d s: .*rank 2 on host tasuki-1"}
        cut, mend = (lambda: hosts.link(1, "down")), (lambda: hosts.link(1, "up"))
        cases.disturbed("the network is cut", 99, cut, late, mend)
        stop, go = (lambda: hosts.signal(1, 19)), (lambda: hosts.signal(1, 18))
        cases.disturbed("a host stands still", 99, stop, late, go)
    finally:
        hosts.down()
    left = [pid for pid in hosts.pids if tool.network_of(pid)]
    if left or tool.STATE.exists():
        print(
            f"taking the hosts down left the processes {left} and {tool.STATE if tool.STATE.exists() else 'no folder'}"
        )
        return 1
    return 1 if cases.failures else 0


if __name__ == "__main__":
    sys.exit(main())
