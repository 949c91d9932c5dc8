#pragma once
// Direct puts and gets on exposures of local peers: one copy, and the peer need not run (onesided/remote_memory.hpp).
// Only transfers that will succeed are carried out directly. All others are requested from the owner, whose answer has
// the cause of a failure.

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

  /// Returns false if nothing was done and the owner must be asked.
  bool carry_out(PortHandle port, bool is_put, const Transfer& transfer, base::Instant now);

 private:
  std::optional<std::uint64_t> copy(link::PeerHandle peer, const shm::Connection& there, onesided::RemoteMemory& memory,
                                    const onesided::ExposureRequest& request, std::span<const iovec> pieces);
  void tell_owner(link::PeerHandle peer, std::uint32_t own_port, const Transfer& transfer, std::uint64_t length);

  MessageContext& context_;
};

}  // namespace fairlead::engine
