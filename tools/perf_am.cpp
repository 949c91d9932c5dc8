#include "tools/perf_am.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include <fairlead/am.hpp>

#include "observe/canary.hpp"
#include "observe/floor.hpp"
#include "tools/command_line.hpp"
#include "tools/exit_code.hpp"
#include "tools/perf_control.hpp"
#include "tools/perf_node.hpp"
#include "tools/perf_row_maker.hpp"

namespace fairlead::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint8_t kAsk = 1, kAnswer = 2;
constexpr std::uint64_t kKey = 2;
constexpr int kWarmUpRequests = 200;
constexpr std::uint32_t kServicePolls = 4096;  // at the control: a system call

/// What both ends have.
struct AmEnd {
  std::unique_ptr<am::Bundle> bundle;
  am::Endpoint* endpoint = nullptr;
  std::vector<std::byte> memory;
  std::uint64_t replies = 0;

  Result<> open(const PerfAmOptions& options) {
    auto domain = am::Domain::open({.engine = options.engine});
    if (!domain) return std::unexpected(std::move(domain.error()));
    bundle = std::make_unique<am::Bundle>(*domain, am::BundleMode::sequential);
    auto added = bundle->add_endpoint();
    if (!added) return std::unexpected(std::move(added.error()));
    endpoint = *added;
    memory.resize(std::ranges::max(options.sizes) + 64);
    endpoint->set_tag(am::Tag::of(kKey));
    endpoint->set_segment(memory.data(), memory.size());
    endpoint->set_handler(kAsk, [](void*, am::Token& token, const am::Message&) { token.reply(kAnswer, {}); });
    endpoint->set_handler(
        kAnswer, [](void* end, am::Token&, const am::Message&) { ++static_cast<AmEnd*>(end)->replies; }, this);
    endpoint->set_depth(std::min(options.depth, am::kDepthMax));
    return {};
  }

  Status send(AmKind kind, std::uint64_t size) {
    const std::span<const std::byte> data = std::span(memory).first(size);
    switch (kind) {
      case AmKind::brief: {
        constexpr std::array<am::Argument, am::kArgumentsMax> kWords{};
        return endpoint->request(0, kAsk, std::span(kWords).first(std::min<std::size_t>(size / 4, kWords.size())));
      }
      case AmKind::medium:
        return endpoint->request_medium(0, kAsk, data, {});
      case AmKind::large:
        return endpoint->request_long(0, 0, kAsk, data, {});
    }
    return Status::invalid;
  }
};

double cpu_seconds(int who) {
  rusage use{};
  getrusage(who, &use);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

// The second process: it serves until the control closes.
int serve(PerfControl control, const PerfAmOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)pin_thread(options.cpus[1]);
  AmEnd end;
  if (auto opened = end.open(options); !opened) return report_error(opened.error());
  const am::Name own = end.endpoint->name();
  const auto peer = control.send(own) ? control.receive<am::Name>() : std::nullopt;
  if (!peer) return kExitFailed;
  end.endpoint->map(0, *peer, kKey);
  for (std::uint32_t polls = 0; polls % kServicePolls != 0 || !control.is_readable(); ++polls) end.bundle->poll();
  return kExitOk;
}

PerfPiece measure(AmEnd& end, const PerfAmOptions& options, std::uint64_t size, Duration time) {
  PerfPiece piece;
  const std::uint64_t before = end.replies;
  const double cpu_before = cpu_seconds(RUSAGE_SELF);
  const auto begun = Clock::now();
  auto now = begun;
  std::uint64_t sent = 0;
  while (now - begun < time) {
    if (end.send(options.kind, size) != Status::ok) break;
    ++sent;
    if (!options.is_one_way) {
      while (end.replies != before + sent) end.bundle->poll();
    } else if (sent % 64 != 0) {
      continue;  // the clock costs as much as a message
    }
    const auto after = Clock::now();
    if (!options.is_one_way) piece.times.record(after - now);
    now = after;
  }
  while (end.replies != before + sent) end.bundle->poll();
  piece.messages = sent;
  piece.bytes = sent * size;
  piece.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  // The other side spins as long.
  piece.cpu_seconds = cpu_seconds(RUSAGE_SELF) - cpu_before + piece.seconds;
  return piece;
}

