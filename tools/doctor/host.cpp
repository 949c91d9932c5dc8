#include "tools/doctor/host.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <string>
#include <string_view>

#include "base/environment.hpp"
#include "base/settings.hpp"
#include "base/shown.hpp"
#include "engine/unknown_variables.hpp"
#include "tools/doctor/kernel_facts.hpp"

namespace fairlead::tools {
namespace {

void look_at_limits(Findings& findings) {
  constexpr rlim_t kFew = 256;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    const bool is_low = files.rlim_cur < kFew;
    findings.push_back({is_low ? Verdict::note : Verdict::good, "limits",
                        fmt::format("{} descriptors; a peer of this host takes 3", files.rlim_cur),
                        is_low ? fmt::format("ulimit -n {}", 4 * kFew) : ""});
  }
  if (const auto maps = number_of("/proc/sys/vm/max_map_count"))
    findings.push_back({Verdict::good, "limits", fmt::format("{} mappings (vm.max_map_count)", *maps), {}});
}

/// Reports facts that must be equal in two containers that want to share memory.
void look_at_namespaces(Findings& findings) {
  std::string text;
  for (const char* kind : {"net", "pid", "user"}) {
    std::error_code failed;
    const auto name = std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", kind), failed);
    if (!failed) text += (text.empty() ? "" : ", ") + name.string();
  }
  findings.push_back({Verdict::good, "namespaces", text + "; processes that share net share memory, too", {}});
}

void look_at_environment(Findings& findings) {
  for (const std::string_view one : base::whole_environment()) {
    if (!one.starts_with("FAIRLEAD_")) continue;
    auto complaints = engine::unknown_variables({&one, 1});
    if (complaints.empty()) findings.push_back({Verdict::good, "environment", base::shown(one, base::kPathShown), {}});
    for (std::string& line : complaints)
      findings.push_back({Verdict::trouble, "environment", std::move(line), "fairlead options lists all"});
  }
  const auto settings = base::Settings::read();
  const auto good = settings ? engine::check_names(settings->file()) : std::unexpected(settings.error());
  if (!good) findings.push_back({Verdict::trouble, "settings", good.error().message, "fairlead options lists all"});
  if (!settings) return;
  for (const base::FileSetting& one : settings->file().all()) {
    findings.push_back({Verdict::good,
                        "settings",
                        fmt::format("{} = {} ({})", base::shown(one.name), base::shown(one.text), one.where),
                        {}});
  }
}

}  // namespace

Findings examine_host(const std::filesystem::path& library) {
  Findings findings;
  examine_network(findings);
  examine_memory(findings);
  look_at_limits(findings);
  look_at_namespaces(findings);
  look_at_environment(findings);
  examine_devices(findings);
  std::error_code failed;
  if (std::filesystem::exists(library, failed)) {
    findings.push_back({Verdict::good, "verbs", "fairlead run finds " + library.string(), {}});
  } else {
    findings.push_back({Verdict::note, "verbs", "fairlead run has no libibverbs.so.1 at " + library.string(),
                        "build with FAIRLEAD_DOORS=ON, or install the whole package"});
  }
  return findings;
}

}  // namespace fairlead::tools
