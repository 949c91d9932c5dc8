#pragma once
// One host's part in a nettest: obeys a console as a client or as a server, one console at a time. A console that is
// silent for a while has lost its agent.
//
// Commands are init (plan, servers; no servers for a server), start, status, finish and stop. Each has the run's name
// and a number, and so has the answer. The answer is an error, or the result: the address after init, the figures after
// the others.

#include <fairlead/net.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tools/nettest/client.hpp"
#include "tools/nettest/post.hpp"
#include "tools/nettest/server.hpp"

namespace fairlead::tools {

class NettestAgent {
 public:
  explicit NettestAgent(net::Domain& domain) : domain_(domain), post_(domain) {}

  Result<> start(std::string_view address) { return post_.start(address); }
  const std::string& address() const { return post_.address(); }
  /// Returns whether the host engine has ended, so this agent serves nobody any more.
  bool has_lost_engine() const { return post_.has_lost_engine(); }
  /// Obeys commands for about `time`. The caller repeats the call.
  void serve(Duration time);

 private:
  using Json = nlohmann::json;
  static constexpr Duration kConsoleSilentAtMost = std::chrono::seconds{15};

  Result<Json> obey(const Json& command);
  Result<Json> init(const Json& command, std::uint64_t run);
  Json figures();
  Result<Json> stop();
  void end();
  bool has_run() const { return client_ || server_; }

  net::Domain& domain_;
  NettestPost post_;
  std::uint64_t run_ = 0;  // the name of the console's run
  Duration timeout_{};
  Instant heard_{};
  std::unique_ptr<NettestServer> server_;
  std::unique_ptr<NettestClient> client_;
};

}  // namespace fairlead::tools
