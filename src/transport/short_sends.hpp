#pragma once
// Transports::send_short(), inline because the fast path inside a host is most of its callers' work.

#include "shm/transport_fast_path.hpp"
#include "transport/transports.hpp"

namespace fairlead::transport {

inline std::size_t Transports::send_short(link::PeerHandle peer, const link::ShortSend& send, base::Instant now,
                                          std::span<link::OperationHandle> names) {
  return shm::Transport::has(peer) ? shm_->send_short(peer, send, now, names) : send_far(peer, send, now, names);
}

}  // namespace fairlead::transport
