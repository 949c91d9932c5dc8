#pragma once
// The operations that have been submitted and have not ended. Each ends once, by an event at its port.

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

  /// kNone if there are too many.
  std::uint32_t make(OperationKind kind, PortHandle port, std::uint64_t cookie);
  Operation& operator[](std::uint32_t slot) { return operations_[slot]; }
  /// Null if it has ended.
  Operation* find(std::uint64_t name) { return operations_.find(slot_of(name), generation_of(name)); }
  Operation* find(const transport::Cookie& cookie) { return operations_.find(cookie.place, cookie.number); }
  /// Null also if it is another port's.
  Operation* find(PortHandle port, OperationHandle name);
  OperationHandle handle_of(std::uint32_t slot) const { return {slot, operations_.generation(slot)}; }
  std::uint64_t name_of(std::uint32_t slot) const { return pack_name(slot, operations_.generation(slot)); }
  /// What its messages have in the transports.
  transport::Cookie cookie_of(std::uint32_t slot) const {
    return {.place = slot, .number = operations_.generation(slot)};
  }
  std::uint32_t used() const { return operations_.used(); }
  std::vector<std::uint64_t> names() const { return operations_.names(); }
  /// Of another life, all still to be filled in.
  bool restore(std::span<const std::uint64_t> names) { return operations_.restore(names); }
  /// Slots that exist, in use or not.
  std::uint32_t size() const { return operations_.size(); }
  template <typename Visit>
  void for_each(Visit&& visit) {
    operations_.for_each(std::forward<Visit>(visit));
  }

  /// Its final event. `length` counts if it is ok.
  void complete(std::uint32_t slot, Status status, std::uint64_t length, base::Instant now);
  /// Without an event: it has had its last one, or was not taken at all.
  void release(std::uint32_t slot);

  void append(OperationChain& chain, std::uint32_t slot) { chain.append(operations_, slot); }
  void remove(OperationChain& chain, std::uint32_t slot) { chain.remove(operations_, slot); }

 private:
  Ports& ports_;
  base::Slab<Operation> operations_;
};

}  // namespace fairlead::engine
