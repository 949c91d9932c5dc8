#include "sim/active_traffic.hpp"

#include <algorithm>

#include "engine/active_port.hpp"

namespace fairlead::sim {
namespace {

constexpr std::uint64_t kActiveCame = 30, kActiveAnswered = 31;
constexpr std::size_t kActiveMost = 4000;
constexpr std::uint16_t kActiveHead = 8;
constexpr std::uint32_t kBehindMost = PairHost::kEvents / 2;  // events that one host has not taken

std::byte active_value(std::uint64_t name, std::size_t at) {
  return static_cast<std::byte>(name * 41 + at * 13 + (at >> 8));
}

}  // namespace

void ActiveTraffic::send() {
  Random& random = shared_.random;
  const auto from = static_cast<std::uint32_t>(random.below(shared_.honest));
  auto to = static_cast<std::uint32_t>(random.below(shared_.honest - 1));
  if (to >= from) ++to;
  PairHost& host = shared_.hosts[from];
  if (!host.is_up() || host.engine->use().operations >= kBehindMost) return;
  const std::uint64_t name = requests_.size();
  Request& request = requests_.emplace_back(Request{.from = from, .from_life = host.life, .to = to});
  request.bytes.resize(random.mostly_small(kActiveHead, kActiveMost));
  for (std::size_t i = 0; i < request.bytes.size(); ++i) request.bytes[i] = active_value(name, i);
  request.piece = {request.bytes.data(), request.bytes.size()};
  const Status status = host.engine->send_active(host.port,
                                                 {.to = {address_of(to), kActivePort},
                                                  .head = kActiveHead,
                                                  .access = 1,
                                                  .name = name,
                                                  .memory = {&request.piece, 1},
                                                  .length = request.bytes.size()},
                                                 shared_.now);
  if (status != Status::ok) requests_.pop_back();
  SIM_CHECK(shared_.findings, status == Status::ok || status == Status::again, "an active request was refused: {}",
            to_string(status));
}

bool ActiveTraffic::may_fail(const Request& request) const {
  return shared_.had_faults || shared_.has_lost(request.from, request.to);
}

bool ActiveTraffic::is_honest(const engine::Arrival& arrival) const {
  return shared_.honest == shared_.hosts.size() || host_at(arrival.source.engine) < shared_.honest;
}

void ActiveTraffic::take(PairHost& host) {
  engine::Port& port = host.active_port();
  while (port.events->consume() != nullptr) {
  }
  while (engine::Arrival* arrival = port.active->next()) {
    if (!is_honest(*arrival)) {
      port.active->release(*arrival);
      continue;
    }
    if (arrival->name >= requests_.size()) {
      return shared_.findings.add("host {} got an active message that nobody sent ({})", host.number, arrival->name);
    }
    Request& request = requests_[arrival->name];
    if (arrival->kind == engine::ActiveKind::request) {
      take_request(host, *arrival, request);
    } else {
      shared_.trace.add(shared_.now,
                        {kActiveAnswered, host.number, arrival->name, static_cast<std::uint64_t>(arrival->kind)});
      SIM_CHECK(shared_.findings, request.from == host.number && request.from_life == host.life && !request.has_ended,
                "host {} hears of request {} again, or of one that is not its own", host.number, arrival->name);
      SIM_CHECK(shared_.findings, may_fail(request) || arrival->kind == engine::ActiveKind::reply,
                "request {} was returned and nothing excuses it: {}", arrival->name, to_string(arrival->status));
      request.has_ended = true;
      ++answered_;
    }
    port.active->release(*arrival);
  }
}

void ActiveTraffic::take_request(PairHost& host, engine::Arrival& arrival, Request& request) {
  shared_.trace.add(shared_.now, {kActiveCame, host.number, arrival.name, arrival.data_length});
  if (arrival.status != Status::ok) {  // the rest of the request will not come
    SIM_CHECK(shared_.findings, may_fail(request), "request {} came as {} and nothing excuses it", arrival.name,
              to_string(arrival.status));
    return;
  }
  SIM_CHECK(shared_.findings, request.to == host.number && !request.has_come,
            "request {} came to host {}, again or wrongly", arrival.name, host.number);
  request.has_come = true;
  bool is_right = arrival.head + arrival.data_length == request.bytes.size();
  for (std::size_t i = 0; is_right && i < arrival.head; ++i)
    is_right = arrival.head_bytes[i] == active_value(arrival.name, i);
  for (std::size_t i = 0; is_right && i < arrival.data_length; ++i)
    is_right = arrival.data[i] == active_value(arrival.name, arrival.head + i);
  SIM_CHECK(shared_.findings, is_right, "request {} is not what was sent", arrival.name);
  reply(host, arrival);
}

void ActiveTraffic::reply(PairHost& host, const engine::Arrival& arrival) {
  // A reply that finds no room counts as lost, like one of a host that dies.
  const Status status = host.engine->send_active(host.port,
                                                 {.to = arrival.source,
                                                  .kind = engine::ActiveKind::reply,
                                                  .name = arrival.name,
                                                  .reply_access = arrival.reply_access},
                                                 shared_.now);
  if (status != Status::ok) requests_[arrival.name].has_ended = true;
}

void ActiveTraffic::check_end() {
  for (std::size_t name = 0; name < requests_.size(); ++name) {
    const Request& request = requests_[name];
    SIM_CHECK(shared_.findings, request.has_ended || may_fail(request), "request {} was never answered", name);
  }
}

}  // namespace fairlead::sim
