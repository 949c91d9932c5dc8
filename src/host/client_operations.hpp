#pragma once
// What an application remembers of its pending operations at the host engine: whose they are, and where their bytes
// belong if they travel through a block of the shared memory.

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
  std::span<const iovec> memory;  // the owner's; only looked at if there is a block
  std::uint64_t length = 0;       // of it
  std::byte* block = nullptr;     // null: the memory is shared
  std::uint32_t generation = 0;   // odd: pending
  std::uint16_t port = 0;
  Request::Kind kind = Request::Kind::send;
  bool takes_bytes = false;  // they are written there, and copied out when it ends
  bool is_spare = false;
  std::uint32_t index_or_next = 0;  // its own index while it is pending, else the next unused one
};

/// take() and release() under the owner's lock. An operation stays where it is, and belongs to the thread that has been
/// given it, by take() or by the host engine's event.
class ClientOperations {
 public:
  /// So many may be pending at a time.
  void limit(std::uint32_t most) { most_ = std::min(most, kOperationsMax); }

  /// Null at the bound.
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

  /// As the host engine names it.
  static std::uint64_t name_of(const ClientOperation& operation) {
    return std::uint64_t{operation.generation} << 32 | operation.index_or_next;
  }
  static std::uint64_t name_of(const engine::OperationHandle& handle) {
    return std::uint64_t{handle.generation} << 32 | handle.slot;
  }
  static engine::OperationHandle handle_of(const ClientOperation& operation) {
    return {.slot = operation.index_or_next, .generation = operation.generation};
  }
  /// Null if none of that name is pending.
  ClientOperation* find(std::uint64_t name) {
    const auto index = static_cast<std::uint32_t>(name);
    if (index >= used_) return nullptr;
    ClientOperation& operation = at(index);
    return operation.generation == name >> 32 && operation.generation % 2 == 1 ? &operation : nullptr;
  }
  /// The pending one of a port with the least index from `from` on; null if there is none.
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
  std::uint32_t used_ = 0;  // that have ever been
  std::uint32_t unused_ = kNone;
};

}  // namespace fairlead::host
