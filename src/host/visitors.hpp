#pragma once
// Connections whose first call has not come yet. Anybody may connect, so their number and time are limited.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>

#include "base/time.hpp"
#include "shm/socket.hpp"

namespace fairlead::host {

struct Visitor {
  shm::Socket socket;
  base::Instant came_at{};
  bool is_last = false;  // it has the spare descriptor, and is only told that there is no other
};

class Visitors {
 public:
  static constexpr std::size_t kMost = 256;
  static constexpr std::ptrdiff_t kMostOfUser = 64;
  static constexpr base::Duration kPatience = std::chrono::seconds(2);

  std::size_t count() const noexcept { return all_.size(); }
  bool is_full() const noexcept { return all_.size() == kMost; }
  /// Adds a connection. If its user has too many, closes that user's oldest: honest clients call at once.
  void add(shm::Socket socket, base::Instant now, bool is_last = false) {
    const auto is_same = [user = socket.credentials().user](const Visitor& visitor) {
      return visitor.socket.credentials().user == user;
    };
    if (std::ranges::count_if(all_, is_same) >= kMostOfUser) all_.erase(std::ranges::find_if(all_, is_same));
    all_.emplace_back(std::move(socket), now, is_last);
  }
  /// Removes those for which `stays` returns false.
  template <typename Stays>
  void keep_if(Stays&& stays) {
    all_.remove_if([&](Visitor& visitor) { return !stays(visitor); });
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const Visitor& visitor : all_) visit(visitor);
  }
  base::Instant next_deadline() const noexcept {
    return all_.empty() ? base::kNever : all_.front().came_at + kPatience;
  }

 private:
  std::list<Visitor> all_;  // in order of arrival
};

}  // namespace fairlead::host
