// Cost of the UDP path alone between two polling processes, beside the floor of plain sockets, in interleaved rounds
// and for several datagram sizes. Prints one JSON object per row: medians of --rounds.

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include "observe/canary.hpp"
#include "observe/floor.hpp"
#include "observe/floor_peer.hpp"
#include "path/udp_path.hpp"

namespace {

using namespace fairlead;

struct Setting {
  observe::FloorOptions floor;
  std::string ip = "127.0.0.1";
  bool is_hot = true;
};

struct Two {
  std::unique_ptr<path::UdpPath> near, far;
};

Result<Two> open_two(const Setting& setting) {
  path::UdpOptions options;
  auto local = base::SocketAddress::from_ip(setting.ip, 0);
  if (!local) return std::unexpected(local.error());
  options.local = *local;
  auto near = path::UdpPath::open(options);
  auto far = near ? path::UdpPath::open(options) : std::unexpected(near.error());
  if (!far) return std::unexpected(far.error());
  if (setting.is_hot) {
    (*near)->set_hot((*far)->address(), true);
    (*far)->set_hot((*near)->address(), true);
  }
  return Two{std::move(*near), std::move(*far)};
}

void send_message(path::UdpPath& from, const base::SocketAddress& to, std::vector<std::byte>& train, std::size_t bytes,
                  std::uint32_t datagram_size) {
  for (std::size_t sent = 0; sent < bytes;) {
    const iovec piece{train.data(), std::min(train.size(), bytes - sent)};
    const path::Train one{to, std::span(&piece, 1), datagram_size};
    if (from.send(std::span(&one, 1), {}) == 1) sent += piece.iov_len;
  }
}

std::size_t collect_bytes(path::UdpPath& path) {
  std::array<path::Arrival, 16> arrivals;
  const std::size_t taken = path.collect(arrivals, {});
  std::size_t bytes = 0;
  for (std::size_t index = 0; index < taken; ++index) bytes += arrivals[index].bytes.size();
  return bytes;
}

std::size_t train_bytes(const path::UdpPath& path, std::uint32_t datagram_size) {
  return std::min(path.train_datagrams_max(), std::max(1u, path.train_bytes_max() / datagram_size)) * datagram_size;
}

constexpr std::size_t kLooksMax = 10'000'000;  // several seconds: then a datagram was lost

bool receive_message(path::UdpPath& path, std::size_t bytes, const std::atomic<bool>& is_over) {
  std::size_t received = 0;
  for (std::size_t look = 0; look < kLooksMax && received < bytes; ++look) {
    if (is_over.load(std::memory_order_relaxed)) return false;
    received += collect_bytes(path);
  }
  return received >= bytes;
}

Result<double> exchange(const Setting& setting) {
  auto two = open_two(setting);
  if (!two) return std::unexpected(two.error());
  const auto& floor = setting.floor;
  std::vector<std::byte> train(std::min<std::size_t>(floor.bytes, train_bytes(*two->near, floor.datagram_size)));
  auto peer = observe::FloorPeer::start(floor.cpu_near, floor.cpu_far, [&](observe::FloorPage& page) {
    while (receive_message(*two->far, floor.bytes, page.is_over))
      send_message(*two->far, two->near->address(), train, floor.bytes, floor.datagram_size);
  });
  if (!peer) return std::unexpected(peer.error());
  observe::Histogram one_way;
  const auto end = base::MonotonicClock::now() + floor.duration;
  for (auto sent_at = base::MonotonicClock::now(); sent_at < end;) {
    send_message(*two->near, two->far->address(), train, floor.bytes, floor.datagram_size);
    if (!receive_message(*two->near, floor.bytes, peer->page().is_over)) break;
    const auto now = base::MonotonicClock::now();
    one_way.record((now - sent_at) / 2);
    sent_at = now;
  }
  return static_cast<double>(one_way.percentile(50).count()) / 1000;
}

Result<double> stream(const Setting& setting) {
  auto two = open_two(setting);
  if (!two) return std::unexpected(two.error());
  const auto& floor = setting.floor;
  std::vector<std::byte> train(train_bytes(*two->near, floor.datagram_size));
  auto peer = observe::FloorPeer::start(floor.cpu_near, floor.cpu_far, [&](observe::FloorPage& page) {
    std::uint64_t received = 0;
    while (!page.is_over.load(std::memory_order_acquire))
      if (const std::size_t bytes = collect_bytes(*two->far); bytes > 0)
        page.bytes_received.store(received += bytes, std::memory_order_release);
  });
  if (!peer) return std::unexpected(peer.error());
  const auto start = base::MonotonicClock::now();
  auto now = start;
  std::uint64_t sent = 0;
  for (std::size_t look = 1; now < start + floor.duration; ++look) {
    if (sent < peer->page().bytes_received.load(std::memory_order_acquire) + floor.in_flight_bytes) {
      send_message(*two->near, two->far->address(), train, train.size(), floor.datagram_size);
      sent += train.size();
    }
    if (look % 64 == 0) now = base::MonotonicClock::now();
  }
  return static_cast<double>(peer->page().bytes_received.load()) / static_cast<double>((now - start).count());
}

// Both ends run on one core, measured in CPU time, which repeats on a busy host.
Result<double> one_core(const Setting& setting) {
  auto two = open_two(setting);
  if (!two) return std::unexpected(two.error());
  const auto& floor = setting.floor;
  std::vector<std::byte> train(train_bytes(*two->near, floor.datagram_size));
  const auto end = base::MonotonicClock::now() + floor.duration;
  const double cpu_before = observe::thread_cpu_seconds();
  std::uint64_t received = 0;
  while (base::MonotonicClock::now() < end) {
    send_message(*two->near, two->far->address(), train, train.size(), floor.datagram_size);
    for (std::size_t look = 0, bytes = 1; look < 100 && bytes > 0; ++look) received += bytes = collect_bytes(*two->far);
  }
  return static_cast<double>(received) * 1e-9 / (observe::thread_cpu_seconds() - cpu_before);
}

Result<double> floor_of(const std::string& op, const Setting& setting) {
  if (op == "pingpong") {
    const auto floor = observe::floor_udp_exchange(setting.floor);
    if (!floor) return std::unexpected(floor.error());
    return static_cast<double>(floor->one_way.percentile(50).count()) / 1000;
  }
  if (op == "one-core") return 0.0;
  const auto floor = observe::floor_udp_stream(setting.floor);
  if (!floor) return std::unexpected(floor.error());
  return floor->gb_per_s;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"the UDP path beside plain sockets: one way in us (pingpong) or GB/s (stream)"};
  Setting setting;
  std::string op = "pingpong";
  std::vector<std::uint32_t> datagram_sizes{1472};
  double seconds = 0.2;
  int rounds = 5;
  app.add_option("--op", op, "pingpong, stream, or one-core (no floor)")
      ->check(CLI::IsMember({"pingpong", "stream", "one-core"}));
  app.add_option("--bytes", setting.floor.bytes, "bytes of a message");
  app.add_option("--datagram", datagram_sizes, "bytes of a datagram, several after commas")->delimiter(',');
  app.add_option("--in-flight", setting.floor.in_flight_bytes, "bytes in flight of the stream");
  app.add_option("--ip", setting.ip, "loopback address to use");
  app.add_flag("!--cold", setting.is_hot, "main sockets only");
  app.add_option("--seconds", seconds, "of each measurement")->check(CLI::Range(0.01, 60.0));
  app.add_option("--rounds", rounds, "interleaved repetitions")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  setting.floor.duration = std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));

  for (const std::uint32_t datagram_size : datagram_sizes) {
    setting.floor.datagram_size = datagram_size;
    if (op != "pingpong") setting.floor.bytes = datagram_size;
    std::vector<double> ours, floors;
    for (int round = 0; round < rounds; ++round) {
      const auto floor = floor_of(op, setting);
      const auto figure = op == "pingpong" ? exchange(setting) : op == "one-core" ? one_core(setting) : stream(setting);
      for (const auto* result : {&floor, &figure}) {
        if (*result) continue;
        fmt::print(stderr, "udp_path_bench: {}\n", result->error().message);
        return 2;
      }
      floors.push_back(*floor);
      ours.push_back(*figure);
    }
    const auto canary = observe::line_transfer_time(setting.floor.cpu_near, setting.floor.cpu_far);
    nlohmann::json row{{"op", op},
                       {"size", setting.floor.bytes},
                       {"datagram_size", datagram_size},
                       {op == "pingpong" ? "p50_us" : "gb_per_s", median(ours)},
                       {"canary_ns", canary.count()}};
    if (op != "one-core") {
      row["floor"] = median(floors);
      row["ratio"] = median(ours) / median(floors);
    }
    fmt::print("{}\n", row.dump());
  }
  return 0;
}
