// Cost of idle peers for an engine: memory per peer, and instructions per message to another peer beside them.
// callgrind counts whole engines on virtual time, so both figures repeat exactly.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <fstream>
#include <optional>

#include "bench/peers_crowd.hpp"
#include "tools/process/child_process.hpp"

namespace {

using namespace fairlead;

constexpr std::array<std::uint32_t, 3> kIdle{1, 100, 10'000};
constexpr std::uint64_t kMessages = 1000;  // each with an answer
constexpr std::uint64_t kBytesGoal = 2048;
constexpr double kGrowthGoal = 1.10;
constexpr std::chrono::hours kAtMost{1};

/// Runs this program under callgrind and returns the instructions that the engine executes. It meets the peers and
/// exchanges messages. Returns nothing without valgrind.
std::optional<std::uint64_t> count_instructions(std::uint32_t idle, std::uint64_t messages) {
  std::array<char, 4096> own{};
  if (readlink("/proc/self/exe", own.data(), own.size() - 1) < 0) return {};
  const std::string file = fmt::format("/tmp/peers_bench.{}", getpid());
  const std::vector<std::string> words{"valgrind",
                                       "--tool=callgrind",
                                       "--quiet",
                                       "--log-file=/dev/null",
                                       "--collect-atstart=no",
                                       "--toggle-collect=*Crowd::hub_*",
                                       "--callgrind-out-file=" + file,
                                       own.data(),
                                       "--idle",
                                       fmt::to_string(idle),
                                       "--messages",
                                       fmt::to_string(messages)};
  if (tools::ChildProcess(words, {.is_captured = false}).wait(kAtMost) != 0) return {};
  std::optional<std::uint64_t> sum;
  std::ifstream counts(file);
  for (std::string line; std::getline(counts, line);)
    if (line.starts_with("totals:")) sum = std::stoull(line.substr(7));
  std::remove(file.c_str());
  return sum;
}

/// Instructions per pair of a sent and a received message.
std::optional<double> instructions_per_message(std::uint32_t idle) {
  const auto without = count_instructions(idle, 0), with = count_instructions(idle, kMessages);
  if (!without || !with) return {};
  return static_cast<double>(*with - *without) / static_cast<double>(kMessages);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("memory and instructions of an engine beside idle peers");
  std::uint32_t idle_only = 0;
  std::uint64_t messages = 0;
  app.add_option("--idle", idle_only, "only meet so many peers and exchange messages, to be counted");
  app.add_option("--messages", messages, "then");
  CLI11_PARSE(app, argc, argv);
  if (idle_only > 0) {
    bench::Crowd(idle_only).exchange_messages(messages);
    return 0;
  }
  const std::uint64_t alone = bench::Crowd(kIdle[0]).measure_memory();
  std::optional<double> first;
  for (const std::uint32_t idle : kIdle) {
    const std::uint64_t bytes = bench::Crowd(idle).measure_memory();
    fmt::print("{:6} idle peers: {:10} bytes", idle, bytes);
    if (idle > kIdle[0]) fmt::print(", {:5} each (goal {})", (bytes - alone) / (idle - kIdle[0]), kBytesGoal);
    const auto instructions = instructions_per_message(idle);
    if (!first) first = instructions;
    if (instructions)
      fmt::print("; {:.0f} instructions per message and its answer, {:.3f} of one peer's (goal {:.2f})", *instructions,
                 *instructions / *first, kGrowthGoal);
    fmt::print("\n");
  }
  if (!first) fmt::print("no valgrind here, so instructions were not counted: apt-get install valgrind\n");
}
