#pragma once
// The memory of another process of this host, by its own addresses: process_vm_readv and process_vm_writev, for what no
// two processes share. The kernel grants it to whom it lets trace the other one (ptrace); whether it does is tried
// once, when the two meet, and may still change later.
//
// A process is named by a number, and numbers are used again. So the other one shows a random word (Identity): each
// read takes it along in the same call and compares. Before a write it has to be looked at (look); what is left is that
// the process ends, and all numbers are used once, between two system calls.
//
// Nothing here touches our own memory but what the caller names. Addresses of the other process may be anything: what
// it does not have fails.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <sys/uio.h>

#include "shm/identity.hpp"

namespace fairlead::shm {

/// A record to look at: so many bytes from there on.
struct CrossRecord {
  std::uint64_t offset = 0;
  std::span<std::byte> to;
};

class CrossMemory {
 public:
  static constexpr std::size_t kRecordsInLook = 4;

  /// Why it is not reached.
  enum class Denial : std::uint8_t {
    none,
    not_wanted,     // turned off, here or there
    not_seen,       // its process has no number here: another PID namespace
    not_permitted,  // the kernel does not let us trace it
    not_supported,  // no such system call
    not_itself,     // there is another process under its number
    gone,           // there is none
  };
  static constexpr std::size_t kDenials = 7;
  static constexpr std::string_view kNames[kDenials] = {"reached",       "not_wanted", "not_seen", "not_permitted",
                                                        "not_supported", "not_itself", "gone"};
  /// For people; what helps comes last. Empty if nothing is denied.
  static std::string_view reason(Denial denial);

  /// Reaches nothing.
  CrossMemory() = default;
  /// Of a process (0: it has no number here), whose identity lies at `address`.
  static CrossMemory probe(std::int32_t process, std::uint64_t address, const Nonce& nonce);

  bool is_reached() const noexcept { return denial_ == Denial::none; }
  Denial denial() const noexcept { return denial_; }

  /// Each: false if not all of it was done. What is denied once is not tried again.
  /// Reads of the records behind the identity.
  bool look(std::uint64_t offset, std::span<std::byte> to) noexcept;
  /// Several of them (up to kRecordsInLook) by one call, each after the one before it.
  bool look(std::span<const CrossRecord> records) noexcept;
  bool read(std::span<const iovec> to, std::uint64_t from, std::uint64_t bytes) noexcept;
  /// The last word (its bytes up to the next multiple of eight) is stored last.
  bool write(std::uint64_t to, std::span<const iovec> from, std::uint64_t bytes) noexcept;

 private:
  bool note_failure(int number) noexcept;

  Denial denial_ = Denial::not_wanted;
  std::int32_t process_ = 0;
  std::uint64_t address_ = 0;
  Nonce nonce_{};
};

}  // namespace fairlead::shm
