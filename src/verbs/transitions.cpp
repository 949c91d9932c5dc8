#include "verbs/transitions.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <string>

namespace fairlead::verbs {
namespace {

using namespace qp_mask;

/// Attribute masks per type of queue pair.
struct ByType {
  std::uint32_t rc = 0, uc = 0, ud = 0, xrc_send = 0, xrc_recv = 0;
  std::uint32_t of(QpType type) const {
    switch (type) {
      case QpType::rc:
        return rc;
      case QpType::uc:
        return uc;
      case QpType::ud:
        return ud;
      case QpType::xrc_send:
        return xrc_send;
      case QpType::xrc_recv:
        return xrc_recv;
    }
    return 0;
  }
};

struct Transition {
  QpState from, to;
  ByType required, allowed;
};

constexpr std::uint32_t kPlace = pkey_index | port;
constexpr std::uint32_t kUnanswered = cur_state | alt_path | access_flags | path_mig_state;
constexpr ByType kRunning{.rc = kUnanswered | min_rnr_timer,
                          .uc = kUnanswered,
                          .ud = cur_state | qkey,
                          .xrc_send = kUnanswered,
                          .xrc_recv = kUnanswered | min_rnr_timer};
constexpr ByType kPlaced{.rc = kPlace | access_flags,
                         .uc = kPlace | access_flags,
                         .ud = kPlace | qkey,
                         .xrc_send = kPlace | access_flags,
                         .xrc_recv = kPlace | access_flags};
constexpr std::uint32_t kPeer = av | path_mtu | dest_qp_num | rq_psn,
                        kAsking = timeout | retry_cnt | rnr_retry | max_rd_atomic,
                        kAnswering = max_dest_rd_atomic | min_rnr_timer, kMoved = alt_path | access_flags | pkey_index;

constexpr std::array kTransitions{
    Transition{QpState::reset, QpState::init, kPlaced, {}},
    Transition{QpState::init, QpState::init, {}, kPlaced},
    Transition{QpState::init,
               QpState::rtr,
               {.rc = kPeer | kAnswering, .uc = kPeer, .ud = 0, .xrc_send = kPeer, .xrc_recv = kPeer | kAnswering},
               {.rc = kMoved, .uc = kMoved, .ud = pkey_index | qkey, .xrc_send = kMoved, .xrc_recv = kMoved}},
    Transition{QpState::rtr,
               QpState::rts,
               {.rc = kAsking | sq_psn,
                .uc = sq_psn,
                .ud = sq_psn,
                .xrc_send = kAsking | sq_psn,
                .xrc_recv = timeout | sq_psn},
               kRunning},
    Transition{QpState::rts, QpState::rts, {}, kRunning},
    Transition{QpState::rts,
               QpState::sqd,
               {},
               {.rc = en_sqd_async_notify,
                .uc = en_sqd_async_notify,
                .ud = en_sqd_async_notify,
                .xrc_send = en_sqd_async_notify,
                .xrc_recv = en_sqd_async_notify}},
    Transition{QpState::sqd, QpState::rts, {}, kRunning},
    Transition{QpState::sqd,
               QpState::sqd,
               {},
               {.rc = port | av | kAsking | kAnswering | kMoved | path_mig_state,
                .uc = av | kMoved | path_mig_state,
                .ud = pkey_index | qkey,
                .xrc_send = port | av | kAsking | kMoved | path_mig_state,
                .xrc_recv = port | av | timeout | kAnswering | kMoved | path_mig_state}},
    Transition{QpState::sqe, QpState::rts, {}, {.rc = 0, .uc = cur_state | access_flags, .ud = cur_state | qkey}},
};

constexpr std::array<const char*, 21> kAttributeNames{"state",
                                                      "cur_state",
                                                      "en_sqd_async_notify",
                                                      "access_flags",
                                                      "pkey_index",
                                                      "port",
                                                      "qkey",
                                                      "av",
                                                      "path_mtu",
                                                      "timeout",
                                                      "retry_cnt",
                                                      "rnr_retry",
                                                      "rq_psn",
                                                      "max_rd_atomic",
                                                      "alt_path",
                                                      "min_rnr_timer",
                                                      "sq_psn",
                                                      "max_dest_rd_atomic",
                                                      "path_mig_state",
                                                      "capacity",
                                                      "dest_qp_num"};

std::string names_of(std::uint32_t mask) {
  std::string names;
  for (; mask != 0; mask &= mask - 1) {
    const auto bit = static_cast<std::size_t>(std::countr_zero(mask));
    names += names.empty() ? "" : ", ";
    names += bit < kAttributeNames.size() ? kAttributeNames[bit] : "an unknown bit";
  }
  return names;
}

std::unexpected<Error> refusal(QpState from, QpState to, const std::string& why) {
  return failure(EINVAL, std::string("queue pair ") + name_of(from) + " -> " + name_of(to) + ": " + why);
}

}  // namespace

const char* name_of(QpState qp_state) {
  constexpr std::array<const char*, 7> kNames{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  const auto index = static_cast<std::size_t>(qp_state);
  return index < kNames.size() ? kNames[index] : "?";
}

Result<> check_transition(QpType type, QpState from, QpState to, std::uint32_t mask) {
  const std::uint32_t given = mask & ~qp_mask::state;
  if (to == QpState::reset || to == QpState::err) {
    if (from == QpState::reset && to == QpState::err) return refusal(from, to, "there is no such transition");
    return given == 0 ? Result<>{} : refusal(from, to, names_of(given) + " not allowed");
  }
  for (const Transition& transition : kTransitions) {
    if (transition.from != from || transition.to != to) continue;
    if (from == QpState::sqe && type != QpType::uc && type != QpType::ud) break;
    const std::uint32_t required = transition.required.of(type);
    if (const std::uint32_t missing = required & ~given; missing != 0) {
      return refusal(from, to, names_of(missing) + " missing");
    }
    if (const std::uint32_t extra = given & ~(required | transition.allowed.of(type)); extra != 0) {
      return refusal(from, to, names_of(extra) + " not allowed");
    }
    return {};
  }
  return refusal(from, to, "there is no such transition");
}

Result<> check_values(const ContextState& context, const QpAttributes& attributes, std::uint32_t mask) {
  const auto wrong = [&](std::uint32_t bit, bool is_wrong) { return (mask & bit) != 0 && is_wrong; };
  const DeviceLimits& limits = context.limits;
  constexpr std::uint32_t kRights =
      access::local_write | access::remote_write | access::remote_read | access::remote_atomic | access::optional_range;
  constexpr std::uint32_t kNumberMax = 0xFF'FFFF;
  if (wrong(port, attributes.port_num != 1)) return failure(EINVAL, "queue pair: a device has port 1 only");
  if (wrong(pkey_index, attributes.pkey_index >= limits.max_pkeys)) {
    return failure(EINVAL, "queue pair: no such pkey index");
  }
  if (wrong(access_flags, (attributes.access_flags & ~kRights) != 0)) {
    return failure(EINVAL, "queue pair: unknown access flags");
  }
  if (wrong(path_mtu, attributes.path_mtu < Mtu::bytes_256 || attributes.path_mtu > Mtu::bytes_4096)) {
    return failure(EINVAL, "queue pair: path_mtu beyond the port's");
  }
  if (wrong(max_rd_atomic, attributes.max_rd_atomic > limits.max_qp_rd_atom) ||
      wrong(max_dest_rd_atomic, attributes.max_dest_rd_atomic > limits.max_qp_rd_atom)) {
    return failure(EINVAL, "queue pair: more reads and atomics at once than the device can");
  }
  if (wrong(timeout, attributes.timeout > 31) || wrong(retry_cnt, attributes.retry_cnt > 7) ||
      wrong(rnr_retry, attributes.rnr_retry > 7) || wrong(min_rnr_timer, attributes.min_rnr_timer > 31)) {
    return failure(EINVAL, "queue pair: timeout and min_rnr_timer go to 31, retries to 7");
  }
  if (wrong(sq_psn, attributes.sq_psn > kNumberMax) || wrong(rq_psn, attributes.rq_psn > kNumberMax) ||
      wrong(dest_qp_num, attributes.dest_qp_num > kNumberMax)) {
    return failure(EINVAL, "queue pair: numbers and sequences have 24 bits");
  }
  if ((mask & av) != 0) return check(context, attributes.av);
  return {};
}

void merge(QpAttributes& to, const QpAttributes& from, std::uint32_t mask) {
  const auto has = [&](std::uint32_t bit) { return (mask & bit) != 0; };
  if (has(qp_mask::state)) to.state = from.state;
  if (has(en_sqd_async_notify)) to.en_sqd_async_notify = from.en_sqd_async_notify;
  if (has(access_flags)) to.access_flags = from.access_flags;
  if (has(pkey_index)) to.pkey_index = from.pkey_index;
  if (has(port)) to.port_num = from.port_num;
  if (has(qkey)) to.qkey = from.qkey;
  if (has(av)) to.av = from.av;
  if (has(path_mtu)) to.path_mtu = from.path_mtu;
  if (has(timeout)) to.timeout = from.timeout;
  if (has(retry_cnt)) to.retry_cnt = from.retry_cnt;
  if (has(rnr_retry)) to.rnr_retry = from.rnr_retry;
  if (has(rq_psn)) to.rq_psn = from.rq_psn;
  if (has(max_rd_atomic)) to.max_rd_atomic = from.max_rd_atomic;
  if (has(alt_path)) {
    to.alt_av = from.alt_av;
    to.alt_port_num = from.alt_port_num;
    to.alt_timeout = from.alt_timeout;
  }
  if (has(min_rnr_timer)) to.min_rnr_timer = from.min_rnr_timer;
  if (has(sq_psn)) to.sq_psn = from.sq_psn;
  if (has(max_dest_rd_atomic)) to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  if (has(path_mig_state)) to.path_mig_state = from.path_mig_state;
  if (has(dest_qp_num)) to.dest_qp_num = from.dest_qp_num;
}

}  // namespace fairlead::verbs
