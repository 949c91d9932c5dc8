#pragma once
// Serves `fairlead top --openmetrics` over HTTP on loopback only: GET /metrics. It refuses requests for other host
// names: they may come from a web page whose name resolves to loopback (DNS rebinding).

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace fairlead::tools {

class MetricsServer {
 public:
  static constexpr std::size_t kClientsMax = 16;              // concurrent clients; further ones are disconnected
  static constexpr std::size_t kRequestMost = 8192;           // bytes
  static constexpr auto kPatience = std::chrono::seconds(2);  // time limit for a slow client
  // Engines are read at most once per this time, however many clients ask.
  static constexpr auto kFreshFor = std::chrono::seconds(1);

  using Look = std::function<Result<std::string>()>;

  /// Port 0 selects any free port.
  static Result<MetricsServer> listen(std::uint16_t port, Look look, Duration patience = kPatience);
  MetricsServer(MetricsServer&&) noexcept;
  MetricsServer& operator=(MetricsServer&&) = delete;
  ~MetricsServer();

  std::uint16_t port() const;
  /// Answers requests for this time.
  void serve(Duration time);

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace fairlead::tools
