#pragma once
// Exposures of peers of this host, which we put into and get from by ourselves: one copy, and nobody has to run at the
// other end (onesided/remote_memory.hpp). Only what certainly succeeds goes this way; all else is asked of the owner,
// whose answer says what is wrong.

#include <cstdint>
#include <optional>
#include <span>

#include "engine/core.hpp"
#include "engine/message_context.hpp"
#include "onesided/remote_memory.hpp"

namespace fairlead::engine {

class RemoteExposures {
 public:
  explicit RemoteExposures(MessageContext& context) : context_(context) {}

  /// False: nothing was done, it has to be asked for.
  bool carry_out(PortHandle port, bool is_put, const Transfer& transfer, base::Instant now);

 private:
  std::optional<std::uint64_t> copy(link::PeerHandle peer, const shm::Connection& there, onesided::RemoteMemory& memory,
                                    const onesided::ExposureRequest& request, std::span<const iovec> pieces);
  void tell_owner(link::PeerHandle peer, std::uint32_t own_port, const Transfer& transfer, std::uint64_t length);

  MessageContext& context_;
};

}  // namespace fairlead::engine
