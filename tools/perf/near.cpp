#include "tools/perf/near.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <span>
#include <unordered_map>

#include "tools/base/describe_failure.hpp"
#include "tools/base/now.hpp"
#include "tools/base/processor.hpp"
#include "tools/perf/stamp.hpp"

namespace fairlead::tools {
namespace {

// Longer than the engine needs to give up a peer, so that its reason is reported first. A busy host may delay a process
// for seconds.
constexpr Duration kSilenceMax = std::chrono::seconds{15};
constexpr int kWarmUpExchanges = 200;
constexpr Duration kWarmUp = std::chrono::milliseconds{20};

std::unexpected<Error> failure(std::string_view what, Status status) {
  return std::unexpected(Error{status == Status::invalid ? Status::system : status, 0,
                               fmt::format("the measurement failed: {}: {}", what, to_string(status))});
}

std::unexpected<Error> failure_with(PerfNode& node, const net::EndPoint& far, std::string_view what, Status status) {
  return std::unexpected(
      Error{status == Status::invalid ? Status::system : status, 0,
            fmt::format("the measurement failed: {}: {}", what, describe_failure(node.machine(), far, status))});
}

std::unexpected<Error> silence(PerfNode& node, const net::EndPoint& far) {
  return failure(fmt::format("nothing came for {} s; {}", std::chrono::duration<double>(kSilenceMax).count(),
                             node.machine().describe(far)),
                 Status::silent);
}

/// A set of operations, several of which are in flight. Each returns its buffer with its event.
struct Flow {
  Status worst = Status::ok;
  std::uint64_t done = 0;
  std::vector<net::Buffer*> idle;

  void end(const net::BufferEvent& event) {
    if (event.status == Status::ok) {
      ++done;
    } else if (event.status != Status::canceled) {
      worst = event.status;
    }
    idle.push_back(&event.buffer);
  }

  /// Keeps operations in flight until `until`: `submit` takes idle buffers, and may refuse some with `again`. Returns
  /// false after a failure or a long silence.
  template <typename Submit>
  bool keep_busy(PerfNode& node, Instant until, Submit submit) {
    Instant last_done = now();
    for (std::uint64_t seen = done; worst == Status::ok;) {
      node.poll();
      while (!idle.empty()) {
        const net::TransferMachine::Added added = submit(std::span<net::Buffer* const>(idle));
        idle.erase(idle.begin(), idle.begin() + static_cast<std::ptrdiff_t>(added.count));
        if (added.status == Status::again) break;
        if (added.status != Status::ok) {
          worst = added.status;
          break;
        }
      }
      const Instant at = now();
      if (at >= until || at - last_done > kSilenceMax) return at >= until;
      if (done != seen) last_done = at;
      seen = done;
    }
    return false;
  }
};

/// Starts the far side's role. At the end, adds up what both sides used.
class Run {
 public:
  Run(PerfNode& node, PerfFar& far) : node_(node), far_(far) {}

  Result<net::EndPoint> begin(PerfRole role, const PerfTask& task) {
    const auto begun = far_.begin({.role = role,
                                   .size = task.size,
                                   .in_flight = task.in_flight,
                                   .is_checked = task.is_checked,
                                   .is_loan = task.is_loan});
    if (!begun) return std::unexpected(begun.error());
    return node_.machine().create_end_point(far_.at());
  }
  /// Starts the measured interval.
  void start() {
    cpu_ = process_cpu_seconds() + far_.cpu_seconds();
    start_ = now();
  }
  /// Ends the measured interval.
  void stop(PerfPiece& piece) {
    piece.seconds = std::chrono::duration<double>(now() - start_).count();
    piece.cpu_seconds = process_cpu_seconds() + far_.cpu_seconds() - cpu_;
  }
  Result<PerfPiece> end(PerfPiece piece) {
    const auto outcome = far_.end();
    if (!outcome) return std::unexpected(outcome.error());
    if (outcome->failures > 0)
      return failure(fmt::format("{} operations of the other side", outcome->failures), Status::system);
    piece.dropped = outcome->dropped;
    piece.corrupt += outcome->corrupt;
    return piece;
  }

