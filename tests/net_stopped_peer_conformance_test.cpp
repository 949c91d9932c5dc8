// The peer is stopped, and unreachable for ten minutes as far as the timeouts go. All operations that wait for it still
// end by deadline, cancel(), stop(abort) or destruction, with the right status. When the peer continues, messages flow
// again.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fairlead/net.hpp>

#include "host/host_for_tests.hpp"
#include "tests/fellow.hpp"
#include "tests/net_pair.hpp"

namespace fairlead::tests {
namespace {

using namespace std::chrono_literals;
using net::Buffer;
using net::MachineState;
using net::MessageReceive;
using net::MessageSend;
using net::QueueKind;
using net::StopMode;

constexpr std::uint64_t kStuckSize = 1 << 20;
constexpr std::array<std::uint64_t, 4> kLengths{64, 4000, 60'000, kStuckSize};
constexpr int kOffers = 4, kTries = 1000;
constexpr std::size_t kMessages = 8 * kLengths.size();

Instant now() {
  return Instant::clock::now();
}

using EngineSettings = decltype(net::DomainSettings::engine);

EngineSettings patient(const std::string& path) {
  return {{"path", path}, {"give_up_after", "600000"}, {"unreachable_after", "600000"}, {"shm_cma_max", "0"}};
}

net::Domain domain_with(EngineSettings engine) {
  net::DomainSettings settings;
  settings.engine = std::move(engine);
  return net::Domain::open(settings).value();
}

struct Hello {
  std::array<char, 64> address{};
  std::array<net::BufferDescriptor, kOffers> writable{}, readable{};
};

/// Receives messages of any length and offers memory.
void serve(int socket, const std::string& path) {
  net::Domain domain = domain_with(patient(path));
  net::TransferMachine machine(domain);
  Hello hello;
  const std::string address(machine.start_and_wait("127.0.0.1@udp:*:34:*").value().address());
  address.copy(hello.address.data(), hello.address.size() - 1);
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<std::vector<std::byte>> memory;
  const auto make = [&]() -> Buffer& {
    memory.emplace_back(kStuckSize);
    return *buffers.emplace_back(Buffer::borrow(domain, std::span(memory.back())).value());
  };
  for (int i = 0; i < 4; ++i) {
    (void)make().set_callback([&](const net::BufferEvent& event) {
      (void)machine.add(event.buffer, MessageReceive{.size_min = kStuckSize});
    });
    (void)machine.add(*buffers.back(), MessageReceive{.size_min = kStuckSize});
  }
  for (int i = 0; i < 2 * kOffers; ++i) {
    (void)make().set_callback([](const net::BufferEvent&) {});
    const auto place = static_cast<std::size_t>(i / 2);
    i % 2 == 0 ? (void)machine.add(*buffers.back(), net::PassiveReceive{})
               : (void)machine.add(*buffers.back(), net::PassiveSend{});
    (i % 2 == 0 ? hello.writable : hello.readable)[place] = buffers.back()->descriptor();
  }
  tell(socket, hello);
  char order = 0;
  hear(socket, order);  // until the other end closes the socket
}

/// Where the memory of buffers comes from.
enum class Memory { allocated, borrowed };
struct Way {
  std::string name, path;
  Memory memory = Memory::borrowed;
  bool is_hosted = false;  // the test's own engine is that of a host engine; the stopped peer has one of its own
};
std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.name;
}

class StoppedPeer : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    peer_ = std::make_unique<Fellow>([](int socket) { serve(socket, GetParam().path); });
    ASSERT_TRUE(hear(peer_->socket(), hello_));
    open_domain();
    machine_ = std::make_unique<net::TransferMachine>(*domain_);
    machine_->start_and_wait("127.0.0.1@udp:*:34:*").value();
    for (const std::uint64_t length : kLengths) send(buffer(), length);  // so that the engines are connected
    while (seen_ < kLengths.size()) expect_next(Status::ok);
    ASSERT_TRUE(peer_->stop());
  }
  void TearDown() override {
    peer_->kill();
    machine_.reset();
  }

