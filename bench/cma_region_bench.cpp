// Time of a queue pair's write and read from post to completion. The target is a process of this host that sleeps in
// its completion channel before each. Three rows: memory that cannot be moved into the arena (a shared mapping),
// accessed by CMA and through the ring; and memory in the arena.

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include <fairlead/verbs.hpp>

namespace {

using namespace fairlead;
using namespace fairlead::verbs;
using std::chrono::steady_clock;

constexpr int kRounds = 300;
constexpr std::size_t kMemory = 1 << 20;

enum class Way { arena, calls, ring };

void pin(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  sched_setaffinity(0, sizeof one, &one);
}

template <typename Value>
Value need(Result<Value> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

constexpr std::uint32_t kRights = access::local_write | access::remote_write | access::remote_read;

struct Side {
  Side(std::uint8_t host, Way way)
      : device{.name = "bench",
               .address = fmt::format("127.0.0.{}", host),
               .interface_name = {},
               .gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, host}},
        context(need(
            Context::open(device, {.engine = {{"path", "shm"}, {"shm_cma_max", way == Way::calls ? "262144" : "0"}}}))),
        domain(need(ProtectionDomain::allocate(context))),
        channel(need(CompletionChannel::open(context))),
        queue(need(CompletionQueue::create(context, {.capacity = 16, .channel = &channel, .cookie = 0}))),
        region(need(way == Way::arena
                        ? MemoryRegion::allocate(domain, kMemory, kRights)
                        : MemoryRegion::add(domain, {.address = ::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE,
                                                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0),
                                                     .length = kMemory,
                                                     .access = kRights,
                                                     .iova = {}}))),
        pair(need(QueuePair::create(domain, {.type = QpType::rc,
                                             .send_queue = &queue,
                                             .receive_queue = &queue,
                                             .shared_receive = nullptr,
                                             .capacity = {}}))) {}

  /// Exchanges queue pair numbers and memory addresses.
  RemoteMemory meet(int socket) {
    const auto theirs = need(exchange(socket, Invitation{pair.address(), region.remote()}.to_bytes(), kNever));
    const Invitation peer = need(Invitation::from_bytes(theirs));
    need(connect(pair, peer.pair));
    return peer.memory;
  }
  /// Returns the time from the post to the completion.
  double run(SendOpcode opcode, std::uint32_t length, const RemoteMemory& to) {
    const Sge sge = region.sge(0, length);
    const auto start = steady_clock::now();
    if (pair.post_send({.id = 1,
                        .sges = {&sge, 1},
                        .opcode = opcode,
                        .flags = send_flags::signaled,
                        .rkey = to.rkey,
                        .remote_addr = to.address}) != 0)
      std::exit(3);
    WorkCompletion done;
    while (queue.poll({&done, 1}) == 0) {
    }
    if (done.status != WcStatus::success) std::exit(4);
    return std::chrono::duration<double, std::micro>(steady_clock::now() - start).count();
  }

  Device device;
  Context context;
  ProtectionDomain domain;
  CompletionChannel channel;
  CompletionQueue queue;
  MemoryRegion region;
  QueuePair pair;
};

/// Sleeps until killed.
[[noreturn]] void serve(int socket, Way way) {
  pin(1);
  Side side(2, way);
  side.meet(socket);
  (void)side.queue.request_notify(false);
  need(exchange(socket, {}, kNever));
  for (;;) (void)side.channel.get_event();
}

double percentile(std::vector<double>& values, int percent) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size()) * percent / 100;
  std::ranges::nth_element(values, at);
  return *at;
}

void measure(Way way) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::exit(6);
  const pid_t child = ::fork();
  if (child == 0) serve(ends[1], way);
  pin(0);
  {
    Side side(1, way);
    const RemoteMemory there = side.meet(ends[0]);
    need(exchange(ends[0], {}, kNever));
    for (int i = 0; i < 200; ++i) side.run(SendOpcode::write, 8, there);
    for (const SendOpcode opcode : {SendOpcode::write, SendOpcode::read}) {
      for (const std::uint32_t length : {8U, 4096U, 65536U, 262144U}) {
        std::vector<double> taken;
        for (int i = 0; i < kRounds; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          taken.push_back(side.run(opcode, length, there));
        }
        fmt::print("{} of {:>6} B {}: median {:7.1f} us, 10 to 90 % {:.1f} to {:.1f}\n",
                   opcode == SendOpcode::write ? "write" : "read ", length,
                   way == Way::arena   ? "arena       "
                   : way == Way::calls ? "system calls"
                                       : "ring        ",
                   percentile(taken, 50), percentile(taken, 10), percentile(taken, 90));
      }
    }
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace

int main() {
  for (const Way way : {Way::ring, Way::calls, Way::arena}) measure(way);
}
