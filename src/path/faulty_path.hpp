#pragma once
// A path that injects faults into sent datagrams, by plan and seed, on top of any other path (docs/faults.md). It does
// not change received datagrams: both ends of a conversation can have plans of their own.
//
// Each datagram of a train has its own fate, in this order: dropped; corrupted; duplicated; held back until later ones
// to its peer have passed; delayed. Consecutive unharmed datagrams of a train stay a train. Each fate takes the same
// number of random values. So the same seed and the same calls give the same run, and changing one share moves no other
// draw.
//
// Held datagrams are kept in a fixed pool. They leave in send() and in collect(), which the engine calls in each pass;
// next_deadline() tells when one is due although nothing else happens. Datagrams that the path below does not take now
// also wait in the pool, and no train is taken until they are gone.

#include <cstdint>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "path/datagram_pool.hpp"
#include "path/fault_counters.hpp"
#include "path/fault_plan.hpp"
#include "path/path.hpp"

namespace fairlead::path {

class FaultyPath final : public Path {
 public:
  FaultyPath(std::unique_ptr<Path> below, const FaultPlan& plan);
  /// Sends what is still held: a network does not lose datagrams when their sender ends.
  ~FaultyPath() override;

  base::SocketAddress address() const override { return below_->address(); }
  std::size_t send(std::span<const Train> trains, base::Instant now) override;
  std::size_t collect(std::span<Arrival> out, base::Instant now) override;
  std::size_t unreachable(std::span<Unreachable> out) override { return below_->unreachable(out); }
  bool is_host_missing(const base::SocketAddress& peer) const override { return below_->is_host_missing(peer); }
  base::Instant next_deadline() const override;
  std::uint32_t datagram_size_max(const base::SocketAddress& peer) override { return below_->datagram_size_max(peer); }
  std::uint32_t train_bytes_max() const override { return below_->train_bytes_max(); }
  std::uint32_t train_datagrams_max() const override { return below_->train_datagrams_max(); }
  std::uint64_t receive_buffer_bytes() const override { return below_->receive_buffer_bytes(); }
  void set_hot(const base::SocketAddress& peer, bool is_hot) override { below_->set_hot(peer, is_hot); }
  int descriptor() const override { return below_->descriptor(); }
  int socket() const override { return below_->socket(); }
  bool set_watched(bool is_watched) override { return below_->set_watched(is_watched); }
  /// Multicast is not subject to the plan.
  GroupSockets* groups() override { return below_->groups(); }
  const PathCounters& counters() const override { return below_->counters(); }
  const FaultCounters* fault_counters() const override { return &counters_; }
  std::string_view name() const override { return name_; }  // "udp+faulty"

 private:
  static constexpr std::uint32_t kPoolBlocks = 8192;                   // 16 MiB
  static constexpr std::size_t kReorderedMax = 1024;                   // datagrams held back for reordering at a time
  static constexpr auto kRetryAfter = std::chrono::microseconds(100);  // after the path below had no room

  struct Fate {
    bool is_dropped = false, is_corrupted = false, is_duplicated = false, is_reordered = false;
    std::uint32_t distance = 0;
    base::Duration wait{}, wait_of_copy{};
    std::uint64_t damage = 0;  // random bits: which byte to change, and how
    bool is_unharmed() const {
      return !is_corrupted && !is_duplicated && !is_reordered && wait == base::Duration::zero();
    }
  };
  /// A part of a train that is sent unchanged: consecutive whole datagrams.
  struct Run {
    std::size_t first = 0, end = 0;  // byte offsets
  };
  struct Reordered {
    std::uint32_t name;
    std::uint32_t left;  // later datagrams that still have to pass
    base::Duration wait;
    base::Instant until;
  };
  struct Waiting {
    base::Instant due;
    std::uint64_t number;  // of two that are due at the same time, the lower number leaves first
    std::uint32_t name;
    bool operator>(const Waiting& other) const { return due != other.due ? due > other.due : number > other.number; }
  };

  Fate draw();
  bool is_burst_loss(std::uint64_t draw);
  void take(const Train& train, base::Instant now);
  /// Holds, changes or duplicates one datagram. Returns false if it has to go on unchanged, behind what went before.
  bool harm(const Train& train, const Run& datagram, const Fate& fate, base::Instant now);
  void let_by(const Train& train, Run& run, std::size_t older, base::Instant now);
  void pass_on(std::uint32_t name, base::Duration wait, base::Instant now);
  void emit(const Train& train, const Run& run, base::Instant now);
  bool emit_held(std::uint32_t name, base::Instant now);
  bool release_due(base::Instant now);
  std::uint32_t keep(const Train& train, const Run& datagram);
  void release(std::uint32_t name);
  bool is_backed_up(base::Instant now) const { return !waiting_.empty() && waiting_.top().due <= now; }

  std::unique_ptr<Path> below_;
  FaultPlan plan_;
  std::string name_;
  std::mt19937_64 random_;
  std::uint32_t burst_left_ = 0;
  DatagramPool pool_;
  std::vector<Reordered> reordered_;  // sorted by `until`
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  std::uint64_t waits_ = 0;
  base::Instant retry_at_ = base::Instant::min();
  std::vector<iovec> pieces_;  // of the run being sent
  FaultCounters counters_;
};

}  // namespace fairlead::path
