// The operations vector of Motr's transports, implemented on <fairlead/net.h>. Functions that may call back are called
// without the transfer machine's mutex, because the callbacks take it.

#include <fairlead/net.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "doors/motr_net/address.hpp"
#include "doors/motr_net/include/motr_net.h"
#include "doors/motr_net/lists.hpp"
#include "doors/motr_net/refuse.hpp"

using fairlead::motr::Locked;
using fairlead::motr::refuse;
using fairlead::motr::refuse_as_told;
using fairlead::motr::set_flags;
using fairlead::motr::Unlocked;

namespace {

constexpr m0_bcount_t kBufferMost = 1 << 20, kSegmentMost = 4096;
constexpr int32_t kSegmentsMost = 256;
constexpr std::size_t kBudget = 256;

/// The private data of a transfer machine, guarded by its mutex.
struct OwnMachine {
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  fairlead_net_machine* machine = nullptr;
  std::string network;  // from its own address
  std::unordered_map<std::string, m0_net_end_point*, Hash, std::equal_to<>> end_points;
};

int error_of(fairlead_status status) {
  return -fairlead_status_errno(status);
}
int told(fairlead_status status) {
  return status == FAIRLEAD_OK ? 0 : refuse_as_told(fairlead_status_errno(status));
}

fairlead_net_domain* own(const m0_net_domain* dom) {
  return static_cast<fairlead_net_domain*>(dom->nd_xprt_private);
}
OwnMachine& own(const m0_net_transfer_mc* tm) {
  return *static_cast<OwnMachine*>(tm->ntm_xprt_private);
}
fairlead_net_buffer* own(const m0_net_buffer* buf) {
  return static_cast<fairlead_net_buffer*>(buf->nb_xprt_private);
}
const fairlead_net_end_point* own(const m0_net_end_point* ep) {
  return static_cast<fairlead_net_end_point*>(ep->nep_xprt_private);
}

// End points --------------------------------------------------------------------------------------------------------

void release_end_point(m0_ref* ref) {
  m0_net_end_point* const ep = reinterpret_cast<m0_net_end_point*>(ref);  // nep_ref is its first member
  m0_net_transfer_mc* const tm = ep->nep_tm;
  auto& all = own(tm).end_points;
  if (const auto place = all.find(std::string_view(ep->nep_addr)); place != all.end()) all.erase(place);
  --tm->ntm_end_points.tl_length;
  fairlead_net_end_point_free(static_cast<fairlead_net_end_point*>(ep->nep_xprt_private));
  std::free(const_cast<char*>(ep->nep_addr));
  delete ep;
}

/// Returns the end point with this address and adds a reference. Returns null if memory is short.
m0_net_end_point* find_or_make(m0_net_transfer_mc* tm, const fairlead_net_end_point* from) {
  std::array<char, 128> address{};
  fairlead_net_end_point_address(from, address.data(), address.size());
  OwnMachine& machine = own(tm);
  try {
    const std::string text = fairlead::motr::to_motr(address.data(), machine.network);
    if (const auto known = machine.end_points.find(text); known != machine.end_points.end()) {
      m0_net_end_point_get(known->second);
      return known->second;
    }
    std::unique_ptr<char, decltype(&std::free)> kept(::strdup(text.c_str()), &std::free);
    std::unique_ptr<fairlead_net_end_point, decltype(&fairlead_net_end_point_free)> copy(
        fairlead_net_end_point_copy(from), &fairlead_net_end_point_free);
    auto made = std::make_unique<m0_net_end_point>();
    if (!kept || !copy) throw std::bad_alloc();
    machine.end_points.emplace(text, made.get());
    *made = {.nep_ref = {1, release_end_point},
             .nep_tm = tm,
             .nep_next = nullptr,
             .nep_addr = kept.release(),
             .nep_xprt_private = copy.release()};
    ++tm->ntm_end_points.tl_length;
    return made.release();
  } catch (const std::bad_alloc&) {
    refuse(ENOMEM, "no memory for an end point");
    return nullptr;
  }
}

int end_point_create(m0_net_end_point** epp, m0_net_transfer_mc* tm, const char* addr) {
  const auto address = fairlead::motr::to_fairlead(addr);
  if (!address) return refuse(EINVAL, "the address is none: want nid@network:pid:portal:tmid");
  fairlead_net_end_point* made = nullptr;
  if (const int error = told(fairlead_net_machine_create_end_point(own(tm).machine, address->c_str(), &made));
      error != 0)
    return error;
  *epp = find_or_make(tm, made);
  fairlead_net_end_point_free(made);
  return *epp != nullptr ? 0 : -ENOMEM;
}

// Domains and buffers -----------------------------------------------------------------------------------------------

int dom_init(const m0_net_xprt*, m0_net_domain* dom) {
  fairlead_net_domain_options options{};
  options.struct_size = sizeof(options);
  options.buffer_bytes = kBufferMost;
  options.segment_bytes = kSegmentMost;
  options.segments = kSegmentsMost;
  fairlead_net_domain* made = nullptr;
  const int error = told(fairlead_net_domain_open(&options, &made));
  dom->nd_xprt_private = made;
  return error;
}
void dom_fini(m0_net_domain* dom) {
  fairlead_net_domain_free(own(dom));
}
m0_bcount_t max_buffer_size(const m0_net_domain*) {
  return kBufferMost;
}
m0_bcount_t max_segment_size(const m0_net_domain*) {
  return kSegmentMost;
}
int32_t max_segments(const m0_net_domain*) {
  return kSegmentsMost;
}
m0_bcount_t max_desc_size(const m0_net_domain*) {
  return FAIRLEAD_NET_DESCRIPTOR_SIZE;
}

void on_buffer_event(const fairlead_net_buffer_event* event, void* user) {
  m0_net_buffer* const buf = static_cast<m0_net_buffer*>(user);
  const bool is_ok = event->status == FAIRLEAD_OK;
  m0_net_buffer_event told{.nbe_buffer = buf,
                           .nbe_time = static_cast<m0_time_t>(event->time_ns),
                           .nbe_status = error_of(event->status),
                           .nbe_length = is_ok ? event->length : 0,
                           .nbe_offset = event->offset,
                           .nbe_ep = nullptr};
  {
    const Locked lock(buf->nb_tm->ntm_mutex);
    if (!event->is_final) set_flags(*buf, M0_NET_BUF_RETAIN);
    if (event->status == FAIRLEAD_TIMED_OUT) set_flags(*buf, M0_NET_BUF_TIMED_OUT);
    if (event->sender != nullptr) told.nbe_ep = find_or_make(buf->nb_tm, event->sender);
  }
  m0_net_buffer_event_post(&told);
}

int buf_register(m0_net_buffer* nb) {
  std::array<fairlead_net_segment, kSegmentsMost> segments;
  const m0_vec& vec = nb->nb_buffer.ov_vec;
  if (vec.v_nr > segments.size()) return refuse(EFBIG, "more than 256 segments");
  for (uint32_t i = 0; i < vec.v_nr; ++i) segments.at(i) = {nb->nb_buffer.ov_buf[i], vec.v_count[i]};
  fairlead_net_buffer* made = nullptr;
  int error = told(fairlead_net_buffer_borrow(own(nb->nb_dom), segments.data(), vec.v_nr, &made));
  if (error == 0) error = told(fairlead_net_buffer_set_callbacks(made, on_buffer_event, nb));
  nb->nb_xprt_private = made;
  return error;
}
void buf_deregister(m0_net_buffer* nb) {
  const Unlocked unlock(nb->nb_dom->nd_mutex);  // waits for running callbacks, which may need the domain
  fairlead_net_buffer_free(own(nb));
  nb->nb_xprt_private = nullptr;
}

/// Copies the descriptor of a passive buffer to memory that the application owns.
int hand_out_descriptor(m0_net_buffer* nb) {
  auto* const data = static_cast<uint8_t*>(std::malloc(FAIRLEAD_NET_DESCRIPTOR_SIZE));
  if (data == nullptr) return -ENOMEM;
  nb->nb_desc = {FAIRLEAD_NET_DESCRIPTOR_SIZE, data};
  return 0;
}

int buf_add(m0_net_buffer* nb) {
  fairlead_net_operation operation{};
  operation.struct_size = sizeof(operation);
  operation.queue = static_cast<fairlead_net_queue>(nb->nb_qtype);
  operation.length = nb->nb_length;
  constexpr m0_time_t kLast = INT64_MAX;
  operation.deadline_ns = nb->nb_timeout >= kLast ? 0 : static_cast<int64_t>(nb->nb_timeout);
  if (nb->nb_qtype == M0_NET_QT_MSG_RECV) {
    operation.size_min = nb->nb_min_receive_size;
    operation.messages_max = nb->nb_max_receive_msgs;
  }
  if (nb->nb_qtype == M0_NET_QT_MSG_SEND) operation.to = own(nb->nb_ep);
  const bool is_active = nb->nb_qtype == M0_NET_QT_ACTIVE_BULK_RECV || nb->nb_qtype == M0_NET_QT_ACTIVE_BULK_SEND;
  const bool is_passive = nb->nb_qtype == M0_NET_QT_PASSIVE_BULK_RECV || nb->nb_qtype == M0_NET_QT_PASSIVE_BULK_SEND;
  if (is_active) {
    operation.descriptor = nb->nb_desc.nbd_data;
    operation.descriptor_size = nb->nb_desc.nbd_len;
  }
  if (is_passive)
    if (const int error = hand_out_descriptor(nb); error != 0) return error;
  const int error = told(fairlead_net_machine_add(own(nb->nb_tm).machine, own(nb), &operation));
  if (is_passive && error == 0) fairlead_net_buffer_descriptor(own(nb), nb->nb_desc.nbd_data);
  if (is_passive && error != 0) m0_net_desc_free(&nb->nb_desc);
  fairlead_net_descriptor_facts facts{};
  facts.struct_size = sizeof(facts);
  const bool is_fetch = error == 0 && nb->nb_qtype == M0_NET_QT_ACTIVE_BULK_RECV;
  if (is_fetch &&
      fairlead_net_descriptor_inspect(operation.descriptor, operation.descriptor_size, &facts) == FAIRLEAD_OK)
    nb->nb_length = facts.size;
  return error;
}
void buf_del(m0_net_buffer* nb) {
  fairlead_net_machine_cancel(own(nb->nb_tm).machine, own(nb));
}

// Transfer machines -------------------------------------------------------------------------------------------------

void on_machine_event(const fairlead_net_machine_event* event, void* user) {
  m0_net_transfer_mc* const tm = static_cast<m0_net_transfer_mc*>(user);
  m0_net_tm_event told{.nte_type = M0_NET_TEV_DIAGNOSTIC,
                       .nte_tm = tm,
                       .nte_time = static_cast<m0_time_t>(event->time_ns),
                       .nte_status = error_of(event->status),
                       .nte_next_state = M0_NET_TM_UNDEFINED,
                       .nte_ep = nullptr,
                       .nte_payload = const_cast<char*>(event->text)};
  if (event->kind == FAIRLEAD_NET_EVENT_ERROR) told.nte_type = M0_NET_TEV_ERROR;
  if (event->kind == FAIRLEAD_NET_EVENT_STATE_CHANGE) {
    told.nte_type = M0_NET_TEV_STATE_CHANGE;
    told.nte_next_state = static_cast<m0_net_tm_state>(event->next_state);
    const Locked lock(tm->ntm_mutex);
    if (event->end_point != nullptr) told.nte_ep = find_or_make(tm, event->end_point);
  }
  m0_net_tm_event_post(&told);
}

int tm_init(m0_net_transfer_mc* tm) {
  auto made = std::unique_ptr<OwnMachine>(new (std::nothrow) OwnMachine);
  if (!made) return refuse(ENOMEM, "no memory for a transfer machine");
  if (const int error = told(fairlead_net_machine_create(own(tm->ntm_dom), on_machine_event, tm, &made->machine));
      error != 0)
    return error;
  tm->ntm_xprt_private = made.release();
  return 0;
}
void tm_fini(m0_net_transfer_mc* tm) {
  fairlead_net_machine_free(own(tm).machine);
  delete &own(tm);
  tm->ntm_xprt_private = nullptr;
}
int tm_confine(m0_net_transfer_mc* tm, const m0_bitmap* processors) {
  if (processors == nullptr) return refuse(EINVAL, "no processors");
  std::vector<unsigned> cpus;
  for (std::size_t i = 0; i < processors->b_nr; ++i)
    if (m0_bitmap_get(processors, i)) cpus.push_back(static_cast<unsigned>(i));
  return told(fairlead_net_machine_confine(own(tm).machine, cpus.data(), cpus.size()));
}

int tm_start(m0_net_transfer_mc* tm, const char* addr) {
  const auto address = fairlead::motr::to_fairlead(addr);
  if (!address || std::strlen(addr) >= M0_NET_LNET_XEP_ADDR_LEN)
    return refuse(EINVAL, "the address is none: want nid@network:pid:portal:tmid");
  own(tm).network = fairlead::motr::network_of(addr);
  const Unlocked unlock(tm->ntm_mutex);
  return told(fairlead_net_machine_start(own(tm).machine, address->c_str()));
}

int tm_stop(m0_net_transfer_mc* tm, bool cancel) {
  const fairlead_net_stop_mode mode = cancel ? FAIRLEAD_NET_ABORT : FAIRLEAD_NET_DRAIN;
  const bool is_synchronous = !tm->ntm_bev_auto_deliver;
  const Unlocked unlock(tm->ntm_mutex);
  // Nobody delivers after a stop, so deliver everything here, unless a callback requested the stop.
  if (is_synchronous && cancel && fairlead_net_machine_stop_and_wait(own(tm).machine, mode) == FAIRLEAD_OK) return 0;
  return told(fairlead_net_machine_stop(own(tm).machine, mode));
}

int deliver_sync(m0_net_transfer_mc* tm) {
  return told(fairlead_net_machine_deliver_synchronously(own(tm).machine));
}
void deliver_all(m0_net_transfer_mc* tm) {
  fairlead_net_machine* const machine = own(tm).machine;
  const Unlocked unlock(tm->ntm_mutex);
  std::size_t delivered = 0;
  fairlead_net_machine_deliver_all(machine, kBudget, &delivered);
}
bool pending(m0_net_transfer_mc* tm) {
  fairlead_net_machine* const machine = own(tm).machine;
  const Unlocked unlock(tm->ntm_mutex);
  return fairlead_net_machine_pending(machine);
}
void notify(m0_net_transfer_mc* tm, m0_chan* chan) {
  const auto signal = [](void* user) { m0_chan_signal_lock(static_cast<m0_chan*>(user)); };
  static_cast<void>(told(fairlead_net_machine_notify(own(tm).machine, signal, chan)));
}

// Limits for an RPC layer: as many messages per buffer as fit.
m0_bcount_t rpc_max_seg_size(m0_net_domain*) {
  return kSegmentMost;
}
uint32_t rpc_max_segs_nr(m0_net_domain*) {
  return kBufferMost / kSegmentMost;
}
uint32_t rpc_max_recv_msgs(m0_net_domain*, m0_bcount_t rpc_size) {
  return static_cast<uint32_t>(rpc_size == 0 || rpc_size > kBufferMost ? 1 : kBufferMost / rpc_size);
}

/// Wraps an operation so that no exception reaches C.
template <auto Operation>
struct WithoutThrowing;
template <typename... Arguments, int (*Operation)(Arguments...)>
struct WithoutThrowing<Operation> {
  static int call(Arguments... arguments) noexcept try {
    return Operation(arguments...);
  } catch (const std::bad_alloc&) {
    return refuse(ENOMEM, "no memory");
  }
};

constexpr m0_net_xprt_ops kOperations{.xo_dom_init = WithoutThrowing<dom_init>::call,
                                      .xo_dom_fini = dom_fini,
                                      .xo_get_max_buffer_size = max_buffer_size,
                                      .xo_get_max_buffer_segment_size = max_segment_size,
                                      .xo_get_max_buffer_segments = max_segments,
                                      .xo_get_max_buffer_desc_size = max_desc_size,
                                      .xo_end_point_create = WithoutThrowing<end_point_create>::call,
                                      .xo_buf_register = WithoutThrowing<buf_register>::call,
                                      .xo_buf_deregister = buf_deregister,
                                      .xo_buf_add = WithoutThrowing<buf_add>::call,
                                      .xo_buf_del = buf_del,
                                      .xo_tm_init = WithoutThrowing<tm_init>::call,
                                      .xo_tm_start = WithoutThrowing<tm_start>::call,
                                      .xo_tm_stop = WithoutThrowing<tm_stop>::call,
                                      .xo_tm_fini = tm_fini,
                                      .xo_tm_confine = WithoutThrowing<tm_confine>::call,
                                      .xo_bev_deliver_sync = WithoutThrowing<deliver_sync>::call,
                                      .xo_bev_deliver_all = deliver_all,
                                      .xo_bev_pending = pending,
                                      .xo_bev_notify = notify,
                                      .xo_rpc_max_seg_size = rpc_max_seg_size,
                                      .xo_rpc_max_segs_nr = rpc_max_segs_nr,
                                      .xo_rpc_max_msg_size = nullptr,
                                      .xo_rpc_max_recv_msgs = rpc_max_recv_msgs};

}  // namespace

