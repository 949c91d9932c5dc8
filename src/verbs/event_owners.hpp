#pragma once
// The objects that the notices of one stream can name, and what the application has fetched of their notices.
//
// As in the kernel, the notices of an object end with it. The stream's descriptor has a count for each notice, and a
// count goes with each notice that is discarded: otherwise the descriptor would be readable, and the call that fetches
// an event would block.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <fairlead/error.hpp>

#include "base/fifo.hpp"
#include "engine/core.hpp"

namespace fairlead::verbs {

/// Delivered and acknowledged events of one object. Destroying the object waits until both counts are equal.
struct EventTally {
  std::uint64_t cookie = 0;  // set by the application
  std::uint32_t got = 0, acknowledged = 0;
};

/// Notices for an object that is gone are dropped.
class EventOwners {
 public:
  /// Registers an owner. Returns its number for use in notices.
  std::uint64_t add(std::uint64_t cookie);
  /// Removes an owner, after waiting until the application has acknowledged all events that it got. Discards the other
  /// notices of the owner that are in `stream`.
  void remove(std::uint64_t number, qp::NoticeStream& stream);
  /// Returns the next notice whose owner still exists; reads the stream's descriptor, which may block. `cookie`
  /// receives the owner's cookie. The notice's own cookie is the owner's number.
  Result<qp::Notice> get(qp::NoticeStream& stream, std::uint64_t& cookie);
  void acknowledge(std::uint64_t number, std::uint32_t count);

 private:
  void discard(std::uint64_t number, qp::NoticeStream& stream);
  std::optional<qp::Notice> next(qp::NoticeStream& stream);

  std::mutex mutex_;
  std::condition_variable acknowledged_;
  std::uint64_t next_number_ = 1;
  std::unordered_map<std::uint64_t, EventTally> owners_;
  base::Fifo<qp::Notice> waiting_;    // out of the stream, but not fetched yet
  std::size_t counts_in_excess_ = 0;  // read by threads in get() when their notices were discarded
};

}  // namespace fairlead::verbs
