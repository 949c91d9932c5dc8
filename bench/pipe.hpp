#pragma once
// A path in memory between two ends of one thread.

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/socket_address.hpp"
#include "path/path.hpp"

namespace fairlead::bench {

/// Joins two engines by memory. Drops datagrams to other addresses.
class Pipe final : public path::Path {
 public:
  explicit Pipe(const base::SocketAddress& address) : address_(address) {}
  void join(Pipe* other) { other_ = other; }
  bool has_arrivals() const { return !inbox_.empty(); }

  base::SocketAddress address() const override { return address_; }
  std::size_t send(std::span<const path::Train> trains, base::Instant) override {
    for (const path::Train& train : trains) {
      if (other_ == nullptr || train.to != other_->address_) continue;
      Waiting& waiting = other_->inbox_.emplace_back();
      waiting.datagram_size = train.datagram_size;
      for (const iovec& piece : train.pieces) {
        const auto* bytes = static_cast<const std::byte*>(piece.iov_base);
        waiting.bytes.insert(waiting.bytes.end(), bytes, bytes + piece.iov_len);
      }
    }
    return trains.size();
  }
  std::size_t collect(std::span<path::Arrival> out, base::Instant) override {
    const std::size_t count = std::min(out.size(), inbox_.size());
    handed_up_.assign(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(count));
    inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t i = 0; i < count; ++i)
      out[i] = {other_->address_, handed_up_[i].bytes, handed_up_[i].datagram_size};
    return count;
  }
  std::size_t unreachable(std::span<path::Unreachable>) override { return 0; }
  std::uint32_t datagram_size_max(const base::SocketAddress&) override { return 1472; }
  std::uint32_t train_bytes_max() const override { return 65'000; }
  std::uint32_t train_datagrams_max() const override { return 64; }
  std::uint64_t receive_buffer_bytes() const override { return 4u << 20; }
  void set_hot(const base::SocketAddress&, bool) override {}
  int descriptor() const override { return -1; }
  const path::PathCounters& counters() const override { return counters_; }
  std::string_view name() const override { return "pipe"; }

 private:
  struct Waiting {
    std::vector<std::byte> bytes;
    std::uint32_t datagram_size = 0;
  };
  base::SocketAddress address_;
  Pipe* other_ = nullptr;
  std::vector<Waiting> inbox_, handed_up_;
  path::PathCounters counters_;
};

}  // namespace fairlead::bench
