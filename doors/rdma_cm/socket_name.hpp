#pragma once
// Addresses and ports as programs name them: IPv4, IPv6 or GID (AF_IB). Internally there is one form, so that equal
// places compare equal. The original family is kept for the answer.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fairlead::rdma_cm {

using Ip = std::array<std::uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d, which is its GID, too

bool is_v4(const Ip& ip);
bool is_any(const Ip& ip);       // 0.0.0.0 or ::
bool is_loopback(const Ip& ip);  // 127.0.0.0/8 or ::1
bool is_group(const Ip& ip);     // 224.0.0.0/4 or ff00::/8

/// Returns for example "10.0.0.7" or "fd00::1".
std::string to_text(const Ip& ip);
/// Returns nullopt if it is no address.
std::optional<Ip> ip_of(std::string_view text);

enum class Family : std::uint8_t { none, v4, v6, gid };

struct SocketName {
  Family family = Family::none;
  Ip ip{};
  std::uint16_t port = 0;  // host order
  bool operator==(const SocketName&) const = default;
};

/// Returns the bytes of a sockaddr of this family; 0 if the family is not supported.
std::size_t size_of_family(unsigned address_family);
/// Reads a sockaddr of exactly size_of_family() bytes. Returns nullopt if the family is unknown or bytes are missing.
std::optional<SocketName> read_name(std::span<const std::byte> bytes);
/// Writes the name in its original family. Returns the bytes written; 0 if there is none. `out` must have room for any
/// sockaddr.
std::size_t write_name(const SocketName& name, std::uint16_t port_space, std::span<std::byte> out);
/// Writes the name as a GID, whatever its original family.
std::size_t write_gid_name(const SocketName& name, std::uint16_t port_space, std::span<std::byte> out);

inline constexpr std::size_t kNameSizeMax = 128;  // bytes, of sockaddr_storage

}  // namespace fairlead::rdma_cm
