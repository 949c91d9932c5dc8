#include "transport/hot_peers.hpp"

#include <algorithm>

namespace fairlead::transport {

HotPeers::Change HotPeers::count(std::uint32_t peer_slot, const base::SocketAddress& address) {
  if (places_ == 0) return {};
  if (peer_slot >= arrivals_.size()) arrivals_.resize(peer_slot + 1);
  const std::uint32_t mine = ++arrivals_[peer_slot];
  if (++since_halving_ >= kPeriod) {
    since_halving_ = 0;
    is_crowded_ = busy_peers() > places_;
    for (std::uint32_t& count : arrivals_) count /= 2;
  }
  // Decided rarely, off the fast path.
  if (mine % kPromoteAfter != 0) [[likely]]
    return {};
  if (is_crowded_) return give_up_one();
  if (std::ranges::find(hot_, peer_slot, &Hot::peer_slot) != hot_.end()) return {};
  if (hot_.size() < places_) {
    hot_.push_back({peer_slot, address});
    return {.cooled = {}, .heated = address};
  }
  auto coldest = std::ranges::min_element(hot_, {}, [&](const Hot& hot) { return arrivals_[hot.peer_slot]; });
  const std::uint64_t least = arrivals_[coldest->peer_slot];
  if (least * kClearly > mine) {
    is_crowded_ = mine * std::uint64_t{kClearly} > least;
    return {};
  }
  const base::SocketAddress cooled = coldest->address;
  *coldest = {peer_slot, address};
  return {.cooled = cooled, .heated = address};
}

HotPeers::Change HotPeers::give_up_one() {
  if (hot_.empty()) return {};
  const base::SocketAddress cooled = hot_.back().address;
  hot_.pop_back();
  return {.cooled = cooled, .heated = {}};
}

/// Counts the peers that are not clearly less busy than the busiest one.
std::size_t HotPeers::busy_peers() const {
  const std::uint64_t most = std::ranges::max(arrivals_);
  return static_cast<std::size_t>(
      std::ranges::count_if(arrivals_, [most](std::uint64_t count) { return count * kClearly > most; }));
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
