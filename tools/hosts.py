#!/usr/bin/env python3
"""Makes several hosts of one machine, joined by a network of a given speed, and runs programs across them.

    tools/hosts.py run -n 4 --rate 1gbit build/bin/himeno --size S --verify    two hosts for this one run
    tools/hosts.py up --hosts 3 --rate 10gbit                                  hosts that stay
    tools/hosts.py run -n 6 build/bin/laplace
    tools/hosts.py cut 1        the network forgets host 1;   mend 1: it is back
    tools/hosts.py stop 1       host 1's ranks are frozen;    go 1: they run again
    tools/hosts.py down

A host is a set of Linux namespaces: network, name, mounts with a /dev/shm of its own, System V memory. All hosts see
the same files and processes, and each has its share of the machine's cores. They are joined by a bridge in a namespace
of its own through pairs of virtual Ethernet devices, of which each host's end is shaped to --rate; nothing outside is
reached. MPI runs over TCP between them, under Open MPI's launcher, which enters another host as it would by ssh. Needs
root, Linux, and the commands ip, tc, unshare, nsenter and taskset (Debian: iproute2, util-linux).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

_spec = importlib.util.spec_from_file_location(
    "tasuki_launch", Path(__file__).resolve().parents[1] / "python" / "tasuki" / "launch.py"
)
launcher = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(launcher)

STATE = Path("/run/tasuki-hosts")  # of the hosts that are up: there is one set of them on a machine
NETWORK = "10.213.77"  # addresses that exist in the hosts' own namespaces only
NEEDED = ("ip", "tc", "unshare", "nsenter", "taskset")
RATE = re.compile(r"\d+(\.\d+)?[kmg]bit")
# What a host's first process does; it keeps the namespaces and is killed at the end. Of `bbr`, which some kernels
# choose, exchanges with pauses between them get less than the link: it takes what was sent before a pause for the
# bandwidth.
INIT = """
hostname {name}
mount -t tmpfs -o size=50% tmpfs /dev/shm
mount --bind {names} /etc/hosts
ip link set lo up
echo reno > /proc/sys/net/ipv4/tcp_congestion_control
echo ready
exec sleep infinity
"""


class HostsError(Exception):
    """What cannot be done, and what to do about it."""


def why_not() -> str:
    """Why hosts cannot be made here; empty if they can."""
    if sys.platform != "linux":
        return "hosts are made of Linux namespaces; this is another system"
    if os.geteuid() != 0:
        return "making hosts needs root"
    missing = [command for command in NEEDED if not shutil.which(command)]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: iproute2, util-linux)"
    tried = subprocess.run(["unshare", "--net", "--uts", "--mount", "--ipc", "true"], capture_output=True, text=True)
    return tried.stderr.strip()


def why_not_by(mpiexec: str) -> str:
    """Why this launcher cannot start ranks on such hosts; empty if it can."""
    if launcher.is_open_mpi(mpiexec):
        said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"\b(\d+)\.\d+\.\d+", said)
        if found and int(found.group(1)) >= 5:
            return ""
    return f"{mpiexec} is not the launcher of Open MPI 5 or later, which alone is known to enter hosts like these"


def do(*command: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HostsError(f"`{shlex.join(map(str, command))}` failed: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def inside(pid: int, *command: object) -> list[str]:
    return ["nsenter", "-t", str(pid), "--net", "--uts", "--ipc", "--mount", *map(str, command)]


def network_of(pid: int | str) -> int:
    """Identifies the network namespace of a process; 0 if it has ended."""
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    return 0


def share_of(cores: list[int], host: int, hosts: int) -> list[int]:
    """A host's share of the cores. Where there are fewer cores than hosts, some hosts have the same one."""
    share = cores[host * len(cores) // hosts : (host + 1) * len(cores) // hosts]
    return share or [cores[host % len(cores)]]


class Hosts:
    """The hosts that are up. `pids[i]` is the process that keeps host i; the last one keeps their network."""

    def __init__(self, pids: list[int]):
        self.pids = pids

    @property
    def count(self) -> int:
        return len(self.pids) - 1

    @staticmethod
    def name(host: int) -> str:
        return f"tasuki-{host}"

    @staticmethod
    def known() -> Hosts | None:
        with contextlib.suppress(OSError, ValueError):
            hosts = Hosts(json.loads((STATE / "hosts.json").read_text()))
            if all(network_of(pid) for pid in hosts.pids):
                return hosts
        return None

    @staticmethod
    def up(count: int, rate: str) -> Hosts:
        why = why_not()
        if why:
            raise HostsError(why)
        if Hosts.known():
            raise HostsError("hosts are up already; `hosts.py down` first")
        if not 1 <= count <= 64:
            raise HostsError(f"--hosts is {count}; give 1 to 64")
        if rate and not RATE.fullmatch(rate):
            raise HostsError(f"--rate is {rate}; give something like 100mbit, 1gbit or 10gbit")
        STATE.mkdir(mode=0o700, exist_ok=True)
        names = STATE / "names"
        lines = ["127.0.0.1 localhost", *(f"{NETWORK}.{i + 1} {Hosts.name(i)}" for i in range(count))]
        names.write_text("\n".join(lines) + "\n")
        hosts = Hosts([])
        try:
            for i in range(count + 1):
                hosts._begin(Hosts.name(i) if i < count else "tasuki-network", names)
            cores = sorted(os.sched_getaffinity(0))
            for i in range(count):
                os.sched_setaffinity(hosts.pids[i], share_of(cores, i, count))
            hosts._join(rate)
        except BaseException:
            hosts.down()
            raise
        (STATE / "hosts.json").write_text(json.dumps(hosts.pids))
        return hosts

    def _begin(self, name: str, names: Path) -> None:
        enter = ["unshare", "--net", "--uts", "--ipc", "--mount", "--propagation", "private"]
        process = subprocess.Popen(
            [*enter, "sh", "-ec", INIT.format(name=name, names=names)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is for the ranks, not for the hosts
        )
        self.pids.append(process.pid)
        said = process.stdout.readline().strip()
        if said != "ready":
            raise HostsError(f"{name} could not be made: {said or 'its first process ended'}")

    def _join(self, rate: str) -> None:
        middle = self.pids[-1]
        do(*inside(middle, "ip", "link", "add", "bridge", "type", "bridge"))
        do(*inside(middle, "ip", "link", "set", "bridge", "up"))
        for i, pid in enumerate(self.pids[:-1]):
            do("ip", "link", "add", "eth0", "netns", pid, "type", "veth", "peer", "name", f"port{i}", "netns", middle)
            do(*inside(middle, "ip", "link", "set", f"port{i}", "master", "bridge", "up"))
            do(*inside(pid, "ip", "address", "add", f"{NETWORK}.{i + 1}/24", "dev", "eth0"))
            do(*inside(pid, "ip", "link", "set", "eth0", "up"))
            if rate:  # what each host sends; the burst is what a device of that speed queues in about 2 ms
                do(*inside(pid, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "256k",
                           "latency", "50ms"))  # fmt: skip

    def check(self, host: int) -> int:
        if not 0 <= host < self.count:
            raise HostsError(f"there is no host {host}; there are 0 to {self.count - 1}")
        return host

    def enter(self, host: int, *command: object) -> list[str]:
        """Runs a command on a host, on its cores: else ranks would wait for those of other hosts to leave theirs."""
        cores = sorted(os.sched_getaffinity(self.pids[self.check(host)]))
        return ["taskset", "-c", ",".join(map(str, cores)), *inside(self.pids[host], *command)]

    def link(self, host: int, state: str) -> None:
        do(*inside(self.pids[-1], "ip", "link", "set", f"port{self.check(host)}", state))

    def processes(self, host: int) -> list[int]:
        """The processes on a host, but for the one that keeps it."""
        keeper = self.pids[host]
        wanted = network_of(keeper)
        numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [pid for pid in numbers if pid != keeper and wanted and network_of(pid) == wanted]

    def signal(self, host: int, number: int) -> None:
        for pid in self.processes(host):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def down(self) -> None:
        """Ends every process on the hosts and the hosts with their network. Nothing is left."""
        for host in range(len(self.pids)):
            self.signal(host, signal.SIGKILL)
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        shutil.rmtree(STATE, ignore_errors=True)

    def start(
        self, ranks: int, program: list[str], recover: bool = False, mpiexec: str = "", **options
    ) -> subprocess.Popen:
        """Starts `ranks` ranks in blocks, as many on every host. Its launcher runs on host 0."""
        mpiexec = mpiexec or launcher.launcher_of(program[0])
        why = why_not_by(mpiexec)
        if why:
            raise HostsError(why)
        command, environment = launcher.launch(mpiexec, ranks, program, recover)
        per_host = -(-ranks // self.count)
        slots = ",".join(f"{self.name(i)}:{per_host}" for i in range(self.count))
        agent = STATE / "agent"
        agent.write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).resolve()))} agent "$@"\n'
        )
        agent.chmod(0o700)
        flags = ["--host", slots, "--map-by", "slot:OVERSUBSCRIBE", "--prtemca", "plm_ssh_agent", str(agent)]
        if recover:
            flags += ["--with-ft", "ulfm"]  # else a lost connection ends every rank
        at = command.index("--map-by")
        command[at : at + 2] = flags
        environment |= {
            "PRTE_MCA_prte_if_include": "eth0",
            "OMPI_MCA_btl": "self,sm,tcp",
            "OMPI_MCA_pml": "ob1",
            "OMPI_MCA_btl_tcp_if_include": "eth0",
        }
        enter = self.enter(0, "sh", "-c", f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(command)}")
        return subprocess.Popen(enter, env=environment, stdin=subprocess.DEVNULL, **options)


