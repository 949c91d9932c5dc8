// The plain post calls.
#include <array>
#include <cstring>

#include "doors/ibverbs/absent.hpp"
#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {
namespace {

static_assert(sizeof(ibv_sge) == sizeof(verbs::Sge) && offsetof(ibv_sge, lkey) == offsetof(verbs::Sge, lkey));

constexpr std::size_t kChainBatch = 16;  // requests of a chain that are posted together

std::span<const verbs::Sge> sges_of(const ibv_sge* list, int count) {
  return {reinterpret_cast<const verbs::Sge*>(list), static_cast<std::size_t>(count)};
}

bool has_list(const ibv_sge* list, int count) {
  return count == 0 || (count > 0 && list != nullptr);
}

constexpr unsigned kFlush = 14;  // IBV_WR_FLUSH of later versions

/// Converts a send request. Returns 0, or an errno if the request is malformed.
int translate(const ibv_send_wr& from, ibv_qp_type type, verbs::SendRequest& to, verbs::WindowBinding& binding) {
  if (!has_list(from.sg_list, from.num_sge)) return EINVAL;
  to.id = from.wr_id;
  to.sges = sges_of(from.sg_list, from.num_sge);
  const unsigned opcode = raw(from.opcode);
  to.opcode = static_cast<verbs::SendOpcode>(opcode);
  to.flags = from.send_flags;
  to.imm = from.imm_data;
  to.remote_srqn = from.qp_type.xrc.remote_srqn;  // ignored unless the type is XRC
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
      if (type == IBV_QPT_UD) {
        const Address* address = find(from.wr.ud.ah);
        if (address == nullptr) return EINVAL;
        to.to = &address->native.vector();
        to.remote_qpn = from.wr.ud.remote_qpn;
        to.remote_qkey = from.wr.ud.remote_qkey;
      }
      return 0;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
      to.remote_addr = from.wr.rdma.remote_addr;
      to.rkey = from.wr.rdma.rkey;
      return 0;
    case IBV_WR_ATOMIC_WRITE:
      to.opcode = verbs::SendOpcode::atomic_write;
      to.remote_addr = from.wr.rdma.remote_addr;
      to.rkey = from.wr.rdma.rkey;
      return 0;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      to.remote_addr = from.wr.atomic.remote_addr;
      to.rkey = from.wr.atomic.rkey;
      to.compare_add = from.wr.atomic.compare_add;
      to.swap = from.wr.atomic.swap;
      return 0;
    case IBV_WR_LOCAL_INV:
    case IBV_WR_SEND_WITH_INV:
      to.rkey = from.invalidate_rkey;
      return 0;
    case IBV_WR_BIND_MW:
      to.binding = &binding;
      return read_binding(from.bind_mw.mw, from.bind_mw.rkey, from.bind_mw.bind_info, binding);
    default:
      if (opcode == kFlush) note_absent(Absent::flush);
      return EINVAL;  // TSO and driver-specific opcodes
  }
}

/// Receives need no data besides the request.
struct Nothing {};

int translate(const ibv_recv_wr& from, verbs::ReceiveRequest& to, Nothing) {
  if (!has_list(from.sg_list, from.num_sge)) return EINVAL;
  to.id = from.wr_id;
  to.sges = sges_of(from.sg_list, from.num_sge);
  return 0;
}

/// Posts a chain in batches. `translate_one(from, to, beside)` and `post(span, taken)` return 0 or an errno. `bad`
/// receives the first request that was not posted. `Beside` holds what a request refers to during the call.
template <typename Native, typename Beside, typename Abi, typename Translate, typename Post>
int post_chain(Abi* chain, Abi** bad, Translate translate_one, Post post) {
  while (chain != nullptr) {
    const Call batch_call;  // keeps the address handles of a batch valid
    std::array<Native, kChainBatch> batch;
    std::array<Beside, kChainBatch> beside;
    std::array<Abi*, kChainBatch> from;
    std::size_t count = 0;
    int code = 0;
    for (Abi* each = chain; each != nullptr && count < kChainBatch; each = each->next) {
      from[count] = each;
      if ((code = translate_one(*each, batch[count], beside[count])) != 0) break;
      ++count;
    }
    Abi* const behind = count > 0 ? from[count - 1]->next : chain;
    std::size_t taken = 0;
    const int refused = count > 0 ? post(std::span<const Native>(batch.data(), count), taken) : 0;
    if (refused != 0 || code != 0) {
      if (bad != nullptr) *bad = refused != 0 ? from[taken] : behind;
      return fail(refused != 0 ? refused : code);
    }
    chain = behind;
  }
  return 0;
}

/// The common case: a single request is translated in place and posted.
template <typename Native, typename Beside, typename Abi, typename Translate, typename Post>
int post_all(Abi* chain, Abi** bad, Translate translate_one, Post post) {
  if (chain == nullptr || chain->next != nullptr) return post_chain<Native, Beside>(chain, bad, translate_one, post);
  Native request;
  Beside beside;
  int code = translate_one(*chain, request, beside);
  std::size_t taken = 0;
  if (code == 0) code = post(std::span<const Native>(&request, 1), taken);
  if (code == 0) [[likely]]
    return 0;
  if (bad != nullptr) *bad = chain;
  return fail(code);
}

}  // namespace

int post_send(ibv_qp* abi, ibv_send_wr* requests, ibv_send_wr** bad) {
  const Call call;
  Pair* pair = find(abi);
  if (pair == nullptr) [[unlikely]] {
    if (bad != nullptr) *bad = requests;
    return fail(EINVAL);
  }
  const auto type = static_cast<ibv_qp_type>(pair->native->type());
  return post_all<verbs::SendRequest, verbs::WindowBinding>(
      requests, bad,
      [type](const ibv_send_wr& from, verbs::SendRequest& to, verbs::WindowBinding& binding) {
        return translate(from, type, to, binding);
      },
      [pair](auto batch, std::size_t& taken) { return pair->native->post_send(batch, taken); });
}

int post_receive(ibv_qp* abi, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  const Call call;
  Pair* pair = find(abi);
  if (pair == nullptr) [[unlikely]] {
    if (bad != nullptr) *bad = requests;
    return fail(EINVAL);
  }
  return post_all<verbs::ReceiveRequest, Nothing>(
      requests, bad,
      [](const ibv_recv_wr& from, verbs::ReceiveRequest& to, Nothing none) { return translate(from, to, none); },
      [pair](auto batch, std::size_t& taken) { return pair->native->post_receive(batch, taken); });
}

int post_shared_receive(ibv_srq* abi, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  const Call call;
  SharedReceive* queue = find(abi);
  if (queue == nullptr) [[unlikely]] {
    if (bad != nullptr) *bad = requests;
    return fail(EINVAL);
  }
  return post_all<verbs::ReceiveRequest, Nothing>(
      requests, bad,
      [](const ibv_recv_wr& from, verbs::ReceiveRequest& to, Nothing none) { return translate(from, to, none); },
      [queue](auto batch, std::size_t& taken) { return queue->native->post(batch, taken); });
}

}  // namespace fairlead::ibverbs
