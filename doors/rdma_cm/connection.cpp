#include "doors/rdma_cm/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace fairlead::rdma_cm {
namespace {

bool fits(const PrivateData& data, Kind kind, std::size_t header = 0) {
  return data.length + header <= private_data_max(kind);
}

Step refuse_step(int error) {
  return {.error = error};
}

}  // namespace

Connection Connection::answering(const Message& request, std::uint64_t name, std::uint32_t psn) {
  Connection made(name, psn, request.kind == Kind::sidr_req);
  made.peer_name_ = request.from;
  made.peer_psn_ = request.psn;
  made.peer_terms_ = as_we_see(request);
  made.state_ = State::requested;
  return made;
}

Told Connection::request_told(const Message& request) {
  Told told{.event = Event::connect_request, .status = 0, .terms = as_we_see(request), .data = request.data};
  const std::size_t header = request.target.family == Family::gid ? 0 : kIpHeaderSize;
  told.data.length = static_cast<std::uint8_t>(private_data_max(request.kind) - header);
  return told;
}

// The peer's responder resources limit our initiator depth, and vice versa.
Terms Connection::as_we_see(const Message& message) {
  Terms terms = message.terms;
  std::swap(terms.responder_resources, terms.initiator_depth);
  return terms;
}

Step Connection::tell(Event event, int status) const {
  return {.tell = Told{.event = event, .status = status, .terms = peer_terms_, .data = {}}};
}

// Programs see the full private data field of InfiniBand's message. What the peer did not fill is zero.
Step Connection::tell(Event event, int status, const Message& message) const {
  Step step = tell(event, status);
  step.tell->data = message.data;
  step.tell->data.length = static_cast<std::uint8_t>(private_data_max(message.kind));
  return step;
}

Message Connection::say(Kind kind) const {
  Message message;
  message.kind = kind;
  message.from = name_;
  message.to = peer_name_;
  return message;
}

Message Connection::say_reject(Reason reason) const {
  Message message = say(is_datagram_ ? Kind::sidr_rep : Kind::rej);
  message.reason = is_datagram_ ? std::to_underlying(SidrStatus::reject) : std::to_underlying(reason);
  return message;
}

bool Connection::needs_peer() const {
  return state_ >= State::requesting && state_ <= State::left;
}

Step Connection::bind() {
  if (state_ != State::idle) return refuse_step(EINVAL);
  enter(State::bound);
  return {};
}

Step Connection::resolve_address(int failure) {
  if (state_ != State::idle && state_ != State::bound) return refuse_step(EINVAL);
  if (failure != 0) return tell(Event::addr_error, -failure);
  enter(State::addressed);
  return tell(Event::addr_resolved);
}

Step Connection::resolve_route(int failure) {
  if (state_ != State::addressed) return refuse_step(EINVAL);
  if (failure != 0) return tell(Event::route_error, -failure);
  enter(State::routed);
  return tell(Event::route_resolved);
}

Step Connection::listen() {
  if (state_ != State::idle && state_ != State::bound) return refuse_step(EINVAL);
  enter(State::listening);
  return {};
}

Step Connection::connect(Message request, const Terms& terms, const PrivateData& data, Instant now) {
  if (state_ != State::routed) return refuse_step(EINVAL);
  request.kind = is_datagram_ ? Kind::sidr_req : Kind::req;
  if (!fits(data, request.kind, request.target.family == Family::gid ? 0 : kIpHeaderSize)) return refuse_step(EINVAL);
  request.from = name_;
  request.psn = psn_;
  request.terms = terms;
  request.data = data;
  request_ = request;
  enter(State::requesting, now + kAnswerAtMost);
  again_ = now + kUnansweredLeast;
  return {.send = request};
}

Step Connection::accept(const Terms* terms, const PrivateData& data, Instant now) {
  if (state_ == State::replied_to) {
    if (!fits(data, Kind::rtu)) return refuse_step(EINVAL);
    enter(State::connected);
    Step step{.send = say(Kind::rtu)};
    step.send->data = data;
    return step;
  }
  const Kind kind = is_datagram_ ? Kind::sidr_rep : Kind::rep;
  if (state_ != State::requested || terms == nullptr || !fits(data, kind)) return refuse_step(EINVAL);
  Step step{.send = say(kind)};
  step.send->psn = psn_;
  step.send->terms = *terms;
  step.send->data = data;
  if (is_datagram_) {
    enter(State::over);
  } else {
    enter(State::replied, now + kReadyAtMost);
  }
  return step;
}

Step Connection::reject(Reason reason, const PrivateData& data) {
  if (state_ != State::requested && state_ != State::replied_to) return refuse_step(EINVAL);
  if (!fits(data, is_datagram_ ? Kind::sidr_rep : Kind::rej)) return refuse_step(EINVAL);
  Step step{.send = say_reject(reason)};
  step.send->data = data;
  enter(State::over);
  return step;
}

Step Connection::disconnect(Instant now) {
  if (!has_begun()) return refuse_step(EINVAL);
  if (std::exchange(heed_by_, kNever) != kNever && state_ == State::over) enter(State::over);
  if (state_ == State::connected) {
    enter(State::leaving, now + kLeaveAtMost);
    return {.send = say(Kind::dreq)};
  }
  if (state_ == State::left) {
    enter(State::resting, now + kRest);
    return {.send = say(Kind::drep)};
  }
  return {};
}

Step Connection::establish() {
  if (state_ != State::replied) return refuse_step(EINVAL);
  enter(State::connected);
  return tell(Event::established);
}

