// Cost of a received message beside N end points, from the datagram to the callback: path, link, matching, the sender's
// end point, event. The messages come from random ports of one engine, which the bench makes up from a link alone. Only
// the receiver is measured, without the kernel; with --replies its callbacks also answer each message.
//
//   valgrind --tool=callgrind --cache-sim=yes --toggle-collect='*receive_batch*' \
//       build/bin/end_point_receive_bench --end-points 100000 --messages 100000

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <fairlead/net.hpp>

#include "base/ensure.hpp"
#include "bench/pipe.hpp"
#include "embedded/embedded_core.hpp"
#include "link/link.hpp"
#include "net/domain_state.hpp"

namespace {

using namespace fairlead;

constexpr std::uint32_t kBatch = 64, kTmids = 4095, kPortalFirst = 1;
constexpr std::uint32_t kTargetPort = 34 << 12 | 1;

std::uint32_t port_of(std::uint64_t number) {
  return static_cast<std::uint32_t>(kPortalFirst + number / kTmids) << 12 |
         static_cast<std::uint32_t>(number % kTmids + 1);
}

base::Instant now() {
  return base::MonotonicClock::now();
}

/// An engine with any number of ports, of which only the link exists.
class Senders {
 public:
  Senders(const base::SocketAddress& own, const base::SocketAddress& target)
      : pipe_(own), target_(target), link_({}, 2, 3), peer_(link_.peer(target, 1472, now()).value()) {}
  bench::Pipe& pipe() { return pipe_; }

  void say(std::uint32_t port) {
    const iovec piece{&word_, sizeof word_};
    const wire::Envelope envelope{.source_port = port, .target_port = kTargetPort};
    const Status status = link_.submit(peer_, {envelope, {&piece, 1}, sizeof word_, 1, false}, now());
    ENSURE(status == Status::ok, "a message was not taken: {}", to_string(status));
  }
  void flush() {
    link_.expire(now());
    while (link_.next_train(now(), 65'000, 64, train_)) {
      const path::Train train{train_.to, {train_.pieces, train_.piece_count}, train_.datagram_size};
      pipe_.send({&train, 1}, now());
    }
  }
  /// Hears what the receiver said.
  void hear() {
    std::array<path::Arrival, 16> arrivals;
    while (const std::size_t count = pipe_.collect(arrivals, now())) {
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t at = 0; at < arrivals[i].bytes.size(); at += arrivals[i].datagram_size) {
          const std::size_t size = std::min<std::size_t>(arrivals[i].datagram_size, arrivals[i].bytes.size() - at);
          link_.receive(target_, arrivals[i].bytes.subspan(at, size), now(), 1472);
          while (link_.next_delivery()) {
          }
        }
      }
    }
    while (link_.next_outcome()) {
    }
    while (link_.next_notice()) {
    }
  }

 private:
  bench::Pipe pipe_;
  base::SocketAddress target_;
  link::Link link_;
  link::PeerHandle peer_;
  link::Train train_;
  std::uint64_t word_ = 0;
};

/// A transfer machine on an engine at the other end of the pipe.
class Receiver {
 public:
  explicit Receiver(const base::SocketAddress& own, bool replies) : replies_(replies) {
    auto pipe = std::make_unique<bench::Pipe>(own);
    pipe_ = pipe.get();
    auto engine = std::make_unique<engine::Engine>(std::move(pipe), own, engine::EngineOptions(), 5, 6);
    core_ = std::make_shared<embedded::EmbeddedCore>(std::move(engine), base::FileDescriptor(::eventfd(0, EFD_CLOEXEC)),
                                                     base::LogFile(), std::nullopt);
    auto state = std::make_shared<net::DomainState>();
    state->attach = [this](const auto&, const auto&) { return Result<std::shared_ptr<engine::Core>>(core_); };
    domain_.emplace(net::DomainState::handle(state));
    machine_ = std::make_unique<net::TransferMachine>(*domain_);
    ENSURE(machine_->deliver_synchronously() && machine_->start_and_wait("10.0.0.1@udp:20480:34:1"), "no machine");
    for (std::unique_ptr<net::Buffer>& buffer : buffers_) {
      buffer = net::Buffer::allocate(*domain_, 8 * kBatch).value();
      const auto on_event = [this](const net::BufferEvent& event) { take(event); };
      ENSURE(buffer->set_callback(on_event) == Status::ok, "no callback");
      post(*buffer);
    }
    for (std::uint32_t i = 0; i < 4 * kBatch; ++i) {
      auto& answer = answers_.emplace_back(net::Buffer::allocate(*domain_, 8).value());
      ENSURE(
          answer->set_callback([this](const net::BufferEvent& event) { free_.push_back(&event.buffer); }) == Status::ok,
          "no callback");
      free_.push_back(answer.get());
    }
  }
  ~Receiver() { machine_.reset(); }
  bench::Pipe& pipe() { return *pipe_; }
  std::uint64_t received() const { return received_; }
  /// Until then it keeps a reference to each sender, so that the machine remembers it.
  void end_meeting() { is_meeting_ = false; }

