#include "tools/bulkping/bulk_pool.hpp"

#include <algorithm>

namespace fairlead::tools {

bool BulkPool::has_room(std::uint64_t size) const {
  return slots_.size() < buffers_max_ && size <= memory_max_ - std::min(memory_, memory_max_);
}

net::Buffer* BulkPool::acquire(std::uint64_t size) {
  auto best = slots_.end();
  for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
    if (!slot->is_idle || slot->buffer->size() < size) continue;
    if (best == slots_.end() || slot->buffer->size() < best->buffer->size()) best = slot;
  }
  if (best != slots_.end()) {
    best->is_idle = false;
    return best->buffer.get();
  }
  for (auto slot = slots_.begin(); slot != slots_.end() && !has_room(size);) {
    if (slot->is_idle) {
      memory_ -= slot->buffer->size();
      slot = slots_.erase(slot);
    } else {
      ++slot;
    }
  }
  if (!has_room(size)) return nullptr;
  auto buffer = net::Buffer::allocate(domain_, size);
  if (!buffer) return nullptr;
  set_up_(**buffer);
  memory_ += (*buffer)->size();
  return slots_.emplace_back(std::move(*buffer), false).buffer.get();
}

void BulkPool::release(net::Buffer& buffer) {
  const auto slot = std::ranges::find(slots_, &buffer, [](const Slot& each) { return each.buffer.get(); });
  if (slot != slots_.end()) slot->is_idle = true;
}

}  // namespace fairlead::tools
