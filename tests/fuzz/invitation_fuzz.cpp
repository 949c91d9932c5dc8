// Any text is an invitation that prints and reads as itself, or gives an error of one printable line. The first byte
// says whether the rest gets a valid beginning, and how many valid descriptors follow it, so that later checks are
// reached.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <fairlead/net/invitation.hpp>

#include "base/ensure.hpp"
#include "wire/buffer_descriptor.hpp"

namespace {

using fairlead::net::Invitation;

/// A valid descriptor with fields from the input.
std::string descriptor_of(std::span<const std::uint8_t> data, unsigned salt) {
  fairlead::wire::BufferDescriptor descriptor;
  std::array<std::uint8_t, 32> fields{};
  std::copy_n(data.begin(), std::min(data.size(), fields.size()), fields.begin());
  descriptor.queue = static_cast<std::uint8_t>(fields[0] % 6);
  descriptor.engine.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, fields[1]};
  descriptor.engine.port = static_cast<std::uint16_t>(fields[2] << 8 | fields[3]);
  std::memcpy(&descriptor.epoch, &fields[4], sizeof descriptor.epoch);
  std::memcpy(&descriptor.key, &fields[12], sizeof descriptor.key);
  std::memcpy(&descriptor.size, &fields[20], sizeof descriptor.size);
  descriptor.port = (1U + fields[28] % 64U) << 12 | (fields[29] + salt);
  std::array<std::byte, fairlead::wire::kBufferDescriptorBytes> bytes;
  fairlead::wire::encode(descriptor, bytes);
  std::string hex;
  for (const std::byte byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex += {kDigits[std::to_integer<unsigned>(byte) >> 4], kDigits[std::to_integer<unsigned>(byte) & 15]};
  }
  return hex;
}

bool is_line(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char letter) { return letter >= ' ' && letter <= '~'; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span rest(data + 1, size - 1);
  std::string text = (data[0] & 1) != 0 ? "fairlead-net-1 " : "";
  text.append(reinterpret_cast<const char*>(rest.data()), rest.size());
  const bool is_at_bound = data[0] >= 0xF0;  // rarely, because it is slow
  const unsigned count = is_at_bound ? 250 + (data[0] >> 1 & 7) : data[0] >> 1 & 3;
  for (unsigned i = 0; i < count; ++i) text += ' ' + descriptor_of(rest, i);

  const auto invitation = Invitation::from_text(text);
  if (!invitation) {
    ENSURE(is_line(invitation.error().message), "an error for {} bytes that is not a printable line", size);
    return 0;
  }
  ENSURE(invitation->exposed.size() <= Invitation::kExposedMost, "{} descriptors", invitation->exposed.size());
  const std::string printed = invitation->to_text();
  ENSURE(is_line(printed), "an invitation that does not print as a line");
  const auto again = Invitation::from_text(printed);
  ENSURE(again && *again == *invitation, "{} is not what it was", printed);
  return 0;
}
