// The devices of this host.

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <tuple>

#include "base/local_addresses.hpp"
#include "base/settings.hpp"
#include "base/shown.hpp"
#include "verbs/context_state.hpp"

namespace fairlead::verbs {
namespace {

// FNV-1a hash of the address: equal in every process; 0 is mapped to 1.
std::uint64_t guid_of(const Gid& gid) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const std::uint8_t byte : gid) hash = (hash ^ byte) * 0x100'0000'01b3;
  return hash == 0 ? 1 : hash;
}

bool is_link_local(const base::SocketAddress& address) {
  return address.ip[0] == 0xFE && (address.ip[1] & 0xC0) == 0x80;
}

// Sort order: IPv4 before IPv6, loopback last.
int rank(const base::Interface& face) {
  return (face.address.is_loopback() ? 2 : 0) + (face.address.is_v4() ? 0 : 1);
}

/// Returns whether the comma-separated `list` names the address. An empty list names all.
bool is_chosen(std::string_view list, std::string_view address) {
  if (list.empty()) return true;
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == address) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

Result<std::vector<Device>> devices() {
  auto faces = base::local_interfaces();
  if (!faces) return std::unexpected(std::move(faces.error()));
  std::erase_if(*faces, [](const base::Interface& face) { return is_link_local(face.address); });
  std::ranges::sort(*faces, {},
                    [](const base::Interface& face) { return std::tuple(rank(face), face.index, face.address.ip); });
  const auto settings = base::Settings::read();
  if (!settings) return std::unexpected(settings.error());
  const auto chosen = settings->find("FAIRLEAD_DEVICE");
  std::vector<Device> found;
  for (const base::Interface& face : *faces) {
    Device device{.name = {},
                  .address = face.address.ip_text(),
                  .interface_name = face.name,
                  .interface_index = face.index,
                  .gid = face.address.ip,
                  .guid = guid_of(face.address.ip)};
    if (!is_chosen(chosen ? chosen->text : "", device.address)) continue;
    device.name = "fairlead" + std::to_string(found.size());
    found.push_back(std::move(device));
  }
  if (found.empty()) {
    return failure(ENODEV, "no interface of this host has an address" +
                               (chosen ? " of those chosen, " + base::shown(chosen->text, base::kPathShown) +
                                             ": correct " + chosen->remedy
                                       : std::string(": bring one up (ip link set lo up)")));
  }
  return found;
}

Result<> check(const ContextState& context, const AddressVector& vector) {
  if (vector.port_num != 1) return failure(EINVAL, "address vector: a device has port 1 only");
  if (vector.is_global) {
    if (!has_gid(vector.sgid_index)) return failure(EINVAL, "address vector: only sgid_index 0 and 3 hold a GID");
    if (vector.dgid == Gid{}) return failure(EINVAL, "address vector: the GID is empty");
    return {};
  }
  if (context.personality == Personality::roce) {
    return failure(EINVAL, "address vector: a RoCE device needs a GRH (is_global and a GID)");
  }
  if (vector.dlid == 0) return failure(EINVAL, "address vector: LID 0 names no port");
  return {};
}

}  // namespace fairlead::verbs
