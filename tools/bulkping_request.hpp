#pragma once
// What bulkping's client and server say to each other, one message each.
//
// A client asks (ping, fetch, deliver), the server answers each request with one verdict. `fetch` carries the
// descriptor of a passive send buffer of the client, out of which the server reads; `deliver` that of a passive receive
// buffer, into which it writes. Layout, little-endian: magic 4, version 1, kind 1, status 1, about 1, thread 4, loop 4,
// client 8, size 8, count of bytes of the rest 4, the rest (text of a ping and of a verdict, or the descriptor).

#include <fairlead/error.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/pattern.hpp"

namespace fairlead::tools {

enum class RequestKind : std::uint8_t { ping = 1, fetch = 2, deliver = 3, verdict = 4 };

struct Request {
  RequestKind kind = RequestKind::ping;
  RequestKind about = RequestKind::ping;  // of a verdict: the kind of request that it answers
  Status status = Status::ok;             // of a verdict: how that request ended at the server
  std::uint32_t thread = 0;
  std::uint32_t loop = 0;
  std::uint64_t client = 0;
  std::uint64_t size = 0;  // of the bulk that is asked for
  std::vector<std::byte> rest;

  PayloadName payload(Direction direction) const { return {client, thread, loop, direction}; }
  std::string text() const { return {reinterpret_cast<const char*>(rest.data()), rest.size()}; }
  void set_text(std::string_view text);
  /// The verdict on this request.
  Request answer(Status how, std::string_view text) const;
};

inline constexpr std::size_t kRequestHeaderBytes = 36;
inline constexpr std::size_t kRequestBytesMax = 64 * 1024;
inline constexpr std::size_t kRequestRestMax = kRequestBytesMax - kRequestHeaderBytes;

/// Bytes written, or 0 if `out` is too short.
std::size_t encode(const Request& request, std::span<std::byte> out) noexcept;

/// Any bytes: a request, or an error that says what is wrong with them.
Result<Request> decode_request(std::span<const std::byte> bytes);

}  // namespace fairlead::tools
