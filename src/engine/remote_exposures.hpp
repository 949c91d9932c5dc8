#pragma once
// Exposures of peers of this host, which we put into and get from by ourselves: one copy, and nobody has to run at the
// other end (docs/shm.md). Only what certainly succeeds goes this way; all else is asked of the owner, whose answer
// says what is wrong.

#include "engine/core.hpp"
#include "engine/message_context.hpp"

namespace fairlead::shm {
struct SharedExposure;
struct PublishedExposure;
}  // namespace fairlead::shm

namespace fairlead::engine {

class RemoteExposures {
 public:
  explicit RemoteExposures(MessageContext& context) : context_(context) {}

  /// False: nothing was done, it has to be asked for.
  bool carry_out(PortHandle port, bool is_put, const Transfer& transfer, base::Instant now);

 private:
  bool copy(link::PeerHandle peer, shm::Connection& there, bool is_put, const Transfer& transfer,
            std::uint64_t& length);
  bool copy_mapped(shm::Connection& there, shm::PublishedExposure& exposure, std::uint64_t offset, bool is_put,
                   const Transfer& transfer, std::uint64_t length);
  bool copy_by_calls(shm::Connection& there, shm::PublishedExposure& exposure, bool is_put, const Transfer& transfer,
                     std::uint64_t& length);
  void tell_owner(link::PeerHandle peer, std::uint32_t own_port, const Transfer& transfer, std::uint64_t length);

  MessageContext& context_;
};

}  // namespace fairlead::engine
