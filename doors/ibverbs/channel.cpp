// Completion channels.
#include "doors/ibverbs/objects.hpp"

namespace fairlead::ibverbs {

Channel* find(const ibv_comp_channel* abi) {
  auto* channel = static_cast<Channel*>(const_cast<ibv_comp_channel*>(abi));
  return abi != nullptr && registry<Channel>().contains(channel) ? channel : nullptr;
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;
namespace verbs = fairlead::verbs;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* abi) {
  OpenContext* context = find_context(abi);
  if (context == nullptr) return refuse(EINVAL);
  auto native = verbs::CompletionChannel::open(context->native);
  if (!native) return refuse(native.error());
  auto* channel = new Channel(*context, std::move(*native));
  registry<Channel>().insert(channel);
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* abi) {
  Channel* channel = find(abi);
  if (channel == nullptr) return fail(EINVAL);
  if (const auto done = channel->native.close(); !done) return fail(done.error());
  registry<Channel>().erase(channel);
  delete channel;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* abi, ibv_cq** out, void** cookie) {
  Channel* channel = find(abi);
  if (channel == nullptr || out == nullptr || cookie == nullptr) {
    fail(EINVAL);
    return -1;
  }
  const auto handle = channel->native.get_event();
  if (!handle) {
    fail(handle.error());
    return -1;
  }
  Queue* queue = table<Queue>().find(static_cast<std::uint32_t>(*handle));
  if (queue == nullptr) {
    fail(EINVAL);
    return -1;
  }
  *out = queue->face();
  *cookie = queue->cq_context;
  return 0;
}

void ibv_ack_cq_events(ibv_cq* abi, unsigned count) {
  if (Queue* queue = find(abi); queue != nullptr) queue->native->ack_events(count);
}
}
