#include <fairlead/verbs/types.hpp>
#include <fairlead/verbs/work_completion.hpp>

#include <string>

namespace fairlead::verbs {

const char* explain(Cause cause) noexcept {
  switch (cause) {
    case Cause::none:
      return "no failure is known";
    case Cause::never_heard:
      return "the peer's address never answered: is the program running there, and do UDP datagrams get through?";
    case Cause::no_ack:
      return "the peer was heard before, then stopped acknowledging: did its host or the network fail?";
    case Cause::peer_restarted:
      return "the peer's process is a new one: connect again";
    case Cause::port_unreachable:
      return "no process listens at the peer's UDP port: is the program still running?";
    case Cause::no_such_queue_pair:
      return "the peer's process has no queue pair of that number and type: was it destroyed?";
    case Cause::queue_pair_not_ready:
      return "the peer's queue pair is not ready to receive: it has to be in RTR or RTS, and has not failed";
    case Cause::sequence_mismatch:
      return "the peer's queue pair expects another queue pair or PSN: compare dest_qp_num, GID, sq_psn here and "
             "rq_psn there";
    case Cause::no_answer:
      return "the peer acknowledged the request but never answered it";
    case Cause::no_receive_posted:
      return "the peer had no receive posted, for longer than rnr_retry and min_rnr_timer allow";
    case Cause::key_unknown:
      return "the key names no memory region of that protection domain, or one that was deregistered";
    case Cause::out_of_range:
      return "the address range is not inside the memory region";
    case Cause::no_right:
      return "the memory region or the queue pair does not permit this: check access flags and max_dest_rd_atomic";
    case Cause::misaligned:
      return "atomics need an address divisible by 8";
    case Cause::too_long:
      return "the message is longer than the receive, the MTU or the largest message";
    case Cause::wrong_queue_key:
      return "the queue key does not match";
    case Cause::bad_request:
      return "the request is invalid on this queue pair: check max_rd_atomic and the opcode";
    case Cause::peer_failed:
      return "the peer could not complete it";
    case Cause::no_such_shared_queue:
      return "the peer's XRC domain has no shared receive queue of that number: compare the SRQ number, and whether "
             "both ends are XRC";
    case Cause::host_ended:
      return "the host engine has ended: is fairleadd still running? Open the device again";
    case Cause::peer_ended:
      return "the connection through shared memory has ended: did the peer's process exit, crash, or was it killed?";
  }
  return "an unknown cause";
}

const char* to_string(WcOpcode opcode) noexcept {
  switch (opcode) {
    case WcOpcode::send:
      return "send";
    case WcOpcode::write:
      return "write";
    case WcOpcode::read:
      return "read";
    case WcOpcode::compare_swap:
      return "compare and swap";
    case WcOpcode::fetch_add:
      return "fetch and add";
    case WcOpcode::bind_window:
      return "bind window";
    case WcOpcode::invalidate:
      return "invalidate";
    case WcOpcode::atomic_write:
      return "atomic write";
    case WcOpcode::receive:
      return "receive";
    case WcOpcode::receive_write_imm:
      return "receive of a write's immediate";
  }
  return "unknown";
}

std::string describe(const WorkCompletion& completion) {
  std::string text = std::string(to_string(completion.opcode)) + " " + std::to_string(completion.wr_id) +
                     " of queue pair " + std::to_string(completion.qp_num) + ": " + to_string(completion.status);
  if (completion.status == WcStatus::success) return text + ", " + std::to_string(completion.byte_len) + " bytes";
  const auto cause = static_cast<Cause>(completion.vendor_err);
  return cause == Cause::none ? text : text + ": " + explain(cause);
}

const char* to_string(WcStatus status) noexcept {
  switch (status) {
    case WcStatus::success:
      return "success";
    case WcStatus::loc_len_err:
      return "local length error";
    case WcStatus::loc_qp_op_err:
      return "local queue pair operation error";
    case WcStatus::loc_prot_err:
      return "local protection error";
    case WcStatus::wr_flush_err:
      return "flushed";
    case WcStatus::mw_bind_err:
      return "memory window bind error";
    case WcStatus::bad_resp_err:
      return "bad response";
    case WcStatus::loc_access_err:
      return "local access error";
    case WcStatus::rem_inv_req_err:
      return "remote invalid request";
    case WcStatus::rem_access_err:
      return "remote access error";
    case WcStatus::rem_op_err:
      return "remote operation error";
    case WcStatus::retry_exc_err:
      return "retries exceeded";
    case WcStatus::rnr_retry_exc_err:
      return "receiver-not-ready retries exceeded";
    case WcStatus::fatal_err:
      return "fatal error";
    case WcStatus::general_err:
      return "general error";
  }
  return "unknown status";
}

}  // namespace fairlead::verbs
