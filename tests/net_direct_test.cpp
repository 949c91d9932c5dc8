// Puts and gets between processes of one host that the initiator carries out by itself: into a target that is stopped,
// against one that takes its offers back, and by initiators that are killed.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/file_descriptor.hpp"
#include "tests/net_pair.hpp"

namespace fairlead::tests {
namespace {

using net::ActiveReceive;
using net::ActiveSend;
using net::Buffer;
using net::BufferDescriptor;
using net::PassiveReceive;
using net::PassiveSend;

constexpr std::uint64_t kSize = 100'000;

/// A process that does what `live` says, with one end of a pair of sockets, until it is killed.
class Fellow {
 public:
  explicit Fellow(const std::function<void(int socket)>& live) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::close(ends[0]);
      live(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    socket_ = base::FileDescriptor(ends[0]);
  }
  ~Fellow() { kill(); }
  Fellow(const Fellow&) = delete;
  Fellow& operator=(const Fellow&) = delete;

  void kill() {
    if (process_ > 0) ::kill(process_, SIGKILL), ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  pid_t process() const { return process_; }
  int socket() const { return socket_.get(); }

 private:
  pid_t process_ = -1;
  base::FileDescriptor socket_;
};

template <typename Value>
bool tell(int socket, const Value& value) {
  return ::send(socket, &value, sizeof value, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof value);
}
template <typename Value>
bool hear(int socket, Value& value) {
  return ::recv(socket, &value, sizeof value, MSG_WAITALL) == static_cast<ssize_t>(sizeof value);
}

net::Domain shm_domain() {
  net::DomainSettings settings;
  settings.engine = {{"path", "shm"}, {"give_up_after", "60000"}, {"unreachable_after", "60000"}};
  return net::Domain::open(settings).value();
}

std::uint64_t counter(const net::TransferMachine& machine, std::string_view name) {
  for (const net::Counter& counter : machine.engine_counters())
    if (counter.name == name) return counter.value;
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

/// A machine with a buffer, and the way to wait for its events.
struct Machine {
  explicit Machine(net::Domain& domain) : machine(domain) {
    address = machine.start_and_wait("127.0.0.1@udp:*:34:*").value().address();
    buffer = Buffer::allocate(domain, kSize).value();
    EXPECT_EQ(buffer->set_callback(record.callback()), Status::ok);
  }
  net::Record::Entry event() { return record.wait_for(++seen).back(); }

  net::TransferMachine machine;
  std::string address;
  net::Record record;
  std::unique_ptr<Buffer> buffer;
  std::size_t seen = 0;
};

/// What the target does: offers its memory again and again, until told to end.
struct Offer {
  BufferDescriptor descriptor;
};
void serve(int socket) {
  net::Domain domain = shm_domain();
  Machine own(domain);
  for (char order = 0; hear(socket, order);) {
    if (order == 'p') own.machine.add(*own.buffer, PassiveReceive{});
    if (order == 'g') own.machine.add(*own.buffer, PassiveSend{});
    if (order == 'p' || order == 'g') tell(socket, Offer{own.buffer->descriptor()});
    if (order == 'c') own.machine.cancel(*own.buffer);
    if (order == 'e') {
      const auto event = own.event();
      std::uint64_t sum = 0;
      for (const std::byte byte : own.buffer->segment(0)) sum += std::to_integer<std::uint64_t>(byte);
      tell(socket, event.status);
      tell(socket, sum);
    }
  }
}

struct Told {
  Status status = Status::system;
  std::uint64_t sum = 0;
};
Told ask_event(const Fellow& target) {
  Told told;
  EXPECT_TRUE(tell(target.socket(), 'e') && hear(target.socket(), told.status) && hear(target.socket(), told.sum));
  return told;
}
Offer ask_offer(const Fellow& target, char kind) {
  Offer offer;
  EXPECT_TRUE(tell(target.socket(), kind) && hear(target.socket(), offer));
  return offer;
}

std::uint64_t fill_and_sum(Buffer& buffer, unsigned seed) {
  std::uint64_t sum = 0;
  for (std::byte& byte : buffer.segment(0)) {
    byte = static_cast<std::byte>((sum * 5 + seed) >> 3);
    sum += std::to_integer<std::uint64_t>(byte) + 1;
  }
  return sum - buffer.size();
}

/// Puts until one was carried out by ourselves: the two have met.
void meet(Machine& own, const Fellow& target) {
  for (int tries = 0; tries < 1000 && counter(own.machine, "engine.direct.puts") == 0; ++tries) {
    const Offer offer = ask_offer(target, 'p');
    ASSERT_EQ(own.machine.add(*own.buffer, ActiveSend{.descriptor = offer.descriptor}), Status::ok);
    ASSERT_EQ(own.event().status, Status::ok);
    ASSERT_EQ(ask_event(target).status, Status::ok);
  }
  ASSERT_GT(counter(own.machine, "engine.direct.puts"), 0u);
}

TEST(NetDirect, AStoppedTargetIsWrittenAndReadAndHearsOfItWhenItRuns) {
  const Fellow target(serve);
  net::Domain domain = shm_domain();
  Machine own(domain);
  meet(own, target);
  for (const char kind : {'p', 'g'}) {
    const Offer offer = ask_offer(target, kind);
    ASSERT_EQ(::kill(target.process(), SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(target.process(), &status, WUNTRACED), target.process());
    static std::uint64_t sum = 0;
    if (kind == 'p') {
      sum = fill_and_sum(*own.buffer, 7);
      ASSERT_EQ(own.machine.add(*own.buffer, ActiveSend{.descriptor = offer.descriptor}), Status::ok);
    } else {
      std::ranges::fill(own.buffer->segment(0), std::byte{0});
      ASSERT_EQ(own.machine.add(*own.buffer, ActiveReceive{.descriptor = offer.descriptor}), Status::ok);
    }
    EXPECT_EQ(own.event().status, Status::ok) << "while the target stands still";
    if (kind == 'g') {
      std::uint64_t read = 0;
      for (const std::byte byte : own.buffer->segment(0)) read += std::to_integer<std::uint64_t>(byte);
      EXPECT_EQ(read, sum);
    }
    ASSERT_EQ(::kill(target.process(), SIGCONT), 0);
    const Told told = ask_event(target);
    EXPECT_EQ(told.status, Status::ok);
    EXPECT_EQ(told.sum, sum);
  }
}

// Offers that are taken back while somebody puts: either it was in time, and both say so, or nothing was written.
TEST(NetDirect, AnOfferThatIsTakenBackIsUsedWhollyOrNotAtAll) {
  const Fellow target(serve);
  net::Domain domain = shm_domain();
  Machine own(domain);
  meet(own, target);
  std::uint64_t before = 0;
  int used = 0;
  for (unsigned round = 0; round < 100; ++round) {
    const Offer offer = ask_offer(target, 'p');
    const std::uint64_t sum = fill_and_sum(*own.buffer, round);
    std::thread other([&] { tell(target.socket(), 'c'); });
    for (unsigned spin = round % 64 * 16; spin > 0; --spin) asm volatile("");
    ASSERT_EQ(own.machine.add(*own.buffer, ActiveSend{.descriptor = offer.descriptor}), Status::ok);
    other.join();
    const Status here = own.event().status;
    const Told there = ask_event(target);
    if (here == Status::ok) {
      EXPECT_EQ(there.status, Status::ok);
      EXPECT_EQ(there.sum, sum);
      ++used;
    } else {
      EXPECT_EQ(here, Status::stale);
      EXPECT_EQ(there.status, Status::canceled);
      if (round > 0) {
        EXPECT_EQ(there.sum, before);
      }
    }
    before = there.sum;
  }
  RecordProperty("used", used);
}

// Two engines want the same offer: one gets it.
TEST(NetDirect, OneOfTwoInitiatorsGetsAnOffer) {
  const auto compete = [](int socket) {
    net::Domain domain = shm_domain();
    Machine own(domain);
    for (Offer offer; hear(socket, offer);) {
      EXPECT_EQ(own.machine.add(*own.buffer, ActiveSend{.descriptor = offer.descriptor}), Status::ok);
      tell(socket, own.event().status);
    }
  };
  const Fellow target(serve), rival(compete);
  net::Domain domain = shm_domain();
  Machine own(domain);
  meet(own, target);
  int ours = 0;
  for (int round = 0; round < 60; ++round) {
    const Offer offer = ask_offer(target, 'p');
    ASSERT_TRUE(tell(rival.socket(), offer));
    ASSERT_EQ(own.machine.add(*own.buffer, ActiveSend{.descriptor = offer.descriptor}), Status::ok);
    const Status here = own.event().status;
    Status there = Status::system;
    ASSERT_TRUE(hear(rival.socket(), there));
    EXPECT_EQ((here == Status::ok) + (there == Status::ok), 1);
    EXPECT_EQ((here == Status::stale) + (there == Status::stale), 1);
    EXPECT_EQ(ask_event(target).status, Status::ok);
    ours += here == Status::ok;
  }
  RecordProperty("ours", ours);
}

// Initiators that are killed in the middle of whatever they do: each offer ends, and the next one serves.
TEST(NetDirect, AnInitiatorThatIsKilledLeavesNothingBehind) {
  std::vector<std::unique_ptr<Fellow>> initiators;
  for (int i = 0; i < 10; ++i) {
    initiators.push_back(std::make_unique<Fellow>([](int socket) {
      net::Domain own_domain = shm_domain();
      Machine own(own_domain);
      for (Offer offer; hear(socket, offer);) {
        if (own.machine.add(*own.buffer, ActiveSend{.descriptor = offer.descriptor}) != Status::ok) break;
        tell(socket, own.event().status);
      }
    }));
  }
  net::Domain domain = shm_domain();
  Machine own(domain);
  std::mt19937 random(3);
  for (const auto& initiator : initiators) {
    std::atomic<bool> is_killed{false};
    std::jthread killer;
    for (int round = 0; !is_killed || round < 20; ++round) {
      ASSERT_LT(round, 100'000);
      ASSERT_EQ(own.machine.add(*own.buffer, PassiveReceive{}), Status::ok);
      if (!tell(initiator->socket(), Offer{own.buffer->descriptor()})) own.machine.cancel(*own.buffer);
      if (round == 20) {
        killer = std::jthread([&, wait = random() % 3000] {
          std::this_thread::sleep_for(std::chrono::microseconds(wait));
          initiator->kill();
          is_killed = true;
          own.machine.cancel(*own.buffer);
        });
      }
      const auto event = own.event();
      Status told = Status::system;
      if (event.status == Status::ok && round < 20) {
        ASSERT_TRUE(hear(initiator->socket(), told));
      }
      EXPECT_TRUE(event.status == Status::ok || event.status == Status::refused || event.status == Status::canceled)
          << to_string(event.status);
    }
  }
  ASSERT_EQ(own.machine.add(*own.buffer, PassiveReceive{}), Status::ok);
  ASSERT_TRUE(own.machine.cancel(*own.buffer));
  EXPECT_EQ(own.event().status, Status::canceled);
}

}  // namespace
}  // namespace fairlead::tests
