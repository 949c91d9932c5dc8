// Initialisation, bundles and endpoints.

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "doors/amudp/library.hpp"

namespace fairlead::amudp {
namespace {

// Computes AMUDP's request timeout from its settings: an initial wait that grows by a factor up to `max`, ten tries in
// all. 0 means never.
Duration request_timeout(std::string& error) {
  constexpr NumberRange kTimes{0, 1e12};
  const double most = number_setting("REQUESTTIMEOUT_MAX", 30e6, kTimes, error);
  const double factor = number_setting("REQUESTTIMEOUT_BACKOFF", 2, {1, 1000}, error);
  double sum = 0, wait = number_setting("REQUESTTIMEOUT_INITIAL", 100e3, kTimes, error);
  if (most == 0) return Duration::zero();
  for (int tries = 0; tries < 10; ++tries, wait *= factor) sum += std::min(wait, most);
  return std::chrono::microseconds(static_cast<std::int64_t>(std::min(sum, 1e12)));
}

Result<am::Domain> open_domain(Library& all) {
  std::string error;
  am::DomainSettings settings{.ip = all.ip, .request_timeout = request_timeout(error)};
  if (const double rate = number_setting("FAULT_RATE", 0, {0, 1}, error); rate > 0) {
    settings.engine.emplace_back("fault", fmt::format("drop={:.4f}%,seed=1", 100 * rate));
  }
  if (!error.empty()) return std::unexpected(Error{Status::invalid, 0, error});
  return am::Domain::open(settings);
}

}  // namespace

Library& library() {
  static Library the_library;
  return the_library;
}

Library::~Library() {
  leave();
}

void Library::leave() {
  std::optional<am::Domain> ours;
  {
    const std::scoped_lock lock(domain_mutex);
    ours = domain;
  }
  if (ours) ours->leave();
}

void Library::set_domain(std::optional<am::Domain> opened) {
  const std::scoped_lock lock(domain_mutex);
  domain = std::move(opened);
}

bool Library::is_bundle(eb_t bundle) const {
  return bundle != nullptr && std::ranges::find(bundles, bundle, &std::unique_ptr<amudp_eb>::get) != bundles.end();
}

bool Library::is_endpoint(ep_t endpoint) const {
  return endpoint != nullptr && std::ranges::any_of(bundles, [&](const auto& bundle) {
           return std::ranges::find(bundle->endpoints, endpoint, &std::unique_ptr<amudp_ep>::get) !=
                  bundle->endpoints.end();
         });
}

en_t to_en(const am::Name& name) {
  en_t out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(name.udp_port);
  std::memcpy(&out.sin_addr, name.ip.data() + 12, 4);
  std::memcpy(out.sin_zero, &name.endpoint, sizeof name.endpoint);
  return out;
}

am::Name from_en(const en_t& name) {
  am::Name out;
  out.ip[10] = out.ip[11] = 0xff;
  std::memcpy(out.ip.data() + 12, &name.sin_addr, 4);
  out.udp_port = ntohs(name.sin_port);
  std::memcpy(&out.endpoint, name.sin_zero, sizeof out.endpoint);
  return out;
}

}  // namespace fairlead::amudp

using namespace fairlead::amudp;

int AM_Init_AMUDP_NDEBUG(void) {
  ++library().init_count;
  return AM_OK;
}

int AM_Init_AMUDP_DEBUG(void) {
  return AM_Init_AMUDP_NDEBUG();
}

int AM_Terminate(void) {
  Library& all = library();
  if (all.init_count == 0) return fail(AM_ERR_NOT_INIT, "AM_Terminate", "AM_Init was not called");
  if (--all.init_count > 0) return AM_OK;
  all.leave();  // before the endpoints end: from now on, peers do not wait for replies
  all.bundles.clear();
  all.set_domain({});
  return AM_OK;
}

int AMUDP_SetUDPInterface(uint32_t address) {
  in_addr ip{.s_addr = htonl(address)};
  char text[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &ip, text, sizeof text);
  Library& all = library();
  if (all.ip != text) all.set_domain({});
  all.ip = text;
  return AM_OK;
}

