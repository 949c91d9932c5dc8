// The invariants between any two calls. The simulator checks them after each step.

#include <algorithm>

#include "base/ensure.hpp"
#include "shm/transport.hpp"

namespace fairlead::shm {

void Transport::check() {
  for (std::uint32_t index = 0; index < peers_.size(); ++index) {
    Peer& peer = peers_[index];
    const auto busy = std::ranges::count(busy_, index);
    ENSURE(busy == (peer.is_busy ? 1 : 0), "peer {}: {} times among the busy ones", index, busy);
    ENSURE(peer.is_busy || peer.is_idle(), "peer {}: nobody looks after what is pending to it", index);
    ENSURE(peer.shorts.size() + peer.longs.size() <= options_.waiting_max, "peer {}: {} messages wait for room", index,
           peer.shorts.size() + peer.longs.size());
    ENSURE(peer.long_sent.bytes == 0 || !peer.longs.empty(), "peer {}: {} bytes of no message are sent", index,
           peer.long_sent.bytes);
    for (std::size_t i = 1; i < peer.pending.size(); ++i)
      ENSURE(peer.pending[i - 1].line <= peer.pending[i].line, "peer {}: its reader passes lines in turn", index);
    ENSURE(!peer.is_used || peers_.find(peer.address) == index, "peer {}: its address is not known", index);
    ENSURE(peer.connection_slot == kNone || peers_.at_connection(peer.connection_slot) == index,
           "peer {}: its connection is another's", index);
  }
  partings_.check();
}

std::uint64_t Transport::count_pending(std::uint32_t owner) {
  std::uint64_t count = 0;
  const auto is_owners = [&](std::uint32_t one) { return one == owner ? 1U : 0U; };
  for (std::uint32_t index = 0; index < peers_.size(); ++index) {
    auto& pending = peers_[index].pending;
    for (std::size_t i = 0; i < pending.size(); ++i) count += is_owners(pending[i].owner);
  }
  for (std::size_t i = 0; i < outcomes_.size(); ++i) count += is_owners(outcomes_[i].owner);
  return count;
}

}  // namespace fairlead::shm
