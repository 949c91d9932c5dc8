#pragma once
// One-sided requests to an engine of the same host. The initiator completes them itself in the owner's memory, and the
// owner need not run (onesided/remote_memory.hpp). Memory in the owner's arena is mapped; other memory is reached by
// cross-memory attach. That is only for writes and reads of reliable queue pairs, without an earlier pending request.
// If a system call fails, the request is sent as a message: the responder executes all of it (again), or reports the
// error. The initiator completes only requests that certainly succeed. It sends all others as messages, so errors,
// events and their order come from the responder as usual.
//
// Order. The initiator completes a request itself only when all earlier ones have completed. It waits for earlier ones
// that were sent as messages. But if one of those depends on the peer's program, which may be slow, the request is
// sent, too. A request that was sent once is never completed by the initiator: the message may still be in flight.
// Sequences count messages only, so the responder is not affected.

#include <cstddef>
#include <cstdint>

#include "onesided/remote_memory.hpp"
#include "qp/gather_list.hpp"
#include "qp/outstanding.hpp"
#include "qp/queue_pair.hpp"
#include "qp/shared.hpp"

namespace fairlead::qp {

class OneSided {
 public:
  OneSided(Shared& shared, Outstanding& outstanding) : shared_(shared), outstanding_(outstanding) {}

  enum class Result : std::uint8_t { sent_as_message, later, partly, done };
  /// Tries to complete the next request of the queue pair. `later`: an earlier one has to complete first. `partly`: the
  /// turn is over, and the rest waits for the next one.
  Result carry_out(QueuePair& pair, RequestNumber number);

 private:
  Result try_to_carry_out(QueuePair& pair, RequestNumber number);
  void copy_part(QueuePair& pair, RequestNumber number, std::byte* there, const GatherList& list, std::uint64_t step);
  Result put_off(QueuePair& pair, RequestNumber number);
  bool may_carry_out(QueuePair& pair, const SendEntry& entry, bool is_first) const;
  shm::Connection* find_mapped_peer(const QueuePair& pair) const;
  bool may_call(QueuePair& pair, RequestNumber number, const shm::Connection& peer, GatherList& list) const;
  bool carry_out_by_calls(const SendEntry& entry, const onesided::RegionRequest& request,
                          onesided::RemoteMemory& memory, const GatherList& list, std::uint64_t step);
  void copy(QueuePair& pair, RequestNumber number, std::byte* there, const GatherList& list);
  void run_atomic(QueuePair& pair, RequestNumber number, std::byte* there);
  void finish(QueuePair& pair, RequestNumber number);

  Shared& shared_;
  Outstanding& outstanding_;
};

}  // namespace fairlead::qp
