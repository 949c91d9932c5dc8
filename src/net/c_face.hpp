#pragma once
// Implements <fairlead/net.h> on top of <fairlead/net.hpp>. A C handle is the object's address under another type, so
// no call looks anything up and an event allocates nothing. No exception leaves a C function: each becomes a status.

#include <fairlead/net.h>
#include <fairlead/net.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace fairlead::net::c {

template <typename Handle>
struct Meant;
template <>
struct Meant<fairlead_net_domain> {
  using Type = Domain;
};
template <>
struct Meant<fairlead_net_machine> {
  using Type = TransferMachine;
};
template <>
struct Meant<fairlead_net_buffer> {
  using Type = Buffer;
};
template <>
struct Meant<fairlead_net_pool> {
  using Type = BufferPool;
};
template <>
struct Meant<fairlead_net_end_point> {
  using Type = EndPoint;
};
template <>
struct Meant<fairlead_net_loan> {
  using Type = Loan;
};

template <typename Handle>
auto* meant(Handle* handle) {
  return reinterpret_cast<Meant<Handle>::Type*>(handle);
}
template <typename Handle>
const auto* meant(const Handle* handle) {
  return reinterpret_cast<const Meant<Handle>::Type*>(handle);
}
template <typename Handle>
Handle* handle_of(typename Meant<Handle>::Type* object) {
  return reinterpret_cast<Handle*>(object);
}
template <typename Handle>
const Handle* handle_of(const typename Meant<Handle>::Type* object) {
  return reinterpret_cast<const Handle*>(object);
}

inline fairlead_status to_c(Status status) {
  return static_cast<fairlead_status>(std::to_underlying(status));
}
inline Instant to_instant(std::int64_t ns) {
  return Instant(Duration(ns));
}
inline std::string_view text_or_empty(const char* text) {
  return text != nullptr ? text : "";
}
/// Writes the text as snprintf() does: truncated, 0-terminated. Returns its full length.
std::size_t write_text(std::string_view from, char* to, std::size_t size) noexcept;

/// Sets what fairlead_net_explain_last() returns, and returns the status.
fairlead_status fail(Status status, std::string_view why) noexcept;
fairlead_status fail(const Error& error) noexcept;
/// Fails a call of the add() family. TransferMachine::explain_last() supplies the explanation.
fairlead_status fail_add(Status status) noexcept;
/// Fails a call that knows only a status.
fairlead_status fail_as(Status status) noexcept;
/// Converts the exception that is being handled into a status.
fairlead_status fail_thrown() noexcept;

inline fairlead_status done(const Result<>& result) {
  return result ? FAIRLEAD_OK : fail(result.error());
}
inline fairlead_status done(Status status) {
  return status == Status::ok ? FAIRLEAD_OK : fail_as(status);
}

/// Runs call(), and converts an exception into a status.
template <typename Call>
fairlead_status guarded(Call&& call) noexcept {
  try {
    return call();
  } catch (...) {
    return fail_thrown();
  }
}
/// Runs call(), and returns `otherwise` if it throws.
template <typename Value, typename Call>
Value guarded_or(Value otherwise, Call&& call) noexcept {
  try {
    return call();
  } catch (...) {
    fail_thrown();
    return otherwise;
  }
}

template <typename... Pointers>
bool is_any_null(const Pointers*... pointers) {
  return ((pointers == nullptr) || ...);
}
fairlead_status fail_null() noexcept;

/// Copies the caller's structure into ours, and zero-fills fields that the caller's version lacks. Fails if struct_size
/// is missing, or if the caller set fields that this release does not know.
template <typename Struct>
fairlead_status take(const Struct* from, Struct& to) noexcept {
  to = Struct{};
  const std::size_t size = from->struct_size;
  if (size < sizeof(std::size_t))
    return fail(Status::invalid, "struct_size is missing: set it to the structure's sizeof");
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  constexpr std::size_t kLargest = 4096;
  if (size > kLargest) return fail(Status::invalid, "struct_size is no size of a structure: set it to its sizeof");
  if (std::any_of(bytes + std::min(size, sizeof(Struct)), bytes + size, [](unsigned char byte) { return byte != 0; }))
    return fail(Status::not_supported, "the structure asks for something that this release does not know");
  std::memcpy(&to, bytes, std::min(size, sizeof(Struct)));
  return FAIRLEAD_OK;
}

/// Copies a structure to the caller, truncated to the caller's struct_size, which stays unchanged.
template <typename Struct>
fairlead_status give(Struct from, Struct* to) noexcept {
  const std::size_t size = to->struct_size;
  if (size < sizeof(std::size_t))
    return fail(Status::invalid, "struct_size is missing: set it to the structure's sizeof");
  from.struct_size = size;
  std::memcpy(static_cast<void*>(to), &from, std::min(size, sizeof(Struct)));
  return FAIRLEAD_OK;
}

/// Wraps a C callback for buffer events as a C++ callback.
BufferCallback adapt(fairlead_net_buffer_callback callback, void* user);

}  // namespace fairlead::net::c
