// The registry of transports by name, and domains.

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>

#include "doors/motr_net/include/motr_net.h"
#include "doors/motr_net/lists.hpp"
#include "doors/motr_net/refuse.hpp"

using fairlead::motr::Locked;
using fairlead::motr::refuse;

namespace {

/// All members but the mutex itself are used under the mutex.
struct Registry {
  std::mutex mutex;
  std::array<const m0_net_xprt*, M0_NET_XPRT_MAX> all{};
  int count = 0;
  const m0_net_xprt* preferred = nullptr;
  int inits = 0;

  const m0_net_xprt** find(const m0_net_xprt* xprt) { return std::find(all.data(), all.data() + count, xprt); }
  bool has(const m0_net_xprt* xprt) { return find(xprt) != all.data() + count; }
  void add(const m0_net_xprt* xprt) {
    if (xprt == nullptr || has(xprt)) {
      refuse(EEXIST, "the transport is registered already");
    } else if (count == M0_NET_XPRT_MAX) {
      refuse(ENOSPC, "four transports are registered, and there is no room for a fifth");
    } else {
      all.at(static_cast<std::size_t>(count++)) = xprt;
    }
  }
  void remove(const m0_net_xprt* xprt) {
    if (!has(xprt)) {
      refuse(ENOENT, "the transport is not registered");
      return;
    }
    std::copy(find(xprt) + 1, static_cast<const m0_net_xprt**>(all.data() + count), find(xprt));
    all.at(static_cast<std::size_t>(--count)) = nullptr;
    if (preferred == xprt) preferred = nullptr;
  }
};
constinit Registry registry;

bool is_initialised(const m0_net_domain* dom) {
  if (dom != nullptr && dom->nd_xprt != nullptr) return true;
  refuse(EBADFD, "the domain is not initialised");
  return false;
}

}  // namespace

// Transports --------------------------------------------------------------------------------------------------------

int m0_net_init(void) {
  const std::scoped_lock lock(registry.mutex);
  if (registry.inits++ > 0) return 0;
  registry.add(&m0_net_lnet_xprt);
  registry.preferred = &m0_net_lnet_xprt;
  return 0;
}

void m0_net_fini(void) {
  const std::scoped_lock lock(registry.mutex);
  if (registry.inits == 0 || --registry.inits > 0) return;
  registry.remove(&m0_net_lnet_xprt);
}

void m0_net_xprt_register(const m0_net_xprt* xprt) {
  const std::scoped_lock lock(registry.mutex);
  registry.add(xprt);
}

void m0_net_xprt_deregister(const m0_net_xprt* xprt) {
  const std::scoped_lock lock(registry.mutex);
  registry.remove(xprt);
}

void m0_net_xprt_default_set(const m0_net_xprt* xprt) {
  const std::scoped_lock lock(registry.mutex);
  registry.preferred = xprt;
}

const m0_net_xprt* m0_net_xprt_default_get(void) {
  const std::scoped_lock lock(registry.mutex);
  return registry.preferred;
}

int m0_net_xprts_get(const m0_net_xprt** xprts) {
  const std::scoped_lock lock(registry.mutex);
  if (xprts != nullptr) std::copy_n(registry.all.data(), registry.count, xprts);
  return registry.count;
}

void m0_net_print_xprt(void) {
  const m0_net_xprt* all[M0_NET_XPRT_MAX];
  const int count = m0_net_xprts_get(all);
  for (int i = 0; i < count; ++i) std::puts(all[i]->nx_name);
}

// Domains -----------------------------------------------------------------------------------------------------------

int m0_net_domain_init(m0_net_domain* dom, const m0_net_xprt* xprt) {
  if (dom == nullptr) return refuse(EINVAL, "no domain");
  if (dom->nd_xprt != nullptr) return refuse(EBADFD, "the domain is initialised already");
  if (xprt == nullptr || xprt->nx_ops == nullptr) return refuse(EINVAL, "a domain without a transport");
  *dom = {};
  dom->nd_xprt = xprt;
  m0_mutex_init(&dom->nd_mutex);
  if (const int error = xprt->nx_ops->xo_dom_init(xprt, dom); error != 0) {
    m0_mutex_fini(&dom->nd_mutex);
    *dom = {};
    return error;
  }
  dom->nd_get_max_buffer_size = xprt->nx_ops->xo_get_max_buffer_size(dom);
  dom->nd_get_max_buffer_segment_size = xprt->nx_ops->xo_get_max_buffer_segment_size(dom);
  dom->nd_get_max_buffer_segments = xprt->nx_ops->xo_get_max_buffer_segments(dom);
  return 0;
}

void m0_net_domain_fini(m0_net_domain* dom) {
  if (!is_initialised(dom)) return;
  {
    const Locked lock(dom->nd_mutex);
    if (dom->nd_tms != nullptr || dom->nd_registered != 0) {
      refuse(EBUSY, "the domain has transfer machines or registered buffers: finalise and deregister them first");
      return;
    }
  }
  dom->nd_xprt->nx_ops->xo_dom_fini(dom);
  m0_mutex_fini(&dom->nd_mutex);
  *dom = {};
}

m0_bcount_t m0_net_domain_get_max_buffer_size(m0_net_domain* dom) {
  return is_initialised(dom) ? dom->nd_get_max_buffer_size : 0;
}
m0_bcount_t m0_net_domain_get_max_buffer_segment_size(m0_net_domain* dom) {
  return is_initialised(dom) ? dom->nd_get_max_buffer_segment_size : 0;
}
int32_t m0_net_domain_get_max_buffer_segments(m0_net_domain* dom) {
  return is_initialised(dom) ? dom->nd_get_max_buffer_segments : 0;
}
m0_bcount_t m0_net_domain_get_max_buffer_desc_size(m0_net_domain* dom) {
  return is_initialised(dom) ? dom->nd_xprt->nx_ops->xo_get_max_buffer_desc_size(dom) : 0;
}

// If a transport has no such operation: one segment of 128 KiB, messages no longer than a buffer, one per buffer.
m0_bcount_t m0_net_domain_rpc_max_seg_size(m0_net_domain* dom) {
  if (!is_initialised(dom)) return 0;
  const auto ask = dom->nd_xprt->nx_ops->xo_rpc_max_seg_size;
  return ask != nullptr ? ask(dom) : m0_bcount_t{128} * 1024;
}
uint32_t m0_net_domain_rpc_max_segs_nr(m0_net_domain* dom) {
  if (!is_initialised(dom)) return 0;
  const auto ask = dom->nd_xprt->nx_ops->xo_rpc_max_segs_nr;
  return ask != nullptr ? ask(dom) : 1;
}
m0_bcount_t m0_net_domain_rpc_max_msg_size(m0_net_domain* dom, m0_bcount_t rpc_size) {
  if (!is_initialised(dom)) return 0;
  const auto ask = dom->nd_xprt->nx_ops->xo_rpc_max_msg_size;
  if (ask != nullptr) return ask(dom, rpc_size);
  constexpr m0_bcount_t kLeast = 4096;
  return std::clamp(rpc_size, kLeast, std::max(kLeast, dom->nd_get_max_buffer_size));
}
uint32_t m0_net_domain_rpc_max_recv_msgs(m0_net_domain* dom, m0_bcount_t rpc_size) {
  if (!is_initialised(dom)) return 0;
  const auto ask = dom->nd_xprt->nx_ops->xo_rpc_max_recv_msgs;
  return ask != nullptr ? ask(dom, rpc_size) : 1;
}
