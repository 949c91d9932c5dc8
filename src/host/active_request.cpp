#include "host/active_request.hpp"

#include <utility>

#include "host/call.hpp"

namespace fairlead::host {
namespace {

constexpr std::uint8_t kKindMask = 3, kIsPlaced = 4;  // flags

}  // namespace

Request to_request(const engine::ActiveMessage& message) {
  const bool is_request = message.kind == engine::ActiveKind::request;
  return {.epoch = message.name,
          .key = is_request ? message.access : message.reply_access,
          .size_min = message.offset,
          .to = to_plain(message.to.engine),
          .to_port = message.to.port,
          .messages_max = std::uint32_t{message.head} << 16 | message.word,
          .kind = static_cast<std::uint8_t>(Request::Kind::active),
          .flags = static_cast<std::uint8_t>(std::to_underlying(message.kind) | (message.is_placed ? kIsPlaced : 0)),
          .status = std::to_underlying(message.status)};
}

engine::ActiveMessage to_message(const Request& request, std::span<const iovec> memory, std::uint64_t cookie) {
  const auto kind = static_cast<engine::ActiveKind>(request.flags & kKindMask);
  const bool is_request = kind == engine::ActiveKind::request;
  return {.to = {from_plain(request.to), request.to_port},
          .kind = kind,
          .status = status_from(request.status),
          .is_placed = (request.flags & kIsPlaced) != 0,
          .word = static_cast<std::uint16_t>(request.messages_max),
          .head = static_cast<std::uint16_t>(request.messages_max >> 16),
          .access = is_request ? request.key : 0,
          .name = request.epoch,
          .reply_access = is_request ? 0 : request.key,
          .offset = request.size_min,
          .memory = memory,
          .length = request.length,
          .cookie = cookie};
}

Request to_request(const engine::AccessRule& rule) {
  return {.key = rule.access,
          .kind = static_cast<std::uint8_t>(Request::Kind::set_access),
          .flags = std::to_underlying(rule.kind)};
}

engine::AccessRule to_rule(const Request& request) {
  using Kind = engine::AccessRule::Kind;
  const bool is_known = request.flags <= std::to_underlying(Kind::all);
  return {.kind = is_known ? static_cast<Kind>(request.flags) : Kind::none, .access = request.key};
}

}  // namespace fairlead::host
