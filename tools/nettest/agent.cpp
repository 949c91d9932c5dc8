#include "tools/nettest/agent.hpp"

#include <thread>
#include <utility>
#include <vector>

#include "tools/base/interrupt.hpp"
#include "tools/base/now.hpp"

namespace fairlead::tools {
namespace {

constexpr Duration kDoneLook = std::chrono::milliseconds{1};

std::unexpected<Error> refuse(Status status, std::string why) {
  return std::unexpected(Error{status, 0, std::move(why)});
}

}  // namespace

void NettestAgent::serve(Duration time) {
  // Only commands are answered. Otherwise two agents could answer each other for ever.
  if (const auto letter = post_.receive(now() + time); letter && letter->body.contains("do")) {
    Json answer;
    if (auto obeyed = obey(letter->body)) {
      answer = std::move(*obeyed);
    } else {
      answer = {{"error", obeyed.error().message}};
    }
    for (const char* key : {"run", "number"})
      if (const auto number = from_letter<std::uint64_t>(letter->body, key)) answer[key] = *number;
    (void)post_.send(letter->from, answer);  // failure is ignored: a console that is gone asks no more
  }
  if (client_) client_->expire();
  // The console waits for each agent to stop, and an agent stops within 2 * timeout_.
  if (has_run() && now() - heard_ > kConsoleSilentAtMost + 2 * timeout_) end();
}

Result<NettestAgent::Json> NettestAgent::obey(const Json& command) {
  const auto run = from_letter<std::uint64_t>(command, "run");
  const auto what = from_letter<std::string>(command, "do");
  if (!run) return std::unexpected(run.error());
  if (!what) return std::unexpected(what.error());
  if (has_run() && *run != run_) return refuse(Status::in_use, "the agent works for another console");
  heard_ = now();
  if (*what == "init") return init(command, *run);
  if (!has_run()) return refuse(Status::bad_state, "the agent has no part in this run (any more)");
  if (*what == "start" && client_) client_->begin();
  if (*what == "finish" && client_) client_->finish();
  if (*what == "stop") return stop();
  if (*what == "start" || *what == "status" || *what == "finish") return figures();
  return refuse(Status::invalid, "\"" + *what + "\" is no command");
}

Result<NettestAgent::Json> NettestAgent::init(const Json& command, std::uint64_t run) {
  if (has_run()) return refuse(Status::bad_state, "the agent has its part already");
  const auto plan = from_letter<NettestPlan>(command, "plan");
  if (!plan) return std::unexpected(plan.error());
  if (auto good = plan->check(); !good) return std::unexpected(std::move(good.error()));
  const auto servers = from_letter<std::vector<std::string>>(command, "servers");
  if (!servers) return std::unexpected(servers.error());
  if (servers->size() > plan->servers) return refuse(Status::invalid, "more servers than planned");
  const std::string data = address().substr(0, address().rfind(':')) + ":*";
  Result<> started;
  if (servers->empty()) {
    server_ = std::make_unique<NettestServer>(domain_, *plan);
    started = server_->start(data);
  } else {
    client_ = std::make_unique<NettestClient>(domain_, *plan);
    started = client_->start(data, *servers);
  }
  if (!started) {
    end();
    return std::unexpected(std::move(started.error()));
  }
  run_ = run;
  timeout_ = plan->timeout;
  return Json{{"address", server_ ? server_->address() : address()}};
}

NettestAgent::Json NettestAgent::figures() {
  return {{"figures", client_ ? client_->figures() : server_->figures()}, {"is_done", !client_ || client_->is_done()}};
}

// Lets everything under way end first, so that both sides count the same.
Result<NettestAgent::Json> NettestAgent::stop() {
  if (client_) {
    client_->finish();
    const Instant end = now() + 2 * timeout_;
    for (; !client_->is_done() && now() < end && !is_interrupted(); client_->expire())
      std::this_thread::sleep_for(kDoneLook);
  } else {
    server_->stop();
  }
  Json answer = figures();
  end();
  return answer;
}

void NettestAgent::end() {
  client_.reset();
  server_.reset();
}

}  // namespace fairlead::tools
