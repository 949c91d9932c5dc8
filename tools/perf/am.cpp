#include "tools/perf/am.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include <fairlead/am.hpp>

#include "tools/base/command_line.hpp"
#include "tools/base/exit_code.hpp"
#include "tools/base/processor.hpp"
#include "tools/perf/row_maker.hpp"
#include "tools/perf/two.hpp"

namespace fairlead::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint8_t kAsk = 1, kAnswer = 2;
constexpr std::uint64_t kKey = 2;
constexpr int kWarmUpRequests = 200;

/// The state of either end.
struct AmEnd {
  std::unique_ptr<am::Bundle> bundle;
  am::Endpoint* endpoint = nullptr;
  std::vector<std::byte> memory;
  std::uint64_t replies = 0;
  bool has_failed = false;  // a message was returned

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
    const Status asked = endpoint->set_handler(
        kAsk,
        [](void* end, am::Token& token, const am::Message&) {
          if (token.reply(kAnswer, {}) != Status::ok) static_cast<AmEnd*>(end)->has_failed = true;
        },
        this);
    const Status answered = endpoint->set_handler(
        kAnswer, [](void* end, am::Token&, const am::Message&) { ++static_cast<AmEnd*>(end)->replies; }, this);
    for (const Status status : {asked, answered})
      if (status != Status::ok) return std::unexpected(Error{status, 0, "a handler cannot be set"});
    endpoint->set_error_handler(
        [](void* end, am::Endpoint&, const am::Returned&) { static_cast<AmEnd*>(end)->has_failed = true; }, this);
    const Status status = endpoint->set_depth(std::min(options.depth, am::kDepthMax));
    if (status != Status::ok) return std::unexpected(Error{status, 0, "the depth cannot be set"});
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

int serve(PerfControl control, const PerfAmOptions& options) {
  AmEnd end;
  if (auto opened = end.open(options); !opened) return report_error(opened.error());
  const am::Name own = end.endpoint->name();
  const auto peer = control.send(own) ? control.receive<am::Name>() : std::nullopt;
  if (!peer) return kExitFailed;
  if (end.endpoint->map(0, *peer, kKey) != Status::ok) return kExitFailed;
  serve_until_told(control, [&] { end.bundle->poll(); });
  return kExitOk;
}

Result<PerfPiece> measure(AmEnd& end, const PerfControl& control, const PerfAmOptions& options, std::uint64_t size,
                          Duration time) {
  PerfPiece piece;
  const std::uint64_t before = end.replies;
  const double cpu_before = process_cpu_seconds();
  const auto begun = Clock::now();
  auto now = begun;
  std::uint64_t sent = 0;
  const auto is_answered = [&] {
    return step_until(
        control, [&] { return end.replies == before + sent; },
        [&] {
          end.bundle->poll();
          return !end.has_failed;
        });
  };
  while (now - begun < time) {
    if (end.send(options.kind, size) != Status::ok) break;
    ++sent;
    if (!options.is_one_way) {
      if (!is_answered()) return std::unexpected(second_is_gone());
    } else if (sent % 64 != 0) {
      continue;  // reading the clock costs as much as a message
    }
    const auto after = Clock::now();
    if (!options.is_one_way) piece.times.record(after - now);
    now = after;
  }
  if (!is_answered()) return std::unexpected(second_is_gone());
  piece.messages = sent;
  piece.bytes = sent * size;
  piece.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  // The other side spins for as long.
  piece.cpu_seconds = process_cpu_seconds() - cpu_before + piece.seconds;
  return piece;
}

Result<std::vector<PerfRow>> measure_all(AmEnd& end, const PerfControl& control, const PerfAmOptions& options) {
  static constexpr std::array<const char*, 3> kNames{"short", "medium", "long"};
  const std::string name = fmt::format("am {} {}", kNames[static_cast<std::size_t>(options.kind)],
                                       options.is_one_way ? "one way" : "and back");
  std::vector<PerfRow> rows;
  for (const std::uint64_t size : options.sizes) {
    for (int i = 0; i < kWarmUpRequests; ++i) {
      if (end.send(options.kind, size) != Status::ok)
        return std::unexpected(Error{Status::invalid, 0, fmt::format("{} bytes are too many for this kind", size)});
    }
    while (end.endpoint->outstanding() != 0) end.bundle->poll();
    const PerfTwoRow wanted{.op = options.is_one_way ? PerfOp::bandwidth : PerfOp::latency,
                            .name = name,
                            .path = options.path,
                            .size = size,
                            .time = options.time,
                            .cpus = options.cpus,
                            .has_floor = options.has_floors && !options.is_one_way};
    // The ratio compares a round trip of request and reply with the floor's one way.
    const auto added = add_row(wanted, [&](Duration time) { return measure(end, control, options, size, time); }, rows);
    if (!added) return std::unexpected(added.error());
  }
  return rows;
}

}  // namespace

int run_perf_am(const PerfAmOptions& options) {
  return run_two({.cpus = options.cpus,
                  .output = options.output,
                  .serve = [&](PerfControl control) { return serve(std::move(control), options); },
                  .measure = [&](PerfControl& control) -> Result<std::vector<PerfRow>> {
                    AmEnd end;
                    if (auto opened = end.open(options); !opened) return std::unexpected(opened.error());
                    const auto peer = control.receive<am::Name>();
                    if (!peer || !control.send(end.endpoint->name())) return std::unexpected(second_is_gone());
                    if (const Status mapped = end.endpoint->map(0, *peer, kKey); mapped != Status::ok)
                      return std::unexpected(Error{mapped, 0, "the other end cannot be mapped"});
                    return measure_all(end, control, options);
                  }});
}

}  // namespace fairlead::tools
