// Cost of the link alone: two links joined by memory, without path and system calls. Reports nanoseconds per 8-byte
// message for both sides together, as ping-pong and as stream, and GB/s of long messages with small and large
// datagrams. --iterations sets a fixed amount of work for callgrind.

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "link/link.hpp"

namespace {

using namespace fairlead;

/// A link with its address and buffers.
struct End {
  base::SocketAddress address;
  link::Link link;
  std::uint64_t received = 0;

  explicit End(std::uint16_t port, const link::LinkOptions& options)
      : address{.port = port}, link(options, port, port) {}
};

class Wire {
 public:
  explicit Wire(std::uint32_t datagram) : datagram_(datagram), ends_{End(1, {}), End(2, {})}, arrival_(1 << 16) {
    for (std::size_t i = 0; i < 2; ++i)
      peers_[i] = ends_[i].link.peer(ends_[1 - i].address, datagram_, base::Instant{}).value();
  }

  void submit(std::size_t from, std::span<const iovec> pieces, std::uint64_t size) {
    while (ends_[from].link.submit(peers_[from], {{}, pieces, size, 1, true}, now()) != Status::ok) turn();
  }

  /// Moves all pending segments from each side to the other.
  void turn() {
    for (std::size_t i = 0; i < 2; ++i) {
      End& end = ends_[i];
      end.link.expire(now());
      while (end.link.next_train(now(), 65'000, 64, train_)) carry(ends_[1 - i], end.address);
      while (end.link.next_outcome()) ++ended_;
    }
  }

  std::uint64_t received(std::size_t i) const { return ends_[i].received; }
  std::uint64_t ended() const { return ended_; }

 private:
  // A virtual clock: the benchmark measures work, not waiting.
  base::Instant now() { return now_ += base::Duration(20); }

  void carry(End& to, const base::SocketAddress& from) {
    std::size_t used = 0;  // stands for the kernel's copy
    for (std::size_t i = 0; i < train_.piece_count; ++i) {
      std::memcpy(arrival_.data() + used, train_.pieces[i].iov_base, train_.pieces[i].iov_len);
      used += train_.pieces[i].iov_len;
    }
    for (std::size_t begin = 0; begin < used; begin += train_.datagram_size) {
      const std::size_t size = std::min<std::size_t>(train_.datagram_size, used - begin);
      to.link.receive(from, {arrival_.data() + begin, size}, now_, datagram_);
      while (to.link.next_delivery()) ++to.received;
    }
  }

  std::uint32_t datagram_;
  End ends_[2];
  link::PeerHandle peers_[2];
  std::vector<std::byte> arrival_;
  link::Train train_;
  base::Instant now_{std::chrono::seconds(1)};
  std::uint64_t ended_ = 0;
};

double seconds_of(const std::function<void()>& work) {
  const base::Instant begin = base::MonotonicClock::now();
  work();
  return std::chrono::duration<double>(base::MonotonicClock::now() - begin).count();
}

void ping_pong(std::uint64_t iterations) {
  Wire wire(1472);
  std::uint64_t word = 0;
  const iovec piece{&word, sizeof word};
  const double seconds = seconds_of([&] {
    for (std::uint64_t i = 0; i < iterations; ++i) {
      wire.submit(i & 1, {&piece, 1}, sizeof word);
      wire.turn();
    }
  });
  fmt::print("8 B, one at a time      {:8.1f} ns per message\n", seconds * 1e9 / static_cast<double>(iterations));
}

void stream(std::uint64_t iterations) {
  Wire wire(1472);
  std::uint64_t word = 0;
  const iovec piece{&word, sizeof word};
  constexpr std::uint64_t kBatch = 256;
  const double seconds = seconds_of([&] {
    for (std::uint64_t i = 0; i < iterations; i += kBatch) {
      for (std::uint64_t j = 0; j < kBatch; ++j) wire.submit(0, {&piece, 1}, sizeof word);
      wire.turn();
    }
  });
  fmt::print("8 B, 256 at a time      {:8.1f} ns per message\n", seconds * 1e9 / static_cast<double>(iterations));
}

void bulk(std::uint64_t iterations, std::uint32_t datagram) {
  Wire wire(datagram);
  std::vector<std::byte> bytes(1 << 20);
  const iovec piece{bytes.data(), bytes.size()};
  const double seconds = seconds_of([&] {
    for (std::uint64_t i = 0; i < iterations; ++i) {
      wire.submit(0, {&piece, 1}, bytes.size());
      while (wire.ended() + 2 < i + 1) wire.turn();
    }
  });
  fmt::print("1 MiB, datagrams {:6} {:8.2f} GB/s\n", datagram,
             static_cast<double>(iterations * bytes.size()) / seconds / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("the cost of the link alone, two of them joined by memory");
  std::uint64_t iterations = 1'000'000;
  app.add_option("--iterations", iterations, "8-byte messages of each kind; a 500th as many of 1 MiB");
  CLI11_PARSE(app, argc, argv);
  ping_pong(iterations);
  stream(iterations);
  for (std::uint32_t datagram : {1472U, 16'384U, 65'000U}) bulk(std::max<std::uint64_t>(iterations / 500, 1), datagram);
}
