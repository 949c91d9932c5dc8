#pragma once
// The objects of one kind to which programs hold pointers. A program may pass a pointer to a destroyed object, or to
// one whose handle it has overwritten. Both are detected: the handle must name the object at exactly this address. An
// object's memory is never freed, so reading through a stale pointer is harmless. It is reused only after a while. An
// object that a Call has found stays valid until the Call ends.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "doors/ibverbs/call.hpp"
#include "doors/ibverbs/peek.hpp"

namespace fairlead::ibverbs {

/// `Object` derives from the C structure `Object::Abi`. Object::handle_of() returns that structure's 32-bit handle.
template <typename Object>
class ObjectTable {
 public:
  using Abi = typename Object::Abi;

  /// Creates an object with its handle set. find() does not return it yet. Returns null if there are too many.
  template <typename... Arguments>
  Object* make(Arguments&&... arguments) {
    const std::lock_guard guard(mutex_);
    std::uint32_t index = 0;
    if (free_.size() > kRest || (!free_.empty() && used_ == kObjectsMax)) {
      index = free_.front();
      free_.pop_front();
    } else if (used_ < kObjectsMax) {
      index = used_;
      if (index % kChunk == 0) chunks_[index / kChunk].store(new Chunk, std::memory_order_release);
      ++used_;
    } else {
      return nullptr;
    }
    Slot& slot = *slot_at(index);
    auto* object = new (slot.memory) Object(std::forward<Arguments>(arguments)...);
    Object::handle_of(*object) = slot.generation << kIndexBits | index;
    return object;
  }
  /// Makes a complete object visible to find().
  Object* publish(Object* object) {
    slot_of(object).live.store(kIsLive | Object::handle_of(*object), std::memory_order_release);
    return object;
  }
  /// Does make() and publish(), for an object that is complete at once.
  template <typename... Arguments>
  Object* create(Arguments&&... arguments) {
    Object* object = make(std::forward<Arguments>(arguments)...);
    return object != nullptr ? publish(object) : nullptr;
  }
  /// Destroys an object that was never published.
  void discard(Object* object) { release(object, Object::handle_of(*object) & kIndexMask); }

  /// Removes the object from find(), waits until no thread uses it, and destroys it. Returns false if another thread
  /// destroyed it first.
  bool destroy(Object* object) {
    Slot& slot = slot_of(object);
    const std::uint64_t live = slot.live.exchange(0, std::memory_order_acq_rel);
    if (live == 0) return false;
    ThreadUses::wait_until_unused(object);
    release(object, static_cast<std::uint32_t>(live) & kIndexMask);
    return true;
  }

  /// Returns null if `abi` is no live object.
  Object* find(const Abi* abi) const {
    if (abi == nullptr) [[unlikely]]
      return nullptr;
    const std::uint32_t handle = handle_at(abi);
    Slot* slot = slot_at(handle & kIndexMask);
    if (slot == nullptr || static_cast<const Abi*>(reinterpret_cast<Object*>(slot->memory)) != abi) [[unlikely]]
      return nullptr;
    return use(*slot, handle);
  }

  Object* find(std::uint32_t handle) const {
    Slot* slot = slot_at(handle & kIndexMask);
    return slot != nullptr ? use(*slot, handle) : nullptr;
  }

  /// Returns whether an object that a Call has found is still live for other threads.
  bool is_live(Object* object) const { return slot_of(object).live.load(std::memory_order_acquire) != 0; }

  /// Returns the handles of all objects that are live now.
  std::vector<std::uint32_t> all() const {
    const std::lock_guard guard(mutex_);
    std::vector<std::uint32_t> handles;
    for (std::uint32_t i = 0; i < used_; ++i) {
      const std::uint64_t live = slot_at(i)->live.load(std::memory_order_relaxed);
      if (live != 0) handles.push_back(static_cast<std::uint32_t>(live));
    }
    return handles;
  }

 private:
  static constexpr std::uint32_t kIndexBits = 18, kIndexMask = (1U << kIndexBits) - 1;
  static constexpr std::uint32_t kGenerationMask = (1U << (32 - kIndexBits)) - 1;
  static constexpr std::uint32_t kObjectsMax = 1U << kIndexBits;
  static constexpr std::uint32_t kChunk = 64;
  static constexpr std::size_t kRest = 256;  // memory is reused only after so many further destructions
  static constexpr std::uint64_t kIsLive = 1ULL << 32;

  struct Slot {
    alignas(Object) std::byte memory[sizeof(Object)];  // first member, so that an object's address leads to its slot
    std::atomic<std::uint64_t> live{0};                // kIsLive | handle; release when published, acquire when found
    std::uint32_t generation = 1;
  };
  using Chunk = std::array<Slot, kChunk>;

  static Slot& slot_of(Object* object) { return *reinterpret_cast<Slot*>(object); }

  // The object behind a program's pointer may be destroyed and replaced meanwhile; use() then detects the other handle.
  static std::uint32_t handle_at(const Abi* abi) { return peek(Object::handle_of(*const_cast<Abi*>(abi))); }

  Object* use(Slot& slot, std::uint32_t handle) const {
    auto* object = std::launder(reinterpret_cast<Object*>(slot.memory));
    if (!ThreadUses::mine().note(object)) [[unlikely]]
      return nullptr;
    return slot.live.load(std::memory_order_acquire) == (kIsLive | handle) ? object : nullptr;
  }

  void release(Object* object, std::uint32_t index) {
    object->~Object();
    const std::lock_guard guard(mutex_);
    Slot& slot = slot_of(object);
    slot.generation = (slot.generation + 1) & kGenerationMask;
    free_.push_back(index);
  }

  Slot* slot_at(std::uint32_t index) const {
    Chunk* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk != nullptr ? &(*chunk)[index % kChunk] : nullptr;
  }

  mutable std::mutex mutex_;
  std::uint32_t used_ = 0;
  std::deque<std::uint32_t> free_;  // oldest first
  std::array<std::atomic<Chunk*>, kObjectsMax / kChunk> chunks_{};
};

/// Returns the only table of a kind. Never destroyed, because threads may use it while the process exits.
template <typename Object>
ObjectTable<Object>& table() {
  static auto* const table = new ObjectTable<Object>;
  return *table;
}

}  // namespace fairlead::ibverbs
