// Messages of ids to their peers and from them.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "doors/rdma_cm/addressing.hpp"
#include "doors/rdma_cm/service.hpp"

namespace fairlead::rdma_cm {
namespace {

bool is_gone(Status status) {
  return status == Status::refused || status == Status::restarted || status == Status::silent ||
         status == Status::unreachable;
}

}  // namespace

// ---- messages out

void Service::post(Id& id, const Message& message) {
  post(Sent{.handle = id.handle,
            .name = id.connection.name(),
            .local = id.device,
            .host = id.peer,
            .to = id.peer_address,
            .message = message,
            .tries = 0});
}

void Service::post(Sent sent) {
  if (const std::uint64_t tag = outbox_.add(std::move(sent)); tag != 0) send(tag);
}

void Service::send(std::uint64_t tag) {
  const Sent& sent = outbox_.find(tag);
  const Status status = carrier_.send(sent.local, sent.to, sent.message, tag);
  if (status == Status::ok) return;
  outbox_.refuse(tag, status, Instant::clock::now());
  wake();
}

// A peer of this host may be gone while its link still waits for acknowledgements: the kernel knows at once.
bool Service::is_known_gone(const std::string& address) const {
  if (!outbox_.is_asking(address)) return false;
  const auto ip = ip_of_address(address);
  const auto port = port_of_address(address);
  return ip && port && is_nobody_at(*ip, *port);
}

void Service::take_outcome(const Outcome& outcome, Instant now) {
  if (const auto failed = outbox_.finish(outcome.tag, outcome.status, now)) fail(*failed, now);
}

void Service::fail(const Failed& failed, Instant now) {
  const Sent& sent = failed.sent;
  if (sent.message.kind == Kind::alive) {
    if (is_gone(failed.why)) lose_peer(sent.to, failed.why, now);
    return;
  }
  const auto found = ids_.find(sent.handle);
  if (sent.name == 0 || found == ids_.end() || found->second->connection.name() != sent.name) return;
  const std::shared_ptr<Id> id = found->second;
  // If shared memory is the only transport, no engine reports that nobody listens.
  const bool is_request = sent.message.kind == Kind::req || sent.message.kind == Kind::sidr_req;
  const bool is_nobody = is_request && failed.why == Status::unreachable && is_nobody_at(id->peer, id->target.port);
  apply(id, id->connection.fail(sent.message.kind, is_nobody ? Status::refused : failed.why, now));
}

void Service::lose_peer(const std::string& address, Status status, Instant now) {
  std::vector<std::shared_ptr<Id>> lost;
  for (const auto& [handle, id] : ids_) {
    if (id->peer_address == address && id->connection.needs_peer()) lost.push_back(id);
  }
  if (!lost.empty()) ++counters_.lost_peers;
  for (const auto& id : lost) apply(id, id->connection.lose(status, now));
}

// ---- messages in

void Service::take(const Delivery& delivery, Instant now) {
  const Message& message = delivery.message;
  if (message.kind == Kind::req || message.kind == Kind::sidr_req) return take_request(delivery);
  const std::shared_ptr<Id> id = addressee(delivery);
  if (message.kind == Kind::alive) {
    if (message.to != 0 && (!id || id->connection.is_over()))
      answer_without_id(delivery, Kind::dreq, std::to_underlying(Reason::invalid_comm_id));
    return;
  }
  if (id) return apply(id, id->connection.take(message, now));
  ++counters_.unknown_name;
  if (message.kind == Kind::dreq) answer_without_id(delivery, Kind::drep, 0);
  if (message.kind == Kind::rep) answer_without_id(delivery, Kind::rej, std::to_underlying(Reason::invalid_comm_id));
}

// Returns the id that a message names, if the sender is that id's peer, at the address that we asked.
std::shared_ptr<Id> Service::addressee(const Delivery& delivery) {
  const Message& message = delivery.message;
  std::uint32_t handle = 0;
  if (message.to != 0) {
    const auto found = by_name_.find(message.to);
    if (found == by_name_.end()) return nullptr;
    handle = found->second;
  } else {
    const auto found = by_request_.find({delivery.from, message.from});
    if (found == by_request_.end()) return nullptr;
    handle = found->second;
  }
  const auto found = ids_.find(handle);
  if (found == ids_.end()) return nullptr;
  const std::shared_ptr<Id>& id = found->second;
  const bool is_answer = id->connection.state() == State::requesting;
  if (ip_of_address(delivery.from) != id->peer ||
      (!is_answer && (id->connection.peer_name() != message.from || id->peer_address != delivery.from))) {
    ++counters_.wrong_sender;
    return nullptr;
  }
  // A listener's process answers from its home, which is the peer's address from then on.
  if (is_answer && message.kind == Kind::rep) id->peer_address = delivery.from;
  return id;
}

std::shared_ptr<Id> Service::listener_of(const Delivery& delivery) {
  for (const auto& id : listeners_) {
    if (id->port_space == delivery.message.port_space && id->source.port == delivery.port &&
        std::ranges::count(id->listens, delivery.local) != 0 &&
        id->connection.is_datagram() == (delivery.message.kind == Kind::sidr_req)) {
      return id;
    }
  }
  return nullptr;
}

void Service::answer_without_id(const Delivery& delivery, Kind kind, std::uint8_t reason) {
  Message answer;
  answer.kind = kind;
  answer.reason = reason;
  answer.to = delivery.message.from;
  answer.from = delivery.message.to != 0 ? delivery.message.to : 1;
  post(Sent{.handle = 0,
            .name = 0,
            .local = delivery.local,
            .host = ip_of_address(delivery.from).value_or(Ip{}),
            .to = delivery.from,
            .message = answer,
            .tries = 0});
}

void Service::take_request(const Delivery& delivery) {
  const Message& message = delivery.message;
  ++counters_.requests;
  const bool is_datagram = message.kind == Kind::sidr_req;
  const std::shared_ptr<Id> listener = delivery.port != 0 ? listener_of(delivery) : nullptr;
  if (!listener) {
    ++counters_.no_listener;
    return answer_without_id(
        delivery, is_datagram ? Kind::sidr_rep : Kind::rej,
        is_datagram ? std::to_underlying(SidrStatus::unsupported) : std::to_underlying(Reason::invalid_service_id));
  }
  const auto peer = ip_of_address(delivery.from);
  if (!peer || by_request_.contains({delivery.from, message.from})) {
    ++counters_.repeated;
    return;
  }
  const bool has_place = listener->backlog.take(*peer);
  const std::shared_ptr<Id> child = has_place ? make_id(listener->port_space, listener->qp_type) : nullptr;
  if (!child) {
    if (has_place) listener->backlog.release(*peer);
    ++counters_.backlog_full;
    return answer_without_id(delivery, Kind::busy, 0);
  }
  child->connection = Connection::answering(message, child->connection.name(), child->connection.psn());
  child->file = listener->file;
  child->has_device = true;
  child->device = delivery.local;
  child->peer = *peer;
  child->peer_address = delivery.from;
  const Family family = message.target.family == Family::none ? listener->source.family : message.target.family;
  child->source = {.family = family, .ip = message.target.ip, .port = delivery.port};
  // A program of this host that asked for a loopback address has that address as its own.
  const bool is_loop = *peer == delivery.local && is_loopback(message.target.ip);
  child->target = {.family = family, .ip = is_loop ? message.target.ip : *peer, .port = message.source_port};
  if (family == Family::v4 && !is_v4(*peer)) child->source.family = child->target.family = Family::v6;
  child->tos = listener->tos;
  child->ack_timeout = listener->ack_timeout;
  by_request_.emplace(std::pair(delivery.from, message.from), child->handle);
  tell(listener, Connection::request_told(message), child);
}

}  // namespace fairlead::rdma_cm