std::optional<Message> Connection::destroy() {
  const State before = state_;
  enter(State::over);
  switch (before) {
    case State::requesting:
      if (is_datagram_) return std::nullopt;
      return say_reject(Reason::timeout);
    case State::requested:
    case State::replied_to:
    case State::replied:
      return say_reject(Reason::consumer_defined);
    case State::connected:
      return say(Kind::dreq);
    case State::left:
      return say(Kind::drep);
    default:
      return std::nullopt;
  }
}

Step Connection::take(const Message& message, Instant now) {
  switch (message.kind) {
    case Kind::rep:
      if (state_ != State::requesting || is_datagram_) return {};
      peer_name_ = message.from;
      peer_psn_ = message.psn;
      peer_terms_ = as_we_see(message);
      enter(State::replied_to);
      return tell(Event::connect_response, 0, message);
    case Kind::sidr_rep:
      if (state_ != State::requesting || !is_datagram_) return {};
      enter(State::over);
      peer_terms_ = message.terms;
      return tell(message.reason == 0 ? Event::established : Event::unreachable, message.reason, message);
    case Kind::rtu:
      if (state_ != State::replied) return {};
      enter(State::connected);
      return tell(Event::established);
    case Kind::busy:
      if (state_ == State::requesting) again_ = now + kBusyPause;
      return {};
    case Kind::rej:
      return take_reject(message);
    case Kind::dreq:
      return take_disconnect(message, now);
    case Kind::drep:
      if (state_ != State::leaving) return {};
      enter(State::resting, now + kRest);
      return tell(Event::disconnected);
    default:
      return {};
  }
}

Step Connection::take_reject(const Message& message) {
  switch (state_) {
    case State::requesting:
    case State::requested:
    case State::replied_to:
    case State::replied:
      enter(State::over);
      return tell(Event::rejected, message.reason, message);
    default:
      return {};
  }
}

Step Connection::take_disconnect(const Message& message, Instant now) {
  Step step;
  const bool has_forgotten = message.reason == std::to_underlying(Reason::invalid_comm_id);
  switch (state_) {
    case State::replied:  // the RTU is on its way or was overtaken
    case State::connected:
      heed_by_ = now + kHeedsAtMost;
      enter(State::left, heed_by_);
      step = tell(Event::disconnected);
      step.has_forgotten = has_forgotten;
      return step;
    case State::leaving:  // both sides disconnect at once
      enter(State::resting, now + kRest);
      step = tell(Event::disconnected);
      step.has_forgotten = has_forgotten;
      break;
    case State::resting:
    case State::over:
      if (peer_name_ == 0) return {};  // there is no peer to answer
      break;
    default:
      return {};
  }
  step.send = say(Kind::drep);
  return step;
}

Step Connection::fail(Kind kind, Status why, Instant now) {
  if (kind != Kind::req && kind != Kind::sidr_req) return lose(why, now);
  if (state_ != State::requesting) return {};
  if (why == Status::refused && now < due_ - kAnswerAtMost + kNobodyAtMost) {
    again_ = now + kBusyPause;
    return {};
  }
  enter(State::over);
  if (why != Status::refused && why != Status::restarted) return tell(Event::unreachable, -ETIMEDOUT);
  if (is_datagram_) return tell(Event::unreachable, std::to_underlying(SidrStatus::unsupported));
  return tell(Event::rejected, std::to_underlying(Reason::invalid_service_id));
}

Step Connection::lose(Status why, Instant now) {
  switch (state_) {
    case State::requesting:
    case State::requested:
    case State::replied_to:
    case State::replied:
      enter(State::over);
      if (why == Status::refused || why == Status::restarted)
        return is_datagram_ ? tell(Event::unreachable, std::to_underlying(SidrStatus::reject))
                            : tell(Event::rejected, std::to_underlying(Reason::consumer_defined));
      return tell(Event::unreachable, -ETIMEDOUT);
    case State::connected:
      heed_by_ = now + kHeedsAtMost;
      [[fallthrough]];
    case State::leaving:
      enter(State::resting, now + kRest);
      return tell(Event::disconnected);
    case State::left:  // the program knows since the DREQ, and its deadline stays
      enter(State::resting, now + kRest);
      return {};
    default:
      return {};
  }
}

Step Connection::lose_device(Instant now) {
  if (state_ == State::over) return {};
  const bool has_peer = state_ >= State::connected;
  heed_by_ = has_peer ? std::min(heed_by_, now + kHeedsAtMost) : kNever;
  enter(State::over, heed_by_);
  return tell(Event::device_removal);
}

Step Connection::expire(Instant now) {
  if (now >= again_ && now < due_) {
    again_ = now + std::clamp(now - (due_ - kAnswerAtMost), kUnansweredLeast, kUnansweredMost);
    return {.send = request_};
  }
  if (now < due_) return {};
  Step step;
  switch (state_) {
    case State::requesting:
    case State::replied:
      step = tell(Event::unreachable, -ETIMEDOUT);
      if (!is_datagram_) step.send = say_reject(Reason::timeout);
      enter(State::over);
      break;
    case State::leaving:
      step = tell(Event::disconnected, -ETIMEDOUT);
      enter(State::resting, now + kRest);
      break;
    case State::resting:
      step = tell(Event::timewait_exit);
      enter(State::over, heed_by_);
      break;
    case State::left:
    case State::over:
      step.fails_pair = !is_datagram_;
      heed_by_ = kNever;
      enter(state_);
      break;
    default:
      enter(state_);
  }
  return step;
}

}  // namespace fairlead::rdma_cm
