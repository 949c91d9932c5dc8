#include "doors/motr_net/address.hpp"

#include <algorithm>

namespace fairlead::motr {
namespace {

constexpr std::string_view kOurs = "udp";

/// Returns the part between the @ and the next colon.
std::string_view network_part(std::string_view address) {
  const std::size_t at = address.find('@');
  if (at == address.npos) return {};
  const std::size_t colon = address.find(':', at);
  return colon == address.npos ? std::string_view() : address.substr(at + 1, colon - at - 1);
}

/// Returns whether the network is supported. LNet numbers its networks: tcp is tcp0.
bool is_known(std::string_view network) {
  const std::string_view name = network.substr(0, network.find_last_not_of("0123456789") + 1);
  return network == "lo" || network == kOurs || name == "tcp" || name == "o2ib";
}

std::string with_network(std::string_view address, std::string_view network) {
  const std::size_t at = address.find('@') + 1;
  return std::string(address.substr(0, at)) + std::string(network) + std::string(address.substr(address.find(':', at)));
}

}  // namespace

std::string network_of(std::string_view address) {
  const std::string_view network = network_part(address);
  return is_known(network) ? std::string(network) : std::string();
}

std::optional<std::string> to_fairlead(std::string_view address) {
  const std::string network = network_of(address);
  if (network.empty()) return std::nullopt;
  return network == "lo" ? std::string(address) : with_network(address, kOurs);
}

std::string to_motr(std::string_view address, std::string_view network) {
  return network_part(address) == kOurs ? with_network(address, network) : std::string(address);
}

}  // namespace fairlead::motr
