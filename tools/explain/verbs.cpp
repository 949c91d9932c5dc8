#include <fairlead/verbs/device.hpp>
#include <fairlead/verbs/types.hpp>
#include <fairlead/verbs/work_completion.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "tools/explain/word.hpp"
#include "verbs/status_texts.hpp"

namespace fairlead::tools {
namespace {

using verbs::AsyncEventType;
using verbs::Cause;
using verbs::WcStatus;

struct CompletionWord {
  WcStatus status;
  std::string_view name, sentence;
};

constexpr std::string_view kStatusKind = "completion status", kEventKind = "asynchronous event";

// Numbers of <infiniband/verbs.h> that no device of Fairlead reports.
constexpr Word kAbsentStatuses[] = {
    {kStatusKind, 3, "IBV_WC_LOC_EEC_OP_ERR", "never reported by Fairlead: it concerns reliable datagrams"},
    {kStatusKind, 14, "IBV_WC_LOC_RDD_VIOL_ERR", "never reported by Fairlead: it concerns reliable datagrams"},
    {kStatusKind, 15, "IBV_WC_REM_INV_RD_REQ_ERR", "never reported by Fairlead: it concerns reliable datagrams"},
    {kStatusKind, 16, "IBV_WC_REM_ABORT_ERR",
     "never reported by Fairlead: an adapter reports with it that the peer gave the operation up"},
    {kStatusKind, 17, "IBV_WC_INV_EECN_ERR", "never reported by Fairlead: it concerns reliable datagrams"},
    {kStatusKind, 18, "IBV_WC_INV_EEC_STATE_ERR", "never reported by Fairlead: it concerns reliable datagrams"},
    {kStatusKind, 20, "IBV_WC_RESP_TIMEOUT_ERR",
     "never reported by Fairlead: an adapter reports with it that a response did not come in time"},
    {kStatusKind, 22, "IBV_WC_TM_ERR", "never reported by Fairlead: it concerns tag matching"},
    {kStatusKind, 23, "IBV_WC_TM_RNDV_INCOMPLETE", "never reported by Fairlead: it concerns tag matching"},
};

constexpr Word kAbsentEvents[] = {
    {kEventKind, 6, "IBV_EVENT_PATH_MIG", "never reported by Fairlead: a queue pair has no alternate path"},
    {kEventKind, 7, "IBV_EVENT_PATH_MIG_ERR", "never reported by Fairlead: a queue pair has no alternate path"},
    {kEventKind, 11, "IBV_EVENT_LID_CHANGE",
     "never reported by Fairlead: the LID follows from the address of the device"},
    {kEventKind, 12, "IBV_EVENT_PKEY_CHANGE", "never reported by Fairlead: the table of keys does not change"},
    {kEventKind, 13, "IBV_EVENT_SM_CHANGE", "never reported by Fairlead: there is no subnet manager"},
    {kEventKind, 17, "IBV_EVENT_CLIENT_REREGISTER", "never reported by Fairlead: there is no subnet manager"},
    {kEventKind, 19, "IBV_EVENT_WQ_FATAL",
     "never reported by Fairlead: there are no work queues apart from queue pairs"},
};

constexpr CompletionWord kStatuses[] = {
    {WcStatus::success, "IBV_WC_SUCCESS", "it worked"},
    {WcStatus::loc_len_err, "IBV_WC_LOC_LEN_ERR",
     "the message is longer than the posted receive, or than the queue pair can send: post longer receives"},
    {WcStatus::loc_qp_op_err, "IBV_WC_LOC_QP_OP_ERR", "the queue pair cannot do what this work request asks for"},
    {WcStatus::loc_prot_err, "IBV_WC_LOC_PROT_ERR",
     "an lkey of this work request names no memory region that contains its addresses: register the memory first"},
    {WcStatus::wr_flush_err, "IBV_WC_WR_FLUSH_ERR",
     "the queue pair failed before it executed this work request: look at the first completion that failed"},
    {WcStatus::mw_bind_err, "IBV_WC_MW_BIND_ERR", "a memory window could not be bound"},
    {WcStatus::bad_resp_err, "IBV_WC_BAD_RESP_ERR", "the peer sent an invalid answer"},
    {WcStatus::loc_access_err, "IBV_WC_LOC_ACCESS_ERR", "the local memory region does not permit the peer's request"},
    {WcStatus::rem_inv_req_err, "IBV_WC_REM_INV_REQ_ERR",
     "the peer refuses the request: longer than its receive, or not enabled on its queue pair (qp_access_flags)"},
    {WcStatus::rem_access_err, "IBV_WC_REM_ACCESS_ERR",
     "the rkey names no memory region of the peer's domain that contains these addresses and permits this: compare "
     "key, address, length and access flags"},
    {WcStatus::rem_op_err, "IBV_WC_REM_OP_ERR", "the peer could not complete the request"},
    {WcStatus::retry_exc_err, "IBV_WC_RETRY_EXC_ERR",
     "the peer did not acknowledge within (retry_cnt + 1) x timeout: is its process alive, and its queue pair in RTR "
     "or RTS? Are GID, dest_qp_num and PSN those of the peer? vendor_err gives the cause"},
    {WcStatus::rnr_retry_exc_err, "IBV_WC_RNR_RETRY_EXC_ERR",
     "the peer had no receive posted for longer than rnr_retry allows: post receives sooner, or set rnr_retry to 7"},
    {WcStatus::fatal_err, "IBV_WC_FATAL_ERR", "the device failed"},
    {WcStatus::general_err, "IBV_WC_GENERAL_ERR", "none of the other failures"},
};

constexpr std::string_view kCauses[] = {"none",
                                        "never_heard",
                                        "no_ack",
                                        "peer_restarted",
                                        "port_unreachable",
                                        "no_such_queue_pair",
                                        "queue_pair_not_ready",
                                        "sequence_mismatch",
                                        "no_answer",
                                        "no_receive_posted",
                                        "key_unknown",
                                        "out_of_range",
                                        "no_right",
                                        "misaligned",
                                        "too_long",
                                        "wrong_queue_key",
                                        "bad_request",
                                        "peer_failed",
                                        "no_such_shared_queue",
                                        "host_ended",
                                        "peer_ended"};
static_assert(std::size(kCauses) == std::to_underlying(Cause::peer_ended) + 1);

struct EventWord {
  AsyncEventType type;
  std::string_view name, sentence;
};

constexpr EventWord kEvents[] = {
    {AsyncEventType::cq_err, "IBV_EVENT_CQ_ERR", "a completion queue overran: make it larger, or poll it sooner"},
    {AsyncEventType::qp_fatal, "IBV_EVENT_QP_FATAL", "a queue pair failed and is in the error state"},
    {AsyncEventType::qp_req_err, "IBV_EVENT_QP_REQ_ERR", "a peer sent a queue pair a request that is not valid"},
    {AsyncEventType::qp_access_err, "IBV_EVENT_QP_ACCESS_ERR",
     "a peer's request to a queue pair had no right to the memory"},
    {AsyncEventType::comm_est, "IBV_EVENT_COMM_EST", "the first message arrived at a queue pair in RTR"},
    {AsyncEventType::sq_drained, "IBV_EVENT_SQ_DRAINED", "the send queue of a queue pair in SQD is drained"},
    {AsyncEventType::device_fatal, "IBV_EVENT_DEVICE_FATAL", "the device failed"},
    {AsyncEventType::port_active, "IBV_EVENT_PORT_ACTIVE", "the interface is up and has the device's address"},
    {AsyncEventType::port_err, "IBV_EVENT_PORT_ERR", "the interface went down, or lost the device's address"},
    {AsyncEventType::srq_err, "IBV_EVENT_SRQ_ERR", "a shared receive queue failed"},
    {AsyncEventType::srq_limit_reached, "IBV_EVENT_SRQ_LIMIT_REACHED",
     "a shared receive queue has fewer receives than its limit: post more"},
    {AsyncEventType::qp_last_wqe_reached, "IBV_EVENT_QP_LAST_WQE_REACHED",
     "a failed queue pair takes no more receives from its shared receive queue"},
    {AsyncEventType::gid_change, "IBV_EVENT_GID_CHANGE", "the interface lost the device's address"},
};

// In the order of QpState.
constexpr Word kStates[] = {
    {"queue pair state", 0, "IBV_QPS_RESET", "it accepts no requests: modify it to INIT", "RESET"},
    {"queue pair state", 1, "IBV_QPS_INIT", "receives may be posted; nothing is received yet: modify it to RTR",
     "INIT"},
    {"queue pair state", 2, "IBV_QPS_RTR", "ready to receive; it cannot send yet: modify it to RTS", "RTR"},
    {"queue pair state", 3, "IBV_QPS_RTS", "ready to send and to receive", "RTS"},
    {"queue pair state", 4, "IBV_QPS_SQD", "its send queue is drained: sent requests complete, no others are sent",
     "SQD"},
    {"queue pair state", 5, "IBV_QPS_SQE", "a send over UC or UD failed; it still receives: modify it to RTS", "SQE"},
    {"queue pair state", 6, "IBV_QPS_ERR",
     "it failed, or was put into this state: all work requests are flushed; modify it to RESET to use it again", "ERR"},
};
static_assert(std::size(kStates) == std::to_underlying(verbs::QpState::err) + 1);

std::vector<Word> completion_words() {
  std::vector<Word> all;
  for (const CompletionWord& word : kStatuses) {
    const std::uint32_t number = std::to_underlying(word.status);
    all.push_back({kStatusKind, number, word.name, word.sentence});
  }
  all.insert(all.end(), std::begin(kAbsentStatuses), std::end(kAbsentStatuses));
  for (Word& word : all) word.text = verbs::kStatusTexts[word.number];
  std::ranges::sort(all, {}, &Word::number);
  return all;
}

std::vector<Word> event_words() {
  std::vector<Word> all;
  for (const EventWord& word : kEvents)
    all.push_back({kEventKind, std::to_underlying(word.type), word.name, word.sentence});
  all.insert(all.end(), std::begin(kAbsentEvents), std::end(kAbsentEvents));
  std::ranges::sort(all, {}, &Word::number);
  return all;
}

}  // namespace

std::span<const Word> verbs_words() {
  static const std::vector<Word> words = [] {
    std::vector<Word> all = completion_words();
    for (std::uint32_t i = 0; i < std::size(kCauses); ++i)
      all.push_back({"vendor_err", i, kCauses[i], verbs::explain(static_cast<Cause>(i))});
    const std::vector<Word> events = event_words();
    all.insert(all.end(), events.begin(), events.end());
    all.insert(all.end(), std::begin(kStates), std::end(kStates));
    return all;
  }();
  return words;
}

}  // namespace fairlead::tools
