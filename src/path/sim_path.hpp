#pragma once
// One host's path in a SimNetwork. It cuts trains into datagrams, each with its own fate, and merges delivered
// datagrams as the kernel's GRO would.

#include <cstddef>
#include <deque>
#include <vector>

#include "path/path.hpp"
#include "path/unreachable_list.hpp"

namespace fairlead::path {

class SimNetwork;

struct SimPathOptions {
  std::uint64_t receive_buffer_bytes = 4u << 20;  // beyond this, waiting datagrams are dropped and counted
  bool merges_arrivals = true;
};

class SimPath final : public Path {
 public:
  ~SimPath() override;

  base::SocketAddress address() const override { return address_; }
  std::size_t send(std::span<const Train> trains, base::Instant now) override;
  std::size_t collect(std::span<Arrival> out, base::Instant now) override;
  std::size_t unreachable(std::span<Unreachable> out) override { return unreachable_.take(out); }
  std::uint32_t datagram_size_max(const base::SocketAddress& peer) override;
  std::uint32_t train_bytes_max() const override { return kTrainBytesMax; }
  std::uint32_t train_datagrams_max() const override { return kTrainDatagramsMax; }
  std::uint64_t receive_buffer_bytes() const override { return options_.receive_buffer_bytes; }
  void set_hot(const base::SocketAddress&, bool) override {}
  int descriptor() const override { return -1; }
  const PathCounters& counters() const override { return counters_; }
  std::string_view name() const override { return "sim"; }
  /// The counterpart of a readable descriptor(): collect() has something.
  bool has_arrivals() const { return !inbox_.empty() || unreachable_.has_any(); }

 private:
  friend class SimNetwork;

  static constexpr std::uint32_t kTrainBytesMax = 65'507;
  static constexpr std::uint32_t kTrainDatagramsMax = 64;

  struct Waiting {
    base::SocketAddress from;
    std::vector<std::byte> bytes;
  };

  SimPath(SimNetwork& network, const base::SocketAddress& address, const SimPathOptions& options)
      : network_(network), address_(address), options_(options) {}

  bool deliver(const base::SocketAddress& from, std::vector<std::byte> bytes);  // false: no room
  void refuse(const base::SocketAddress& to);

  SimNetwork& network_;
  base::SocketAddress address_;
  SimPathOptions options_;
  std::deque<Waiting> inbox_;
  std::uint64_t inbox_bytes_ = 0;
  std::vector<std::vector<std::byte>> handed_up_;  // memory of the last collect()'s arrivals
  UnreachableList unreachable_;
  PathCounters counters_;
};

}  // namespace fairlead::path
