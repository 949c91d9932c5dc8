#!/usr/bin/env python3
"""Kills and stops verbs programs of Debian under `fairlead run` at random instants. The remaining processes must end or
continue in time, and leave no process, port or file. Everything runs in separate namespaces (processes, network), so
other programs are not affected. Prints a line for each program; the exit code is 0 if all passed."""

import argparse
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PORT = 15000  # in our own network namespace
FIO = f"fio --name=job --ioengine=rdma --port={PORT} --bs=64k"
LIMIT = 60  # seconds: the timeouts of docs/ibverbs.md, and those of the program
STARVED_MOST = 10  # so many limits, for processes that hardly get a processor
STARTS_WITHIN = 30
CLIENTS_AT_ONCE = 3
RSPRELOAD = f"/usr/lib/{os.uname().machine}-linux-gnu/rsocket/librspreload.so"
BIG_FILE_BYTES = 200_000_000
SHORT_STOP = (0.02, 1.5)  # shorter than any timeout: it must have no effect
LONG_STOP = (7.0, 9.0)  # longer than the link's give-up time of 5 s
FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}


class Program:
    """A server and a client that meet at PORT, or a job that starts all of its processes. `serves`: the server accepts many
    clients, and this script ends it after the last one."""

    def __init__(self, name, server, client, serves=False, preload=None, is_deaf=False, may_crash=False):
        self.name, self.server, self.client, self.serves, self.preload = name, server, client, serves, preload
        self.may_crash = may_crash  # because of a fault of the program
        self.is_deaf = is_deaf  # the client does not notice that its peer is gone while it only waits for data

    def needs(self):
        return (self.server or self.client).split()[0]


def fio(verb, depth, size, messages=32):
    """fio has no flow control for sends, and hangs after an RNR error. So its receiver posts a request for each message, at most 512."""
    return Program(
        f"fio {verb} with verify",
        f"{FIO} --size={size} --rw=read --iodepth={messages} --verify=crc32c",
        f"{FIO} --size={size} --hostname=127.0.0.1 --rw=write --verify=crc32c --do_verify=0 --verb={verb} --iodepth={depth}",
    )


def pair(name, words):
    """perftest -R uses an id that it has freed if the peer ends while they connect, so it may crash."""
    return Program(name, f"{words} -p {PORT}", f"{words} -p {PORT} 127.0.0.1", may_crash="-R" in words)


PROGRAMS = [
    fio("write", 8, "300m"),
    fio("send", 1, "32m", messages=512),
    # Not rstream: when its peer is gone, rrecv() returns 0, but rstream reads an old errno and repeats the call for ever.
    # And librdmacm wakes the initiator of an rsocket that only waits for data neither by an event nor by a flushed receive.
    Program("rcopy", f"rcopy -p {PORT}", f"rcopy BIG_FILE 127.0.0.1:COPY -p {PORT}", serves=True, is_deaf=True),
    Program(
        "iperf over rsockets",
        f"iperf -s -p {PORT}",
        f"iperf -p {PORT} -t 2 -c 127.0.0.1",
        serves=True,
        preload=RSPRELOAD,
        is_deaf=True,
    ),
    pair("ib_write_bw by TCP", "ib_write_bw -n 10000"),
    pair("ib_write_bw -R", "ib_write_bw -R -n 10000"),
    pair("ib_send_lat -R", "ib_send_lat -R -n 2000"),
    Program("rping", f"rping -s -P -p {PORT}", f"rping -c -a 127.0.0.1 -v -V -C 300 -p {PORT}", serves=True),
    Program("Open MPI over UCX", None, "mpirun --oversubscribe -np 2 --mca pml ucx --mca osc ucx RUN /usr/bin/python3 MPI_PROGRAM"),
]


