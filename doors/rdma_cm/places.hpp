#pragma once
// Bounds what strangers make us keep: a total number of places, of which one host gets at most half, so that it cannot
// lock out others.

#include <algorithm>
#include <cstdint>
#include <map>

#include "doors/rdma_cm/socket_name.hpp"

namespace fairlead::rdma_cm {

class Places {
 public:
  explicit Places(std::uint32_t most = 0) : most_(most) {}

  /// Takes a place. Returns false if none is left for this host.
  bool take(const Ip& host) {
    const auto found = by_host_.find(host);
    const std::uint32_t of_host = found != by_host_.end() ? found->second : 0;
    if (taken_ >= most_ || of_host >= std::max(1U, most_ / 2)) return false;
    ++taken_;
    ++by_host_[host];
    return true;
  }
  /// Returns a place that the host has taken.
  void release(const Ip& host) {
    const auto found = by_host_.find(host);
    if (found == by_host_.end()) return;
    --taken_;
    if (--found->second == 0) by_host_.erase(found);
  }

 private:
  std::uint32_t most_, taken_ = 0;
  std::map<Ip, std::uint32_t> by_host_;  // at most as many entries as taken places
};

}  // namespace fairlead::rdma_cm
