#include "transport/hot_peers.hpp"

#include <algorithm>

namespace fairlead::transport {

HotPeers::Change HotPeers::count(std::uint32_t peer_slot, const base::SocketAddress& address) {
  if (places_ == 0) return {};
  if (peer_slot >= arrivals_.size()) arrivals_.resize(peer_slot + 1);
  const std::uint32_t mine = ++arrivals_[peer_slot];
  if (++since_halving_ >= kPeriod) {
    since_halving_ = 0;
    for (std::uint32_t& count : arrivals_) count /= 2;
  }
  // Decided rarely, off the fast path.
  if (mine % kPromoteAfter != 0) [[likely]]
    return {};
  if (std::ranges::find(hot_, peer_slot, &Hot::peer_slot) != hot_.end()) return {};
  if (hot_.size() < places_) {
    hot_.push_back({peer_slot, address});
    return {.cooled = {}, .heated = address};
  }
  auto coldest = std::ranges::min_element(hot_, {}, [&](const Hot& hot) { return arrivals_[hot.peer_slot]; });
  if (arrivals_[coldest->peer_slot] * 4ULL > mine) return {};
  const base::SocketAddress cooled = coldest->address;
  *coldest = {peer_slot, address};
  return {.cooled = cooled, .heated = address};
}

std::optional<base::SocketAddress> HotPeers::forget(std::uint32_t peer_slot) {
  if (peer_slot < arrivals_.size()) arrivals_[peer_slot] = 0;
  const auto found = std::ranges::find(hot_, peer_slot, &Hot::peer_slot);
  if (found == hot_.end()) return std::nullopt;
  const base::SocketAddress address = found->address;
  hot_.erase(found);
  return address;
}

}  // namespace fairlead::transport