class Side:
    """A program and all processes that it starts."""

    def __init__(self, words, folder, name):
        self.log = os.path.join(folder, name)
        with open(self.log, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(words, stdout=out, stderr=out, cwd=folder, start_new_session=True)

    def processes(self):
        """The living processes, first the one that we started."""
        mine = self.process.pid
        return [mine] * (self.process.poll() is None) + [p for p in living() if p != mine and session_of(p) == mine]

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as text:
            return text.read()[-3000:]


def living():
    """All other processes of our namespace, without zombies."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in (1, os.getpid()):
            continue
        if (state := stat_of(int(name))) and state[0] != "Z":
            found.append(int(name))
    return found


def stat_of(process):
    """Returns state, parent, group and session."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[:4]
    except OSError:
        return None


def session_of(process):
    stat = stat_of(process)
    return int(stat[3]) if stat else None


def sockets():
    """UDP sockets and TCP listeners of our namespace, without closed connections that the kernel keeps."""
    shown = subprocess.run(["ss", "-H", "-lntu"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [" ".join(line.split()[i] for i in (0, 4)) for line in shown]


def is_listening():
    return any(line.endswith(f":{PORT}") for line in sockets())


class Starvation:
    """How long the threads of our namespace have waited for a processor. On a busy host rcopy does so most of the time,
    because each of its 3200 exchanges takes turns on the processors: it is slow then, but does not hang."""

    def __init__(self):
        self.waited, self.seconds = {}, 0.0

    def look(self):
        """Returns the seconds since the first look, added up over all threads."""
        for path in glob.glob("/proc/[0-9]*/task/[0-9]*/schedstat"):
            try:
                with open(path, encoding="utf-8") as stat:
                    waited = int(stat.read().split()[1])
            except (OSError, IndexError):
                continue
            self.seconds += (waited - self.waited.get(path, waited)) / 1e9
            self.waited[path] = waited
        return self.seconds


def wait_for(condition, limit):
    """Returns whether the condition becomes true within `limit` seconds in which no thread waits for a processor."""
    starvation, begun = Starvation(), time.monotonic()
    look_at, now, allowed = begun, begun, limit
    while not condition():
        if now >= look_at:
            allowed = min(limit + starvation.look(), limit * STARVED_MOST)
            look_at = now + 1
        if now - begun > allowed:
            return False
        time.sleep(0.01)
        now = time.monotonic()
    return True


class Fault(Exception):
    pass


class Run:
    """One program over one path, disturbed at many instants."""

    def __init__(self, program, options, asked, folder):
        self.program, self.asked, self.folder = program, asked, folder
        preload = ["env", f"LD_PRELOAD={program.preload}"] if program.preload else []
        self.run = [*preload, asked.command, "run", *options.split(), "--"]
        self.options = options
        self.sides = {}

    def words(self, line):
        line = line.replace("MPI_PROGRAM", os.path.join(HERE, "tests/mpi_program.py"))
        line = line.replace("BIG_FILE", os.path.join(self.folder, "big_file")).replace("COPY", self.folder + "/copy")
        words = []
        for word in line.split():
            words += self.run if word == "RUN" else [word]
        return words if "RUN" in line.split() else [*self.run, *words]

    def start(self, which):
        line = self.program.server if which == "server" else self.program.client
        self.sides[which] = Side(self.words(line), self.folder, which)
        return self.sides[which]

    def begin(self):
        self.sides = {}
        if self.program.server:
            server = self.start("server")
            if not wait_for(lambda: is_listening() or not server.processes(), STARTS_WITHIN) or not server.processes():
                raise Fault("the server does not listen")
        self.start("client")

    def undisturbed(self):
        """Runs the program undisturbed. Returns the time in seconds."""
        begun = time.monotonic()
        self.begin()
        begun_client = time.monotonic()
        self.expect_end("undisturbed", must_succeed=True)
        return time.monotonic() - (begun_client if self.program.server else begun)

    def expect_end(self, what, must_succeed=False):
        sides = dict(self.sides)
        if self.program.serves and "server" in sides:
            if not wait_for(lambda: not sides["client"].processes(), LIMIT):
                raise Fault(f"{what}: the client hangs")
            self.end_server()
        for name, side in sides.items():
            if not wait_for(lambda side=side: not side.processes(), LIMIT):
                if name == "server" and self.goes_on():
                    continue
                raise Fault(f"{what}: the {name} hangs")
        for name, side in sides.items():
            code = side.process.wait()
            if -code in FAULTS and not self.program.may_crash:
                raise Fault(f"{what}: the {name} crashed: {signal.Signals(-code).name}")
            if must_succeed and code and not (self.program.serves and name == "server"):
                raise Fault(f"{what}: the {name} ended with {code}")

    def end_server(self):
        server = self.sides["server"]
        for process in server.processes():
            kill(process, signal.SIGTERM)

    def goes_on(self):
        """Returns whether a server that still waits for its client serves another one."""
        if not is_listening():
            return False
        client = self.start("client")
        return wait_for(lambda: not client.processes() and not self.sides["server"].processes(), LIMIT)

    def disturb(self, chance, delay):
        """Disturbs one run of the program after `delay` seconds. Returns the kind of disturbance."""
        side = chance.choice(sorted(self.sides_wanted()))
        kind = chance.choices(["kill", "short stop", "long stop"], [5, 3, 2])[0]
        if self.program.is_deaf and (side == "server" or kind == "long stop"):
            kind = "short stop"
        pause = chance.uniform(*(SHORT_STOP if kind == "short stop" else LONG_STOP))
        which = chance.random()
        what = f"{kind} of the {side} after {delay:.3f} s"
        self.begin()
        time.sleep(delay)
        processes = self.sides[side].processes()
        if processes:
            victim = processes[int(which * len(processes))]
            if kind == "kill":
                kill(victim, signal.SIGKILL)
            else:
                kill(victim, signal.SIGSTOP)
                time.sleep(pause)
                kill(victim, signal.SIGCONT)
                what += f" for {pause:.1f} s"
        self.expect_end(what, must_succeed=kind == "short stop")
        self.expect_nothing_left(what)
        return kind

    def sides_wanted(self):
        return {"client", "server"} if self.program.server else {"client"}

    def expect_nothing_left(self, what):
        if not wait_for(lambda: not living(), STARTS_WITHIN):
            raise Fault(f"{what}: left running: {[command_of(p) for p in living()]}")
        if not wait_for(lambda: not sockets(), STARTS_WITHIN):
            raise Fault(f"{what}: left open: {sockets()}")
        # The next process of the user removes what a killed one has left.
        look = ["ls", "/sys/class/infiniband"]
        subprocess.run([*self.run, *look], capture_output=True, check=False, timeout=LIMIT)
        # Open MPI's own memory (vader) does not count: mpirun removes it, unless mpirun is killed.
        left = [name for name in os.listdir("/dev/shm") if not name.startswith("vader_")]
        left += glob.glob(os.path.join(os.environ["XDG_RUNTIME_DIR"], "fairlead*", "*"))
        if left:
            raise Fault(f"{what}: left behind: {left}")

    def clean_up(self):
        for process in living():
            kill(process, signal.SIGKILL)
        wait_for(lambda: not living(), STARTS_WITHIN)
        for name in os.listdir("/dev/shm"):
            os.unlink(os.path.join("/dev/shm", name))

    def report(self, fault, seed):
        print(f"FAIL {self.program.name:24} {self.options:12} seed {seed}: {fault}")
        for process in living():
            print(f"     left: {process} {stat_of(process)} {command_of(process)}")
            print("".join(f"           {line}\n" for line in stacks_of(process)), end="")
        for name, side in self.sides.items():
            print("".join(f"     {name}: {line}\n" for line in side.said().splitlines()[-15:]), end="")
        sys.stdout.flush()


def kill(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def command_of(process):
    try:
        with open(f"/proc/{process}/cmdline", "rb") as words:
            return words.read().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return ""


def stacks_of(process):
    """The calls in which the threads of a process are, if there is a debugger."""
    if not shutil.which("gdb"):
        return []
    words = ["gdb", "--batch", "-p", str(process), "-ex", "thread apply all bt 8"]
    try:
        shown = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return ["the debugger does not answer"]
    return [line for line in shown.stdout.splitlines() if line.startswith(("Thread", "#"))]


def kill_listeners(asked, options, folder):
    """Kills the listener at PORT often while clients connect to it. The next listener must get the port at once, each
    client must succeed or be told in time, and the last one must succeed. Returns whether all did."""
    program = Program("listener under connects", f"rping -s -P -p {PORT}", f"rping -c -a 127.0.0.1 -C 1 -p {PORT}")
    run, chance, succeeded = Run(program, options, asked, folder), random.Random(asked.seed), 0
    begun = time.monotonic()
    try:
        for number in range(asked.listeners):
            run.sides = {}
            listener = run.start("server")
            if not wait_for(lambda listener=listener: is_listening() or not listener.processes(), STARTS_WITHIN):
                raise Fault(f"listener {number} does not listen")
            if not listener.processes():
                raise Fault(f"listener {number} did not get the port: {listener.said()}")
            clients = [Side(run.words(program.client), folder, f"client{i}") for i in range(CLIENTS_AT_ONCE)]
            is_last = number == asked.listeners - 1
            if not is_last:
                time.sleep(chance.uniform(0, 0.4))
                kill(listener.process.pid, signal.SIGKILL)
                listener.process.wait()
            for client in clients:
                if not wait_for(lambda client=client: not client.processes(), LIMIT):
                    raise Fault(f"listener {number}: a client hangs")
                code = client.process.wait()
                if -code in FAULTS:
                    raise Fault(f"listener {number}: a client crashed")
                if is_last and code:
                    raise Fault(f"a client of the last listener ended with {code}: {client.said()}")
                succeeded += code == 0
        kill(listener.process.pid, signal.SIGKILL)
        listener.process.wait()
        run.expect_nothing_left("the last listener")
    except Fault as fault:
        run.report(fault, asked.seed)
        run.clean_up()
        return False
    count = asked.listeners * CLIENTS_AT_ONCE
    print(
        f"ok   {program.name:24} {options:12} {asked.listeners - 1} kills, {succeeded} of {count} clients were served; "
        f"{time.monotonic() - begun:.0f} s",
        flush=True,
    )
    return True


def disturb_often(run, asked):
    """Each instant has its own seed, so it can be repeated alone. Returns whether all passed."""
    went_well, done = True, {}
    begun = time.monotonic()
    try:
        takes = run.undisturbed()
    except Fault as fault:
        run.report(fault, asked.seed)
        run.clean_up()
        return False
    for seed in range(asked.seed, asked.seed + asked.instants):
        chance = random.Random(seed)
        try:
            kind = run.disturb(chance, chance.uniform(0, takes))
            done[kind] = done.get(kind, 0) + 1
        except Fault as fault:
            run.report(fault, seed)
            run.clean_up()
            went_well = False
    if went_well:
        summary = ", ".join(f"{count} {kind}s" for kind, count in sorted(done.items()))
        print(f"ok   {run.program.name:24} {run.options:12} {summary}; {time.monotonic() - begun:.0f} s", flush=True)
    return went_well


def enter_namespaces():
    """Restarts this script as the first process of its own namespaces."""
    if os.environ.get("KILL_PROGRAMS") == "inside":
        return
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    os.environ["KILL_PROGRAMS"] = "inside"
    namespaces = ["--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    os.execvp("unshare", ["unshare", *user, *namespaces, sys.executable, *sys.argv])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", default=os.path.join(HERE, "build/bin/fairlead"), help="the command fairlead")
    parser.add_argument("--instants", type=int, default=12, help="for each program and path")
    parser.add_argument("--listeners", type=int, default=12, help="how many listeners at one port follow each other")
    parser.add_argument("--seed", type=int, default=1, help="of the first instant; the next has the next seed")
    parser.add_argument("words", nargs="*", help="only lines that contain all of these")
    asked = parser.parse_args()
    asked.command = os.path.abspath(asked.command)
    enter_namespaces()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/dev/shm"], check=True)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", UCX_TLS="rc,self")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        with open(os.path.join(folder, "big_file"), "wb") as big:
            big.truncate(BIG_FILE_BYTES)
        for path in ("--path shm", "--path udp"):
            for program in PROGRAMS:
                if not all(word in f"{program.name} {path}" for word in asked.words):
                    continue
                if not shutil.which(program.needs()):
                    print(f"skip {program.name:24} {program.needs()} is not installed")
                    continue
                well = disturb_often(Run(program, path, asked, folder), asked)
                passed, failed = passed + well, failed + (not well)
            if all(word in f"listener {path}" for word in asked.words) and shutil.which("rping"):
                well = kill_listeners(asked, path, folder)
                passed, failed = passed + well, failed + (not well)
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
