// Latency of a put of Net between two pinned processes of this host: half of the time of a put in each direction, until
// the other process sees the last byte. Also of a get, from the call to its event. Three kinds of memory: the library's
// in its arena; the application's, accessed by CMA; and the same through the ring. Rounds of puts alternate with rounds
// of the shared-memory floor of the same size. Each put and get has an exposure of its own. Exposing and taking events
// happens between the rounds and is not measured.

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
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include <fairlead/net.hpp>

#include "observe/canary.hpp"
#include "observe/floor.hpp"

namespace {

using namespace fairlead;
using std::chrono::steady_clock;

constexpr std::size_t kPuts = 8;  // per round, one at a time
constexpr int kPieces = 5;
constexpr auto kPiece = std::chrono::milliseconds(100);

/// Where the memory is, and how the initiator accesses it.
enum class Way { arena, calls, ring };
struct Plan {
  Way way = Way::arena;
  bool is_put = true;
  bool is_asleep = false;  // the owner of the memory that is read
  std::uint64_t size = 0;
};
constexpr const char* name_of(Way way) {
  return way == Way::arena ? "arena" : way == Way::calls ? "calls" : "ring";
}

using Descriptors = std::array<net::BufferDescriptor, kPuts>;

void pin(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  sched_setaffinity(0, sizeof one, &one);
}

class Side {
 public:
  Side(int socket, const Plan& plan) : socket_(socket), plan_(plan), domain_(open(plan)), machine_(domain_) {
    (void)machine_.deliver_synchronously();
    if (!machine_.start_and_wait("127.0.0.1@udp:*:34:*")) std::exit(2);
    for (std::size_t i = 0; i < kPuts; ++i) {
      own_.push_back(make(true));
      out_.push_back(make(false));
    }
  }

  /// Time of one put in one direction, averaged over the round; or of a get.
  double round(bool is_first, std::byte stamp) {
    Descriptors own, there;
    for (std::size_t i = 0; i < kPuts; ++i) {
      last(*(plan_.is_put ? out_ : own_)[i]) = stamp;
      if (plan_.is_asleep && is_first) continue;
      const Status added =
          plan_.is_put ? machine_.add(*own_[i], net::PassiveReceive{}) : machine_.add(*own_[i], net::PassiveSend{});
      if (added != Status::ok) std::exit(3);
      own[i] = own_[i]->descriptor();
    }
    if (::write(socket_, own.data(), sizeof own) != sizeof own ||
        ::recv(socket_, there.data(), sizeof there, MSG_WAITALL) != sizeof there)
      std::exit(4);
    const auto start = steady_clock::now();
    if (plan_.is_asleep) return is_first ? get_from_sleeper(there) : sleep_meanwhile();
    for (std::size_t i = 0; i < kPuts && !plan_.is_put; ++i) {
      get(i, there[i]);
      if (last(*out_[i]) != stamp) std::exit(9);
    }
    gets_ended_ = 0;
    const std::chrono::duration<double, std::micro> got = steady_clock::now() - start;
    for (std::size_t i = 0; i < kPuts && plan_.is_put; ++i) {
      if (is_first) put(i, there[i]);
      while (std::atomic_ref(last(*own_[i])).load(std::memory_order_acquire) != stamp) {
        if (!is_direct_) (void)machine_.deliver_all();
      }
      if (!is_first) put(i, there[i]);
    }
    const std::chrono::duration<double, std::micro> taken = steady_clock::now() - start;
    while (ended_ < 2 * kPuts) (void)machine_.deliver_all();
    ended_ = 0;
    return plan_.is_put ? taken.count() / (2 * kPuts) : got.count() / kPuts;
  }
  /// Whether the engine now uses the wanted way. Until then, the waiting side makes progress.
  bool find_way() {
    for (const net::Counter& counter : machine_.engine_counters())
      if (counter.name == (plan_.is_put ? "engine.direct.puts" : "engine.direct.gets") && counter.value > 0)
        is_direct_ = true;
    return is_direct_ || plan_.way == Way::ring;
  }

