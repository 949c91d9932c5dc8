#pragma once
// A loan is a message by reference: the receiver reads it in the sender's memory (docs/shm.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace fairlead::net {

class Machine;

/// The event of a receive buffer that takes loans carries it (BufferEvent::loan). The sender's buffer stays queued
/// until the receiver returns the loan: by give_back(), by the destructor, or when its machine or process ends.
///
/// The bytes are readable as long as the loan lives, even after the sender's process or the machine has ended. They lie
/// in memory that the sender shares. A sender that breaks the rules, or has cancelled the buffer, may change them at
/// any time. So copy data that must not change between check and use. Thread rules: different threads may use different
/// loans; serialise calls on one loan.
class Loan {
 public:
  /// An empty loan.
  Loan() noexcept = default;
  Loan(Loan&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})),
        memory_(std::move(other.memory_)),
        machine_(std::move(other.machine_)),
        name_(other.name_) {}
  Loan& operator=(Loan&& other) noexcept {
    if (this == &other) return *this;
    give_back();
    bytes_ = std::exchange(other.bytes_, {});
    memory_ = std::move(other.memory_);
    machine_ = std::move(other.machine_);
    name_ = other.name_;
    return *this;
  }
  ~Loan() { give_back(); }

  /// The message; empty if the loan is empty.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return machine_ != nullptr; }

  /// Returns the message to its sender; this loan becomes empty.
  void give_back() noexcept {
    if (machine_ != nullptr) [[likely]]
      end();
  }

 private:
  friend class Machine;
  Loan(std::span<const std::byte> bytes, std::shared_ptr<const void> memory, std::shared_ptr<Machine> machine,
       std::uint64_t name) noexcept
      : bytes_(bytes), memory_(std::move(memory)), machine_(std::move(machine)), name_(name) {}
  void end() noexcept;

  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> memory_;  // keeps the bytes mapped
  std::shared_ptr<Machine> machine_;    // its engine notifies the sender
  std::uint64_t name_ = 0;
};

}  // namespace fairlead::net
