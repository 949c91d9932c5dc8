#pragma once
// A domain is a network address for endpoints of this process.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fairlead/error.hpp>
#include <fairlead/time.hpp>

namespace fairlead::am {

struct DomainState;

struct DomainSettings {
  std::string ip = "127.0.0.1";  ///< local address, IPv4 or IPv6; host names are not resolved
  /// Engine settings by name and value; they override the environment.
  std::vector<std::pair<std::string, std::string>> engine{};
  /// A request without a reply returns with `congestion` after this time; zero: never.
  Duration request_timeout{};
  /// Messages that one poll() handles at most.
  unsigned poll_max = 32;
};

/// A handle; bundles keep their domain alive. Domains of one address share its engine.
class Domain {
 public:
  /// `invalid` names the setting; not_available: the address is not local; system.
  [[nodiscard]] static Result<Domain> open(const DomainSettings& settings = {});
  /// For a process that ends without destructors (_exit()). Gives messages in flight a moment to arrive, and tells all
  /// peers that this engine ends. Messages that they still send here then return with Refusal::left, which is not an
  /// error. The engine accepts no new peers. Takes at most 0.2 s. Any thread; not in a signal handler.
  void leave();

 private:
  friend class Bundle;
  explicit Domain(std::shared_ptr<DomainState> state) : state_(std::move(state)) {}
  std::shared_ptr<DomainState> state_;
};

}  // namespace fairlead::am
