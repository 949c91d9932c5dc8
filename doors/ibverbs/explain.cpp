#include "doors/ibverbs/explain.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>
#include <vector>

#include "doors/ibverbs/objects.hpp"
#include "doors/ibverbs/settings.hpp"
#include "doors/rdma_cm/descriptor_table.hpp"
#include "doors/rdma_cm/service.hpp"

namespace fairlead::ibverbs {

namespace {

constexpr std::size_t kFailuresKept = 64;
constexpr std::size_t kContextsKept = 16;  // of each device

struct Failure {
  std::uint32_t pair = 0;
  verbs::WcStatus status = verbs::WcStatus::success;
  verbs::WcOpcode opcode = verbs::WcOpcode::send;
  std::uint32_t cause = 0;
  std::uint64_t first_id = 0, count = 0;
};

/// What the contexts of a device did. Those that are open at once share an engine, and thus its counters.
struct DeviceReport {
  const Identity* device = nullptr;
  std::vector<std::string> engines;  // what is worth a line, of engines that ended
};

struct Report {
  std::mutex mutex;
  std::vector<Failure> failures;  // equal failures are counted together
  std::uint64_t failures_not_kept = 0;
  std::vector<DeviceReport> devices;

  DeviceReport& of(const Identity& device) {
    const auto found = std::ranges::find(devices, &device, &DeviceReport::device);
    return found != devices.end() ? *found : devices.emplace_back(&device);
  }
  void note(const OpenContext& context) {
    DeviceReport& its = of(context.identity);
    std::string text = context.native.describe();
    if (!text.empty() && its.engines.size() < kContextsKept) its.engines.push_back(std::move(text));
  }
};
Report& report() {
  static auto* const report = new Report;
  return *report;
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
  std::set<const Identity*> open;
  for (const OpenContext* each : registry<OpenContext>().all()) {
    const Call call;
    if (find_context(&each->context) != nullptr && open.insert(&each->identity).second) all.note(*each);
  }
  for (const DeviceReport& each : all.devices) {
    text += fmt::format("{} at {}:\n", each.device->name, each.device->device.address);
    for (const std::string& engine : each.engines) text += engine;
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

void explain_context(const OpenContext& context) try {
  if (!settings().explains) return;
  for (const OpenContext* each : registry<OpenContext>().all()) {
    const Call call;
    if (find_context(&each->context) != nullptr && &each->identity == &context.identity) return;  // the last one tells
  }
  Report& all = report();
  const std::lock_guard guard(all.mutex);
  all.note(context);
} catch (const std::bad_alloc&) {  // the context closes anyway
}

}  // namespace fairlead::ibverbs
