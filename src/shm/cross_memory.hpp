#pragma once
// Cross-memory attach (CMA): accesses another local process's memory by its own addresses, with process_vm_readv and
// process_vm_writev. It serves memory that the two processes do not share. The kernel permits it to a process that may
// trace the other one (ptrace). The handshake probes this; the permission may still be lost later.
//
// A process is named by its PID, and PIDs are reused. The other process therefore publishes a random nonce (Identity).
// Each read also fetches the nonce in the same call and compares it. A write must be preceded by look(). One risk
// remains: between these two system calls, the process ends and its PID is reused.
//
// Only the caller's buffers are touched in this process. Addresses in the other process may be arbitrary: an unmapped
// one fails.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <sys/uio.h>

#include "shm/identity.hpp"

namespace fairlead::shm {

/// A record to read: offset and destination.
struct CrossRecord {
  std::uint64_t offset = 0;
  std::span<std::byte> to;
};

class CrossMemory {
 public:
  static constexpr std::size_t kRecordsInLook = 4;

  /// Why the process is not reached.
  enum class Denial : std::uint8_t {
    none,
    not_wanted,     // turned off, on either side
    not_seen,       // the process has no PID here: another PID namespace
    not_permitted,  // the kernel does not let us trace it
    not_supported,  // the system call does not exist
    not_itself,     // the PID belongs to another process
    gone,           // the process has ended
  };
  static constexpr std::size_t kDenials = 7;
  static constexpr std::string_view kNames[kDenials] = {"reached",       "not_wanted", "not_seen", "not_permitted",
                                                        "not_supported", "not_itself", "gone"};
  /// Returns the reason for people, with the remedy last. Empty if nothing is denied.
  static std::string_view reason(Denial denial);

  /// An object that reaches no process.
  CrossMemory() = default;
  /// Probes the process with this PID (0: it has no PID here), whose identity lies at `address`.
  static CrossMemory probe(std::int32_t process, std::uint64_t address, const Nonce& nonce);

  bool is_reached() const noexcept { return denial_ == Denial::none; }
  Denial denial() const noexcept { return denial_; }

  /// The following functions return false unless everything was transferred. After a denial they do not try again.
  /// look() reads records that follow the identity.
  bool look(std::uint64_t offset, std::span<std::byte> to) noexcept;
  /// Reads up to kRecordsInLook records in one call, in order.
  bool look(std::span<const CrossRecord> records) noexcept;
  bool read(std::span<const iovec> to, std::uint64_t from, std::uint64_t bytes) noexcept;
  /// Stores the last word last: the bytes after the last multiple of eight.
  bool write(std::uint64_t to, std::span<const iovec> from, std::uint64_t bytes) noexcept;

 private:
  bool note_failure(int number) noexcept;

  Denial denial_ = Denial::not_wanted;
  std::int32_t process_ = 0;
  std::uint64_t address_ = 0;
  Nonce nonce_{};
};

}  // namespace fairlead::shm
