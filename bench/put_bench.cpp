// How long a put of the net face takes from the call to where the other process sees its last byte: half of a put and
// one back, between two pinned processes of this host, each in turns with the floor of shared memory of that size.
// Every put has an exposure of its own; exposing and events are done between the rounds, and are not measured.

#include <fmt/format.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include <fairlead/net.hpp>

#include "observe/canary.hpp"
#include "observe/floor.hpp"

namespace {

using namespace fairlead;
using std::chrono::steady_clock;

constexpr std::size_t kPuts = 8;  // of a round, one at a time
constexpr int kPieces = 5;
constexpr auto kPiece = std::chrono::milliseconds(200);

using Descriptors = std::array<net::BufferDescriptor, kPuts>;

void pin(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  sched_setaffinity(0, sizeof one, &one);
}

class Side {
 public:
  Side(int socket, std::uint64_t size) : socket_(socket), size_(size), domain_(open()), machine_(domain_) {
    (void)machine_.deliver_synchronously();
    if (!machine_.start_and_wait("127.0.0.1@udp:*:34:*")) std::exit(2);
    for (std::size_t i = 0; i < kPuts; ++i) {
      own_.push_back(make());
      out_.push_back(make());
    }
  }

  /// One way of a put, on average over the round.
  double round(bool is_first, std::byte stamp) {
    Descriptors own, there;
    for (std::size_t i = 0; i < kPuts; ++i) {
      last(*out_[i]) = stamp;
      if (machine_.add(*own_[i], net::PassiveReceive{}) != Status::ok) std::exit(3);
      own[i] = own_[i]->descriptor();
    }
    if (::write(socket_, own.data(), sizeof own) != sizeof own ||
        ::recv(socket_, there.data(), sizeof there, MSG_WAITALL) != sizeof there)
      std::exit(4);
    const auto start = steady_clock::now();
    for (std::size_t i = 0; i < kPuts; ++i) {
      if (is_first) put(i, there[i]);
      while (std::atomic_ref(last(*own_[i])).load(std::memory_order_acquire) != stamp) {
        if (!is_direct_) (void)machine_.deliver_all();
      }
      if (!is_first) put(i, there[i]);
    }
    const std::chrono::duration<double, std::micro> taken = steady_clock::now() - start;
    while (ended_ < 2 * kPuts) (void)machine_.deliver_all();
    ended_ = 0;
    return taken.count() / (2 * kPuts);
  }
  /// Until then, whoever waits makes progress.
  bool find_way() {
    for (const net::Counter& counter : machine_.engine_counters())
      if (counter.name == "engine.direct.puts" && counter.value > 0) is_direct_ = true;
    return is_direct_;
  }

 private:
  static net::Domain open() {
    auto domain = net::Domain::open({.engine = {{"path", "shm"}}});
    if (!domain) std::exit(1);
    return std::move(*domain);
  }
  std::unique_ptr<net::Buffer> make() {
    auto buffer = net::Buffer::allocate(domain_, size_).value();
    std::ranges::fill(buffer->segment(0), std::byte{0});
    buffer->set_callback([this](const net::BufferEvent& event) {
      if (event.status != Status::ok) std::exit(5);
      ++ended_;
    });
    return buffer;
  }
  void put(std::size_t i, const net::BufferDescriptor& to) {
    if (machine_.add(*out_[i], net::ActiveSend{.descriptor = to}) != Status::ok) std::exit(6);
  }
  static std::byte& last(net::Buffer& buffer) { return buffer.segment(0).back(); }

  int socket_;
  std::uint64_t size_;
  net::Domain domain_;
  net::TransferMachine machine_;
  std::vector<std::unique_ptr<net::Buffer>> own_, out_;
  std::size_t ended_ = 0;
  bool is_direct_ = false;
};

/// Rounds until the near side says that it is enough; then none is waited for.
void serve(int socket, std::uint64_t size) {
  pin(1);
  Side side(socket, size);
  std::byte stamp{};
  while (::recv(socket, &stamp, 1, MSG_WAITALL) == 1) {
    (void)side.find_way();
    side.round(false, stamp);
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

void measure(std::uint64_t size) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::exit(7);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    serve(ends[1], size);
    ::_exit(0);
  }
  ::close(ends[1]);
  pin(0);
  std::vector<double> ours, floors, canaries;
  {
    Side side(ends[0], size);
    unsigned number = 0;
    const auto round = [&] {
      const std::byte stamp = static_cast<std::byte>(++number % 2 + 1);
      if (::write(ends[0], &stamp, 1) != 1) std::exit(8);
      return side.round(true, stamp);
    };
    while (!side.find_way()) round();
    for (int i = 0; i < 50; ++i) round();
    for (int piece = 0; piece < kPieces; ++piece) {
      canaries.push_back(static_cast<double>(observe::line_transfer_time(0, 1).count()));
      for (const auto until = steady_clock::now() + kPiece; steady_clock::now() < until;) ours.push_back(round());
      const auto floor = observe::floor_shm_exchange({.bytes = static_cast<std::uint32_t>(size), .duration = kPiece});
      if (floor) floors.push_back(static_cast<double>(floor->one_way.percentile(50).count()) / 1e3);
    }
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  fmt::print(
      "put {:>8} B: {:.3f} us until seen; a message through shared memory: {:.3f} us; ratio {:.2f}; canary {:.0f} ns\n",
      size, median(ours), median(floors), median(ours) / median(floors), median(canaries));
}

}  // namespace

int main() {
  for (const std::uint64_t size : {8, 4096, 65536, 1 << 20}) measure(size);
}
