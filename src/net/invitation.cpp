#include <fairlead/net/invitation.hpp>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/exchange.hpp"
#include "base/shown.hpp"
#include "net/buffer_state.hpp"
#include "net/clock.hpp"
#include "net/net_address.hpp"
#include "net/refused.hpp"

namespace fairlead::net {
namespace {

constexpr std::string_view kFormat = "fairlead-net-1";
constexpr std::string_view kBlanks = " \t\r\n";

/// Removes and returns the next word; returns an empty view at the end.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

std::optional<BufferDescriptor> descriptor_of(std::string_view hex) {
  BufferDescriptor descriptor;
  if (hex.size() != 2 * descriptor.size()) return std::nullopt;
  for (std::size_t i = 0; i < descriptor.size(); ++i) {
    const int high = digit_of(hex[2 * i]), low = digit_of(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    descriptor[i] = static_cast<std::byte>(high << 4 | low);
  }
  return descriptor;
}

std::unexpected<Error> no_invitation(std::string_view text, const char* why) {
  constexpr std::size_t kShown = 80;
  return refused(Status::invalid, fmt::format("\"{}\" is no invitation: {}", base::shown(text.substr(0, kShown)), why));
}

}  // namespace

Result<Invitation> Invitation::of(const TransferMachine& machine, std::span<const Buffer* const> exposed) {
  const EndPoint own = machine.end_point();
  if (!own || machine.state() != MachineState::started)
    return refused(Status::bad_state, "an invitation of a transfer machine that is not started");
  if (exposed.size() > kExposedMost)
    return refused(Status::too_big,
                   fmt::format("{} buffers in one invitation: at most {} are possible", exposed.size(), kExposedMost));
  Invitation made{.address = std::string(own.address())};
  for (const Buffer* const buffer : exposed) {
    const auto facts = inspect(buffer->descriptor());  // may stem from an earlier add()
    if (!buffer->is_queued() || !facts || BufferState::of(*buffer).kind != facts->kind ||
        facts->address != own.address())
      return refused(Status::bad_state,
                     "an invitation to a buffer that is in no passive queue of the transfer machine: add() it first");
    made.exposed.push_back(buffer->descriptor());
  }
  return made;
}

std::string Invitation::to_text() const {
  std::string text = fmt::format("{} {}", kFormat, address);
  for (const BufferDescriptor& descriptor : exposed) {
    text += ' ';
    for (const std::byte byte : descriptor) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

Result<Invitation> Invitation::from_text(std::string_view text) {
  std::string_view rest = text;
  if (take_word(rest) != kFormat) return no_invitation(text, "it does not begin with \"fairlead-net-1\"");
  Invitation made{.address = std::string(take_word(rest))};
  const auto address = parse_address(made.address);
  if (!address) return std::unexpected(address.error());
  if (address->has_star() || !address->has_good_portal()) return no_invitation(text, "its address names no machine");
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    if (made.exposed.size() == kExposedMost) return no_invitation(text, "it has too many descriptors");
    const auto descriptor = descriptor_of(word);
    if (!descriptor || !inspect(*descriptor)) return no_invitation(text, "one of its descriptors is damaged");
    made.exposed.push_back(*descriptor);
  }
  return made;
}

Result<Met> meet(TransferMachine& machine, int socket, std::span<const Buffer* const> exposed, Instant deadline) {
  const auto own = Invitation::of(machine, exposed);
  if (!own) return std::unexpected(own.error());
  const std::string text = own->to_text();
  auto bytes = base::exchange(socket, std::as_bytes(std::span(text)), to_engine(deadline));
  if (!bytes) {
    if (bytes.error().system_errno == ETIMEDOUT) bytes.error().status = Status::timed_out;
    return std::unexpected(std::move(bytes.error()));
  }
  auto theirs = Invitation::from_text({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (!theirs) return std::unexpected(std::move(theirs.error()));
  auto peer = machine.create_end_point(theirs->address);
  if (!peer) return std::unexpected(std::move(peer.error()));
  return Met{std::move(*peer), std::move(theirs->exposed)};
}

}  // namespace fairlead::net
