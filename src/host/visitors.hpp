#pragma once
// Connections whose first call has not come yet: few, and not for long, for anybody may connect.

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
};

class Visitors {
 public:
  static constexpr std::size_t kMost = 256;
  static constexpr std::ptrdiff_t kMostOfUser = 64;
  static constexpr base::Duration kPatience = std::chrono::seconds(2);

  std::size_t count() const noexcept { return all_.size(); }
  bool is_full() const noexcept { return all_.size() == kMost; }
  /// Of a user who has too many the oldest goes: those who mean to call do so at once.
  void add(shm::Socket socket, base::Instant now) {
    const auto is_same = [user = socket.credentials().user](const Visitor& visitor) {
      return visitor.socket.credentials().user == user;
    };
    if (std::ranges::count_if(all_, is_same) >= kMostOfUser) all_.erase(std::ranges::find_if(all_, is_same));
    all_.emplace_back(std::move(socket), now);
  }
  /// Those for whom it returns false go.
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
  std::list<Visitor> all_;  // in the order they came
};

}  // namespace fairlead::host
