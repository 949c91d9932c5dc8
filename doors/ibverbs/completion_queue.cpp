// Completion queues: creation, and the plain poll call.
#include <cstring>

#include "doors/ibverbs/absent.hpp"
#include "doors/ibverbs/explain.hpp"
#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {
namespace {

// Up to the timestamp, a completion has the layout of the C structure.
static_assert(sizeof(ibv_wc) == offsetof(verbs::WorkCompletion, timestamp_ns));
static_assert(offsetof(ibv_wc, status) == offsetof(verbs::WorkCompletion, status));
static_assert(offsetof(ibv_wc, vendor_err) == offsetof(verbs::WorkCompletion, vendor_err));
static_assert(offsetof(ibv_wc, imm_data) == offsetof(verbs::WorkCompletion, imm));
static_assert(offsetof(ibv_wc, wc_flags) == offsetof(verbs::WorkCompletion, wc_flags));
static_assert(offsetof(ibv_wc, dlid_path_bits) == offsetof(verbs::WorkCompletion, dlid_path_bits));

constexpr int kBatch = 16;
constexpr unsigned kCreateFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
constexpr std::uint64_t kFields = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

Queue* make_queue(OpenContext& context, const verbs::CompletionQueueOptions& options, ibv_comp_channel* channel,
                  void* cookie) {
  Queue* queue = table<Queue>().make(context);
  if (queue == nullptr) return refuse(ENOMEM);
  verbs::CompletionQueueOptions with_cookie = options;
  with_cookie.cookie = queue->handle;
  auto native = verbs::CompletionQueue::create(context.native, with_cookie);
  if (!native) {
    table<Queue>().discard(queue);
    return refuse(native.error());
  }
  queue->native.emplace(std::move(*native));
  queue->context = &context.context;
  queue->channel = channel;
  queue->cq_context = cookie;
  queue->cqe = static_cast<int>(queue->native->capacity());
  return queue;
}

}  // namespace

int poll_queue(ibv_cq* abi, int count, ibv_wc* out) {
  const Call call;
  Queue* queue = find(abi);
  if (queue == nullptr || count < 0) [[unlikely]]
    return -fail(EINVAL);
  int polled = 0;
  while (polled < count) {
    alignas(verbs::WorkCompletion)
        std::byte memory[kBatch * sizeof(verbs::WorkCompletion)];  // uninitialised, because polls are frequent
    auto* completions = reinterpret_cast<verbs::WorkCompletion*>(memory);
    const int wanted = count - polled < kBatch ? count - polled : kBatch;
    const int got = queue->native->poll({completions, static_cast<std::size_t>(wanted)});
    if (got < 0) [[unlikely]]
      return polled > 0 ? polled : got;
    for (int i = 0; i < got; ++i) {
      if (completions[i].status != verbs::WcStatus::success) [[unlikely]]
        explain_failure(completions[i]);
      std::memcpy(&out[polled + i], &completions[i], sizeof(ibv_wc));
    }
    polled += got;
    if (got < wanted) break;
  }
  polled > 0 ? call.polls().poll_found() : call.polls().poll_was_empty();
  return polled;
}

int request_notify(ibv_cq* abi, int solicited_only) {
  const Call call;
  Queue* queue = find(abi);
  if (queue == nullptr) return fail(EINVAL);
  const int code = queue->native->request_notify(solicited_only != 0);
  return code == 0 ? 0 : fail(code);
}

ibv_cq_ex* create_queue(ibv_context* abi, ibv_cq_init_attr_ex* attributes) try {
  const Call call;
  OpenContext* context = find_context(abi);
  if (context == nullptr || attributes == nullptr || attributes->cqe == 0) return refuse(EINVAL);
  constexpr unsigned kMasks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  if ((attributes->comp_mask & ~kMasks) != 0) return refuse(EINVAL);
  if ((attributes->wc_flags & ~kFields) != 0) return refuse(EOPNOTSUPP);
  const unsigned flags = (attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attributes->flags : 0;
  if ((flags & ~kCreateFlags) != 0) return refuse(EOPNOTSUPP);
  if ((attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 && find(attributes->parent_domain) == nullptr) {
    return refuse(EINVAL);
  }
  Channel* channel = find(attributes->channel);
  if (attributes->channel != nullptr && channel == nullptr) return refuse(EINVAL);
  Queue* queue = make_queue(*context,
                            {.capacity = attributes->cqe,
                             .channel = channel != nullptr ? &channel->native : nullptr,
                             .comp_vector = attributes->comp_vector,
                             .ignores_overrun = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0},
                            attributes->channel, attributes->cq_context);
  if (queue == nullptr) return nullptr;
  set_operations(*queue, attributes->wc_flags);
  return table<Queue>().publish(queue);
} catch (const std::exception&) {
  return thrown();
}

int modify_queue(ibv_cq* abi, ibv_modify_cq_attr* attributes) try {
  const Call call;
  if (find(abi) == nullptr || attributes == nullptr) return fail(EINVAL);
  return tell_absent(Absent::moderation);
} catch (const std::exception&) {
  return thrown();
}

}  // namespace fairlead::ibverbs

using namespace fairlead::ibverbs;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* abi, int capacity, void* cookie, ibv_comp_channel* channel_abi,
                      int comp_vector) try {
  const Call call;
  OpenContext* context = find_context(abi);
  if (context == nullptr || capacity <= 0 || comp_vector < 0) return refuse(EINVAL);
  Channel* channel = find(channel_abi);
  if (channel_abi != nullptr && channel == nullptr) return refuse(EINVAL);
  Queue* queue = make_queue(*context,
                            {.capacity = static_cast<std::uint32_t>(capacity),
                             .channel = channel != nullptr ? &channel->native : nullptr,
                             .comp_vector = static_cast<std::uint32_t>(comp_vector)},
                            channel_abi, cookie);
  return queue != nullptr ? table<Queue>().publish(queue)->face() : nullptr;
} catch (const std::exception&) {
  return thrown();
}

int ibv_resize_cq(ibv_cq* abi, int capacity) try {
  const Call call;
  Queue* queue = find(abi);
  if (queue == nullptr || capacity <= 0) return fail(EINVAL);
  if (const auto done = queue->native->resize(static_cast<std::uint32_t>(capacity)); !done) return fail(done.error());
  std::atomic_ref(queue->cqe).store(static_cast<int>(queue->native->capacity()), std::memory_order_relaxed);
  return 0;
} catch (const std::exception&) {
  return thrown();
}

int ibv_destroy_cq(ibv_cq* abi) try {
  const Call call;
  Queue* queue = find(abi);
  if (queue == nullptr) return fail(EINVAL);
  if (queue->bracket.is_entered()) return fail(EBUSY);  // a thread is polling it
  auto native = *queue->native;
  if (const auto done = native.destroy(); !done) return fail(done.error());
  return table<Queue>().destroy(queue) ? 0 : fail(EINVAL);
} catch (const std::exception&) {
  return thrown();
}
}
