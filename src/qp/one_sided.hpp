#pragma once
// One-sided requests to an engine of the same host that shows us its memory: we carry them out by ourselves, and nobody
// there has to run (onesided/remote_memory.hpp). What lies outside its arena is reached by system calls: writes and
// reads of reliable queue pairs, which no other request may overtake. If a call fails the request is sent: the
// responder does all of it (again), or says what is wrong. Only what certainly succeeds goes this way; all else is sent
// as a message, so that errors, events and their order come from the responder as ever.
//
// Order. A request is carried out when all before it have ended. Behind messages it waits for that, unless one of them
// is for the peer's program, which may take its time: then it is sent, too. A request that was sent once is never
// carried out here: the message may still be under way. Sequences count messages only, so the responder need not know.

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

  enum class Result : std::uint8_t { sent_as_message, later, done };
  /// The next request of a pair.
  Result carry_out(QueuePair& pair, RequestNumber number);

 private:
  bool may_carry_out(QueuePair& pair, const SendEntry& entry, bool is_first) const;
  shm::Connection* find_mapped_peer(const QueuePair& pair) const;
  bool may_call(QueuePair& pair, RequestNumber number, const shm::Connection& peer, GatherList& list) const;
  bool carry_out_by_calls(const SendEntry& entry, const onesided::RegionRequest& request,
                          onesided::RemoteMemory& memory, const GatherList& list);
  void copy(QueuePair& pair, RequestNumber number, std::byte* there, const GatherList& list);
  void run_atomic(QueuePair& pair, RequestNumber number, std::byte* there);
  void finish(QueuePair& pair, RequestNumber number);

  Shared& shared_;
  Outstanding& outstanding_;
};

}  // namespace fairlead::qp