 private:
  static net::Domain open(const Plan& plan) {
    const char* most = plan.way == Way::calls ? "67108864" : "0";
    auto domain = net::Domain::open({.engine = {{"path", "shm"}, {"shm_cma_max", most}, {"shm_cma_awake_max", most}}});
    if (!domain) std::exit(1);
    return std::move(*domain);
  }
  std::unique_ptr<net::Buffer> make(bool is_own) {
    std::unique_ptr<net::Buffer> buffer;
    if (plan_.way == Way::arena) {
      buffer = net::Buffer::allocate(domain_, plan_.size).value();
    } else {
      memory_.emplace_back(plan_.size);
      buffer = net::Buffer::borrow(domain_, std::span(memory_.back())).value();
    }
    std::ranges::fill(buffer->segment(0), std::byte{0});
    buffer->set_callback([this, is_own](const net::BufferEvent& event) {
      if (event.status != Status::ok) std::exit(5);
      ++ended_;
      if (!is_own) ++gets_ended_;
    });
    return buffer;
  }
  void put(std::size_t i, const net::BufferDescriptor& to) {
    if (machine_.add(*out_[i], net::ActiveSend{.descriptor = to}) != Status::ok) std::exit(6);
  }
  void get(std::size_t i, const net::BufferDescriptor& from) {
    if (machine_.add(*out_[i], net::ActiveReceive{.descriptor = from}) != Status::ok) std::exit(6);
    while (gets_ended_ <= i) (void)machine_.deliver_all();
  }
  double get_from_sleeper(const Descriptors& there) {
    std::chrono::duration<double, std::micro> taken{};
    for (std::size_t i = 0; i < kPuts; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      const auto start = steady_clock::now();
      get(i, there[i]);
      taken += steady_clock::now() - start;
    }
    gets_ended_ = ended_ = 0;
    if (::write(socket_, "d", 1) != 1) std::exit(10);
    return taken.count() / kPuts;
  }
  double sleep_meanwhile() {
    char done = 0;
    if (::recv(socket_, &done, 1, MSG_WAITALL) != 1) std::exit(11);
    while (ended_ < kPuts) (void)machine_.deliver_all();
    ended_ = 0;
    return 0;
  }
  static std::byte& last(net::Buffer& buffer) { return buffer.segment(0).back(); }

  int socket_;
  Plan plan_;
  net::Domain domain_;
  net::TransferMachine machine_;
  std::deque<std::vector<std::byte>> memory_;
  std::vector<std::unique_ptr<net::Buffer>> own_, out_;
  std::size_t ended_ = 0, gets_ended_ = 0;
  bool is_direct_ = false;
};

/// Serves rounds until the near side ends the run.
void serve(int socket, const Plan& plan) {
  pin(1);
  Side side(socket, plan);
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

void measure(const Plan& plan) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::exit(7);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    serve(ends[1], plan);
    ::_exit(0);
  }
  ::close(ends[1]);
  pin(0);
  std::vector<double> ours, floors, canaries;
  {
    Side side(ends[0], plan);
    unsigned number = 0;
    const auto round = [&] {
      const std::byte stamp = static_cast<std::byte>(++number % 2 + 1);
      if (::write(ends[0], &stamp, 1) != 1) std::exit(8);
      return side.round(true, stamp);
    };
    while (!side.find_way()) round();
    for (int i = 0; i < (plan.is_asleep ? 2 : 20); ++i) round();
    for (int piece = 0; piece < kPieces; ++piece) {
      canaries.push_back(static_cast<double>(observe::line_transfer_time(0, 1).count()));
      for (const auto until = steady_clock::now() + kPiece; steady_clock::now() < until;) ours.push_back(round());
      if (!plan.is_put) continue;
      const auto floor =
          observe::floor_shm_exchange({.bytes = static_cast<std::uint32_t>(plan.size), .duration = kPiece});
      if (floor) floors.push_back(static_cast<double>(floor->one_way.percentile(50).count()) / 1e3);
    }
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  fmt::print("{} {:>8} B {:>6}: {:9.3f} us",
             plan.is_asleep ? "get of a sleeper"
             : plan.is_put  ? "put"
                            : "get",
             plan.size, name_of(plan.way), median(ours));
  if (!floors.empty()) {
    fmt::print("; a message through shared memory: {:.3f} us; ratio {:.2f}", median(floors),
               median(ours) / median(floors));
  }
  fmt::print("; canary {:.0f} ns\n", median(canaries));
}

}  // namespace

int main() {
  for (const std::uint64_t size : {8, 4096, 16384, 65536, 1 << 20, 4 << 20}) {
    for (const Plan& plan : {Plan{.is_put = true}, Plan{.is_put = false}, Plan{.is_put = false, .is_asleep = true}})
      for (const Way way : {Way::arena, Way::calls, Way::ring}) measure({way, plan.is_put, plan.is_asleep, size});
  }
}