int AM_AllocateBundle(int type, eb_t* bundle) {
  Library& all = library();
  if (all.init_count == 0) return fail(AM_ERR_NOT_INIT, "AM_AllocateBundle", "AM_Init was not called");
  if (bundle == nullptr || type < 0 || type >= AM_NUM_BUNDLE_MODES)
    return fail(AM_ERR_BAD_ARG, "AM_AllocateBundle", "want AM_SEQ or AM_PAR, and where to put the bundle");
  if (!all.domain) {
    auto opened = open_domain(all);
    if (!opened) {
      // Report it even if nobody asked for explanations: a job that does not start must say why.
      std::fprintf(stderr, "%s: %s\n", AMX_ProcessLabel, opened.error().message.c_str());
      return AM_ERR_RESOURCE;
    }
    all.set_domain(std::move(*opened));
  }
  auto made = std::make_unique<amudp_eb>();
  made->bundle = std::make_unique<fairlead::am::Bundle>(
      *all.domain, type == AM_SEQ ? fairlead::am::BundleMode::sequential : fairlead::am::BundleMode::parallel);
  made->is_shared = type == AM_PAR;
  *bundle = made.get();
  all.bundles.push_back(std::move(made));
  return AM_OK;
}

int AM_FreeBundle(eb_t bundle) {
  Library& all = library();
  if (all.init_count == 0) return fail(AM_ERR_NOT_INIT, "AM_FreeBundle", "AM_Init was not called");
  if (!all.is_bundle(bundle)) return fail(AM_ERR_BAD_ARG, "AM_FreeBundle", "no such bundle");
  bundle->bundle.reset();
  std::erase_if(all.bundles, [&](const auto& each) { return each.get() == bundle; });
  return AM_OK;
}

int AM_AllocateEndpoint(eb_t bundle, ep_t* endpoint, en_t* name) {
  Library& all = library();
  if (all.init_count == 0) return fail(AM_ERR_NOT_INIT, "AM_AllocateEndpoint", "AM_Init was not called");
  if (!all.is_bundle(bundle) || endpoint == nullptr || name == nullptr)
    return fail(AM_ERR_BAD_ARG, "AM_AllocateEndpoint", "want a bundle, and where to put the endpoint and its name");
  auto added = bundle->bundle->add_endpoint();
  if (!added) return fail(AM_ERR_RESOURCE, "AM_AllocateEndpoint", added.error().message.c_str());
  auto made = std::make_unique<amudp_ep>();
  made->endpoint = *added;
  made->bundle = bundle;
  (*added)->set_error_handler(&call_error_handler, made.get());
  *name = to_en((*added)->name());
  *endpoint = made.get();
  bundle->endpoints.push_back(std::move(made));
  return AM_OK;
}

int AM_FreeEndpoint(ep_t endpoint) {
  Library& all = library();
  if (all.init_count == 0) return fail(AM_ERR_NOT_INIT, "AM_FreeEndpoint", "AM_Init was not called");
  if (!all.is_endpoint(endpoint)) return fail(AM_ERR_BAD_ARG, "AM_FreeEndpoint", "no such endpoint");
  const eb_t bundle = endpoint->bundle;
  if (const auto status = bundle->bundle->free_endpoint(*endpoint->endpoint); status != fairlead::Status::ok)
    return fail(AM_ERR_RESOURCE, "AM_FreeEndpoint", "not in a handler");
  std::erase_if(bundle->endpoints, [&](const auto& each) { return each.get() == endpoint; });
  return AM_OK;
}

int AM_MoveEndpoint(ep_t endpoint, eb_t from, eb_t to) {
  Library& all = library();
  if (all.init_count == 0) return fail(AM_ERR_NOT_INIT, "AM_MoveEndpoint", "AM_Init was not called");
  if (!all.is_endpoint(endpoint) || !all.is_bundle(from) || !all.is_bundle(to))
    return fail(AM_ERR_BAD_ARG, "AM_MoveEndpoint", "want an endpoint and two bundles");
  if (endpoint->bundle != from) return fail(AM_ERR_RESOURCE, "AM_MoveEndpoint", "it is not in that bundle");
  if (from == to) return AM_OK;
  if (from->bundle->move_endpoint(*endpoint->endpoint, *to->bundle) != fairlead::Status::ok)
    return fail(AM_ERR_RESOURCE, "AM_MoveEndpoint", "not in a handler, and the other bundle must have room");
  const auto found = std::ranges::find(from->endpoints, endpoint, &std::unique_ptr<amudp_ep>::get);
  to->endpoints.push_back(std::move(*found));
  from->endpoints.erase(found);
  endpoint->bundle = to;
  return AM_OK;
}
