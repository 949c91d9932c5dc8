// Completion channels.
#include "doors/ibverbs/objects.hpp"

namespace fairlead::ibverbs {

Channel* find(const ibv_comp_channel* abi) {
  auto* channel = static_cast<Channel*>(const_cast<ibv_comp_channel*>(abi));
  return abi != nullptr && registry<Channel>().contains(channel) ? channel : nullptr;
}

namespace {

/// Returns a copy: a thread that waits for an event must not keep the channel from being destroyed.
std::optional<verbs::CompletionChannel> native_of(const ibv_comp_channel* abi) {
  const Call call;
  const Channel* channel = find(abi);
  return channel != nullptr ? std::optional(channel->native) : std::nullopt;
}

}  // namespace
}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;
namespace verbs = fairlead::verbs;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* abi) try {
  const Call call;
  OpenContext* context = find_context(abi);
  if (context == nullptr) return refuse(EINVAL);
  auto native = verbs::CompletionChannel::open(context->native);
  if (!native) return refuse(native.error());
  auto* channel = new Channel(*context, std::move(*native));
  registry<Channel>().insert(channel);
  return channel;
} catch (const std::exception&) {
  return thrown();
}

int ibv_destroy_comp_channel(ibv_comp_channel* abi) try {
  const Call call;
  Channel* channel = find(abi);
  if (channel == nullptr) return fail(EINVAL);
  auto native = channel->native;
  if (const auto done = native.close(); !done) return fail(done.error());
  if (!registry<Channel>().erase(channel)) return fail(EINVAL);
  {
    const verbs::CompletionChannel ended = std::move(channel->native);
  }
  registry<Channel>().rest(channel);
  return 0;
} catch (const std::exception&) {
  return thrown();
}

int ibv_get_cq_event(ibv_comp_channel* abi, ibv_cq** out, void** cookie) try {
  auto native = native_of(abi);
  if (!native || out == nullptr || cookie == nullptr) {
    fail(EINVAL);
    return -1;
  }
  const auto handle = native->get_event();
  if (!handle) {
    fail(handle.error());
    return -1;
  }
  const Call call;
  Queue* queue = table<Queue>().find(static_cast<std::uint32_t>(*handle));
  if (queue == nullptr) {
    fail(EINVAL);
    return -1;
  }
  *out = queue->face();
  *cookie = queue->cq_context;
  return 0;
} catch (const std::exception&) {
  (void)thrown();
  return -1;
}

void ibv_ack_cq_events(ibv_cq* abi, unsigned count) try {
  const Call call;
  if (Queue* queue = find(abi); queue != nullptr) queue->native->ack_events(count);
} catch (const std::exception&) {
  (void)thrown();
}
}
