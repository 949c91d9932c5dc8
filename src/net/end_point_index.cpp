#include "net/end_point_index.hpp"

#include "net/end_point_table.hpp"

namespace fairlead::net {

std::uint64_t EndPointIndex::hash(const engine::RemotePort& remote) const noexcept {
  return base::SocketAddressHash{seed_ ^ (std::uint64_t{remote.port} << 32)}(remote.engine);
}

EndPointState* EndPointIndex::find(const engine::RemotePort& remote, std::uint64_t hash) const noexcept {
  for (std::size_t i = home(hash); slots_[i].state != nullptr; i = next(i)) {
    if (slots_[i].hash == hash && slots_[i].state->remote == remote) return slots_[i].state;
  }
  return nullptr;
}

void EndPointIndex::prefetch_slot(std::uint64_t hash) const noexcept {
  __builtin_prefetch(&slots_[home(hash)]);
}

EndPointState* EndPointIndex::prefetch_first(std::uint64_t hash) const noexcept {
  std::size_t i = home(hash);
  while (slots_[i].state != nullptr && slots_[i].hash != hash) i = next(i);
  __builtin_prefetch(slots_[i].state, 1);
  return slots_[i].state;
}

void EndPointIndex::reserve_one() {
  if (2 * (used_ + 1) <= slots_.size()) return;
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  mask_ = slots_.size() - 1;
  used_ = 0;
  for (const Slot& slot : before) {
    if (slot.state != nullptr) insert(slot.state, slot.hash);
  }
}

void EndPointIndex::insert(EndPointState* state, std::uint64_t hash) noexcept {
  std::size_t i = home(hash);
  while (slots_[i].state != nullptr) i = next(i);
  slots_[i] = {hash, state};
  ++used_;
}

}  // namespace fairlead::net
