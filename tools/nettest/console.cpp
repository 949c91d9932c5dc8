#include "tools/nettest/console.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/shown.hpp"
#include "tools/base/describe_failure.hpp"
#include "tools/base/interrupt.hpp"
#include "tools/base/now.hpp"

namespace fairlead::tools {
namespace {

constexpr std::size_t kErrorLettersMax = 500;

}  // namespace

NettestConsole::NettestConsole(net::Domain& domain) : post_(domain), run_(std::random_device()()) {}

Result<NettestState> NettestConsole::run(const NettestPlan& plan, const Parties& parties, Duration time,
                                         const std::function<void(const NettestState&)>& show) {
  auto clients = find_all(parties.clients), servers = find_all(parties.servers);
  if (!clients) return std::unexpected(std::move(clients.error()));
  if (!servers) return std::unexpected(std::move(servers.error()));
  clients_ = std::move(*clients);
  servers_ = std::move(*servers);
  Result<> prepared = prepare(plan);
  Result<NettestState> state = prepared ? work(plan, time, show) : std::unexpected(std::move(prepared.error()));
  if (state) return state;
  // No answers are awaited: the agents of this run give it up.
  for (const Agents* const agents : {&clients_, &servers_})
    for (const Agent& agent : *agents)
      (void)post_.send(agent.end_point, {{"do", "stop"}, {"run", run_}, {"number", 0}});
  return state;
}

Result<NettestConsole::Agents> NettestConsole::find_all(const std::vector<std::string>& addresses) {
  Agents agents;
  for (const std::string& address : addresses) {
    auto end_point = post_.find(address);
    if (!end_point) return std::unexpected(std::move(end_point.error()));
    agents.push_back({address, std::move(*end_point)});
  }
  return agents;
}

/// Returns whether the address belongs to the agent's engine. An agent must not direct clients to another host.
bool NettestConsole::is_of(const Agent& agent, std::string_view address) {
  const std::string_view own = agent.end_point.address();
  return address.starts_with(own.substr(0, own.rfind(':') + 1));
}

/// Prepares the servers first, because the clients get their addresses.
Result<> NettestConsole::prepare(const NettestPlan& plan) {
  std::vector<std::string> addresses;
  for (const Agents* const agents : {&servers_, &clients_}) {
    const auto servers = agents == &servers_ ? std::vector<std::string>() : addresses;
    for (const Agent& agent : *agents) {
      const auto answer = ask(agent, {{"do", "init"}, {"plan", plan}, {"servers", servers}}, kAnswerAtMost);
      if (!answer) return std::unexpected(answer.error());
      auto address = from_letter<std::string>(*answer, "address");
      if (!address) return std::unexpected(std::move(address.error()));
      if (!is_of(agent, *address)) {
        return std::unexpected(Error{Status::refused, 0,
                                     fmt::format("agent {} names {}, which is not its own, for messages", agent.address,
                                                 base::shown(*address))});
      }
      addresses.push_back(std::move(*address));
    }
  }
  return {};
}

Result<NettestState> NettestConsole::work(const NettestPlan& plan, Duration time,
                                          const std::function<void(const NettestState&)>& show) {
  bool are_done = false;
  const Instant begin = now();
  for (const Agents* const agents : {&servers_, &clients_})
    if (auto told = tell_all(*agents, "start", kAnswerAtMost, are_done); !told)
      return std::unexpected(std::move(told.error()));
  NettestState state;
  for (Instant shown = begin; !are_done && !is_interrupted() && now() - begin < time;) {
    const Instant look = std::min(now() + kDoneEvery, begin + time);
    while (now() < look && post_.receive(look)) continue;  // unexpected messages are dropped
    auto figures = tell_all(clients_, "status", kAnswerAtMost, are_done);
    if (!figures) return std::unexpected(std::move(figures.error()));
    if (now() - shown < kEvery) continue;
    shown += kEvery;
    // An agent that hears nothing for long gives the run up.
    bool are_there = false;
    if (auto told = tell_all(servers_, "status", kAnswerAtMost, are_there); !told)
      return std::unexpected(std::move(told.error()));
    state.clients = *figures;
    state.time = now() - begin;
    show(state);
  }
  state.is_interrupted = is_interrupted();
  // All clients finish at the same time. Then both sides have counted the same.
  if (auto told = tell_all(clients_, "finish", kAnswerAtMost, are_done); !told)
    return std::unexpected(std::move(told.error()));
  for (auto [agents, figures] : {std::pair(&clients_, &state.clients), std::pair(&servers_, &state.servers)}) {
    auto told = tell_all(*agents, "stop", kAnswerAtMost + 2 * plan.timeout, are_done);
    if (!told) return std::unexpected(std::move(told.error()));
    *figures = *told;
    if (agents == &clients_) state.time = now() - begin;
  }
  return state;
}

Result<NettestFigures> NettestConsole::tell_all(const Agents& agents, const char* what, Duration timeout,
                                                bool& are_done) {
  NettestFigures sum;
  are_done = true;
  for (const Agent& agent : agents) {
    const auto answer = ask(agent, {{"do", what}}, timeout);
    if (!answer) return std::unexpected(answer.error());
    const auto figures = from_letter<NettestFigures>(*answer, "figures");
    const auto is_done = from_letter<bool>(*answer, "is_done");
    if (!figures) return std::unexpected(figures.error());
    if (!is_done) return std::unexpected(is_done.error());
    sum += *figures;
    are_done = are_done && *is_done;
  }
  return sum;
}

Result<NettestConsole::Json> NettestConsole::ask(const Agent& agent, Json command, Duration timeout) {
  const auto failure = [&](Status status, std::string_view why) {
    return std::unexpected(Error{status, 0, fmt::format("agent {}: {}", agent.address, why)});
  };
  command["run"] = run_;
  command["number"] = ++number_;
  if (auto sent = post_.send(agent.end_point, command); !sent) {
    const std::string& why = sent.error().message;
    const Status status = sent.error().status;
    if (!is_program_missing(post_.problem(agent.end_point, status))) return failure(status, why);
    return failure(status, fmt::format("{}: start `fairlead nettest agent --address {}` there", why, agent.address));
  }
  const Instant deadline = now() + timeout;
  while (auto letter = post_.receive(deadline)) {
    if (letter->from != agent.end_point) continue;
    if (letter->body.value("run", Json()) != Json(run_) || letter->body.value("number", Json()) != Json(number_))
      continue;
    if (const auto error = letter->body.find("error"); error != letter->body.end())
      return failure(Status::refused, error->is_string() ? base::shown(error->get<std::string>(), kErrorLettersMax)
                                                         : "an error that is no text");
    return std::move(letter->body);
  }
  return failure(Status::timed_out, fmt::format("no answer to \"{}\" within {} s", command["do"].get<std::string>(),
                                                std::chrono::duration_cast<std::chrono::seconds>(timeout).count()));
}

}  // namespace fairlead::tools
