// Processes of one host access each other's memory, in the arena or by CMA. The initiator completes puts and gets
// itself: with a stopped target, with a target that withdraws its offers, and with initiators that are killed. Then
// messages by reference, with a killed reader or sender.

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/fellow.hpp"
#include "tests/net_pair.hpp"

namespace fairlead::tests {
namespace {

using net::ActiveReceive;
using net::ActiveSend;
using net::Buffer;
using net::BufferDescriptor;
using net::PassiveReceive;
using net::PassiveSend;

constexpr std::uint64_t kDirectSize = 100'000;

/// Where the memory of buffers is.
enum class Place { arena, elsewhere };
Place buffer_place = Place::arena;

net::Domain shm_domain(const char* path = "shm") {
  net::DomainSettings settings;
  settings.engine = {{"path", path},
                     {"give_up_after", "60000"},
                     {"unreachable_after", "60000"},
                     {"shm_cma_max", "1000000"},
                     {"shm_cma_awake_max", "1000000"}};
  return net::Domain::open(settings).value();
}

std::uint64_t counter(const net::TransferMachine& machine, std::string_view name) {
  for (const net::Counter& counter : machine.engine_counters())
    if (counter.name == name) return counter.value;
  ADD_FAILURE() << "no counter " << name;
  return 0;
}

/// A machine with one buffer and a record of its events.
struct Machine {
  explicit Machine(net::Domain& domain, std::string_view at = "127.0.0.1@udp:*:34:*") : machine(domain) {
    address = machine.start_and_wait(at).value().address();
    buffer = buffer_place == Place::arena ? Buffer::allocate(domain, kDirectSize).value()
                                          : Buffer::borrow(domain, std::span(borrowed)).value();
    EXPECT_EQ(buffer->set_callback(record.callback()), Status::ok);
  }
  net::Record::Entry event() { return record.wait_for(++seen).back(); }

