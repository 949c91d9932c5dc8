"""What MPI promises, checked by each rank: messages of all sizes, collectives, and one-sided access with fences and
locks. The last rank to fail says what; rank 0 ends with one line of figures."""

import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
SIZES = [0, 1, 8, 1000, 8192, 65536, 1 << 20, 5_000_001]


def expect(is_right, what):
    if not is_right:
        print(f"rank {rank} of {ranks}: {what}", flush=True)
        world.Abort(1)


def pattern(size, sender):
    return bytearray((sender * 7 + i * 31) & 0xFF for i in range(min(size, 4096))) + bytearray(max(0, size - 4096))


def messages():
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    for size in SIZES:
        came = bytearray(size)
        world.Sendrecv(pattern(size, rank), right, size % 30000, came, left, size % 30000)
        expect(came == pattern(size, left), f"a message of {size} bytes is wrong")
    many = [world.isend(("n", rank, i), right, 7) for i in range(100)]
    for i in range(100):
        expect(world.recv(source=left, tag=7) == ("n", left, i), f"message {i} is not in order")
    MPI.Request.waitall(many)


def collectives():
    for _ in range(20):
        expect(world.allreduce(rank + 1) == ranks * (ranks + 1) // 2, "a sum is wrong")
    expect(world.alltoall([rank * 100 + i for i in range(ranks)]) == [i * 100 + rank for i in range(ranks)], "alltoall")
    data = pattern(300_000, 5) if rank == ranks - 1 else bytearray(300_000)
    world.Bcast(data, root=ranks - 1)
    expect(data == pattern(300_000, 5), "a broadcast is wrong")
    world.Barrier()


def one_sided():
    window = MPI.Win.Allocate(8 * (ranks + 2), 8, comm=world)
    memory = memoryview(window).cast("B").cast("q")
    for i in range(ranks + 2):
        memory[i] = 0
    window.Fence()
    for target in range(ranks):
        window.Put([(rank + 1).to_bytes(8, sys.byteorder), MPI.INT64_T], target, (rank, 1, MPI.INT64_T))
    window.Fence()
    expect(list(memory)[:ranks] == [i + 1 for i in range(ranks)], "what was put is wrong")
    came = bytearray(8)
    window.Get([came, MPI.INT64_T], (rank + 1) % ranks, (rank, 1, MPI.INT64_T))
    window.Fence()
    expect(int.from_bytes(came, sys.byteorder) == rank + 1, "what was got is wrong")
    one = (1).to_bytes(8, sys.byteorder)
    for _ in range(50):
        window.Accumulate([one, MPI.INT64_T], 0, (ranks, 1, MPI.INT64_T), MPI.SUM)
    window.Fence()
    for _ in range(20):
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        window.Get([came, MPI.INT64_T], 0, (ranks + 1, 1, MPI.INT64_T))
        window.Flush(0)
        more = (int.from_bytes(came, sys.byteorder) + 1).to_bytes(8, sys.byteorder)
        window.Put([more, MPI.INT64_T], 0, (ranks + 1, 1, MPI.INT64_T))
        window.Unlock(0)
    world.Barrier()
    window.Fence()
    if rank == 0:
        expect(memory[ranks] == 50 * ranks, f"{memory[ranks]} added, not {50 * ranks}")
        expect(memory[ranks + 1] == 20 * ranks, f"{memory[ranks + 1]} counted under the lock, not {20 * ranks}")
    window.Fence()
    memory.release()
    window.Free()


def latency():
    """Microseconds one way, 8 bytes between the first two ranks."""
    if ranks < 2 or rank > 1:
        return 0.0
    data, rounds = bytearray(8), 500
    start = time.perf_counter()
    for _ in range(rounds):
        if rank == 0:
            world.Send(data, 1)
        world.Recv(data, 1 - rank)
        if rank == 1:
            world.Send(data, 0)
    return (time.perf_counter() - start) / rounds / 2 * 1e6


messages()
collectives()
one_sided()
one_way = latency()
world.Barrier()
if rank == 0:
    print(f"{ranks} ranks agree, {one_way:.1f} us one way", flush=True)
