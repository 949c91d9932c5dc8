// Commands that connect and disconnect.
#include <infiniband/verbs.h>

#include <utility>

#include "doors/rdma_cm/command.hpp"
#include "doors/rdma_cm/pair_attributes.hpp"

namespace fairlead::rdma_cm {
namespace {

constexpr std::uint32_t kPairNumberMask = 0xff'ffff;
constexpr std::uint8_t kRetryMask = 7;

Terms terms_of(const rdma_ucm_conn_param& from) {
  return {.qp_num = from.qp_num & kPairNumberMask,
          .qkey = from.qkey,
          .responder_resources = from.responder_resources,
          .initiator_depth = from.initiator_depth,
          .flow_control = from.flow_control != 0,
          .retry_count = static_cast<std::uint8_t>(std::min(from.retry_count, kRetryMask)),
          .rnr_retry_count = static_cast<std::uint8_t>(std::min(from.rnr_retry_count, kRetryMask)),
          .has_srq = from.srq != 0};
}

PrivateData data_of(const std::uint8_t* bytes, std::uint8_t length) {
  PrivateData data;
  data.length = length;
  std::memcpy(data.bytes.data(), bytes, length);
  return data;
}

/// Settles the queue key of a datagram id, which stays the same for its life.
int settle_key(Id& id, Terms& terms) {
  if (!id.connection.is_datagram()) return 0;
  if (id.terms.qkey != 0 && terms.qkey != 0 && terms.qkey != id.terms.qkey) return EINVAL;
  if (terms.qkey == 0) terms.qkey = id.terms.qkey != 0 ? id.terms.qkey : kDatagramKey;
  return 0;
}

template <typename Ask>
int for_id(const Command& command, std::uint32_t handle, Ask&& ask) {
  const std::lock_guard guard(command.service.mutex());
  const auto id = command.service.find(handle, *command.file);
  return id ? ask(id) : ENOENT;
}

int apply_step(const Command& command, const std::shared_ptr<Id>& id, const Step& step) {
  command.service.apply(id, step);
  return step.error;
}

}  // namespace

int connect(const Command& command) {
  const auto wanted = command.get<rdma_ucm_connect>();
  if (wanted.conn_param.valid == 0) return EINVAL;
  return for_id(command, wanted.id, [&](const std::shared_ptr<Id>& id) {
    Terms terms = terms_of(wanted.conn_param);
    if (const int error = settle_key(*id, terms); error != 0) return error;
    Message request;
    request.port_space = id->port_space;
    request.qp_type = id->qp_type;
    request.source_port = id->source.port;
    request.target = id->target;
    const Step step = id->connection.connect(
        request, terms, data_of(wanted.conn_param.private_data, wanted.conn_param.private_data_len),
        Instant::clock::now());
    if (step.error == 0) id->terms = terms;
    return apply_step(command, id, step);
  });
}

int listen(const Command& command) {
  const auto wanted = command.get<rdma_ucm_listen>();
  return for_id(command, wanted.id,
                [&](const std::shared_ptr<Id>& id) { return command.service.listen(id, wanted.backlog); });
}

int accept(const Command& command) {
  const auto wanted = command.get<rdma_ucm_accept>();
  return for_id(command, wanted.id, [&](const std::shared_ptr<Id>& id) {
    const auto& given = wanted.conn_param;
    Terms terms = terms_of(given);
    if (const int error = settle_key(*id, terms); error != 0) return error;
    const bool has_terms = given.valid != 0;
    const Step step = id->connection.accept(
        has_terms ? &terms : nullptr, has_terms ? data_of(given.private_data, given.private_data_len) : PrivateData{},
        Instant::clock::now());
    if (step.error != 0) return step.error;
    if (has_terms) {
      id->terms = terms;
      id->uid = wanted.uid;
    }
    return apply_step(command, id, step);
  });
}

int reject(const Command& command) {
  const auto wanted = command.get<rdma_ucm_reject>();
  const auto reason = wanted.reason == 0 ? Reason::consumer_defined : static_cast<Reason>(wanted.reason);
  if (reason != Reason::consumer_defined && reason != Reason::vendor_option_not_supported) return EINVAL;
  return for_id(command, wanted.id, [&](const std::shared_ptr<Id>& id) {
    return apply_step(command, id,
                      id->connection.reject(reason, data_of(wanted.private_data, wanted.private_data_len)));
  });
}

int disconnect(const Command& command) {
  const auto wanted = command.get<rdma_ucm_disconnect>();
  return for_id(command, wanted.id, [&](const std::shared_ptr<Id>& id) {
    return apply_step(command, id, id->connection.disconnect(Instant::clock::now()));
  });
}

int notify(const Command& command) {
  const auto wanted = command.get<rdma_ucm_notify>();
  return for_id(command, wanted.id, [&](const std::shared_ptr<Id>& id) {
    if (wanted.event != IBV_EVENT_COMM_EST) return EINVAL;
    return apply_step(command, id, id->connection.establish());
  });
}

int init_pair_attributes(const Command& command) {
  const auto wanted = command.get<rdma_ucm_init_qp_attr>();
  return for_id(command, wanted.id, [&](const std::shared_ptr<Id>& id) {
    const auto attributes = pair_attributes(*id, wanted.qp_state);
    return attributes ? command.answer(wanted.response, *attributes) : attributes.error();
  });
}

}  // namespace fairlead::rdma_cm
