#pragma once
// One host's part of a nettest: does what a console tells it, as a client or as a server, for one console at a time.
// One that is not heard of for a while has lost its agent.
//
// Commands are init (plan, servers; none for a server), start, status, finish and stop; each has the run's name and a
// number, and so has the answer, which is either an error or what was asked for: the address after init, the figures
// after the others.

#include <fairlead/net.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tools/nettest_client.hpp"
#include "tools/nettest_post.hpp"
#include "tools/nettest_server.hpp"

namespace fairlead::tools {

class NettestAgent {
 public:
  explicit NettestAgent(net::Domain& domain) : domain_(domain), post_(domain) {}

  Result<> start(std::string_view address) { return post_.start(address); }
  const std::string& address() const { return post_.address(); }
  /// It serves nobody any more.
  bool has_lost_engine() const { return post_.has_lost_engine(); }
  /// Obeys for about `time`; call it again and again.
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
  std::uint64_t run_ = 0;  // name of the console's
  Duration timeout_{};
  Instant heard_{};
  std::unique_ptr<NettestServer> server_;
  std::unique_ptr<NettestClient> client_;
};

}  // namespace fairlead::tools