  net::TransferMachine machine;
  std::string address;
  net::Record record;
  std::vector<std::byte> borrowed = std::vector<std::byte>(buffer_place == Place::elsewhere ? kDirectSize : 0);
  std::unique_ptr<Buffer> buffer;
  std::size_t seen = 0;
};

/// The target's process. It offers its buffer and reports events when the test asks.
struct Offer {
  BufferDescriptor descriptor;
};
void serve(int socket) {
  net::Domain domain = shm_domain();
  Machine own(domain);
  for (char order = 0; hear(socket, order);) {
    if (order == 'p') static_cast<void>(own.machine.add(*own.buffer, PassiveReceive{}));
    if (order == 'g') static_cast<void>(own.machine.add(*own.buffer, PassiveSend{}));
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

/// Puts until the initiator has completed one itself: only then are the engines connected.
void meet(Machine& own, const Fellow& target) {
  for (int tries = 0; tries < 1000 && counter(own.machine, "engine.direct.puts") == 0; ++tries) {
    const Offer offer = ask_offer(target, 'p');
    ASSERT_EQ(own.machine.add(*own.buffer, ActiveSend{.descriptor = offer.descriptor}), Status::ok);
    ASSERT_EQ(own.event().status, Status::ok);
    ASSERT_EQ(ask_event(target).status, Status::ok);
  }
  ASSERT_GT(counter(own.machine, "engine.direct.puts"), 0u);
}

class NetDirect : public testing::TestWithParam<Place> {
 protected:
  void SetUp() override { buffer_place = GetParam(); }
  void TearDown() override { buffer_place = Place::arena; }
};
INSTANTIATE_TEST_SUITE_P(, NetDirect, testing::Values(Place::arena, Place::elsewhere),
                         [](const auto& test) { return test.param == Place::arena ? "Arena" : "Elsewhere"; });

TEST_P(NetDirect, AStoppedTargetIsWrittenAndReadAndHearsOfItWhenItRuns) {
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

// The target withdraws its offer while the initiator puts. Either both report success, or nothing is written.
TEST_P(NetDirect, AnOfferThatIsTakenBackIsUsedWhollyOrNotAtAll) {
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

// Two engines use the same offer. Exactly one succeeds.
TEST_P(NetDirect, OneOfTwoInitiatorsGetsAnOffer) {
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

/// Makes the kernel refuse CMA to this process from now on.
bool forbid_cma() {
  std::array<sock_filter, 5> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// CMA may be permitted in one direction only. Then the ring carries the put, and the counters tell the reason.
TEST_P(NetDirect, WhoIsNotPermittedPutsThroughTheRingAndSaysSo) {
  const Fellow initiator([](int socket) {
    if (!forbid_cma()) return;
    net::Domain own_domain = shm_domain();
    Machine own(own_domain);
    for (Offer offer; hear(socket, offer);) {
      if (own.machine.add(*own.buffer, ActiveSend{.descriptor = offer.descriptor}) != Status::ok) break;
      tell(socket, own.event().status);
      tell(socket, counter(own.machine, "shm.process.not_permitted"));
      tell(socket, counter(own.machine, "engine.direct.puts_by_calls"));
    }
  });
  net::Domain domain = shm_domain();
  Machine own(domain);
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(own.machine.add(*own.buffer, PassiveReceive{}), Status::ok);
    ASSERT_TRUE(tell(initiator.socket(), Offer{own.buffer->descriptor()}));
    EXPECT_EQ(own.event().status, Status::ok);
    Status status = Status::system;
    std::uint64_t denied = 0, by_calls = 1;
    ASSERT_TRUE(hear(initiator.socket(), status) && hear(initiator.socket(), denied) &&
                hear(initiator.socket(), by_calls));
    EXPECT_EQ(status, Status::ok);
    EXPECT_EQ(denied, 1u);
    EXPECT_EQ(by_calls, 0u);
  }
}

// Initiators are killed at random moments. Each offer ends, and the next initiator's puts succeed.
TEST_P(NetDirect, AnInitiatorThatIsKilledLeavesNothingBehind) {
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
    const auto offer = [&] {
      EXPECT_EQ(own.machine.add(*own.buffer, PassiveReceive{}), Status::ok);
      return tell(initiator->socket(), Offer{own.buffer->descriptor()});
    };
    Status told = Status::system;
    for (int round = 0; round < 20; ++round) {
      ASSERT_TRUE(offer());
      ASSERT_EQ(own.event().status, Status::ok);
      ASSERT_TRUE(hear(initiator->socket(), told));
      ASSERT_EQ(told, Status::ok);
    }
    std::atomic<bool> is_killed{false};
    std::jthread killer([&, wait = random() % 3000] {
      std::this_thread::sleep_for(std::chrono::microseconds(wait));
      initiator->kill();
      is_killed = true;
      own.machine.cancel(*own.buffer);
    });
    int put_here = 0, put_there = 0;
    for (int round = 0; !is_killed && round < 100'000; ++round) {
      if (!offer()) own.machine.cancel(*own.buffer);
      const Status status = own.event().status;
      if (status == Status::ok) ++put_here;
      if (status != Status::ok) {
        // The killed initiator had begun a put and not ended it.
        EXPECT_TRUE(status == Status::canceled || status == Status::refused) << to_string(status);
        break;
      }
    }
    killer.join();
    while (hear(initiator->socket(), told)) ++put_there;
    EXPECT_LE(put_there, put_here) << "a put that was complete before the death was taken back";
    EXPECT_LE(put_here, put_there + 1) << "an offer ended well though nobody put";
  }
  ASSERT_EQ(own.machine.add(*own.buffer, PassiveReceive{}), Status::ok);
  ASSERT_TRUE(own.machine.cancel(*own.buffer));
  EXPECT_EQ(own.event().status, Status::canceled);
}

// One buffer receives all messages, so none is dropped between two buffers.
constexpr net::MessageReceive kManyLoans{.size_min = 1, .messages_max = 4096, .takes_loans = true};

/// Sends its address first. Keeps each message by reference, and sends its first byte to the test.
void keep_loans(int socket) {
  net::Domain domain = shm_domain();
  Machine own(domain);
  std::vector<net::Loan> kept;
  own.buffer->set_callback([&](const net::BufferEvent& event) {
    if (event.loan == nullptr) return;
    tell(socket, event.loan->bytes()[0]);
    kept.push_back(std::move(*event.loan));
  });
  if (own.machine.add(*own.buffer, kManyLoans) != Status::ok) return;
  std::array<char, 96> address{};
  own.address.copy(address.data(), address.size() - 1);
  tell(socket, address);
  for (char order = 0; hear(socket, order);) {
  }
}

/// Sends messages by reference until one stays on loan to the reader: only then are the engines connected.
bool lend_until_met(Machine& own, const net::EndPoint& to) {
  for (int tries = 0; tries < 4000; ++tries) {
    const std::uint64_t before = counter(own.machine, "engine.loan.sent");
    EXPECT_EQ(own.machine.add(*own.buffer, net::MessageSend{.to = to, .length = 8, .is_loan = true}), Status::ok);
    if (counter(own.machine, "engine.loan.sent") > before) return true;
    EXPECT_EQ(own.event().status, Status::ok);
  }
  return false;
}

TEST(NetLoan, AReaderThatIsKilledGivesEverythingBack) {
  std::vector<std::unique_ptr<Fellow>> readers;
  for (int i = 0; i < 5; ++i) readers.push_back(std::make_unique<Fellow>(keep_loans));
  net::Domain domain = shm_domain();
  Machine own(domain);
  std::ranges::fill(own.buffer->segment(0), std::byte{42});
  for (const auto& reader : readers) {
    std::array<char, 96> address{};
    ASSERT_TRUE(hear(reader->socket(), address));
    const auto to = own.machine.create_end_point(address.data()).value();
    ASSERT_TRUE(lend_until_met(own, to));
    net::Record record;
    std::vector<std::unique_ptr<Buffer>> lent;
    for (int i = 0; i < 20; ++i) {
      lent.push_back(Buffer::allocate(domain, 5000).value());
      std::ranges::fill(lent.back()->segment(0), std::byte{43});
      lent.back()->set_callback(record.callback());
      ASSERT_EQ(own.machine.add(*lent.back(), net::MessageSend{.to = to, .is_loan = true}), Status::ok);
    }
    for (std::byte first{}; first != std::byte{43};) ASSERT_TRUE(hear(reader->socket(), first)) << "it reads in place";
    EXPECT_TRUE(record.entries().empty()) << "nothing is back";
    reader->kill();
    for (const auto& entry : record.wait_for(20)) EXPECT_EQ(entry.status, Status::refused);
    EXPECT_EQ(own.event().status, Status::refused);
  }
}

TEST(NetLoan, CanBeReadAfterItsSenderAndItsMachineAreGone) {
  Fellow sender([](int socket) {
    net::Domain domain = shm_domain();
    Machine own(domain);
    fill_and_sum(*own.buffer, 11);
    std::array<char, 96> address{};
    if (!hear(socket, address)) return;
    const auto to = own.machine.create_end_point(address.data()).value();
    if (!lend_until_met(own, to) || own.event().status != Status::ok) return;
    const net::MessageSend lend{.to = to, .length = kDirectSize / 2, .is_loan = true};
    if (own.machine.add(*own.buffer, lend) == Status::ok) hear(socket, address);
  });
  net::Domain domain = shm_domain();
  auto own = std::make_unique<Machine>(domain);
  std::atomic<bool> has_come{false};
  net::Loan loan;
  own->buffer->set_callback([&](const net::BufferEvent& event) {
    if (event.loan == nullptr || event.length != kDirectSize / 2) return;
    loan = std::move(*event.loan);
    has_come = true;
    has_come.notify_all();
  });
  ASSERT_EQ(own->machine.add(*own->buffer, kManyLoans), Status::ok);
  std::array<char, 96> address{};
  own->address.copy(address.data(), address.size() - 1);
  ASSERT_TRUE(tell(sender.socket(), address));
  has_come.wait(false);
  const auto sum = [&] {
    std::uint64_t bytes = 0;
    for (const std::byte byte : loan.bytes()) bytes += std::to_integer<std::uint64_t>(byte);
    return bytes;
  };
  const std::uint64_t before = sum();
  EXPECT_EQ(loan.bytes().size(), kDirectSize / 2);
  sender.kill();
  while (counter(own->machine, "shm.peers_ended") == 0) std::this_thread::yield();
  EXPECT_EQ(sum(), before);
  own.reset();
  EXPECT_EQ(sum(), before);
  EXPECT_TRUE(loan);
  loan.give_back();
  EXPECT_FALSE(loan);
}

TEST(NetLoan, IsAnOrdinaryMessageOverTheNetwork) {
  net::Domain domain = shm_domain("udp");
  Machine near(domain), far(domain, fmt::format("127.0.0.1@udp:{}:34:*", free_pid("127.0.0.1@udp")));
  ASSERT_EQ(far.machine.add(*far.buffer, net::MessageReceive{.size_min = 1, .takes_loans = true}), Status::ok);
  const std::uint64_t sum = fill_and_sum(*near.buffer, 12);
  ASSERT_EQ(near.machine.add(*near.buffer, net::MessageSend{.to = near.machine.create_end_point(far.address).value(),
                                                            .is_loan = true}),
            Status::ok);
  EXPECT_EQ(near.event().status, Status::ok);
  EXPECT_EQ(far.event().length, kDirectSize);
  std::uint64_t bytes = 0;
  for (const std::byte byte : far.buffer->segment(0)) bytes += std::to_integer<std::uint64_t>(byte);
  EXPECT_EQ(bytes, sum);
}

}  // namespace
}  // namespace fairlead::tests
