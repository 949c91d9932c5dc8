#pragma once
// The console of a nettest: commands the agents, polls their progress every second, and adds up their figures.

#include <fairlead/net.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/nettest/figures.hpp"
#include "tools/nettest/plan.hpp"
#include "tools/nettest/post.hpp"

namespace fairlead::tools {

/// Both sides' figures so far, or at the end.
struct NettestState {
  NettestFigures clients, servers;
  Duration time{};  // since the clients began
  bool is_interrupted = false;
};

class NettestConsole {
 public:
  struct Parties {
    std::vector<std::string> clients, servers;  // addresses of the agents
  };

  explicit NettestConsole(net::Domain& domain);
  Result<> start(std::string_view address) { return post_.start(address); }

  /// Runs until the clients have done their number, `time` has passed, or Ctrl-C. Calls `show` every second. An agent
  /// that fails or does not answer ends the run for all.
  Result<NettestState> run(const NettestPlan& plan, const Parties& parties, Duration time,
                           const std::function<void(const NettestState&)>& show);

 private:
  using Json = nlohmann::json;
  static constexpr Duration kAnswerAtMost = std::chrono::seconds{10};
  static constexpr Duration kEvery = std::chrono::seconds{1};
  static constexpr Duration kDoneEvery = std::chrono::milliseconds{50};

  struct Agent {
    std::string address;
    net::EndPoint end_point;
  };
  using Agents = std::vector<Agent>;

  static bool is_of(const Agent& agent, std::string_view address);
  Result<Agents> find_all(const std::vector<std::string>& addresses);
  Result<> prepare(const NettestPlan& plan);
  Result<NettestState> work(const NettestPlan& plan, Duration time,
                            const std::function<void(const NettestState&)>& show);
  Result<NettestFigures> tell_all(const Agents& agents, const char* what, Duration timeout, bool& are_done);
  Result<Json> ask(const Agent& agent, Json command, Duration timeout);

  NettestPost post_;
  const std::uint64_t run_;
  std::uint64_t number_ = 0;
  Agents clients_, servers_;
};

}  // namespace fairlead::tools
