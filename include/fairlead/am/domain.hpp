#pragma once
// A place on the network for endpoints of this process.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

namespace fairlead::am {

struct DomainState;

struct DomainSettings {
  std::string ip = "127.0.0.1";  ///< local address, IPv4 or IPv6; no names
  /// Settings of the engine by name and value, on top of the environment's.
  std::vector<std::pair<std::string, std::string>> engine{};
  /// After this a request without a reply comes back with congestion; zero: never.
  Duration request_timeout{};
  /// Most arrivals that one poll() serves.
  unsigned poll_max = 32;
};

/// A handle; bundles keep the domain alive by themselves. Domains of one address share its engine.
class Domain {
 public:
  /// `invalid` names the setting; not_available: the address is not local; system.
  [[nodiscard]] static Result<Domain> open(const DomainSettings& settings = {});
  /// For a process that ends without destructors (_exit()). Messages on their way have a moment to arrive, and all
  /// peers are told that this engine ends. So what they still send here is no error (Refusal::left). From here on
  /// nobody is met any more. Takes 0.2 s at most. Any thread; not in a handler of a signal.
  void leave();

 private:
  friend class Bundle;
  explicit Domain(std::shared_ptr<DomainState> state) : state_(std::move(state)) {}
  std::shared_ptr<DomainState> state_;
};

}  // namespace fairlead::am
