#include "net/end_point_table.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <new>

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
  return state_ == nullptr ? std::string_view() : *state_->address;
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
  if (last_ == nullptr || last_->remote != remote) [[unlikely]] {
    const std::uint64_t hash = index_.hash(remote);
    if (size() >= sweep_at_ && !is_lent_ && index_.find(remote, hash) == nullptr) sweep();
    last_ = find_or_make(remote, hash);
  }
  return EndPointState::refer(last_);
}

EndPointState* EndPointTable::find_or_make(const engine::RemotePort& remote, std::uint64_t hash) {
  EndPointState* const found = index_.find(remote, hash);
  return found != nullptr ? found : make(remote, hash);
}

EndPointState* EndPointTable::find_or_try(const engine::RemotePort& remote, std::uint64_t hash) noexcept try {
  return find_or_make(remote, hash);
} catch (const std::bad_alloc&) {
  return nullptr;
}

EndPointState* EndPointTable::make(const engine::RemotePort& remote, std::uint64_t hash) {
  index_.reserve_one();
  auto state = std::make_unique<EndPointState>();
  state->remote = remote;
  state->address = std::make_unique<const std::string>(address_text(remote));
  state->table = this;
  state->place = take_place(state.get());
  state->serial = next_serial_++;
  index_.insert(state.get(), hash);
  return state.release();
}

void EndPointTable::lend_senders(std::span<const engine::RemotePort* const> sources,
                                 std::span<EndPointState*> senders) noexcept {
  struct LookUp {
    std::uint64_t hash;
    std::size_t place;  // in the batch
  };
  if (size() >= sweep_at_) sweep();
  is_lent_ = true;
  std::array<LookUp, TakenEvents::kMost + 1> look_ups;
  std::size_t count = 0;
  // Messages of one sender tend to come in runs, and a run needs one look-up.
  const engine::RemotePort* before = last_ != nullptr ? &last_->remote : nullptr;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] == nullptr || (before != nullptr && *before == *sources[i])) continue;
    before = sources[i];
    look_ups[count] = {index_.hash(*before), i};
    index_.prefetch_slot(look_ups[count++].hash);
  }
  look_ups[count].place = sources.size();
  for (std::size_t i = 0; i < count; ++i) senders[look_ups[i].place] = index_.prefetch_first(look_ups[i].hash);
  EndPointState* sender = last_;
  for (std::size_t i = 0, next = 0; i < sources.size(); ++i) {
    if (i == look_ups[next].place) {
      sender = senders[i];
      if (sender == nullptr || sender->remote != *sources[i]) [[unlikely]]
        sender = find_or_try(*sources[i], look_ups[next].hash);
      ++next;
    }
    senders[i] = sources[i] != nullptr ? sender : nullptr;
  }
  last_ = sender;
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
