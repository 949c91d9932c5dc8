#include "net/end_point_table.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "net/net_address.hpp"
#include "net/taken_events.hpp"

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

EndPointTable::EndPointTable(std::uint64_t seed) : index_(seed), next_serial_(static_cast<std::uint32_t>(seed)) {}

EndPointTable::~EndPointTable() {
  for (EndPointState* const state : places_) {
    if (state != nullptr) net::release(state);
  }
}

EndPoint EndPointTable::find_or_make(const engine::RemotePort& remote) {
  if (last_ != nullptr && last_->remote == remote) [[likely]]
    return EndPointState::refer(last_);
  const std::uint64_t hash = index_.hash(remote);
  if (EndPointState* const found = index_.find(remote, hash); found != nullptr) {
    last_ = found;
    return EndPointState::refer(last_);
  }
  if (size() >= sweep_at_) sweep();
  index_.reserve_one();
  auto state = std::make_unique<EndPointState>();
  state->remote = remote;
  state->address = address_text(remote);
  state->table = this;
  state->place = take_place(state.get());
  state->serial = next_serial_++;
  index_.insert(state.get(), hash);
  last_ = state.release();
  return EndPointState::refer(last_);
}

void EndPointTable::prefetch_senders(std::span<const engine::Completion> completions) const noexcept {
  if (size() < kPrefetchLeast) return;
  std::array<std::uint64_t, TakenEvents::kMost> hashes;
  std::size_t count = 0;
  const engine::RemotePort* before = last_ == nullptr ? nullptr : &last_->remote;
  for (const engine::Completion& completion : completions) {
    if (before != nullptr && *before == completion.source) continue;  // messages of one sender tend to come in runs
    before = &completion.source;
    if (count == hashes.size()) break;
    hashes[count] = index_.hash(completion.source);
    index_.prefetch_slot(hashes[count++]);
  }
  for (const std::uint64_t hash : std::span(hashes).first(count)) index_.prefetch_state(hash);
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
  return std::ranges::any_of(places_,
                             [&](const auto* state) { return state != nullptr && state->remote.engine == engine; });
}

bool EndPointTable::is_referred(const EndPoint& own) const {
  return std::ranges::any_of(places_, [&](const EndPointState* state) {
    const std::uint32_t expected = state == EndPointState::of(own) ? 2 : 1;
    return state != nullptr && state->references.load(std::memory_order_acquire) > expected;
  });
}

void EndPointTable::sweep() {
  last_ = nullptr;
  free_places_.reserve(places_.size());
  index_.erase_if([this](EndPointState& state) {
    if (state.references.load(std::memory_order_acquire) != 1) return false;
    places_[state.place] = nullptr;
    free_places_.push_back(state.place);
    release(&state);
    return true;
  });
  sweep_at_ = std::max(kSweepLeast, 2 * size());
}

}  // namespace fairlead::net
