#include "shm/search.hpp"

#include "base/say.hpp"

namespace fairlead::shm {

void Search::ask(const base::SocketAddress& address, const std::optional<base::SipKey>& key, base::Instant now) {
  if (connections_.find(address) != Connections::kNone) return;
  const auto asked = connections_.ask(address, now, key);
  if (asked) return found(address);
  failed(address, asked.error().message);
  if (is_forced_ && asked.error().status == Status::again && wanted_.has_room(1)) wanted_.push(address);
}

void Search::failed(const base::SocketAddress& address, std::string_view reason) {
  base::say([&] {
    if (reasons_.size() < kReasonsMax || reasons_.contains(address)) reasons_[address] = reason;
  });
}

std::string Search::reason(const base::SocketAddress& address) const {
  const auto found = reasons_.find(address);
  return found == reasons_.end() ? std::string() : found->second;
}

}  // namespace fairlead::shm
