#pragma once
// All submitted operations that have not ended. Each ends once, with an event at its port.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/slab.hpp"
#include "engine/operation.hpp"
#include "engine/ports.hpp"
#include "transport/client.hpp"

namespace fairlead::engine {

class Operations {
 public:
  static constexpr std::uint32_t kNone = base::Slab<Operation>::kNone;

  Operations(Ports& ports, std::uint32_t most) : ports_(ports), operations_(most) {}

  /// Returns kNone if there are too many.
  std::uint32_t make(OperationKind kind, PortHandle port, std::uint64_t cookie);
  Operation& operator[](std::uint32_t slot) { return operations_[slot]; }
  /// Returns null if it has ended.
  Operation* find(std::uint64_t name) { return operations_.find(slot_of(name), generation_of(name)); }
  Operation* find(const transport::Cookie& cookie) { return operations_.find(cookie.place, cookie.number); }
  /// Also returns null if it belongs to another port.
  Operation* find(PortHandle port, OperationHandle name);
  OperationHandle handle_of(std::uint32_t slot) const { return {slot, operations_.generation(slot)}; }
  std::uint64_t name_of(std::uint32_t slot) const { return pack_name(slot, operations_.generation(slot)); }
  /// Returns the cookie of its messages in the transports.
  transport::Cookie cookie_of(std::uint32_t slot) const {
    return {.place = slot, .number = operations_.generation(slot)};
  }
  std::uint32_t used() const { return operations_.used(); }
  std::vector<std::uint64_t> names() const { return operations_.names(); }
  /// Restores the slots of an earlier life; the caller fills in the operations.
  bool restore(std::span<const std::uint64_t> names) { return operations_.restore(names); }
  /// Returns the number of slots, used or not.
  std::uint32_t size() const { return operations_.size(); }
  template <typename Visit>
  void for_each(Visit&& visit) {
    operations_.for_each(std::forward<Visit>(visit));
  }

  /// Ends an operation with its final event. `length` counts only if the status is ok.
  void complete(std::uint32_t slot, Status status, std::uint64_t length, base::Instant now);
  /// Ends an operation without an event: it has had its last one, or was never accepted.
  void release(std::uint32_t slot);

  void append(OperationChain& chain, std::uint32_t slot) { chain.append(operations_, slot); }
  void remove(OperationChain& chain, std::uint32_t slot) { chain.remove(operations_, slot); }

 private:
  Ports& ports_;
  base::Slab<Operation> operations_;
};

}  // namespace fairlead::engine
