// Address handles.
#include <cstring>

#include "doors/ibverbs/objects.hpp"

namespace fairlead::ibverbs {

verbs::AddressVector to_native(const ibv_ah_attr& attributes) {
  verbs::AddressVector vector;
  std::memcpy(vector.dgid.data(), attributes.grh.dgid.raw, vector.dgid.size());
  vector.flow_label = attributes.grh.flow_label;
  vector.dlid = attributes.dlid;
  vector.sgid_index = attributes.grh.sgid_index;
  vector.hop_limit = attributes.grh.hop_limit;
  vector.traffic_class = attributes.grh.traffic_class;
  vector.sl = attributes.sl;
  vector.src_path_bits = attributes.src_path_bits;
  vector.static_rate = attributes.static_rate;
  vector.is_global = attributes.is_global != 0;
  vector.port_num = attributes.port_num;
  return vector;
}

ibv_ah_attr to_abi(const verbs::AddressVector& vector) {
  ibv_ah_attr attributes{};
  std::memcpy(attributes.grh.dgid.raw, vector.dgid.data(), vector.dgid.size());
  attributes.grh.flow_label = vector.flow_label;
  attributes.grh.sgid_index = vector.sgid_index;
  attributes.grh.hop_limit = vector.hop_limit;
  attributes.grh.traffic_class = vector.traffic_class;
  attributes.dlid = vector.dlid;
  attributes.sl = vector.sl;
  attributes.src_path_bits = vector.src_path_bits;
  attributes.static_rate = vector.static_rate;
  attributes.is_global = vector.is_global ? 1 : 0;
  attributes.port_num = vector.port_num;
  return attributes;
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;
namespace verbs = fairlead::verbs;

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) try {
  const Call call;
  Domain* domain = find(pd);
  if (domain == nullptr || attributes == nullptr) return refuse(EINVAL);
  auto native = verbs::AddressHandle::create(domain->native, to_native(*attributes));
  if (!native) return refuse(native.error());
  Address* address = table<Address>().create(domain->owner, pd, std::move(*native));
  return address != nullptr ? address : static_cast<ibv_ah*>(refuse(ENOMEM));
} catch (const std::exception&) {
  return thrown();
}

int ibv_destroy_ah(ibv_ah* ah) try {
  const Call call;
  Address* address = find(ah);
  return address != nullptr && table<Address>().destroy(address) ? 0 : fail(EINVAL);
} catch (const std::exception&) {
  return thrown();
}

int ibv_init_ah_from_wc(ibv_context* abi, std::uint8_t port, ibv_wc* completion, ibv_grh* header,
                        ibv_ah_attr* out) try {
  const Call call;
  OpenContext* context = find_context(abi);
  const bool has_header = completion != nullptr && (completion->wc_flags & IBV_WC_GRH) != 0;
  if (context == nullptr || completion == nullptr || out == nullptr || port != 1 || (has_header && header == nullptr)) {
    fail(EINVAL);
    return -1;
  }
  verbs::WorkCompletion native;
  std::memcpy(static_cast<void*>(&native), completion, sizeof *completion);
  static constexpr std::byte kNoHeader[sizeof(ibv_grh)]{};
  const auto* bytes = has_header ? reinterpret_cast<const std::byte*>(header) : kNoHeader;
  const auto vector =
      verbs::address_of_sender(native, std::span<const std::byte, sizeof(ibv_grh)>(bytes, sizeof(ibv_grh)));
  if (!vector) {
    fail(vector.error());
    return -1;
  }
  *out = to_abi(*vector);
  out->port_num = port;
  return 0;
} catch (const std::exception&) {
  return thrown();
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* completion, ibv_grh* header, std::uint8_t port) try {
  const Call call;
  Domain* domain = find(pd);
  if (domain == nullptr) return refuse(EINVAL);
  ibv_ah_attr attributes{};
  if (ibv_init_ah_from_wc(&domain->owner.context, port, completion, header, &attributes) != 0) return nullptr;
  return ibv_create_ah(pd, &attributes);
} catch (const std::exception&) {
  return thrown();
}

int ibv_resolve_eth_l2_from_gid(ibv_context* abi, ibv_ah_attr* attributes, std::uint8_t mac[ETHERNET_LL_SIZE],
                                std::uint16_t* vlan) try {
  const Call call;
  if (find_context(abi) == nullptr || attributes == nullptr || mac == nullptr) return fail(EINVAL);
  // There is no visible link layer below us. Returns a locally administered address that distinguishes hosts.
  mac[0] = mac[1] = 0x02;
  std::memcpy(mac + 2, attributes->grh.dgid.raw + 12, 4);
  if (vlan != nullptr) *vlan = 0xffff;
  return 0;
} catch (const std::exception&) {
  return thrown();
}
}
