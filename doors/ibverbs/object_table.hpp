#pragma once
// The objects of one kind that programs hold pointers to. A program may hand back a pointer to an object that is gone,
// or one whose handle it has overwritten; both are noticed: an object is what its handle names, at the place it stands
// at. The memory of an object is never returned, so that looking at a stale pointer is harmless.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace fairlead::ibverbs {

/// `Object` derives from the C structure `Object::Abi`, which has a 32-bit handle at `Object::handle_of()`.
template <typename Object>
class ObjectTable {
 public:
  using Abi = typename Object::Abi;

  /// Null if there are too many. The handle is set.
  template <typename... Arguments>
  Object* create(Arguments&&... arguments) {
    const std::lock_guard guard(mutex_);
    std::uint32_t index = 0;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (used_ < kObjectsMax) {
      index = used_;
      if (index % kChunk == 0) chunks_[index / kChunk].store(new Chunk, std::memory_order_release);
      ++used_;
    } else {
      return nullptr;
    }
    Slot& slot = *slot_at(index);
    auto* object = new (slot.memory) Object(std::forward<Arguments>(arguments)...);
    const std::uint32_t handle = slot.generation << kIndexBits | index;
    Object::handle_of(*object) = handle;
    slot.live.store(kIsLive | handle, std::memory_order_release);
    return object;
  }

  void destroy(Object* object) {
    const std::lock_guard guard(mutex_);
    Slot& slot = *reinterpret_cast<Slot*>(object);
    const auto index = static_cast<std::uint32_t>(slot.live.load(std::memory_order_relaxed)) & kIndexMask;
    slot.live.store(0, std::memory_order_release);
    slot.generation = (slot.generation + 1) & kGenerationMask;
    object->~Object();
    free_.push_back(index);
  }

  /// Null if this is no object, or not any more.
  Object* find(const Abi* abi) const {
    if (abi == nullptr) [[unlikely]]
      return nullptr;
    Object* object = find(Object::handle_of(*const_cast<Abi*>(abi)));
    return static_cast<const Abi*>(object) == abi ? object : nullptr;
  }

  Object* find(std::uint32_t handle) const {
    Slot* slot = slot_at(handle & kIndexMask);
    if (slot == nullptr || slot->live.load(std::memory_order_acquire) != (kIsLive | handle)) [[unlikely]]
      return nullptr;
    return std::launder(reinterpret_cast<Object*>(slot->memory));
  }

  /// All that are live now.
  std::vector<Object*> all() const {
    const std::lock_guard guard(mutex_);
    std::vector<Object*> objects;
    for (std::uint32_t i = 0; i < used_; ++i) {
      Slot& slot = *slot_at(i);
      if (slot.live.load(std::memory_order_relaxed) != 0) objects.push_back(reinterpret_cast<Object*>(slot.memory));
    }
    return objects;
  }

 private:
  static constexpr std::uint32_t kIndexBits = 18, kIndexMask = (1U << kIndexBits) - 1;
  static constexpr std::uint32_t kGenerationMask = (1U << (32 - kIndexBits)) - 1;
  static constexpr std::uint32_t kObjectsMax = 1U << kIndexBits;
  static constexpr std::uint32_t kChunk = 64;
  static constexpr std::uint64_t kIsLive = 1ULL << 32;

  struct Slot {
    alignas(Object) std::byte memory[sizeof(Object)];  // first, so that an object leads to its slot
    std::atomic<std::uint64_t> live{0};                // kIsLive | handle; release when made, acquire when found
    std::uint32_t generation = 1;
  };
  using Chunk = std::array<Slot, kChunk>;

  Slot* slot_at(std::uint32_t index) const {
    Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk != nullptr ? &(*chunk)[index % kChunk] : nullptr;
  }

  mutable std::mutex mutex_;
  std::uint32_t used_ = 0;
  std::vector<std::uint32_t> free_;
  std::array<std::atomic<Chunk*>, kObjectsMax / kChunk> chunks_{};
};

/// The one table of a kind; never destroyed, as threads may use it while the process exits.
template <typename Object>
ObjectTable<Object>& table() {
  static auto* const table = new ObjectTable<Object>;
  return *table;
}

}  // namespace fairlead::ibverbs