 private:
  PerfNode& node_;
  PerfFar& far_;
  double cpu_ = 0;
  Instant start_{};
};

/// Warms up, measures for `time`, and lets operations in flight end.
template <typename Submit>
Result<PerfPiece> measure_flow(PerfNode& node, Run& run, Flow& flow, PerfPiece& piece, PerfBuffers& buffers,
                               const net::EndPoint& peer, const PerfTask& task, Submit submit) {
  for (const auto& buffer : buffers) flow.idle.push_back(buffer.get());
  bool is_fine = flow.keep_busy(node, now() + kWarmUp, submit);
  piece.times = {};
  const std::uint64_t done_before = flow.done;
  run.start();
  is_fine = is_fine && flow.keep_busy(node, now() + task.time, submit);
  run.stop(piece);
  piece.messages = flow.done - done_before;
  piece.bytes = piece.messages * task.size;
  PerfPiece measured = piece;
  node.poll_until([&] { return flow.idle.size() == buffers.size(); }, kSilenceMax);
  node.drain(buffers);
  if (flow.worst != Status::ok) return failure_with(node, peer, "an operation", flow.worst);
  if (!is_fine) return silence(node, peer);
  return run.end(std::move(measured));
}

}  // namespace

Result<std::unique_ptr<PerfNode>> meet_far(PerfFar& far, const PerfPlace& place) {
  if (auto opened = far.open({}); !opened) return std::unexpected(std::move(opened.error()));
  auto node = PerfNode::open(place);
  if (!node) return node;
  if (auto met = far.meet((*node)->address()); !met) return std::unexpected(std::move(met.error()));
  return node;
}

Result<PerfPiece> measure_latency(PerfNode& node, PerfFar& far, const PerfTask& task) {
  Run run(node, far);
  const auto peer = run.begin(PerfRole::echo, task);
  if (!peer) return std::unexpected(peer.error());
  PerfPiece piece;
  std::uint64_t replies = 0;
  auto receive = node.take_messages(task.size, [&](const net::BufferEvent& event) {
    if (task.is_checked && read_stamps(event.buffer.segment(0).subspan(event.offset, event.length)) != replies)
      ++piece.corrupt;
    ++replies;
  });
  if (!receive) return std::unexpected(std::move(receive.error()));
  // The event of a send may come after the reply, so two buffers alternate.
  Status worst = Status::ok;
  auto send = node.make_buffers(2, task.size, [&worst](const net::BufferEvent& event) {
    // Loans that are open at the end are taken back.
    if (event.status != Status::ok && event.status != Status::canceled) worst = event.status;
  });
  if (!send) return std::unexpected(std::move(send.error()));

  const auto exchange = [&](std::uint64_t number) {
    net::Buffer& buffer = *(*send)[number % 2];
    while (buffer.is_queued()) node.poll();
    if (task.is_checked) write_stamps(buffer.segment(0), number);
    const Status added =
        node.machine().add(buffer, net::MessageSend{.to = *peer, .length = task.size, .is_loan = task.is_loan});
    if (added != Status::ok) {
      worst = added;
      return false;
    }
    return node.poll_until([&] { return replies > number || worst != Status::ok; }, kSilenceMax) && worst == Status::ok;
  };
  std::uint64_t number = 0;
  bool is_fine = true;
  while (is_fine && number < kWarmUpExchanges) is_fine = exchange(number++);
  run.start();
  const Instant until = now() + task.time;
  for (Instant start = now(); is_fine && start < until;) {
    is_fine = exchange(number++);
    const Instant end = now();
    piece.times.record((end - start) / 2);
    start = end;
    ++piece.messages;
  }
  run.stop(piece);
  node.drain(*send);
  node.drain(*receive);
  if (worst != Status::ok) return failure_with(node, *peer, "a message", worst);
  if (!is_fine) return silence(node, *peer);
  piece.bytes = piece.messages * task.size;
  return run.end(std::move(piece));
}

Result<PerfPiece> measure_bandwidth(PerfNode& node, PerfFar& far, const PerfTask& task) {
  Flow flow;
  PerfPiece piece;
  std::unordered_map<const net::Buffer*, Instant> starts;
  std::deque<net::BufferDescriptor> targets;
  std::uint64_t number = 0;
  auto descriptors =
      node.take_messages(kDescriptorsPerMessage * net::kDescriptorSize, [&](const net::BufferEvent& event) {
        for (std::uint64_t at = 0; at + net::kDescriptorSize <= event.length; at += net::kDescriptorSize) {
          event.buffer.read(event.offset + at, targets.emplace_back());
        }
      });
  if (!descriptors) return std::unexpected(std::move(descriptors.error()));
  Run run(node, far);
  // The far side sends descriptors at once, and the receive buffers are posted already.
  const auto peer = run.begin(PerfRole::take_put, task);
  if (!peer) return std::unexpected(peer.error());
  auto buffers = node.make_buffers(task.in_flight, task.size, [&](const net::BufferEvent& event) {
    if (event.status == Status::ok) piece.times.record(now() - starts[&event.buffer]);
    flow.end(event);
  });
  if (!buffers) return std::unexpected(std::move(buffers.error()));
  auto measured = measure_flow(node, run, flow, piece, *buffers, *peer, task, [&](std::span<net::Buffer* const> idle) {
    using Added = net::TransferMachine::Added;
    if (targets.empty()) return Added{0, Status::again};
    net::Buffer& buffer = *idle.front();
    if (task.is_checked) write_stamps(buffer.segment(0), ++number);
    starts[&buffer] = now();
    const Status added =
        node.machine().add(buffer, net::ActiveSend{.descriptor = targets.front(), .length = task.size});
    if (added != Status::ok) return Added{0, added};
    targets.pop_front();
    return Added{1, Status::ok};
  });
  node.drain(*descriptors);
  return measured;
}

Result<PerfPiece> measure_rate(PerfNode& node, PerfFar& far, const PerfTask& task) {
  std::uint64_t sent = 0, taken = 0;  // `taken` is what the far side has reported
  auto told = node.take_messages(sizeof taken, [&taken, &sent](const net::BufferEvent& event) {
    std::uint64_t number = 0;
    if (event.length != sizeof number) return;
    event.buffer.read(event.offset, std::as_writable_bytes(std::span(&number, 1)));
    taken = std::clamp(number, taken, sent);
  });
  if (!told) return std::unexpected(std::move(told.error()));
  Run run(node, far);
  const auto peer = run.begin(PerfRole::take, task);
  if (!peer) return std::unexpected(peer.error());

  Flow flow;
  PerfPiece piece;
  auto buffers = node.make_buffers(task.in_flight, task.size, [&](const net::BufferEvent& event) { flow.end(event); });
  if (!buffers) return std::unexpected(std::move(buffers.error()));
  const std::uint64_t room = PerfNode::room_for(task.size);
  auto measured = measure_flow(node, run, flow, piece, *buffers, *peer, task, [&](std::span<net::Buffer* const> idle) {
    using Added = net::TransferMachine::Added;
    const std::uint64_t more = std::min<std::uint64_t>(room - (sent - taken), idle.size());
    if (more == 0) return Added{0, Status::again};
    const Added added = node.machine().add(idle.first(more), net::MessageSend{.to = *peer, .length = task.size});
    sent += added.count;
    return added;
  });
  node.drain(*told);
  return measured;
}

}  // namespace fairlead::tools
