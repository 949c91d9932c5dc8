// Printed names of the enumerations, and sums of statistics.

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <fairlead/net/event.hpp>
#include <fairlead/net/statistics.hpp>

namespace fairlead::net {
namespace {

constexpr std::array<std::string_view, kQueueKinds> kQueueNames{
    "message receive",   "message send",        "passive bulk receive",
    "passive bulk send", "active bulk receive", "active bulk send",
};

constexpr std::array<std::string_view, 7> kStateNames{
    "undefined", "initialized", "starting", "started", "stopping", "stopped", "failed",
};

}  // namespace

std::string_view to_string(QueueKind kind) noexcept {
  const auto index = std::to_underlying(kind);
  return index < kQueueNames.size() ? kQueueNames[index] : "unknown queue";
}

std::string_view to_string(MachineState state) noexcept {
  const auto index = std::to_underlying(state);
  return index < kStateNames.size() ? kStateNames[index] : "unknown state";
}

Statistics& Statistics::operator+=(const Statistics& other) noexcept {
  for (std::size_t i = 0; i < kQueueKinds; ++i) {
    QueueStatistics& sum = queues[i];
    const QueueStatistics& more = other.queues[i];
    sum.adds += more.adds;
    sum.deletes += more.deletes;
    sum.successes += more.successes;
    sum.failures += more.failures;
    sum.time_in_queue += more.time_in_queue;
    sum.bytes_total += more.bytes_total;
    sum.bytes_max = std::max(sum.bytes_max, more.bytes_max);
  }
  return *this;
}

std::string to_record(const Statistics& statistics) {
  std::string record;
  for (std::size_t i = 0; i < kQueueKinds; ++i) {
    const QueueStatistics& queue = statistics.queues[i];
    if (queue.adds == 0) continue;
    std::string name(kQueueNames[i]);
    std::ranges::replace(name, ' ', '_');
    record += fmt::format(
        "{}{}.adds={} {}.deletes={} {}.successes={} {}.failures={} {}.ns_in_queue={} {}.bytes={} {}.bytes_max={}",
        record.empty() ? "" : " ", name, queue.adds, name, queue.deletes, name, queue.successes, name, queue.failures,
        name, queue.time_in_queue.count(), name, queue.bytes_total, name, queue.bytes_max);
  }
  return record;
}

}  // namespace fairlead::net
