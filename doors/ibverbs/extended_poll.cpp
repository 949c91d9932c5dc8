// Extended completion queues: a program steps through completions and reads each field by a call.
#include <ctime>

#include "doors/ibverbs/explain.hpp"
#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {
namespace {

const verbs::WorkCompletion& current(ibv_cq_ex* abi) {
  return static_cast<Queue*>(abi)->current;
}

int take_next(Queue& queue, const Call& call) {
  const int got = queue.native->poll({&queue.current, 1});
  if (got < 0) return EINVAL;
  if (got == 0) {
    call.polls().poll_was_empty();
    return ENOENT;
  }
  call.polls().poll_found();
  queue.status = static_cast<ibv_wc_status>(queue.current.status);
  queue.wr_id = queue.current.wr_id;
  if (queue.current.status != verbs::WcStatus::success) [[unlikely]]
    explain_failure(queue.current);
  return 0;
}

int start_poll(ibv_cq_ex* abi, ibv_poll_cq_attr* attributes) {
  if (attributes != nullptr && attributes->comp_mask != 0) return fail(EINVAL);
  const Call call;
  Queue* queue = table<Queue>().find(abi);
  if (queue == nullptr || queue->bracket.is_mine()) return fail(EINVAL);
  queue->bracket.enter();
  const bool is_live = table<Queue>().is_live(queue);  // false if it was destroyed while this thread waited
  const int code = is_live ? take_next(*queue, call) : fail(EINVAL);
  if (code != 0) queue->bracket.leave();  // the program does not call end_poll() after a failure
  return code;
}

int next_poll(ibv_cq_ex* abi) {
  const Call call;
  Queue* queue = table<Queue>().find(abi);
  return queue != nullptr && queue->bracket.is_mine() ? take_next(*queue, call) : fail(EINVAL);
}

void end_poll(ibv_cq_ex* abi) {
  const Call call;
  if (Queue* queue = table<Queue>().find(abi); queue != nullptr) queue->bracket.leave();
}

std::uint64_t wall_clock(ibv_cq_ex* abi) {
  timespec wall{}, monotonic{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ahead = (wall.tv_sec - monotonic.tv_sec) * kSecond + (wall.tv_nsec - monotonic.tv_nsec);
  return current(abi).timestamp_ns + static_cast<std::uint64_t>(ahead);
}

}  // namespace

void set_operations(Queue& queue, std::uint64_t fields) {
  queue.start_poll = start_poll;
  queue.next_poll = next_poll;
  queue.end_poll = end_poll;
  queue.read_opcode = [](ibv_cq_ex* abi) { return static_cast<ibv_wc_opcode>(current(abi).opcode); };
  queue.read_vendor_err = [](ibv_cq_ex* abi) { return current(abi).vendor_err; };
  queue.read_wc_flags = [](ibv_cq_ex* abi) -> unsigned { return current(abi).wc_flags; };
  const auto wants = [fields](std::uint64_t field) { return (fields & field) != 0; };
  if (wants(IBV_WC_EX_WITH_BYTE_LEN)) queue.read_byte_len = [](ibv_cq_ex* abi) { return current(abi).byte_len; };
  if (wants(IBV_WC_EX_WITH_IMM)) queue.read_imm_data = [](ibv_cq_ex* abi) -> __be32 { return current(abi).imm; };
  if (wants(IBV_WC_EX_WITH_QP_NUM)) queue.read_qp_num = [](ibv_cq_ex* abi) { return current(abi).qp_num; };
  if (wants(IBV_WC_EX_WITH_SRC_QP)) queue.read_src_qp = [](ibv_cq_ex* abi) { return current(abi).src_qp; };
  if (wants(IBV_WC_EX_WITH_SLID)) queue.read_slid = [](ibv_cq_ex* abi) -> std::uint32_t { return current(abi).slid; };
  if (wants(IBV_WC_EX_WITH_SL)) queue.read_sl = [](ibv_cq_ex* abi) { return current(abi).sl; };
  if (wants(IBV_WC_EX_WITH_DLID_PATH_BITS)) {
    queue.read_dlid_path_bits = [](ibv_cq_ex* abi) { return current(abi).dlid_path_bits; };
  }
  if (wants(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)) {
    queue.read_completion_ts = [](ibv_cq_ex* abi) { return current(abi).timestamp_ns; };
  }
  if (wants(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)) queue.read_completion_wallclock_ns = wall_clock;
}

}  // namespace fairlead::ibverbs