extern "C" const m0_net_xprt m0_net_lnet_xprt = {"lnet", &kOperations};

// Addresses ---------------------------------------------------------------------------------------------------------

int m0_net_lnet_ep_addr_net_cmp(const char* addr1, const char* addr2) try {
  if (addr1 == nullptr || addr2 == nullptr) return -1;
  const std::string_view a(addr1), b(addr2);
  if (a.find(':') == a.npos || b.find(':') == b.npos) return -1;
  const auto a_network = fairlead::motr::to_fairlead(a), b_network = fairlead::motr::to_fairlead(b);
  int order = -1;
  if (a_network && b_network) fairlead_net_compare_nids(a_network->c_str(), b_network->c_str(), &order);
  return order;
} catch (const std::bad_alloc&) {
  refuse(ENOMEM, "no memory to compare addresses");
  return -1;
}

int m0_net_lnet_ifaces_get(m0_net_domain*, char* const** addrs) try {
  if (addrs == nullptr) return refuse(EINVAL, "nowhere to put the nids");
  std::string lines(fairlead_net_local_nids(nullptr, 0) + 256, '\0');  // spare room: an interface may appear meanwhile
  lines.resize(std::min(lines.size() - 1, fairlead_net_local_nids(lines.data(), lines.size())));
  std::size_t count = 1;
  for (const char letter : lines) count += letter == '\n' ? 1 : 0;
  char** const all = static_cast<char**>(std::calloc(count + 1, sizeof(char*)));
  if (all == nullptr) return refuse(ENOMEM, "no memory for the nids");
  std::string_view rest = lines;
  for (std::size_t i = 0; !rest.empty(); ++i) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    all[i] = ::strndup(line.data(), line.size());
    if (all[i] == nullptr) {
      *addrs = all;
      m0_net_lnet_ifaces_put(nullptr, addrs);
      return refuse(ENOMEM, "no memory for the nids");
    }
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  *addrs = all;
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM, "no memory for the nids");
}

void m0_net_lnet_ifaces_put(m0_net_domain*, char* const** addrs) {
  if (addrs == nullptr || *addrs == nullptr) return;
  for (char* const* each = *addrs; *each != nullptr; ++each) std::free(*each);
  std::free(static_cast<void*>(const_cast<char**>(*addrs)));
  *addrs = nullptr;
}
