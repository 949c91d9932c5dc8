#pragma once
// A layer between an engine and its simulated path. It converts the host's clock to the world's, records each datagram,
// and checks one invariant. An engine must not contact a peer that it gave up, until the application asks again or the
// peer is heard.

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "path/sim_path.hpp"
#include "sim/findings.hpp"
#include "sim/sabotage.hpp"
#include "sim/trace.hpp"

namespace fairlead::sim {

class WatchedPath final : public path::Path {
 public:
  WatchedPath(std::unique_ptr<path::SimPath> path, std::uint32_t host, base::Duration clock_offset, Trace& trace,
              Findings& findings, Sabotage& sabotage)
      : path_(std::move(path)),
        host_(host),
        clock_offset_(clock_offset),
        trace_(trace),
        findings_(findings),
        sabotage_(sabotage) {}

  base::SocketAddress address() const override { return path_->address(); }
  std::size_t send(std::span<const path::Train> trains, base::Instant now) override;
  std::size_t collect(std::span<path::Arrival> out, base::Instant now) override;
  std::size_t unreachable(std::span<path::Unreachable> out) override { return path_->unreachable(out); }
  std::uint32_t datagram_size_max(const base::SocketAddress& peer) override { return path_->datagram_size_max(peer); }
  std::uint32_t train_bytes_max() const override { return path_->train_bytes_max(); }
  std::uint32_t train_datagrams_max() const override { return path_->train_datagrams_max(); }
  std::uint64_t receive_buffer_bytes() const override { return path_->receive_buffer_bytes(); }
  void set_hot(const base::SocketAddress&, bool) override {}
  base::Instant next_deadline() const override { return path_->next_deadline(); }
  int descriptor() const override { return -1; }
  const path::PathCounters& counters() const override { return path_->counters(); }
  std::string_view name() const override { return "sim"; }

  bool has_arrivals() const { return path_->has_arrivals(); }

  /// Records that the peer was given up and nothing is pending to it.
  void given_up(const base::SocketAddress& peer, base::Instant now) { given_up_[peer] = now; }
  void asked_for(const base::SocketAddress& peer) { given_up_.erase(peer); }
  /// Returns whether data segments were sent on both sides of the highest sequence number.
  bool has_wrapped() const { return has_wrapped_; }

 private:
  void look_at(const path::Train& train, std::span<const std::byte> bytes, base::Instant now);

  std::unique_ptr<path::SimPath> path_;
  std::uint32_t host_;
  base::Duration clock_offset_;
  Trace& trace_;
  Findings& findings_;
  Sabotage& sabotage_;
  std::unordered_map<base::SocketAddress, base::Instant, base::SocketAddressHash> given_up_;
  std::unordered_map<base::SocketAddress, std::uint32_t, base::SocketAddressHash> last_sequence_;
  bool has_wrapped_ = false;
  std::vector<std::byte> joined_;
};

}  // namespace fairlead::sim