def run(arguments: argparse.Namespace) -> int:
    program = [shutil.which(arguments.program[0]) or "", *arguments.program[1:]] if arguments.program else []
    if not program or not program[0]:
        raise HostsError(f"{arguments.program[0] if arguments.program else 'no program'} is not there, or cannot run")
    own = Hosts.known() is None
    hosts = Hosts.up(arguments.hosts, arguments.rate) if own else Hosts.known()
    try:
        process = hosts.start(arguments.ranks, program, arguments.recover)
        try:
            process.wait(arguments.timeout)
        except subprocess.TimeoutExpired:
            print(f"hosts.py: ending the ranks after {arguments.timeout:g} s", file=sys.stderr)
            return launcher.TIMED_OUT
        return launcher.exit_status(process)
    finally:
        if own:
            hosts.down()
        else:
            for host in range(hosts.count):
                hosts.signal(host, signal.SIGKILL)  # what a launcher that was stopped leaves behind


def agent(host: str, command: list[str]) -> None:
    """What ssh is to Open MPI's launcher: runs a command line of the shell on a host."""
    hosts = Hosts.known()
    if hosts is None:
        raise HostsError("the hosts are down")
    enter = hosts.enter(int(host.rpartition("-")[2]), "sh", "-c", " ".join(command))
    os.execvp(enter[0], enter)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="makes hosts that stay until `down`")
    go = commands.add_parser("run", help="runs a program on ranks across the hosts; makes them for it if none are up")
    for one in (up, go):
        one.add_argument("--hosts", type=int, default=2)
        one.add_argument("--rate", default="", help="of each host's link: 1gbit; without it as fast as it goes")
    go.add_argument("-n", dest="ranks", type=int, required=True)
    go.add_argument("--timeout", type=float, help="seconds after which the ranks are ended (exit status 124)")
    go.add_argument("--recover", action="store_true", help="when a rank is killed, let the others go on")
    go.add_argument("program", nargs=argparse.REMAINDER)
    for name, what in (
        ("cut", "the network forgets a host"),
        ("mend", "it is back"),
        ("stop", "freezes all ranks of a host"),
        ("go", "lets them run again"),
    ):
        commands.add_parser(name, help=what).add_argument("host", type=int)
    commands.add_parser("down", help="ends everything on the hosts, and them")
    return parser.parse_args()


def main() -> int:
    if sys.argv[1:2] == ["agent"]:
        agent(sys.argv[2], sys.argv[3:])
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if arguments.command == "up":
        hosts = Hosts.up(arguments.hosts, arguments.rate)
        print("\n".join(f"host {i}: {Hosts.name(i)} {NETWORK}.{i + 1}" for i in range(hosts.count)))
        return 0
    if arguments.command == "run":
        return run(arguments)
    hosts = Hosts.known()
    if hosts is None:
        raise HostsError("no hosts are up; `hosts.py up` makes some")
    if arguments.command == "down":
        hosts.down()
    elif arguments.command in ("cut", "mend"):
        hosts.link(arguments.host, "down" if arguments.command == "cut" else "up")
    else:
        hosts.signal(hosts.check(arguments.host), signal.SIGSTOP if arguments.command == "stop" else signal.SIGCONT)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (HostsError, launcher.LaunchError) as error:
        sys.exit(f"hosts.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
