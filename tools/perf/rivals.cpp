#include "tools/perf/rivals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tools/process/child_process.hpp"

namespace fairlead::tools {
namespace {

using Words = std::vector<std::string>;

constexpr Duration kPatience = std::chrono::seconds{20};           // in addition to the measuring time
constexpr Duration kServerStart = std::chrono::milliseconds{300};  // servers do not report when they listen
constexpr double kMebibyte = 1 << 20;
constexpr std::uint64_t kSockperfSizeMin = 14;

std::string seconds_text(const RivalTask& task) {
  return fmt::to_string(std::max<long long>(1, std::llround(std::chrono::duration<double>(task.time).count())));
}

std::uint64_t iterations(const RivalTask& task) {
  const double bytes_per_s = task.op == PerfOp::latency ? 1e9 : 4e9;
  const double each = 5e-6 + static_cast<double>(task.size) / bytes_per_s;
  const double wanted = std::chrono::duration<double>(task.time).count() / each;
  return static_cast<std::uint64_t>(std::clamp(wanted, 100.0, 1e6));
}

/// Returns all numbers in a line.
std::vector<double> numbers_of(std::string_view line) {
  std::vector<double> numbers;
  std::istringstream words{std::string(line)};
  for (std::string word; words >> word;) {
    double number = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (fault == std::errc{} && end == word.data() + word.size()) numbers.push_back(number);
  }
  return numbers;
}

/// Returns the last line that contains the text.
std::string_view line_with(std::string_view output, std::string_view text) {
  const std::size_t at = output.rfind(text);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = output.rfind('\n', at) + 1;  // npos + 1 is 0
  return output.substr(begin, std::min(output.find('\n', at), output.size()) - begin);
}

std::optional<RivalFigure> figure(const RivalTask& task, double one_way_us, double bytes_per_s) {
  const bool is_latency = task.op == PerfOp::latency;
  if (!(is_latency ? one_way_us > 0 : bytes_per_s > 0)) return {};
  const auto size = static_cast<double>(task.size);
  if (is_latency) bytes_per_s = size / (2 * one_way_us * 1e-6);
  return RivalFigure{.one_way_us = one_way_us, .gb_per_s = bytes_per_s / 1e9, .messages_per_s = bytes_per_s / size};
}

// ucx_perftest: its last line contains iterations; median, average, overall us; average, overall MB/s; average, overall
// messages/s.
template <const char* kTransports>
Words ucx_words(const RivalTask& task, bool is_server) {
  Words words{"env",
              fmt::format("UCX_TLS={}", kTransports),
              "UCX_LOG_LEVEL=fatal",
              "ucx_perftest",
              "-p",
              fmt::to_string(task.port)};
  if (is_server) return words;
  words.insert(words.end(), {"127.0.0.1", "-t", task.op == PerfOp::latency ? "tag_lat" : "tag_bw", "-s",
                             fmt::to_string(task.size), "-n", fmt::to_string(iterations(task)), "-w", "1000", "-f"});
  return words;
}

std::optional<RivalFigure> read_ucx(const RivalTask& task, std::string_view output) {
  while (output.ends_with('\n')) output.remove_suffix(1);
  const auto numbers = numbers_of(output.substr(output.rfind('\n') + 1));  // npos + 1 is 0
  if (numbers.size() < 8) return {};
  return figure(task, numbers[1], numbers[5] * kMebibyte);
}

// fi_pingpong: one line with bytes, #sent, #ack, total, time, MB/sec, usec/xfer, Mxfers/sec, most with a unit.
template <const char* kProvider>
Words fabric_words(const RivalTask& task, bool is_server) {
  if (task.op != PerfOp::latency) return {};
  Words words{"fi_pingpong",
              "-p",
              kProvider,
              "-e",
              "rdm",
              "-I",
              fmt::to_string(iterations(task)),
              "-S",
              fmt::to_string(task.size),
              is_server ? "-B" : "-P",
              fmt::to_string(task.port)};
  if (!is_server) words.emplace_back("127.0.0.1");
  return words;
}

std::optional<RivalFigure> read_fabric(const RivalTask& task, std::string_view output) {
  const std::size_t heading = output.find("usec/xfer");
  if (heading == std::string_view::npos) return {};
  const std::size_t begin = output.find('\n', heading);
  if (begin == std::string_view::npos) return {};
  const auto numbers = numbers_of(output.substr(begin));  // figures with a unit are skipped
  if (numbers.size() < 3) return {};
  return figure(task, numbers[numbers.size() - 2], 0);
}

Words iperf_words(const RivalTask& task, bool is_server) {
  if (task.op != PerfOp::bandwidth) return {};
  if (is_server) return {"iperf3", "-s", "-1", "-p", fmt::to_string(task.port)};
  return {"iperf3",
          "-c",
          "127.0.0.1",
          "-p",
          fmt::to_string(task.port),
          "-t",
          seconds_text(task),
          "-l",
          fmt::to_string(std::min<std::uint64_t>(task.size, 1 << 20)),
          "-J"};
}

std::optional<RivalFigure> read_iperf(const RivalTask& task, std::string_view output) {
  const nlohmann::json json = nlohmann::json::parse(output, nullptr, false);
  const nlohmann::json::json_pointer place("/end/sum_received/bits_per_second");
  if (json.is_discarded() || !json.contains(place) || !json[place].is_number()) return {};
  return figure(task, 0, json[place].get<double>() / 8);
}

Words sockperf_words(const RivalTask& task, bool is_server) {
  if (task.op != PerfOp::latency) return {};
  Words words{"sockperf", is_server ? "sr" : "pp", "-i", "127.0.0.1", "-p", fmt::to_string(task.port)};
  if (is_server) return words;
  words.insert(words.end(), {"-t", seconds_text(task), "-m", fmt::to_string(std::max(task.size, kSockperfSizeMin))});
  return words;
}

std::optional<RivalFigure> read_sockperf(const RivalTask& task, std::string_view output) {
  const auto numbers = numbers_of(line_with(output, "Latency is"));
  return numbers.empty() ? std::nullopt : figure(task, numbers.front(), 0);
}

Words qperf_words(const RivalTask& task, bool is_server) {
  if (task.op == PerfOp::rate) return {};
  Words words{"qperf"};
  if (!is_server) words.emplace_back("127.0.0.1");
  words.insert(words.end(), {"-lp", fmt::to_string(task.port)});
  if (is_server) return words;
  words.insert(words.end(), {"-m", fmt::to_string(task.size), "-t", seconds_text(task),
                             task.op == PerfOp::latency ? "tcp_lat" : "tcp_bw"});
  return words;
}

double unit_of(std::string_view line) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{" ns", 1e-3},     {" us", 1},       {" ms", 1e3},
                                                            {" GB/sec", 1e9},  {" MB/sec", 1e6}, {" KB/sec", 1e3},
                                                            {" bytes/sec", 1}, {" sec", 1e6}};
  for (const auto& [text, factor] : kUnits)
    if (line.ends_with(text)) return factor;
  return 0;
}

