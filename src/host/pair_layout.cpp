#include "host/pair_layout.hpp"

#include <utility>

#include <fairlead/verbs/device.hpp>

#include "wire/pair_words.hpp"

namespace fairlead::host {

PlainVector to_plain(const verbs::AddressVector& vector) {
  return {.dgid = vector.dgid,
          .flow_label = vector.flow_label,
          .dlid = vector.dlid,
          .sgid_index = vector.sgid_index,
          .hop_limit = vector.hop_limit,
          .traffic_class = vector.traffic_class,
          .sl = vector.sl,
          .src_path_bits = vector.src_path_bits,
          .static_rate = vector.static_rate,
          .is_global = vector.is_global,
          .port_num = vector.port_num};
}

verbs::AddressVector from_plain(const PlainVector& vector) {
  return {.dgid = vector.dgid,
          .flow_label = vector.flow_label,
          .dlid = vector.dlid,
          .sgid_index = vector.sgid_index,
          .hop_limit = vector.hop_limit,
          .traffic_class = vector.traffic_class,
          .sl = vector.sl,
          .src_path_bits = vector.src_path_bits,
          .static_rate = vector.static_rate,
          .is_global = vector.is_global != 0,
          .port_num = vector.port_num};
}

PlainAttributes to_plain(const verbs::QpAttributes& attributes) {
  return {.av = to_plain(attributes.av),
          .alt_av = to_plain(attributes.alt_av),
          .qkey = attributes.qkey,
          .rq_psn = attributes.rq_psn,
          .sq_psn = attributes.sq_psn,
          .dest_qp_num = attributes.dest_qp_num,
          .access_flags = attributes.access_flags,
          .pkey_index = attributes.pkey_index,
          .state = std::to_underlying(attributes.state),
          .path_mtu = std::to_underlying(attributes.path_mtu),
          .path_mig_state = attributes.path_mig_state,
          .en_sqd_async_notify = attributes.en_sqd_async_notify,
          .is_sq_draining = attributes.is_sq_draining,
          .max_rd_atomic = attributes.max_rd_atomic,
          .max_dest_rd_atomic = attributes.max_dest_rd_atomic,
          .min_rnr_timer = attributes.min_rnr_timer,
          .port_num = attributes.port_num,
          .timeout = attributes.timeout,
          .retry_cnt = attributes.retry_cnt,
          .rnr_retry = attributes.rnr_retry,
          .alt_port_num = attributes.alt_port_num,
          .alt_timeout = attributes.alt_timeout};
}

std::optional<verbs::QpAttributes> from_plain(const PlainAttributes& plain) {
  constexpr verbs::DeviceLimits kDevice;
  constexpr std::uint32_t kNumberMax = wire::PairPort::kNumberMost;
  constexpr std::uint8_t kTimeMax = 31, kRetriesMax = 7;
  if (plain.state > std::to_underlying(verbs::QpState::err) ||
      plain.path_mtu > std::to_underlying(verbs::Mtu::bytes_4096) || plain.rq_psn > kNumberMax ||
      plain.sq_psn > kNumberMax || plain.dest_qp_num > kNumberMax || plain.timeout > kTimeMax ||
      plain.min_rnr_timer > kTimeMax || plain.retry_cnt > kRetriesMax || plain.rnr_retry > kRetriesMax ||
      plain.max_rd_atomic > kDevice.max_qp_rd_atom || plain.max_dest_rd_atomic > kDevice.max_qp_rd_atom) {
    return std::nullopt;
  }
  verbs::QpAttributes attributes;
  attributes.state = attributes.cur_state = static_cast<verbs::QpState>(plain.state);
  attributes.path_mtu = static_cast<verbs::Mtu>(plain.path_mtu);
  attributes.path_mig_state = plain.path_mig_state;
  attributes.qkey = plain.qkey;
  attributes.rq_psn = plain.rq_psn;
  attributes.sq_psn = plain.sq_psn;
  attributes.dest_qp_num = plain.dest_qp_num;
  attributes.access_flags = plain.access_flags;
  attributes.av = from_plain(plain.av);
  attributes.alt_av = from_plain(plain.alt_av);
  attributes.pkey_index = plain.pkey_index;
  attributes.en_sqd_async_notify = plain.en_sqd_async_notify != 0;
  attributes.is_sq_draining = plain.is_sq_draining != 0;
  attributes.max_rd_atomic = plain.max_rd_atomic;
  attributes.max_dest_rd_atomic = plain.max_dest_rd_atomic;
  attributes.min_rnr_timer = plain.min_rnr_timer;
  attributes.port_num = plain.port_num;
  attributes.timeout = plain.timeout;
  attributes.retry_cnt = plain.retry_cnt;
  attributes.rnr_retry = plain.rnr_retry;
  attributes.alt_port_num = plain.alt_port_num;
  attributes.alt_timeout = plain.alt_timeout;
  return attributes;
}

}  // namespace fairlead::host
