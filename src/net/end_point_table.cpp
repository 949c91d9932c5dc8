#include "net/end_point_table.hpp"

#include <algorithm>

#include "base/ensure.hpp"
#include "net/net_address.hpp"

namespace fairlead::net {
namespace {

void release(EndPointState* state) noexcept {
  if (state->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete state;
}

}  // namespace

// The public handle -------------------------------------------------------------------------------------------------

EndPoint::EndPoint(const EndPoint& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->references.fetch_add(1, std::memory_order_relaxed);
}

void EndPoint::release() noexcept {
  net::release(state_);
}

std::string_view EndPoint::address() const noexcept {
  return state_ == nullptr ? std::string_view() : state_->address;
}

EndPoint EndPointState::refer(EndPointState* state) noexcept {
  state->references.fetch_add(1, std::memory_order_relaxed);
  return EndPoint(state);
}

// The table ---------------------------------------------------------------------------------------------------------

std::size_t EndPointTable::Hash::operator()(const engine::RemotePort& remote) const noexcept {
  return base::SocketAddressHash{seed ^ (std::uint64_t{remote.port} << 32)}(remote.engine);
}

EndPointTable::EndPointTable(std::uint64_t seed) : states_(0, Hash{seed}) {}

EndPointTable::~EndPointTable() {
  for (const auto& [remote, state] : states_) release(state);
}

EndPoint EndPointTable::find_or_make(const engine::RemotePort& remote) {
  if (last_ != nullptr && last_->remote == remote) [[likely]]
    return EndPointState::refer(last_);
  if (const auto found = states_.find(remote); found != states_.end()) {
    last_ = found->second;
    return EndPointState::refer(last_);
  }
  if (states_.size() >= sweep_at_) sweep();
  auto* state = new EndPointState;
  state->remote = remote;
  state->address = address_text(remote);
  state->table = this;
  states_.emplace(remote, state);
  last_ = state;
  return EndPointState::refer(state);
}

bool EndPointTable::owns(const EndPoint& end_point) const noexcept {
  const EndPointState* state = EndPointState::of(end_point);
  return state != nullptr && state->table == this;
}

bool EndPointTable::is_referred(const EndPoint& own) const {
  return std::ranges::any_of(states_, [&](const auto& entry) {
    const std::uint32_t expected = entry.second == EndPointState::of(own) ? 2 : 1;
    return entry.second->references.load(std::memory_order_acquire) > expected;
  });
}

void EndPointTable::sweep() {
  last_ = nullptr;
  std::erase_if(states_, [](const auto& entry) {
    if (entry.second->references.load(std::memory_order_acquire) != 1) return false;
    release(entry.second);
    return true;
  });
  sweep_at_ = std::max(kSweepLeast, 2 * states_.size());
}

}  // namespace fairlead::net
