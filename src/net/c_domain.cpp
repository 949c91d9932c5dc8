// C interface <fairlead/net.h>: domains, addresses, descriptors.

#include <string>

#include "net/c_face.hpp"

namespace net = fairlead::net;
namespace c = fairlead::net::c;

fairlead_status fairlead_net_domain_open(const fairlead_net_domain_options* options, fairlead_net_domain** domain) {
  if (domain == nullptr) return c::fail_null();
  return c::guarded([&] {
    fairlead_net_domain_options wanted{};
    if (options != nullptr)
      if (const auto taken = c::take(options, wanted); taken != FAIRLEAD_OK) return taken;
    net::DomainSettings settings;
    if (wanted.settings_count > 0 && wanted.settings == nullptr) return c::fail_null();
    for (const auto& [name, value] : std::span(wanted.settings, wanted.settings_count))
      settings.engine.emplace_back(c::text_or_empty(name), c::text_or_empty(value));
    if (wanted.buffer_bytes != 0) settings.limits.buffer_bytes = wanted.buffer_bytes;
    if (wanted.segment_bytes != 0) settings.limits.segment_bytes = wanted.segment_bytes;
    if (wanted.segments != 0) settings.limits.segments = wanted.segments;
    auto opened = net::Domain::open(settings);
    if (!opened) return c::fail(opened.error());
    *domain = c::handle_of<fairlead_net_domain>(new net::Domain(std::move(*opened)));
    return FAIRLEAD_OK;
  });
}

fairlead_status fairlead_net_domain_close(fairlead_net_domain* domain) {
  if (domain == nullptr) return c::fail_null();
  return c::guarded([&] { return c::done(c::meant(domain)->close()); });
}

void fairlead_net_domain_free(fairlead_net_domain* domain) {
  delete c::meant(domain);
}

uint64_t fairlead_net_domain_buffer_size_max(const fairlead_net_domain* domain) {
  return domain != nullptr ? c::meant(domain)->buffer_size_max() : 0;
}
uint64_t fairlead_net_domain_segment_size_max(const fairlead_net_domain* domain) {
  return domain != nullptr ? c::meant(domain)->segment_size_max() : 0;
}
uint64_t fairlead_net_domain_segments_max(const fairlead_net_domain* domain) {
  return domain != nullptr ? c::meant(domain)->segments_max() : 0;
}

size_t fairlead_net_local_nids(char* text, size_t size) {
  const auto all = [&] {
    std::string lines;
    if (const auto nids = net::local_nids()) {
      for (const std::string& nid : *nids) lines += (lines.empty() ? "" : "\n") + nid;
    } else {
      c::fail(nids.error());
    }
    return c::write_text(lines, text, size);
  };
  return c::guarded_or(std::size_t{0}, all);
}

fairlead_status fairlead_net_compare_nids(const char* a, const char* b, int* order) {
  if (c::is_any_null(a, b, order)) return c::fail_null();
  return c::guarded([&] {
    const auto compared = net::compare_nids(a, b);
    if (!compared) return c::fail(compared.error());
    *order = *compared < 0 ? -1 : *compared > 0 ? 1 : 0;
    return FAIRLEAD_OK;
  });
}

fairlead_status fairlead_net_resolve(const char* host, const char* rest, char* text, size_t size) {
  if (c::is_any_null(host, rest, text)) return c::fail_null();
  return c::guarded([&] {
    const auto address = net::resolve(host, rest);
    if (!address) return c::fail(address.error());
    if (c::write_text(*address, text, size) < size) return FAIRLEAD_OK;
    return c::fail(fairlead::Status::invalid, "no room for the address: give it 128 bytes");
  });
}

fairlead_status fairlead_net_descriptor_inspect(const void* descriptor, size_t size,
                                                fairlead_net_descriptor_facts* facts) {
  if (c::is_any_null(descriptor, facts)) return c::fail_null();
  return c::guarded([&] {
    const auto said = net::inspect({static_cast<const std::byte*>(descriptor), size});
    if (!said) return c::fail(said.error());
    fairlead_net_descriptor_facts all{};
    all.queue = static_cast<fairlead_net_queue>(said->kind);
    all.size = said->size;
    c::write_text(said->address, all.address, sizeof(all.address));
    return c::give(all, facts);
  });
}
