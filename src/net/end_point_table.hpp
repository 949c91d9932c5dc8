#pragma once
// The end points of one transfer machine: one object per address.
//
// References. Each object counts the application's references plus one of the table. Copies and releases are plain
// atomic steps anywhere; only the table, under its machine's lock, makes a reference from nothing, so an object whose
// only reference is the table's can be dropped there and nowhere else. Such objects are kept for the next message of
// their sender and swept when the table has doubled, so strangers cannot make it grow for ever.

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fairlead/net/end_point.hpp>

#include "engine/core.hpp"
#include "net/end_point_index.hpp"

namespace fairlead::net {

struct alignas(64) EndPointState {                       // what a look-up reads lies in its first line
  static EndPoint refer(EndPointState* state) noexcept;  // one more reference
  static EndPointState* of(const EndPoint& end_point) noexcept { return end_point.state_; }

  std::atomic<std::uint32_t> references{1};  // acq_rel down, relaxed up
  engine::RemotePort remote;
  std::string address;
  const EndPointTable* table = nullptr;  // only compared
  std::uint32_t place = 0;               // in the table
  std::uint32_t serial = 0;              // tells it from others that have had the place
};

class EndPointTable {
 public:
  /// `seed`: of the hash; peers choose their addresses.
  explicit EndPointTable(std::uint64_t seed);
  ~EndPointTable();
  EndPointTable(const EndPointTable&) = delete;
  EndPointTable& operator=(const EndPointTable&) = delete;

  EndPoint find_or_make(const engine::RemotePort& remote);
  /// Prefetches what find_or_make() will read for the senders of these.
  void prefetch_senders(std::span<const engine::Completion> completions) const noexcept;
  /// Null if there is no such end point here, or not any more.
  const EndPointState* find(const Destination& destination) const noexcept;
  /// Whether there is an end point of that engine: looks at all.
  bool has_engine(const base::SocketAddress& engine) const;
  /// True if somebody refers to an end point, apart from `own` by the machine itself.
  bool is_referred(const EndPoint& own) const;
  std::size_t size() const { return index_.size(); }

  static constexpr std::size_t kSweepLeast = 1024;  // objects

 private:
  static constexpr std::size_t kPrefetchLeast = 4096;  // objects: fewer stay in the cache by themselves

  std::uint32_t take_place(EndPointState* state);
  void sweep();

  EndPointIndex index_;
  std::vector<EndPointState*> places_;  // null: free
  std::vector<std::uint32_t> free_places_;
  std::uint32_t next_serial_;      // begins anywhere: a destination may outlive its table, and another be where it was
  EndPointState* last_ = nullptr;  // of the last look-up: senders come in runs
  std::size_t sweep_at_ = kSweepLeast;
};

}  // namespace fairlead::net
