#include "tools/bulkping/request.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace fairlead::tools {
namespace {

constexpr std::uint32_t kMagic = 0x676e'6970;  // "ping"
constexpr std::uint8_t kVersion = 1;

struct Header {
  std::uint32_t magic;
  std::uint8_t version;
  std::uint8_t kind;
  std::uint8_t status;
  std::uint8_t about;
  std::uint32_t thread;
  std::uint32_t loop;
  std::uint64_t client;
  std::uint64_t size;
  std::uint32_t rest;
} __attribute__((packed));
static_assert(sizeof(Header) == kRequestHeaderBytes);

bool is_kind(std::uint8_t kind) {
  return kind >= std::to_underlying(RequestKind::ping) && kind <= std::to_underlying(RequestKind::verdict);
}

Result<Request> refuse(std::string why) {
  return std::unexpected(Error{Status::invalid, 0, std::move(why)});
}

}  // namespace

void Request::set_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.substr(0, kRequestRestMax)));
  rest.assign(bytes.begin(), bytes.end());
}

Request Request::answer(Status how, std::string_view text) const {
  Request verdict{.kind = RequestKind::verdict,
                  .about = kind,
                  .status = how,
                  .thread = thread,
                  .loop = loop,
                  .client = client,
                  .size = size,
                  .rest = {}};
  verdict.set_text(text);
  return verdict;
}

std::size_t encode(const Request& request, std::span<std::byte> out) noexcept {
  const std::size_t length = sizeof(Header) + request.rest.size();
  if (out.size() < length || request.rest.size() > kRequestRestMax) return 0;
  const Header header{.magic = kMagic,
                      .version = kVersion,
                      .kind = std::to_underlying(request.kind),
                      .status = std::to_underlying(request.status),
                      .about = std::to_underlying(request.about),
                      .thread = request.thread,
                      .loop = request.loop,
                      .client = request.client,
                      .size = request.size,
                      .rest = static_cast<std::uint32_t>(request.rest.size())};
  std::memcpy(out.data(), &header, sizeof header);
  if (!request.rest.empty()) std::memcpy(out.data() + sizeof header, request.rest.data(), request.rest.size());
  return length;
}

Result<Request> decode_request(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof header) return refuse(fmt::format("{} bytes are no request", bytes.size()));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return refuse("not a bulkping request");
  if (header.version != kVersion) {
    return refuse(
        fmt::format("bulkping version {}, this is {}: run the same release at both ends", header.version, kVersion));
  }
  if (!is_kind(header.kind) || !is_kind(header.about) || header.status > std::to_underlying(Status::system)) {
    return refuse("a bulkping request with an unknown kind");
  }
  if (header.rest > kRequestRestMax || header.rest != bytes.size() - sizeof header) {
    return refuse(
        fmt::format("a bulkping request of {} bytes that says {}", bytes.size(), sizeof header + header.rest));
  }
  const auto rest = bytes.subspan(sizeof header);
  return Request{.kind = static_cast<RequestKind>(header.kind),
                 .about = static_cast<RequestKind>(header.about),
                 .status = static_cast<Status>(header.status),
                 .thread = header.thread,
                 .loop = header.loop,
                 .client = header.client,
                 .size = header.size,
                 .rest = {rest.begin(), rest.end()}};
}

}  // namespace fairlead::tools