Result<std::vector<PerfRow>> measure_all(AmEnd& end, const PerfAmOptions& options) {
  static constexpr std::array<const char*, 3> kNames{"short", "medium", "long"};
  const std::string name = fmt::format("am {} {}", kNames[static_cast<std::size_t>(options.kind)],
                                       options.is_one_way ? "one way" : "and back");
  const bool has_floor = options.has_floors && !options.is_one_way;
  std::vector<PerfRow> rows;
  const Duration part = options.time / kPerfRounds;
  const PerfOp op = options.is_one_way ? PerfOp::bandwidth : PerfOp::latency;
  for (const std::uint64_t size : options.sizes) {
    PerfRowMaker ours(op, options.path, size), floor(op, "floor-" + options.path, size);
    std::vector<double> canaries;
    for (int i = 0; i < kWarmUpRequests; ++i) {
      if (end.send(options.kind, size) != Status::ok)
        return std::unexpected(Error{Status::invalid, 0, fmt::format("{} bytes are too many for this kind", size)});
    }
    while (end.endpoint->outstanding() != 0) end.bundle->poll();
    for (int round = 0; round < kPerfRounds; ++round) {
      canaries.push_back(static_cast<double>(observe::line_transfer_time(options.cpus[0], options.cpus[1]).count()));
      ours.add(measure(end, options, size, part));
      if (!has_floor) continue;
      const observe::FloorOptions plain{.bytes = static_cast<std::uint32_t>(std::max(size, 1UL)),
                                        .duration = part,
                                        .cpu_near = options.cpus[0],
                                        .cpu_far = options.cpus[1]};
      const auto exchange =
          options.path == "shm" ? observe::floor_shm_exchange(plain) : observe::floor_udp_exchange(plain);
      if (!exchange) return std::unexpected(exchange.error());
      floor.add(*exchange, part);
    }
    rows.push_back(ours.row(perf_median(canaries)));
    rows.back().op = name;
    if (!has_floor) continue;
    const PerfRow own = rows.back();
    rows.push_back(floor.row(own.canary_ns));
    rows.back().ratio = perf_ratio(op, own, rows.back());  // of there and back to one way
  }
  return rows;
}

}  // namespace

int run_perf_am(const PerfAmOptions& options) {
  auto ends = PerfControl::make_pair();
  if (!ends) return report_error(ends.error());
  std::fflush(nullptr);
  const pid_t other = fork();
  if (other < 0) return report_error({Status::system, errno, "cannot start a second process"});
  if (other == 0) {
    {
      const PerfControl near = std::move(ends->first);
    }
    _exit(serve(std::move(ends->second), options));
  }
  {
    const PerfControl far = std::move(ends->second);
  }
  if (!pin_thread(options.cpus[0]))
    return report_error(
        {Status::invalid, 0, fmt::format("processor {} is not ours: name two with --cpus", options.cpus[0])});
  int code = kExitFailed;
  {
    PerfControl control = std::move(ends->first);
    AmEnd end;
    if (auto opened = end.open(options); !opened) return report_error(opened.error());
    const auto peer = control.receive<am::Name>();
    if (!peer || !control.send(end.endpoint->name()))
      return report_error(
          {Status::system, 0, "the second process of the measurement ended at once: see its message above"});
    end.endpoint->map(0, *peer, kKey);
    const auto rows = measure_all(end, options);
    if (rows) {
      fmt::print("{}", options.is_json ? perf_json(*rows) : perf_table(*rows));
      code = kExitOk;
    } else {
      code = report_error(rows.error());
    }
  }
  int status = 0;
  waitpid(other, &status, 0);
  return code;
}

}  // namespace fairlead::tools
