#include <fairlead/am/handler.hpp>

#include "am/bundle_state.hpp"

namespace fairlead::am {
namespace {

Status reply_with(Delivered& delivered, Word word, std::uint64_t offset, std::span<const std::byte> data,
                  std::span<const Argument> arguments) {
  BundleState::Lock lock(delivered.endpoint.bundle->lock);
  return delivered.endpoint.reply(delivered, word, offset, data, arguments);
}

}  // namespace

Endpoint& Token::endpoint() const {
  return delivered_.endpoint.face;
}

Name Token::source() const {
  const engine::RemotePort& source = delivered_.arrival.source;
  return {source.engine.ip, source.engine.port, source.port};
}

bool Token::source_index(std::uint32_t& index) const {
  BundleState::Lock lock(delivered_.endpoint.bundle->lock);
  return delivered_.endpoint.find_source(delivered_.arrival.source, index);
}

std::uint64_t Token::tag() const {
  // A reply echoes the access key of our request: its tag is our own.
  if (delivered_.arrival.kind == engine::ActiveKind::reply) return endpoint().tag().key;
  return delivered_.arrival.access;
}

Status Token::reply(std::uint8_t handler, std::span<const Argument> arguments) {
  return reply_with(delivered_, {.kind = Word::Kind::brief, .handler = handler}, 0, {}, arguments);
}

Status Token::reply_medium(std::uint8_t handler, std::span<const std::byte> data, std::span<const Argument> arguments) {
  return reply_with(delivered_, {.kind = Word::Kind::medium, .handler = handler}, 0, data, arguments);
}

Status Token::reply_long(std::uint64_t offset, std::uint8_t handler, std::span<const std::byte> data,
                         std::span<const Argument> arguments) {
  return reply_with(delivered_, {.kind = Word::Kind::large, .handler = handler}, offset, data, arguments);
}

}  // namespace fairlead::am
