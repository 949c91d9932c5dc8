#pragma once
// The objects behind the handles of AM-2.

#include <amudp.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <fairlead/am.hpp>

namespace fairlead::amudp {

struct Registered {
  ep_t endpoint = nullptr;
  handler_t index = 0;
  amudp_handler_fn_t function = nullptr;
};

}  // namespace fairlead::amudp

struct amudp_eb {
  std::unique_ptr<fairlead::am::Bundle> bundle;
  std::vector<std::unique_ptr<amudp_ep>> endpoints;
  int event_mask = AM_NOTEMPTY;
  bool is_shared = false;  // several threads run handlers and send: AM_PAR, or interrupt mode
};

struct amudp_ep {
  fairlead::am::Endpoint* endpoint = nullptr;
  eb_t bundle = nullptr;
  tag_t tag = AM_NONE;
  bool has_resources = false;                  // AM_SetExpectedResources was called: the table of peers is fixed
  amudp_handler_fn_t error_handler = nullptr;  // null: the process ends
  std::array<fairlead::amudp::Registered, AMUDP_MAX_NUMHANDLERS> handlers;
  AMUDP_preHandlerCallback_t before = nullptr;
  AMUDP_postHandlerCallback_t after = nullptr;
  amudp_stats_t stats = AMUDP_initial_stats;
};

namespace fairlead::amudp {

/// The object behind a handler's void* token.
struct HandlerToken {
  am::Token& token;
  ep_t endpoint;
};

/// Everything that exists between AM_Init and the last AM_Terminate.
struct Library {
  int init_count = 0;
  std::string ip = "127.0.0.1";
  std::mutex domain_mutex;           // guards domain: the thread that ends the process uses it, too
  std::optional<am::Domain> domain;  // on `ip`, opened with the first bundle
  std::vector<std::unique_ptr<amudp_eb>> bundles;
  Duration request_timeout{};

  ~Library();
  /// Tells all peers that this process ends.
  void leave();
  void set_domain(std::optional<am::Domain> opened);
  bool is_bundle(eb_t bundle) const;
  bool is_endpoint(ep_t endpoint) const;
};
Library& library();

/// Adds to a counter in the statistics of `endpoint`.
inline void add(const amudp_ep& endpoint, std::uint64_t& counter, std::uint64_t count) {
  if (endpoint.bundle->is_shared) {
    std::atomic_ref(counter).fetch_add(count, std::memory_order_relaxed);
  } else {
    counter += count;
  }
}

/// Returns `code`; explains it on stderr if AMX_VerboseErrors is set.
int fail(int code, const char* call, const char* why);
/// Converts a status to an AM-2 code.
int code_of(Status status);

en_t to_en(const am::Name& name);
am::Name from_en(const en_t& name);

/// Calls the C handler for a message.
void call_handler(void* registered, am::Token& token, const am::Message& message);
void call_error_handler(void* endpoint, am::Endpoint&, const am::Returned& returned);

/// Returns a setting from the environment, under AMUDP's name, else GASNet's; null if neither is set. "SPAWNFN" means
/// AMUDP_SPAWNFN and GASNET_SPAWNFN.
const char* setting(const char* name);
struct NumberRange {
  double least, most;
};
/// Returns a number from the environment, or `otherwise` if it is not set. Sets `error` if it is malformed or out of
/// range.
double number_setting(const char* name, double otherwise, NumberRange range, std::string& error);

/// Returns a line for each setting of AMUDP that is set and has no effect here, with the reason.
std::vector<std::string> settings_without_effect();

}  // namespace fairlead::amudp
