// `fairlead doctor`: what works here, what does not, and what to do about it.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <string>

#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/doctor/host.hpp"
#include "tools/doctor/peer.hpp"
#include "tools/run/verbs_library.hpp"

namespace fairlead::tools {
namespace {

struct DoctorOptions {
  std::string peer;
  unsigned probes = 200;
  bool is_json = false;
};

void print_json(const Findings& findings) {
  auto all = nlohmann::json::array();
  for (const Finding& one : findings) {
    all.push_back({{"verdict", one.verdict == Verdict::trouble ? "trouble" : word_of(one.verdict)},
                   {"topic", one.topic},
                   {"text", one.text},
                   {"remedy", one.remedy}});
  }
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int run_doctor(const DoctorOptions& options) {
  Findings findings = examine_host(verbs_library());
  for (Finding& one : examine_engine(options.peer, options.probes)) findings.push_back(std::move(one));
  options.is_json ? print_json(findings) : print_findings(findings);
  return is_well(findings) ? kExitOk : kExitFailed;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* doctor = app.add_subcommand("doctor",
                                        "check this host and the path to a peer, with a remedy for each problem: "
                                        "exit code 1 if something does not work");
  doctor->add_option("PEER", options->peer, "a host where a program uses Fairlead: HOST, HOST@udp:PORT (20480)")
      ->check([](const std::string& peer) {
        return peer.empty() ? "it is empty: name a host, or leave PEER out to check this host only" : std::string();
      });
  add_count(*doctor, "--probes", options->probes, 1U, 100'000U, "how many times the peer is asked");
  doctor->add_flag("--json", options->is_json, "one array of {verdict, topic, text, remedy}");
  doctor->callback([options, &exit_code] { exit_code = run_doctor(*options); });
}

}  // namespace fairlead::tools
