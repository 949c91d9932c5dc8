#pragma once
// The end points of one transfer machine: one object per address.
//
// References: each object counts the application's references plus one of the table. Any thread may copy and release
// references with plain atomic operations. Only the table, under its machine's lock, makes a new reference without
// holding one. So when the table's reference is the only one, the table can safely drop the object, and nobody else
// can. Such objects stay for their sender's next message. A sweep removes them whenever the table has doubled, so
// strangers cannot make it grow without bound. The senders of a batch of messages are lent without a reference: no
// sweep happens until they are released.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fairlead/net/end_point.hpp>

#include "engine/core.hpp"
#include "net/end_point_index.hpp"

namespace fairlead::net {

/// One cache line, which is all that a received message and its reply touch of it. The text of the address is
/// elsewhere.
struct alignas(64) EndPointState {
  static EndPoint refer(EndPointState* state) noexcept;  // adds a reference
  static EndPoint adopt(EndPointState* state) noexcept { return EndPoint(state); }
  static EndPointState* of(const EndPoint& end_point) noexcept { return end_point.state_; }

  std::atomic<std::uint32_t> references{1};  // decremented with acq_rel, incremented relaxed
  engine::RemotePort remote;
  const EndPointTable* table = nullptr;  // only compared, never dereferenced
  std::uint32_t place = 0;               // index in the table
  std::uint32_t serial = 0;              // distinguishes the successive users of that index
  std::unique_ptr<const std::string> address;
};
static_assert(sizeof(EndPointState) == 64);

/// An end point that the table keeps meanwhile, so this counts as no reference. Copies of get() do.
class LentEndPoint {
 public:
  /// May be null.
  explicit LentEndPoint(EndPointState* state) noexcept : end_point_(EndPointState::adopt(state)) {}
  LentEndPoint(const LentEndPoint&) = delete;
  LentEndPoint& operator=(const LentEndPoint&) = delete;
  ~LentEndPoint() {}  // releases nothing
  const EndPoint& get() const noexcept { return end_point_; }

 private:
  union {
    EndPoint end_point_;
  };
};

class EndPointTable {
 public:
  /// `seed` of the hash: secret, because peers choose their addresses.
  explicit EndPointTable(std::uint64_t seed);
  ~EndPointTable();
  EndPointTable(const EndPointTable&) = delete;
  EndPointTable& operator=(const EndPointTable&) = delete;

  EndPoint find_or_make(const engine::RemotePort& remote);
  /// Finds or makes the end points of these addresses (null: none), and lends them until release_senders(). A sender
  /// is null if there is no memory for it. The look-ups of a batch overlap, so that cache misses do, too.
  void lend_senders(std::span<const engine::RemotePort* const> sources, std::span<EndPointState*> senders) noexcept;
  void release_senders() noexcept { is_lent_ = false; }
  /// Returns null if the table has no such end point, or no longer has it.
  const EndPointState* find(const Destination& destination) const noexcept;
  /// Returns whether any end point belongs to that engine. Scans the whole table.
  bool has_engine(const base::SocketAddress& engine) const;
  /// Returns whether the application references any end point. The machine's own reference, `own`, does not count.
  bool is_referred(const EndPoint& own) const;
  std::size_t size() const { return index_.size(); }

  static constexpr std::size_t kSweepLeast = 1024;  // objects

 private:
  EndPointState* make(const engine::RemotePort& remote, std::uint64_t hash);
  EndPointState* find_or_make(const engine::RemotePort& remote, std::uint64_t hash);
  /// Returns null if there is no memory for it.
  EndPointState* find_or_try(const engine::RemotePort& remote, std::uint64_t hash) noexcept;
  std::uint32_t take_place(EndPointState* state);
  void sweep();

  EndPointIndex index_;
  std::vector<EndPointState*> places_;  // null: index is free
  std::vector<std::uint32_t> free_places_;
  // Starts at a random value: a destination may outlive its table, and a new table may reuse the address.
  std::uint32_t next_serial_;
  EndPointState* last_ = nullptr;  // result of the last look-up: messages of one sender tend to come in runs
  std::size_t sweep_at_ = kSweepLeast;
  bool is_lent_ = false;
};

}  // namespace fairlead::net
