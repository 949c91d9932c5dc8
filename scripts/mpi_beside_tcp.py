#!/usr/bin/env python3
"""Open MPI and UCX over Fairlead's device beside the same over TCP, on one host and between two network namespaces. The
runs alternate; prints a table of medians. Needs root, or the right to create namespaces."""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIRST, SECOND = "10.77.0.1", "10.77.0.2"
LIMIT = 100  # seconds
PORT = 13345  # of ucx_perftest, in our own namespaces

# Both ranks; rank 0 prints: us for 8 bytes, us for 64 KiB, MB/s with 1 MiB.
PROGRAM = """
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
rank, peer = world.Get_rank(), 1 - world.Get_rank()
def latency(size, rounds):
    data = bytearray(size)
    for i in range(rounds + rounds // 10):
        if i == rounds // 10:
            begun = time.perf_counter()
        if rank == 0:
            world.Send(data, peer)
            world.Recv(data, peer)
        else:
            world.Recv(data, peer)
            world.Send(data, peer)
    return (time.perf_counter() - begun) / rounds / 2 * 1e6
def bandwidth(size, window, rounds):
    many = [bytearray(size) for _ in range(window)]
    answer = bytearray(1)
    for i in range(rounds + 2):
        if i == 2:
            begun = time.perf_counter()
        start = world.Isend if rank == 0 else world.Irecv
        MPI.Request.Waitall([start(data, peer) for data in many])
        world.Recv(answer, peer) if rank == 0 else world.Send(answer, peer)
    return size * window * rounds / (time.perf_counter() - begun) / 1e6
figures = latency(8, 2000), latency(65536, 500), bandwidth(1 << 20, 16, 20)
if rank == 0:
    print("figures", *figures, flush=True)
"""

ROWS = ["Open MPI, 8 B", "Open MPI, 64 KiB", "Open MPI, 1 MiB", "UCX, 8 B", "UCX, 64 KiB", "UCX, 1 MiB"]
UNITS = ["us", "us", "MB/s", "us", "us", "MB/s"]


class Namespace:
    """A network namespace with its own host name: Open MPI takes equal names for one host."""

    def __init__(self, name):
        # UCX looks for interfaces in /sys, which shows those of the namespace that it was mounted in.
        script = f"mount -t sysfs sysfs /sys; hostname {name}; ip link set lo up; echo up; exec sleep infinity"
        words = ["unshare", "--net", "--uts", "--mount", "sh", "-c", script]
        self.holder = subprocess.Popen(words, stdout=subprocess.PIPE)
        self.holder.stdout.readline()

    def enter(self, words):
        return ["nsenter", "--target", str(self.holder.pid), "--net", "--uts", "--mount", *words]

    def run(self, *words):
        subprocess.run(self.enter(words), check=True)


class Place:
    """Where the two processes run."""

    def __init__(self, name, first, second, folder):
        self.name, self.first, self.second = name, first, second
        self.is_apart = first is not second
        self.agent = os.path.join(folder, "agent")
        if self.is_apart:
            with open(self.agent, "w", encoding="utf-8") as script:
                script.write("#!/bin/sh\nshift\nexec " + " ".join(second.enter(["sh", "-c"])) + ' "$*"\n')
            os.chmod(self.agent, 0o755)

    def mpi(self, words, options):
        hosts = ["--host", f"{FIRST}:1,{SECOND}:1", "--mca", "plm_rsh_agent", self.agent] if self.is_apart else []
        common = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "2"]
        return self.first.enter([*common, *hosts, *options, *words])


def lines_of(words, environment):
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def measure_mpi(place, is_ours, asked, program):
    python = ["/usr/bin/python3", program]
    if is_ours:
        options = ["--mca", "pml", "ucx", "-x", "UCX_TLS=rc,self"]
        python = [asked.command, "run", "--", *python]
    else:
        options = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
    text = lines_of(place.mpi(python, options), {})
    return [float(word) for word in re.search("figures (.*)", text).group(1).split()]


def measure_ucx(place, is_ours, asked, test, size, count):
    environment = {"UCX_TLS": "rc,self" if is_ours else "tcp,self", "UCX_WARN_UNUSED_ENV_VARS": "n"}
    program = ([asked.command, "run", "--"] if is_ours else []) + ["ucx_perftest", "-p", str(PORT)]
    full = {**os.environ, **environment}
    server = subprocess.Popen(place.first.enter(program), env=full, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1000):
            shown = subprocess.run(place.first.enter(["ss", "-Hltn"]), capture_output=True, text=True, check=True).stdout
            if f":{PORT} " in shown:
                break
            time.sleep(0.02)
        client = place.second.enter([*program, FIRST if place.is_apart else "127.0.0.1", "-t", test, "-s", str(size), "-n", str(count)])
        text = lines_of(client, environment)
        server.wait(LIMIT)
    finally:
        server.kill()
        server.wait()
    last = [line for line in text.splitlines() if line.startswith("Final:")][-1].split()
    return float(last[2]) if test == "tag_lat" else float(last[5])


def measure(place, is_ours, asked, program):
    return [
        *measure_mpi(place, is_ours, asked, program),
        measure_ucx(place, is_ours, asked, "tag_lat", 8, 5000),
        measure_ucx(place, is_ours, asked, "tag_lat", 65536, 500),
        measure_ucx(place, is_ours, asked, "tag_bw", 1 << 20, 300),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", default=os.path.join(HERE, "build/bin/fairlead"), help="the command fairlead")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    asked.command = os.path.abspath(asked.command)
    for program in ("mpirun", "ucx_perftest"):
        if not shutil.which(program):
            sys.exit(f"{program} is not installed")
    if os.getuid() != 0:
        os.execvp("unshare", ["unshare", "--user", "--map-root-user", sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "program.py")
        with open(program, "w", encoding="utf-8") as text:
            text.write(PROGRAM)
        first, second = Namespace("fl-first"), Namespace("fl-second")
        try:
            first.run("ip", "link", "add", "fl0", "type", "veth", "peer", "name", "fl1", "netns", str(second.holder.pid))
            for place, device, address in ((first, "fl0", FIRST), (second, "fl1", SECOND)):
                place.run("ip", "address", "add", f"{address}/24", "dev", device)
                place.run("ip", "link", "set", device, "up")
            compare([Place("one host", first, first, folder), Place("two namespaces", first, second, folder)], asked, program)
        finally:
            for namespace in (first, second):
                namespace.holder.kill()
                namespace.holder.wait()
    return 0


def compare(places, asked, program):
    found = {}
    for _ in range(asked.rounds):
        for place in places:
            for is_ours in (False, True):
                for row, figure in zip(ROWS, measure(place, is_ours, asked, program)):
                    found.setdefault((row, place.name, is_ours), []).append(figure)
    print("| | " + " | ".join(f"{place.name}: TCP | Fairlead" for place in places) + " |")
    print("| --- |" + " --- |" * 2 * len(places))
    for row, unit in zip(ROWS, UNITS):
        cells = [statistics.median(found[row, place.name, is_ours]) for place in places for is_ours in (False, True)]
        print(f"| {row} | " + " | ".join(f"{cell:.4g} {unit}" for cell in cells) + " |")


if __name__ == "__main__":
    sys.exit(main())
