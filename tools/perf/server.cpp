#include "tools/perf/server.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/interrupt.hpp"
#include "tools/perf/tcp.hpp"

namespace fairlead::tools {
namespace {

constexpr int kLookEvery = 100;  // ms, at the process and at interrupts

/// The process that measures with a client. It is killed with this object.
struct ClientProcess {
  ChildProcess process;
  std::string client;
};

class PerfServer {
 public:
  PerfServer(base::FileDescriptor listener, const PerfServerOptions& options)
      : listener_(std::move(listener)), options_(options) {}

  /// Waits for a client for a moment, and looks after the present one.
  void turn() {
    pollfd look{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    const bool has_client = ::poll(&look, 1, kLookEvery) > 0;
    if (present_ && present_->process.wait(Duration::zero()) >= 0) {
      say(fmt::format("{} has ended", present_->client));
      present_.reset();
    }
    if (!has_client) return;
    auto client = accept_tcp(listener_.get());
    if (client) return take(std::move(*client));
    if (client.error().status == Status::system) ::poll(nullptr, 0, kLookEvery);  // no free descriptor at the moment
  }

 private:
  static void say(const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }

  void take(TcpClient client) {
    PerfControl control(std::move(client.socket));
    const auto refuse = [&](std::string why) {
      (void)control.send(perf_message(PerfGreeting{.release = FAIRLEAD_VERSION, .obstacle = std::move(why)}));
    };
    if (present_) return refuse(fmt::format("it measures with {} now: try again later", present_->client));
    const auto own = own_address(control.descriptor());
    if (!own) return;  // the client has left
    auto process = start_far_process(control, {.host = own->ip_text(), .cpu = options_.cpu, .engine = options_.engine});
    if (!process) {
      (void)report_error(process.error());
      return refuse("it cannot start a process");
    }
    present_.emplace(std::move(*process), client.from.ip_text());
    say(fmt::format("{} measures", present_->client));
  }

  base::FileDescriptor listener_;
  const PerfServerOptions& options_;
  std::optional<ClientProcess> present_;
};

}  // namespace

int run_perf_server(const PerfServerOptions& options) {
  const auto address = base::SocketAddress::from_ip(options.bind, options.port);
  if (!address) return report_error(address.error());
  auto listener = listen_tcp(*address);
  if (!listener && listener.error().system_errno == EAFNOSUPPORT && options.bind == "::")  // a kernel without IPv6
    listener = listen_tcp(*base::SocketAddress::from_ip("0.0.0.0", options.port));
  if (!listener) {
    return report_error({Status::system, listener.error().system_errno,
                         fmt::format("cannot listen at {}: {}", address->to_string(), listener.error().message)});
  }
  catch_interrupts();
  fmt::print("serving at {}: whoever reaches this port may measure here\n", address->to_string());
  std::fflush(stdout);
  PerfServer server(std::move(*listener), options);
  while (!is_interrupted()) server.turn();
  return kExitOk;
}

}  // namespace fairlead::tools
