#pragma once
// A message that its receiver reads where its sender has written it (docs/shm.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace fairlead::net {

class Machine;

/// Handed out by the event of a receive buffer that takes loans (BufferEvent::loan). The sender's buffer stays queued
/// until the loan is given back: by give_back(), by the destructor, or by the end of the receiving machine or process.
///
/// The bytes may be read for as long as the loan lives, also after the sender's process, or the machine itself, has
/// ended. They lie in memory that the sender shares. A sender that breaks the rules, or has cancelled the buffer, may
/// change them meanwhile. So copy what must not change between a check and its use. Thread rules: as of any object;
/// different loans may be used by different threads.
class Loan {
 public:
  /// Nothing.
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

  /// The message; empty if this is nothing.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return machine_ != nullptr; }

  /// From here on this is nothing.
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
  std::shared_ptr<Machine> machine_;    // whose engine tells the sender
  std::uint64_t name_ = 0;
};

}  // namespace fairlead::net