std::optional<RivalFigure> read_qperf(const RivalTask& task, std::string_view output) {
  const std::string_view line = line_with(output, "=");
  const auto numbers = numbers_of(line);
  if (numbers.empty()) return {};
  const double value = numbers.front() * unit_of(line);
  return task.op == PerfOp::latency ? figure(task, value, 0) : figure(task, 0, value);
}

// OSU benchmarks, with any MPI launcher: lines of "size figure".
template <const char* kProgram, PerfOp kOp>
Words osu_words(const RivalTask& task, bool) {
  if (task.op != kOp) return {};
  return {"taskset",
          "-c",
          fmt::format("{},{}", task.cpus[0], task.cpus[1]),
          "env",
          "OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "mpirun",
          "-n",
          "2",
          kProgram,
          "-m",
          fmt::format("{}:{}", task.size, task.size)};
}

std::optional<RivalFigure> read_osu(const RivalTask& task, std::string_view output) {
  const auto numbers = numbers_of(line_with(output, fmt::format("\n{}", task.size)).empty()
                                      ? std::string_view()
                                      : output.substr(output.rfind(fmt::format("\n{}", task.size)) + 1));
  if (numbers.size() < 2 || numbers[0] != static_cast<double>(task.size)) return {};
  return task.op == PerfOp::latency ? figure(task, numbers[1], 0) : figure(task, 0, numbers[1] * 1e6);
}

constexpr char kUcxTcp[] = "tcp,self", kUcxShm[] = "posix,sysv,cma,self", kFabricTcp[] = "tcp", kFabricShm[] = "shm",
               kOsuLatency[] = "osu_latency", kOsuBandwidth[] = "osu_bw";

constexpr std::array<Rival, 9> kRivals{{
    {"ucx-tcp", "ucx_perftest", "ucx-utils", "udp", true, ucx_words<kUcxTcp>, read_ucx},
    {"ucx-shm", "ucx_perftest", "ucx-utils", "shm", true, ucx_words<kUcxShm>, read_ucx},
    {"libfabric-tcp", "fi_pingpong", "libfabric-bin", "udp", true, fabric_words<kFabricTcp>, read_fabric},
    {"libfabric-shm", "fi_pingpong", "libfabric-bin", "shm", true, fabric_words<kFabricShm>, read_fabric},
    {"iperf3", "iperf3", "iperf3", "udp", true, iperf_words, read_iperf},
    {"sockperf-udp", "sockperf", "sockperf", "udp", true, sockperf_words, read_sockperf},
    {"qperf-tcp", "qperf", "qperf", "udp", true, qperf_words, read_qperf},
    {"mpi-osu_latency", "osu_latency", "", "", false, osu_words<kOsuLatency, PerfOp::latency>, read_osu},
    {"mpi-osu_bw", "osu_bw", "", "", false, osu_words<kOsuBandwidth, PerfOp::bandwidth>, read_osu},
}};

std::unexpected<Error> failed(const Rival& rival, std::string_view why) {
  return std::unexpected(Error{Status::system, 0, fmt::format("{} gave no figure: {}", rival.name, why)});
}

}  // namespace

std::span<const Rival> all_rivals() {
  return kRivals;
}

Result<RivalFigure> run_rival(const Rival& rival, const RivalTask& task) {
  const Words words = rival.words(task, false);
  if (words.empty())
    return std::unexpected(Error{Status::not_supported, 0, fmt::format("{} does not measure that", rival.name)});
  std::optional<ChildProcess> server;
  if (rival.has_server) {
    server.emplace(rival.words(task, true), ChildOptions{.cpu = task.cpus[1]});
    if (server->obstacle() != nullptr) return std::unexpected(*server->obstacle());
    std::this_thread::sleep_for(kServerStart);
  }
  ChildProcess client(words, {.cpu = rival.has_server ? task.cpus[0] : -1});
  if (client.obstacle() != nullptr) return std::unexpected(*client.obstacle());
  const int exit_code = client.wait(task.time + kPatience);
  if (exit_code < 0) return failed(rival, "it did not end in time");
  const auto read = rival.read(task, client.output());
  if (read) return *read;
  std::string said = client.error_output().empty() ? client.output() : client.error_output();
  std::ranges::replace_if(said, [](char letter) { return letter < ' ' || letter > '~'; }, ' ');
  return failed(rival, fmt::format("it ended with code {} and said: {:.200}", exit_code, said));
}

}  // namespace fairlead::tools
