#include "host/routes.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace fairlead::host {

std::uint32_t Routes::thread_for(const base::SocketAddress& address) {
  const std::scoped_lock lock(mutex_);
  if (address.port != 0) {
    if (const auto known = engines_.find(address); known != engines_.end()) return known->second;
    const std::uint32_t sum = std::accumulate(address.ip.begin(), address.ip.end(), std::uint32_t{address.port});
    return sum % threads_;
  }
  std::uint32_t best = next_;
  for (std::uint32_t i = 1; i < threads_; ++i) {
    const std::uint32_t thread = (next_ + i) % threads_;
    if (by_thread_[thread] < by_thread_[best]) best = thread;
  }
  next_ = (best + 1) % threads_;
  return best;
}

bool Routes::claim(const base::SocketAddress& engine, std::uint32_t thread) {
  const std::scoped_lock lock(mutex_);
  return engines_.try_emplace(engine, thread).first->second == thread;
}

void Routes::release(const base::SocketAddress& engine) {
  const std::scoped_lock lock(mutex_);
  engines_.erase(engine);
}

Result<Routes::Seat> Routes::enter(std::uint32_t thread, std::uint32_t user, const Limits& limits) {
  const std::scoped_lock lock(mutex_);
  std::int64_t& of_user = by_user_[user];
  const std::size_t all = std::accumulate(by_thread_.begin(), by_thread_.end(), std::size_t{0});
  if (all >= limits.applications_max || of_user >= limits.per_user_max) {
    const std::int64_t has = of_user;
    if (has == 0) by_user_.erase(user);
    return std::unexpected(Error{
        Status::no_memory, 0,
        fmt::format("{} applications are attached to this host engine, {} of them of user {}: it serves {}, {} of "
                    "one user (--applications, --applications-per-user)",
                    all, has, user, limits.applications_max, limits.per_user_max)});
  }
  ++of_user;
  ++by_thread_[thread];
  return Seat(shared_from_this(), thread, user);
}

void Routes::leave(std::uint32_t thread, std::uint32_t user) {
  const std::scoped_lock lock(mutex_);
  --by_thread_[thread];
  const auto found = by_user_.find(user);
  if (--found->second == 0) by_user_.erase(found);
}

std::size_t Routes::applications() const {
  const std::scoped_lock lock(mutex_);
  return std::accumulate(by_thread_.begin(), by_thread_.end(), std::size_t{0});
}

}  // namespace fairlead::host
