#include "doors/ibverbs/explain.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/settings.hpp"
#include "doors/rdma_cm/descriptor_table.hpp"
#include "doors/rdma_cm/service.hpp"

namespace fairlead::ibverbs {

namespace {

constexpr std::size_t kFailuresKept = 64;
constexpr std::size_t kContextsKept = 16;

struct Failure {
  std::uint32_t pair = 0;
  verbs::WcStatus status = verbs::WcStatus::success;
  verbs::WcOpcode opcode = verbs::WcOpcode::send;
  std::uint32_t cause = 0;
  std::uint64_t first_id = 0, count = 0;
};

struct Report {
  std::mutex mutex;
  std::vector<Failure> failures;  // equal failures are counted together
  std::uint64_t failures_not_kept = 0;
  std::vector<std::string> closed;
};
Report& report() {
  static auto* const report = new Report;
  return *report;
}

std::string describe(const std::string& device, const verbs::Context& context) {
  return fmt::format("{} at {}:\n{}", device, context.device().address, context.describe());
}

std::string describe(const Failure& failure) {
  return fmt::format("  qp {:#08x}: {} x {} (wr_id {}{}): {}\n", failure.pair, failure.count,
                     verbs::to_string(failure.status), failure.first_id, failure.count > 1 ? " and later" : "",
                     failure.status == verbs::WcStatus::wr_flush_err
                         ? "the queue pair was in error, or was taken there, before this request began"
                         : verbs::explain(static_cast<verbs::Cause>(failure.cause)));
}

void print() {
  std::string text = fmt::format("fairlead: what happened in process {}\n", ::getpid());
  Report& all = report();
  const std::lock_guard guard(all.mutex);
  for (const std::string& each : all.closed) text += each;
  for (const OpenContext* each : registry<OpenContext>().all()) {
    const Call call;
    if (find_context(&each->context) != nullptr) text += describe(each->identity.name, each->native);
  }
  if (rdma_cm::has_device_files()) text += rdma_cm::Service::of_process().describe();
  text += all.failures.empty() ? "no completion failed\n" : "completions that failed:\n";
  for (const Failure& each : all.failures) text += describe(each);
  if (all.failures_not_kept != 0) text += fmt::format("  and {} more\n", all.failures_not_kept);
  std::fputs(text.c_str(), stderr);
}

}  // namespace

void explain_at_exit() {
  static const bool is_installed = settings().explains && std::atexit(print) == 0;
  (void)is_installed;
}

void explain_failure(const verbs::WorkCompletion& completion) try {
  if (!settings().explains) return;
  Report& all = report();
  const std::lock_guard guard(all.mutex);
  const auto alike = std::ranges::find_if(all.failures, [&](const Failure& each) {
    return each.pair == completion.qp_num && each.status == completion.status && each.cause == completion.vendor_err;
  });
  if (alike != all.failures.end()) {
    ++alike->count;
  } else if (all.failures.size() < kFailuresKept) {
    all.failures.push_back({.pair = completion.qp_num,
                            .status = completion.status,
                            .opcode = completion.opcode,
                            .cause = completion.vendor_err,
                            .first_id = completion.wr_id,
                            .count = 1});
  } else {
    ++all.failures_not_kept;
  }
} catch (const std::bad_alloc&) {  // the program gets the completion anyway
}

void explain_context(const std::string& device, const verbs::Context& context) try {
  if (!settings().explains) return;
  Report& all = report();
  const std::lock_guard guard(all.mutex);
  if (all.closed.size() < kContextsKept) all.closed.push_back(describe(device, context));
} catch (const std::bad_alloc&) {  // the context closes anyway
}

}  // namespace fairlead::ibverbs
