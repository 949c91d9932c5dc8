#pragma once
// The messages between a bulkping client and server.
//
// The client sends requests (ping, fetch, deliver); the server answers each with one verdict. `fetch` carries the
// descriptor of a passive send buffer of the client, from which the server reads. `deliver` carries that of a passive
// receive buffer, to which the server writes.
//
// Layout, little-endian: magic 4, version 1, kind 1, status 1, about 1, thread 4, loop 4, client 8, size 8, number of
// remaining bytes 4, the remaining bytes (text of a ping or verdict, or the descriptor).

#include <fairlead/error.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/base/pattern.hpp"

namespace fairlead::tools {

enum class RequestKind : std::uint8_t { ping = 1, fetch = 2, deliver = 3, verdict = 4 };

struct Request {
  RequestKind kind = RequestKind::ping;
  RequestKind about = RequestKind::ping;  // of a verdict: the kind of request that it answers
  Status status = Status::ok;             // of a verdict: the request's result at the server
  std::uint32_t thread = 0;
  std::uint32_t loop = 0;
  std::uint64_t client = 0;
  std::uint64_t size = 0;  // of the requested bulk
  std::vector<std::byte> rest;

  PayloadName payload(Direction direction) const { return {client, thread, loop, direction}; }
  std::string text() const { return {reinterpret_cast<const char*>(rest.data()), rest.size()}; }
  void set_text(std::string_view text);
  /// Returns the verdict on this request.
  Request answer(Status how, std::string_view text) const;
};

inline constexpr std::size_t kRequestHeaderBytes = 36;
inline constexpr std::size_t kRequestBytesMax = 64 * 1024;
inline constexpr std::size_t kRequestRestMax = kRequestBytesMax - kRequestHeaderBytes;

/// Returns the bytes written, or 0 if `out` is too short.
std::size_t encode(const Request& request, std::span<std::byte> out) noexcept;

/// Decodes arbitrary bytes. Returns an error that says what is wrong if they are no request.
Result<Request> decode_request(std::span<const std::byte> bytes);

}  // namespace fairlead::tools
