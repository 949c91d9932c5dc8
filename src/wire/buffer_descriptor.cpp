#include "wire/buffer_descriptor.hpp"

#include <algorithm>

#include "wire/checksum.hpp"

namespace fairlead::wire {
namespace {

constexpr std::span<const Field> kFields = kBufferDescriptorFields;
constexpr std::uint32_t kMagic = 0x64624c46;  // "FLbd"
constexpr std::uint8_t kDescriptorVersion = 1;
constexpr std::size_t kIpOffset = 32;
static_assert(kFields[7].name == "ip" && kFields[7].offset == kIpOffset);

constexpr std::uint32_t kTmidBits = 12;
constexpr std::uint32_t kPortalMost = 63;

std::uint32_t checksum_before_its_field(std::span<const std::byte> bytes) {
  Checksum checksum;
  checksum.add(bytes.first(at<std::uint32_t>(kFields, "checksum")));
  return checksum.value();
}

}  // namespace

void encode(const BufferDescriptor& descriptor, std::span<std::byte, kBufferDescriptorBytes> to) {
  std::ranges::fill(to, std::byte{0});
  store(to.data(), at<std::uint32_t>(kFields, "magic"), kMagic);
  store(to.data(), at<std::uint8_t>(kFields, "version"), kDescriptorVersion);
  store(to.data(), at<std::uint8_t>(kFields, "queue"), descriptor.queue);
  store(to.data(), at<std::uint16_t>(kFields, "udp_port"), descriptor.engine.port);
  store(to.data(), at<std::uint64_t>(kFields, "epoch"), descriptor.epoch);
  store(to.data(), at<std::uint64_t>(kFields, "key"), descriptor.key);
  store(to.data(), at<std::uint64_t>(kFields, "size"), descriptor.size);
  std::ranges::copy(std::as_bytes(std::span(descriptor.engine.ip)), to.begin() + kIpOffset);
  store(to.data(), at<std::uint32_t>(kFields, "port"), descriptor.port);
  store(to.data(), at<std::uint32_t>(kFields, "checksum"), checksum_before_its_field(to));
}

std::optional<DescriptorFault> find_fault(std::span<const std::byte> bytes) {
  if (bytes.size() != kBufferDescriptorBytes) return DescriptorFault::length;
  const std::byte* from = bytes.data();
  if (load<std::uint32_t>(from, at<std::uint32_t>(kFields, "checksum")) != checksum_before_its_field(bytes)) {
    return DescriptorFault::checksum;
  }
  if (load<std::uint32_t>(from, at<std::uint32_t>(kFields, "magic")) != kMagic) return DescriptorFault::magic;
  const bool is_reserved_zero = load<std::uint32_t>(from, at<std::uint32_t>(kFields, "reserved")) == 0 &&
                                load<std::uint32_t>(from, at<std::uint32_t>(kFields, "reserved_too")) == 0;
  if (load<std::uint8_t>(from, at<std::uint8_t>(kFields, "version")) != kDescriptorVersion || !is_reserved_zero) {
    return DescriptorFault::version;
  }
  return std::nullopt;
}

BufferDescriptor read_descriptor(std::span<const std::byte> bytes) {
  const std::byte* from = bytes.data();
  BufferDescriptor descriptor;
  descriptor.queue = load<std::uint8_t>(from, at<std::uint8_t>(kFields, "queue"));
  descriptor.engine.port = load<std::uint16_t>(from, at<std::uint16_t>(kFields, "udp_port"));
  descriptor.epoch = load<std::uint64_t>(from, at<std::uint64_t>(kFields, "epoch"));
  descriptor.key = load<std::uint64_t>(from, at<std::uint64_t>(kFields, "key"));
  descriptor.size = load<std::uint64_t>(from, at<std::uint64_t>(kFields, "size"));
  std::ranges::copy(bytes.subspan(kIpOffset, descriptor.engine.ip.size()),
                    std::as_writable_bytes(std::span(descriptor.engine.ip)).begin());
  descriptor.port = load<std::uint32_t>(from, at<std::uint32_t>(kFields, "port"));
  return descriptor;
}

bool is_possible(const BufferDescriptor& descriptor) {
  const std::uint32_t portal = descriptor.port >> kTmidBits;
  const std::uint32_t tmid = descriptor.port & ((1U << kTmidBits) - 1);
  return descriptor.epoch != 0 && descriptor.key != 0 && descriptor.size != 0 && descriptor.engine.port != 0 &&
         portal >= 1 && portal <= kPortalMost && tmid >= 1;
}

}  // namespace fairlead::wire
