#pragma once
// Serves `fairlead top --openmetrics` over HTTP, on the loopback alone: GET /metrics. What asks by another name than
// the loopback's is refused, for it may be a page of the web whose name was made to lead here.

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace fairlead::tools {

class MetricsServer {
 public:
  static constexpr std::size_t kClientsMax = 16;              // at a time; more are hung up on
  static constexpr std::size_t kRequestMost = 8192;           // bytes
  static constexpr auto kPatience = std::chrono::seconds(2);  // with a client that dawdles
  static constexpr auto kFreshFor = std::chrono::seconds(1);  // however many ask, all engines are looked at so often

  using Look = std::function<Result<std::string>()>;

  /// Port 0: any that is free.
  static Result<MetricsServer> listen(std::uint16_t port, Look look, Duration patience = kPatience);
  MetricsServer(MetricsServer&&) noexcept;
  MetricsServer& operator=(MetricsServer&&) = delete;
  ~MetricsServer();

  std::uint16_t port() const;
  /// Answers whoever asks for so long.
  void serve(Duration time);

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace fairlead::tools