  void deliver_all() {
    while (machine_->deliver_all().value_or(0) > 0 || pipe_->has_arrivals()) {
    }
  }
  // Not inlined: callgrind counts this function by name.
  [[gnu::noinline]] void receive_batch() { deliver_all(); }

 private:
  void take(const net::BufferEvent& event) {
    if (event.status != Status::ok) return;
    ++received_;
    if (is_meeting_) {
      known_.push_back(event.sender);
    } else if (replies_ && !free_.empty()) {
      net::Buffer* const answer = std::exchange(free_.back(), nullptr);
      free_.pop_back();
      ENSURE(machine_->add(*answer, net::MessageSend{.to = event.sender}) == Status::ok, "no reply");
    }
    if (event.is_final) post(event.buffer);
  }
  void post(net::Buffer& buffer) {
    ENSURE(machine_->add(buffer, net::MessageReceive{.size_min = 8, .messages_max = kBatch}) == Status::ok,
           "no buffer");
  }

  const bool replies_;
  bool is_meeting_ = true;
  bench::Pipe* pipe_ = nullptr;  // owned by the engine
  std::shared_ptr<embedded::EmbeddedCore> core_;
  std::optional<net::Domain> domain_;
  std::vector<net::EndPoint> known_;
  std::uint64_t received_ = 0;
  std::array<std::unique_ptr<net::Buffer>, 4> buffers_;
  std::vector<std::unique_ptr<net::Buffer>> answers_;
  std::vector<net::Buffer*> free_;
  std::unique_ptr<net::TransferMachine> machine_;  // goes first
};

class Bench {
 public:
  Bench(std::uint64_t end_points, bool replies)
      : end_points_(end_points), senders_(kThere, kHere), receiver_(kHere, replies) {
    senders_.pipe().join(&receiver_.pipe());
    receiver_.pipe().join(&senders_.pipe());
    for (std::uint64_t met = 0; met < end_points; met += kBatch)
      send_batch([&](std::uint32_t i) { return std::min(met + i, end_points - 1); });
    receiver_.end_meeting();
    is_meeting_ = false;
  }
  /// The time of a message in ns, median over batches. Their senders are in no order.
  double measure(std::uint64_t messages) {
    std::vector<double> batches;
    for (std::uint64_t sent = 0; sent < messages; sent += kBatch)
      batches.push_back(send_batch([&](std::uint32_t) { return random_() % end_points_; }));
    std::ranges::nth_element(batches, batches.begin() + std::ptrdiff_t(batches.size() / 2));
    return batches[batches.size() / 2];
  }

 private:
  /// number(i): whose the i-th message is.
  template <typename Number>
  double send_batch(Number&& number) {
    for (std::uint32_t i = 0; i < kBatch; ++i) senders_.say(port_of(number(i)));
    const std::uint64_t until = receiver_.received() + kBatch;
    std::chrono::nanoseconds spent{};
    while (receiver_.received() < until) {  // the first batch waits for the session
      senders_.flush();
      const auto begin = std::chrono::steady_clock::now();
      is_meeting_ ? receiver_.deliver_all() : receiver_.receive_batch();
      spent += std::chrono::steady_clock::now() - begin;
      senders_.hear();
    }
    return double(spent.count()) / kBatch;
  }

  static inline const auto kHere = base::SocketAddress::from_ip("10.0.0.1", 20480).value(),
                           kThere = base::SocketAddress::from_ip("10.0.0.2", 20480).value();
  const std::uint64_t end_points_;
  bool is_meeting_ = true;
  std::mt19937_64 random_{1};
  Senders senders_;  // hears the receiver's farewell
  Receiver receiver_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("the cost of a received message beside N end points");
  std::vector<std::uint64_t> end_points{1, 1000, 10'000, 100'000};
  std::uint64_t messages = 1 << 18;
  bool replies = false;
  app.add_option("--end-points", end_points, "how many; several are measured one after the other");
  app.add_option("--messages", messages, "of 8 bytes");
  app.add_flag("--replies", replies, "each message is answered in its callback");
  CLI11_PARSE(app, argc, argv);
  for (const std::uint64_t some : end_points)
    fmt::print("{:7} end points: {:6.1f} ns a message{}\n", some, Bench(some, replies).measure(messages),
               replies ? " and its reply" : "");
}
