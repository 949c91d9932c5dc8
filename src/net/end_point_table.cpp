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

// The public handles ------------------------------------------------------------------------------------------------

EndPoint::EndPoint(const EndPoint& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->references.fetch_add(1, std::memory_order_relaxed);
}

void EndPoint::release() noexcept {
  net::release(state_);
}

std::string_view EndPoint::address() const noexcept {
  return state_ == nullptr ? std::string_view() : state_->address;
}

Destination::Destination(const EndPoint& end_point) noexcept {
  if (const EndPointState* const state = EndPointState::of(end_point); state != nullptr) [[likely]] {
    table_ = state->table;
    place_ = state->place;
    serial_ = state->serial;
  }
}

EndPoint EndPointState::refer(EndPointState* state) noexcept {
  state->references.fetch_add(1, std::memory_order_relaxed);
  return EndPoint(state);
}

// The table ---------------------------------------------------------------------------------------------------------

std::size_t EndPointTable::Hash::operator()(const engine::RemotePort& remote) const noexcept {
  return base::SocketAddressHash{seed ^ (std::uint64_t{remote.port} << 32)}(remote.engine);
}

EndPointTable::EndPointTable(std::uint64_t seed)
    : states_(0, Hash{seed}), next_serial_(static_cast<std::uint32_t>(seed)) {}

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
  state->place = take_place(state);
  state->serial = next_serial_++;
  states_.emplace(remote, state);
  last_ = state;
  return EndPointState::refer(state);
}

std::uint32_t EndPointTable::take_place(EndPointState* state) {
  if (free_places_.empty()) {
    places_.push_back(state);
    return static_cast<std::uint32_t>(places_.size() - 1);
  }
  const std::uint32_t place = free_places_.back();
  free_places_.pop_back();
  places_[place] = state;
  return place;
}

const EndPointState* EndPointTable::find(const Destination& destination) const noexcept {
  if (destination.table_ != this || destination.place_ >= places_.size()) return nullptr;
  const EndPointState* const state = places_[destination.place_];
  return state != nullptr && state->serial == destination.serial_ ? state : nullptr;
}

bool EndPointTable::has_engine(const base::SocketAddress& engine) const {
  return std::ranges::any_of(states_, [&](const auto& entry) { return entry.first.engine == engine; });
}

bool EndPointTable::is_referred(const EndPoint& own) const {
  return std::ranges::any_of(states_, [&](const auto& entry) {
    const std::uint32_t expected = entry.second == EndPointState::of(own) ? 2 : 1;
    return entry.second->references.load(std::memory_order_acquire) > expected;
  });
}

void EndPointTable::sweep() {
  last_ = nullptr;
  std::erase_if(states_, [this](const auto& entry) {
    if (entry.second->references.load(std::memory_order_acquire) != 1) return false;
    places_[entry.second->place] = nullptr;
    free_places_.push_back(entry.second->place);
    release(entry.second);
    return true;
  });
  sweep_at_ = std::max(kSweepLeast, 2 * states_.size());
}

}  // namespace fairlead::net
