#include "tools/perf/far.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/shown.hpp"
#include "tools/base/now.hpp"
#include "tools/perf/far_end.hpp"
#include "tools/perf/tcp.hpp"
#include "tools/process/cpu_time.hpp"

namespace fairlead::tools {
namespace {

constexpr Duration kConnectWithin = std::chrono::seconds{5};
constexpr Duration kGreetingWithin = std::chrono::seconds{5};  // of another host
constexpr Duration kAnswerWithin = std::chrono::minutes{1};    // a busy host may delay a process for seconds

std::unexpected<Error> failed(Status status, std::string why) {
  return std::unexpected(Error{status, 0, std::move(why)});
}

}  // namespace

Result<std::unique_ptr<PerfFar>> PerfFar::start_process(const PerfPlace& place) {
  auto ends = PerfControl::make_pair();
  if (!ends) return std::unexpected(std::move(ends.error()));
  std::unique_ptr<PerfFar> far(new PerfFar(std::move(ends->first), "127.0.0.1"));
  auto process = start_far_process(ends->second, place);
  if (!process) return std::unexpected(std::move(process.error()));
  far->process_.emplace(std::move(*process));
  {
    const PerfControl far_end = std::move(ends->second);  // closed here, so that the death of the far side is noticed
  }
  if (auto greeted = far->greet(kAnswerWithin); !greeted) return std::unexpected(std::move(greeted.error()));
  return far;
}

Result<std::unique_ptr<PerfFar>> PerfFar::start_thread(const PerfPlace& place) {
  auto ends = PerfControl::make_pair();
  if (!ends) return std::unexpected(std::move(ends.error()));
  std::unique_ptr<PerfFar> far(new PerfFar(std::move(ends->first), place.host));
  far->thread_ = std::thread(
      [control = std::move(ends->second), place]() mutable { (void)serve_perf(std::move(control), place); });
  if (auto greeted = far->greet(kAnswerWithin); !greeted) return std::unexpected(std::move(greeted.error()));
  return far;
}

Result<std::unique_ptr<PerfFar>> PerfFar::connect(const base::SocketAddress& server) {
  auto socket = connect_tcp(server, kConnectWithin);
  if (!socket) {
    return failed(
        socket.error().status,
        fmt::format("cannot connect to {}: {}: is `fairlead perf --server` running there, and does a firewall "
                    "let TCP through?",
                    server.to_string(), socket.error().message));
  }
  const auto own = own_address(socket->get());
  if (!own) return std::unexpected(own.error());
  std::unique_ptr<PerfFar> far(new PerfFar(PerfControl(std::move(*socket)), own->ip_text()));
  far->server_ = server.to_string();
  if (auto greeted = far->greet(kGreetingWithin); !greeted) return std::unexpected(std::move(greeted.error()));
  return far;
}

PerfFar::~PerfFar() {
  control_.reset();  // the far side reads end-of-file and ends
  if (thread_.joinable()) thread_.join();
  if (process_) (void)process_->wait(kAnswerWithin);
}

Result<> PerfFar::greet(Duration at_most) {
  const auto message = control_->receive(at_most);
  const auto greeting = message ? parse_perf_greeting(*message) : std::unexpected(message.error());
  if (server_.empty()) return greeting ? Result<>() : std::unexpected(news());
  if (!greeting) {
    return failed(Status::refused,
                  fmt::format("there is no `fairlead perf --server` at {}: {}", server_, greeting.error().message));
  }
  if (!greeting->obstacle.empty()) {
    return failed(Status::refused,
                  fmt::format("the server at {} does not measure: {}", server_, base::shown(greeting->obstacle, 200)));
  }
  if (greeting->protocol == kPerfProtocol) return {};
  return failed(
      Status::not_supported,
      fmt::format("the server at {} (release {}) measures by protocol {}, and this command (release {}) by {}: "
                  "use the same release at both ends",
                  server_, base::shown(greeting->release), greeting->protocol, FAIRLEAD_VERSION, kPerfProtocol));
}

Result<std::string> PerfFar::open(const PerfPlan& plan) {
  (void)control_->send(perf_message(plan));
  const auto message = receive();
  if (!message) return std::unexpected(message.error());
  auto address = parse_perf_at(*message);
  if (address) at_ = *address;
  return address;
}

Result<> PerfFar::meet(std::string_view near) {
  (void)control_->send(perf_message_at(near));
  const auto message = receive();
  return message ? parse_perf_ready(*message) : std::unexpected(message.error());
}

Result<> PerfFar::begin(const PerfCommand& command) {
  (void)control_->send(perf_message(command));
  const auto message = receive();
  return message ? parse_perf_ready(*message) : std::unexpected(message.error());
}

Result<PerfOutcome> PerfFar::end() {
  (void)control_->send(perf_message_stop());
  const auto message = receive();
  return message ? parse_perf_outcome(*message) : std::unexpected(message.error());
}

Result<nlohmann::json> PerfFar::receive() {
  auto message = control_->receive(kAnswerWithin);
  if (message) return message;
  if (server_.empty()) {
    return failed(Status::system,
                  "the second process of the measurement has ended: see its message above, if it had one");
  }
  return failed(message.error().status, fmt::format("the server at {}: {}", server_, message.error().message));
}

Error PerfFar::news() {
  const auto message = receive();
  if (!message) return message.error();
  const auto outcome = parse_perf_outcome(*message);
  return outcome ? Error{Status::system, 0, "the far side has stopped too early"} : outcome.error();
}

double PerfFar::cpu_seconds() const {
  if (!server_.empty()) return std::chrono::duration<double>(now().time_since_epoch()).count();
  const auto used = process_ ? cpu_time_of(process_->pid()) : std::nullopt;
  return std::chrono::duration<double>(used.value_or(Duration::zero())).count();
}

}  // namespace fairlead::tools
