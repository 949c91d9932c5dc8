#pragma once
// The end points of one transfer machine: one object per address, found by hash (spec/motr.md 1.4, seed 004).
//
// References. Each object counts the application's references plus one of the table. Copies and releases are plain
// atomic steps anywhere; only the table, under its machine's lock, makes a reference from nothing, so an object whose
// only reference is the table's can be dropped there and nowhere else. Such objects are kept for the next message of
// their sender and swept when the table has doubled, so strangers cannot make it grow for ever.

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_map>

#include <fairlead/net/end_point.hpp>

#include "engine/core.hpp"

namespace fairlead::net {

class EndPointTable;

struct EndPointState {
  static EndPoint refer(EndPointState* state) noexcept;  // one more reference
  static EndPointState* of(const EndPoint& end_point) noexcept { return end_point.state_; }

  std::atomic<std::uint32_t> references{1};  // acq_rel down, relaxed up
  engine::RemotePort remote;
  std::string address;
  const EndPointTable* table = nullptr;  // only compared
};

class EndPointTable {
 public:
  /// `seed`: of the hash; peers choose their addresses.
  explicit EndPointTable(std::uint64_t seed);
  ~EndPointTable();
  EndPointTable(const EndPointTable&) = delete;
  EndPointTable& operator=(const EndPointTable&) = delete;

  EndPoint find_or_make(const engine::RemotePort& remote);
  bool owns(const EndPoint& end_point) const noexcept;
  /// True if somebody refers to an end point, apart from `own` by the machine itself.
  bool is_referred(const EndPoint& own) const;
  std::size_t size() const { return states_.size(); }

  static constexpr std::size_t kSweepLeast = 1024;  // objects

 private:
  struct Hash {
    std::uint64_t seed;
    std::size_t operator()(const engine::RemotePort& remote) const noexcept;
  };
  void sweep();

  std::unordered_map<engine::RemotePort, EndPointState*, Hash> states_;
  EndPointState* last_ = nullptr;  // of the last look-up: senders come in runs
  std::size_t sweep_at_ = kSweepLeast;
};

}  // namespace fairlead::net
