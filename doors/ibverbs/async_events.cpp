// Asynchronous events. A program acknowledges an event by element and type only, so the data that the native interface
// needs is kept until then.
#include <algorithm>
#include <mutex>
#include <vector>

#include "doors/ibverbs/objects.hpp"

namespace fairlead::ibverbs {
namespace {

struct Got {
  void* element;
  ibv_event_type type;
  verbs::Context context;
  verbs::AsyncEvent native;
};
struct GotEvents {
  std::mutex mutex;
  std::vector<Got> unacknowledged;
};
GotEvents& got_events() {
  static auto* const events = new GotEvents;
  return *events;
}

bool is_of_port(ibv_event_type type) {
  return type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_GID_CHANGE ||
         type == IBV_EVENT_DEVICE_FATAL;
}

void* element_of(const verbs::AsyncEvent& event) {
  const Call call;
  const auto handle = static_cast<std::uint32_t>(event.cookie);
  switch (event.type) {
    case verbs::AsyncEventType::cq_err:
      if (Queue* queue = table<Queue>().find(handle)) return queue->face();
      return nullptr;
    case verbs::AsyncEventType::srq_err:
    case verbs::AsyncEventType::srq_limit_reached:
      if (SharedReceive* queue = table<SharedReceive>().find(handle)) return static_cast<ibv_srq*>(queue);
      return nullptr;
    default:
      if (Pair* pair = table<Pair>().find(handle)) return &pair->qp_base;
      return nullptr;
  }
}

/// Returns a copy: a thread that waits for an event must not keep the device from being closed.
std::optional<verbs::Context> native_of(const ibv_context* abi) {
  const Call call;
  const OpenContext* context = find_context(abi);
  return context != nullptr ? std::optional(context->native) : std::nullopt;
}

}  // namespace
}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;
namespace verbs = fairlead::verbs;

extern "C" {

int ibv_get_async_event(ibv_context* abi, ibv_async_event* out) try {
  auto native = native_of(abi);
  if (!native || out == nullptr) {
    fail(EINVAL);
    return -1;
  }
  const auto event = native->get_async_event();
  if (!event) {
    fail(event.error());
    return -1;
  }
  *out = {};
  out->event_type = static_cast<ibv_event_type>(event->type);
  if (is_of_port(out->event_type)) {
    out->element.port_num = 1;
  } else {
    void* element = element_of(*event);
    out->element.qp = static_cast<ibv_qp*>(element);
  }
  GotEvents& got = got_events();
  const std::lock_guard guard(got.mutex);
  got.unacknowledged.push_back({out->element.qp, out->event_type, *native, *event});
  return 0;
} catch (const std::exception&) {
  (void)thrown();
  return -1;
}

void ibv_ack_async_event(ibv_async_event* event) try {
  if (event == nullptr) return;
  GotEvents& got = got_events();
  std::unique_lock lock(got.mutex);
  const auto found = std::ranges::find_if(got.unacknowledged, [event](const Got& each) {
    return each.element == event->element.qp && each.type == event->event_type;
  });
  if (found == got.unacknowledged.end()) return;
  Got acknowledged = std::move(*found);
  got.unacknowledged.erase(found);
  lock.unlock();
  acknowledged.context.ack_async_event(acknowledged.native);
} catch (const std::exception&) {
  (void)thrown();
}
}
