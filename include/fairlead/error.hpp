#pragma once
// Errors. Set-up calls return Result<T>, whose Error is one line with the cause and the remedy. Hot calls return a
// Status. Operations that fail later report a Status in their event.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace fairlead {

/// Outcome of a hot call or of a finished operation. One byte; the order is stable (it travels on the wire).
enum class Status : std::uint8_t {
  ok = 0,
  again,          ///< a bounded queue is full; poll, then try again
  canceled,       ///< cancelled by its owner before it finished (-ECANCELED)
  timed_out,      ///< its deadline passed first (-ETIMEDOUT)
  too_late,       ///< its deadline had already passed when it was submitted (-ETIME)
  too_big,        ///< longer than the other side's buffer (-EFBIG)
  message_size,   ///< message longer than any buffer can take (-EMSGSIZE)
  no_buffer,      ///< the receiver had no buffer posted (-ENOBUFS)
  not_permitted,  ///< wrong kind of buffer or access right (-EPERM)
  stale,          ///< the descriptor or key is no longer valid (-ENOENT)
  invalid,        ///< malformed argument (-EINVAL)
  bad_state,      ///< the object is not in a state that allows this (-EBADFD)
  unreachable,    ///< never heard from the peer (-EHOSTUNREACH)
  silent,         ///< the peer was heard before, but stopped acknowledging (-ETIMEDOUT)
  restarted,      ///< the peer's engine is a new incarnation, or the host engine has ended (-ECONNRESET)
  refused,        ///< nobody listens there, or the peer refuses: no such machine, closed, other key (-ECONNREFUSED)
  no_memory,      ///< a bounded pool is exhausted (-ENOMEM)
  in_use,         ///< the address is taken (-EADDRINUSE)
  not_available,  ///< no free address left, or not local (-EADDRNOTAVAIL)
  not_supported,  ///< not built or not possible here (-ENOSYS)
  system,         ///< the kernel refused; see Error::system_errno
};

/// The positive errno that C programs expect for a status; 0 for ok.
int to_errno(Status status) noexcept;

/// Returns "again", "timed out", ... in lower case.
std::string_view to_string(Status status) noexcept;

/// A failed set-up call: what was tried on what, why it failed, and what to do about it.
struct Error {
  Status status = Status::invalid;
  int system_errno = 0;  ///< errno of the system call that failed, or 0
  std::string message;   ///< one line, lower case, values named, the remedy last
};

template <typename T = void>
using Result = std::expected<T, Error>;

/// Prints the error's line on standard error and ends the program with exit code 1.
[[noreturn]] void exit_with(const Error& error);

/// Returns the value, or calls exit_with(). It is for programs that cannot do anything better, such as examples.
/// (value() would throw an exception without the error's line.)
template <typename T>
T value_or_exit(Result<T> result) {
  if (!result) exit_with(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace fairlead
