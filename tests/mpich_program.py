"""What MPI promises, checked by each rank over MPICH, whose library Debian has no Python bindings for: messages,
collectives, and one-sided access with fences and locks. Rank 0 ends with one line."""

import ctypes
import sys

mpi = ctypes.CDLL("libmpich.so.12", mode=ctypes.RTLD_GLOBAL)
WORLD, BYTE, INT64, SUM = (ctypes.c_int(number) for number in (0x44000000, 0x4C00010D, 0x4C000809, 0x58000003))
STATUS_IGNORE, LOCK_EXCLUSIVE, INFO_NULL = ctypes.c_void_p(1), 234, ctypes.c_int(0x1C000000)
SIZES = [0, 1, 8, 1000, 8192, 65536, 1 << 20, 5_000_001]


def call(name, *arguments):
    code = getattr(mpi, name)(*arguments)
    expect(code == 0, f"{name} answers {code}")


def expect(is_right, what):
    if not is_right:
        print(f"rank {rank} of {ranks}: {what}", flush=True)
        mpi.MPI_Abort(WORLD, 1)


def number_of(name):
    number = ctypes.c_int()
    call(name, WORLD, ctypes.byref(number))
    return number.value


def pattern(size, sender):
    return bytes((sender * 7 + i * 31) & 0xFF for i in range(min(size, 4096))) + bytes(max(0, size - 4096))


def messages():
    right, left = (rank + 1) % ranks, (rank - 1) % ranks
    for size in SIZES:
        came = ctypes.create_string_buffer(size + 1)
        call("MPI_Sendrecv", pattern(size, rank), size, BYTE, right, 7, came, size, BYTE, left, 7, WORLD, STATUS_IGNORE)
        expect(came.raw[:size] == pattern(size, left), f"a message of {size} bytes is wrong")


def collectives():
    mine, total = ctypes.c_int64(rank + 1), ctypes.c_int64()
    for _ in range(50):
        call("MPI_Allreduce", ctypes.byref(mine), ctypes.byref(total), 1, INT64, SUM, WORLD)
        expect(total.value == ranks * (ranks + 1) // 2, "a sum is wrong")
    size = 300_000
    data = ctypes.create_string_buffer(pattern(size, 5) if rank == ranks - 1 else b"", size)
    call("MPI_Bcast", data, size, BYTE, ranks - 1, WORLD)
    expect(data.raw == pattern(size, 5), "a broadcast is wrong")
    call("MPI_Barrier", WORLD)


def one_sided():
    memory, window = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_int()
    size = ctypes.c_ssize_t(4096)  # MPICH 4.0 mistakes the addresses of sizes that are no multiple of 16
    call("MPI_Win_allocate", size, 8, INFO_NULL, WORLD, ctypes.byref(memory), ctypes.byref(window))
    for i in range(ranks + 2):
        memory[i] = 0
    mine, one, came = ctypes.c_int64(rank + 1), ctypes.c_int64(1), ctypes.c_int64()

    def place(name, number, target, where, *operation):
        call(name, ctypes.byref(number), 1, INT64, target, ctypes.c_ssize_t(where), 1, INT64, *operation, window)

    call("MPI_Win_fence", 0, window)
    for target in range(ranks):
        place("MPI_Put", mine, target, rank)
    call("MPI_Win_fence", 0, window)
    expect([memory[i] for i in range(ranks)] == [i + 1 for i in range(ranks)], "what was put is wrong")
    for _ in range(50):
        place("MPI_Accumulate", one, 0, ranks, SUM)
    call("MPI_Win_fence", 0, window)
    for _ in range(20):
        call("MPI_Win_lock", LOCK_EXCLUSIVE, 0, 0, window)
        place("MPI_Get", came, 0, ranks + 1)
        call("MPI_Win_flush", 0, window)
        came.value += 1
        place("MPI_Put", came, 0, ranks + 1)
        call("MPI_Win_unlock", 0, window)
    call("MPI_Win_fence", 0, window)
    if rank == 0:
        expect(memory[ranks] == 50 * ranks, f"{memory[ranks]} added, not {50 * ranks}")
        expect(memory[ranks + 1] == 20 * ranks, f"{memory[ranks + 1]} counted under the lock, not {20 * ranks}")
    call("MPI_Win_free", ctypes.byref(window))


rank = ranks = -1
call("MPI_Init", None, None)
rank, ranks = number_of("MPI_Comm_rank"), number_of("MPI_Comm_size")
messages()
collectives()
one_sided()
call("MPI_Barrier", WORLD)
if rank == 0:
    print(f"{ranks} ranks agree", flush=True)
call("MPI_Finalize")
sys.stdout.flush()
