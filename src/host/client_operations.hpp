#pragma once
// An application's record of its pending operations at the host engine: owner, and destination of bytes that pass
// through a block of the shared memory.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <sys/uio.h>

#include "engine/handles.hpp"
#include "host/layout.hpp"

namespace fairlead::host {

struct ClientOperation {
  std::uint64_t cookie = 0;
  std::span<const iovec> memory;  // the owner's; used only if there is a block
  std::uint64_t length = 0;       // length of the operation
  std::byte* block = nullptr;     // null: the operation's memory is shared
  std::uint32_t generation = 0;   // odd: pending
  std::uint16_t port = 0;
  Request::Kind kind = Request::Kind::send;
  bool takes_bytes = false;  // the host engine writes to the block; it is copied out at the end
  bool is_spare = false;
  std::uint32_t index_or_next = 0;  // its own index while pending, else the next free one
};

/// The caller holds the owner's lock for take() and release(). An operation never moves. It belongs to the thread that
/// took it or that received its event.
class ClientOperations {
 public:
  /// Sets how many operations may be pending.
  void limit(std::uint32_t most) { most_ = std::min(most, kOperationsMax); }

  /// Returns null at the limit.
  ClientOperation* take() {
    if (unused_ == kNone) {
      if (used_ == most_) return nullptr;
      auto& chunk = chunks_[used_ / kChunk];
      if (!chunk) chunk = std::make_unique<std::array<ClientOperation, kChunk>>();
      const std::uint32_t index = used_++;
      return begin((*chunk)[index % kChunk], index);
    }
    const std::uint32_t index = unused_;
    ClientOperation& operation = at(index);
    unused_ = operation.index_or_next;
    return begin(operation, index);
  }
  void release(ClientOperation& operation) {
    const std::uint32_t index = operation.index_or_next;
    ++operation.generation;
    operation.index_or_next = unused_;
    unused_ = index;
  }

  /// Returns the operation's name in the protocol.
  static std::uint64_t name_of(const ClientOperation& operation) {
    return std::uint64_t{operation.generation} << 32 | operation.index_or_next;
  }
  static std::uint64_t name_of(const engine::OperationHandle& handle) {
    return std::uint64_t{handle.generation} << 32 | handle.slot;
  }
  static engine::OperationHandle handle_of(const ClientOperation& operation) {
    return {.slot = operation.index_or_next, .generation = operation.generation};
  }
  /// Returns null if no pending operation has this name.
  ClientOperation* find(std::uint64_t name) {
    const auto index = static_cast<std::uint32_t>(name);
    if (index >= used_) return nullptr;
    ClientOperation& operation = at(index);
    return operation.generation == name >> 32 && operation.generation % 2 == 1 ? &operation : nullptr;
  }
  /// Returns the pending operation of a port with the smallest index >= `from`; null if there is none.
  ClientOperation* first_of(std::uint16_t port, std::uint32_t from = 0) {
    for (std::uint32_t index = from; index < used_; ++index) {
      ClientOperation& operation = at(index);
      if (operation.generation % 2 == 1 && operation.port == port) return &operation;
    }
    return nullptr;
  }

 private:
  static constexpr std::uint32_t kChunk = 256, kNone = ~0U;

  ClientOperation& at(std::uint32_t index) { return (*chunks_[index / kChunk])[index % kChunk]; }
  static ClientOperation* begin(ClientOperation& operation, std::uint32_t index) {
    operation.index_or_next = index;
    ++operation.generation;
    return &operation;
  }

  std::array<std::unique_ptr<std::array<ClientOperation, kChunk>>, kOperationsMax / kChunk> chunks_;
  std::uint32_t most_ = kOperationsMax;
  std::uint32_t used_ = 0;  // number ever used
  std::uint32_t unused_ = kNone;
};

}  // namespace fairlead::host
