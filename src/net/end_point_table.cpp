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
  if (size() >= sweep_at_) sweep();
  is_lent_ = true;
  std::array<std::uint64_t, TakenEvents::kMost> hashes;
  const bool is_large = size() >= kPrefetchLeast;
  const auto is_repeated = [&](std::size_t i) {  // messages of one sender tend to come in runs
    return i > 0 && sources[i - 1] != nullptr && *sources[i - 1] == *sources[i];
  };
  if (is_large) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i] == nullptr || is_repeated(i)) continue;
      hashes[i] = index_.hash(*sources[i]);
      index_.prefetch_slot(hashes[i]);
    }
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (sources[i] != nullptr && !is_repeated(i)) index_.prefetch_state(hashes[i]);
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    senders[i] = nullptr;
    if (sources[i] == nullptr) continue;
    if (is_repeated(i)) {
      senders[i] = senders[i - 1];
    } else if (last_ != nullptr && last_->remote == *sources[i]) {
      senders[i] = last_;
    } else {
      try {
        senders[i] = last_ = find_or_make(*sources[i], is_large ? hashes[i] : index_.hash(*sources[i]));
      } catch (const std::bad_alloc&) {
        senders[i] = nullptr;
      }
    }
  }
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