  /// A host engine begins after the peer's fork.
  void open_domain() {
    EngineSettings engine = patient(GetParam().path);
    if (GetParam().is_hosted) {
      host::ServiceOptions options;
      for (const auto& [name, value] : engine) EXPECT_TRUE(options.engine.set(name, value));
      host_ = std::make_unique<host::HostForTests>(std::move(options));
      engine = {{"core", "host"}, {"host", host_->file()}};
    }
    domain_.emplace(domain_with(std::move(engine)));
  }
  Buffer& buffer() {
    if (GetParam().memory == Memory::allocated) {
      buffers_.push_back(Buffer::allocate(*domain_, kStuckSize).value());
    } else {
      memory_.emplace_back(kStuckSize);
      buffers_.push_back(Buffer::borrow(*domain_, std::span(memory_.back())).value());
    }
    EXPECT_EQ(buffers_.back()->set_callback(record_.callback()), Status::ok);
    return *buffers_.back();
  }
  void send(Buffer& from, std::uint64_t length, Instant deadline = kNever) {
    const net::EndPoint to = machine_->create_end_point(hello_.address.data()).value();
    EXPECT_EQ(machine_->add(from, MessageSend{.to = to, .length = length, .deadline = deadline}), Status::ok);
  }
  /// Begins all kinds of operations that wait for the peer, with a deadline in `span` from when they have memory, and
  /// returns their number. It sends several messages of each length, because the first may already be in the peer's
  /// memory.
  std::size_t begin_all(std::optional<Duration> span = {}) {
    std::vector<Buffer*> buffers;
    for (std::size_t i = 0; i < kMessages + 2 * kOffers; ++i) buffers.push_back(&buffer());
    const Instant deadline = span ? now() + *span : kNever;
    std::size_t count = 0;
    for (const std::uint64_t length : kLengths) {
      for (std::size_t i = 0; i < kMessages / kLengths.size(); ++i) send(*buffers[count++], length, deadline);
    }
    for (int i = 0; i < kOffers; ++i) {
      const auto place = static_cast<std::size_t>(next_offer_++ % kOffers);
      EXPECT_EQ(
          machine_->add(*buffers[count++], net::ActiveSend{.descriptor = hello_.writable[place], .deadline = deadline}),
          Status::ok);
      EXPECT_EQ(machine_->add(*buffers[count++],
                              net::ActiveReceive{.descriptor = hello_.readable[place], .deadline = deadline}),
                Status::ok);
    }
    return count;
  }
  net::Record::Entry expect_next(Status status) {
    const auto entry = record_.wait_for(++seen_).back();
    EXPECT_EQ(entry.status, status);
    EXPECT_TRUE(entry.is_final);
    return entry;
  }
  void expect_all(std::size_t count, Status status) {
    for (; count > 0; --count) expect_next(status);
  }
  /// The peer first receives what reached its memory before. So for some time it may have no buffer for these messages.
  void expect_alive() {
    peer_->go_on();
    Buffer& from = buffer();
    for (const std::uint64_t length : kLengths) {
      Status status = Status::no_buffer;
      for (int i = 0; i < kTries && status == Status::no_buffer; ++i) {
        send(from, length);
        status = record_.wait_for(++seen_).back().status;
      }
      EXPECT_EQ(status, Status::ok) << length;
    }
  }

  std::unique_ptr<Fellow> peer_;
  Hello hello_;
  std::unique_ptr<host::HostForTests> host_;
  std::optional<net::Domain> domain_;
  net::Record record_;
  std::deque<std::vector<std::byte>> memory_;
  std::unique_ptr<net::TransferMachine> machine_;
  std::deque<std::unique_ptr<Buffer>> buffers_;
  std::size_t seen_ = 0;
  int next_offer_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, StoppedPeer,
                         testing::Values(Way{"Udp", "udp"}, Way{"Shm", "shm"},
                                         Way{"ShmArena", "shm", Memory::allocated},
                                         Way{"HostUdp", "udp", Memory::borrowed, true},
                                         Way{"HostShm", "shm", Memory::borrowed, true},
                                         Way{"HostShmArena", "shm", Memory::allocated, true}),
                         [](const auto& test) { return test.param.name; });

TEST_P(StoppedPeer, CancelEndsAll) {
  const std::size_t count = begin_all();
  std::size_t canceled = 0;
  for (const auto& one : buffers_) canceled += machine_->cancel(*one) ? 1 : 0;
  EXPECT_EQ(canceled, count);
  expect_all(count, Status::canceled);
  expect_alive();
}

// Each event has status timed_out and does not come before the deadline. add() refuses a deadline that has passed.
TEST_P(StoppedPeer, DeadlinesEndAllAndSaySo) {
  for (const auto span : {1000ms, 1050ms}) {
    const Instant earliest = now() + span;
    const std::size_t count = begin_all(span);
    for (std::size_t i = 0; i < count; ++i) {
      expect_next(Status::timed_out);
      EXPECT_GE(now(), earliest);
    }
    Buffer& late = buffer();
    const net::EndPoint to = machine_->create_end_point(hello_.address.data()).value();
    EXPECT_EQ(machine_->add(late, MessageSend{.to = to, .deadline = earliest}), Status::too_late);
  }
  expect_alive();
}

// stop(abort) cancels all operations. stop(drain) ends when the queues are empty. Each operation ends with one event.
TEST_P(StoppedPeer, StopEndsThoughThePeerStandsStill) {
  for (const StopMode mode : {StopMode::abort, StopMode::drain}) {
    const std::size_t count = mode == StopMode::abort ? begin_all() : begin_all(1s);
    ASSERT_TRUE(machine_->stop_and_wait(mode));
    EXPECT_EQ(machine_->state(), MachineState::stopped);
    EXPECT_EQ(record_.entries().size(), seen_ + count) << "none after `stopped`";
    expect_all(count, mode == StopMode::abort ? Status::canceled : Status::timed_out);
    machine_ = std::make_unique<net::TransferMachine>(*domain_);
    machine_->start_and_wait("127.0.0.1@udp:*:34:*").value();
  }
}

TEST_P(StoppedPeer, AStopEndsAThousandSends) {
  constexpr std::size_t kSent = 1000;
  for (std::size_t i = 0; i < kSent; ++i) {
    auto& one = buffers_.emplace_back(Buffer::allocate(*domain_, 4096).value());
    EXPECT_EQ(one->set_callback(record_.callback()), Status::ok);
    const net::EndPoint to = machine_->create_end_point(hello_.address.data()).value();
    ASSERT_EQ(machine_->add(*one, MessageSend{.to = to}), Status::ok);
  }
  ASSERT_TRUE(machine_->stop_and_wait(StopMode::abort));
  EXPECT_EQ(record_.entries().size(), seen_ + kSent) << "none after `stopped`";
  expect_all(kSent, Status::canceled);
}

TEST_P(StoppedPeer, DestructionEndsAll) {
  const std::size_t count = begin_all();
  buffers_.clear();
  expect_all(count, Status::canceled);
  memory_.clear();  // no thread reads it any more, which AddressSanitizer checks
  expect_alive();
}

}  // namespace
}  // namespace fairlead::tests
