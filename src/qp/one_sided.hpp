#pragma once
// One-sided requests to an engine of the same host whose memory we have mapped: we carry them out by ourselves, and
// nobody there has to run. What it does not publish is reached by system calls (cma.hpp). Only what certainly succeeds
// goes this way; all else is sent as a message, so that errors, events and their order come from the responder as ever.
//
// Order. A request is carried out when all before it have ended. Behind messages it waits for that, unless one of them
// is for the peer's program, which may take its time: then it is sent, too. A request that was sent once is never
// carried out here: the message may still be under way. Sequences count messages only, so the responder need not know.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "qp/gather_list.hpp"
#include "qp/outstanding.hpp"
#include "qp/queue_pair.hpp"
#include "qp/shared.hpp"
#include "shm/connection.hpp"

namespace fairlead::shm {
struct SharedPair;
struct SharedRegion;
}  // namespace fairlead::shm

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
  std::byte* reach(const QueuePair& pair, const SendEntry& entry, const shm::Connection& peer) const;
  bool carry_out_by_calls(QueuePair& pair, RequestNumber number, shm::Connection& peer, GatherList& list) const;
  void copy(QueuePair& pair, RequestNumber number, std::byte* there, const GatherList& list);
  void run_atomic(QueuePair& pair, RequestNumber number, std::byte* there);
  void finish(QueuePair& pair, RequestNumber number);

  Shared& shared_;
  Outstanding& outstanding_;
};

/// Where the request's bytes lie, as the record of the region tells places; none if the two do not permit it.
std::optional<std::uint64_t> find_place(const Shared& shared, const QueuePair& pair, const SendEntry& entry,
                                        const shm::SharedPair& there, const shm::SharedRegion& region);

}  // namespace fairlead::qp
