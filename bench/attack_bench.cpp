// Goodput of an honest pair while a stranger floods the receiver's port: long messages over UDP between two processes
// of the loopback. Baseline rounds without a flood alternate with rounds of each kind; results are medians. The flood
// also uses this machine's processors, which a remote attacker would not. A row with the same flood at an unused port
// shows that cost.
//
//   garbage   random bytes
//   hellos    valid hellos, each with a new token and no cookie
//   forged    segments with the sender's forged address and made-up tokens

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file_descriptor.hpp"
#include "embedded/attach.hpp"
#include "engine/core.hpp"
#include "engine/engine_options.hpp"
#include "tests/forged_packet.hpp"
#include "wire/envelope.hpp"
#include "wire/hello.hpp"
#include "wire/record.hpp"
#include "wire/segment.hpp"

namespace {

using namespace fairlead;
using namespace std::chrono_literals;
using Bytes = std::vector<std::byte>;
using std::chrono::steady_clock;

constexpr std::uint32_t kPort = 1;
constexpr std::uint64_t kMessage = 64 << 10;
constexpr std::size_t kInFlight = 32;
constexpr std::uint32_t kMessagesInBuffer = 64;

enum class Flood : int { none, elsewhere, garbage, hellos, forged };
constexpr std::array kFloods{Flood::none, Flood::elsewhere, Flood::garbage, Flood::hellos, Flood::forged};
constexpr std::array<const char*, kFloods.size()> kNames{"quiet", "flood elsewhere", "garbage", "hellos", "forged"};

/// Memory that the processes share.
struct Page {
  std::atomic<int> flood{0};
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> received{0}, flooded{0};  // bytes; datagrams
  std::atomic<std::uint16_t> sender_port{0}, receiver_port{0};
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "attack_bench: {}\n", why);
  std::exit(2);
}

base::SocketAddress address_of(const char* ip, std::uint16_t port) {
  return *base::SocketAddress::from_ip(ip, port);
}

// The honest ---------------------------------------------------------------------------------------------------------

struct End {
  explicit End(const char* ip) {
    engine::EngineOptions options;
    (void)options.set("path", "udp");
    auto attached = embedded::attach_embedded(address_of(ip, 0), options);
    if (!attached) give_up(attached.error().message);
    core = std::move(*attached);
    port = *core->open_port(kPort);
    if (core->reserve_events(port, 100'000) != Status::ok) give_up("no room for events");
  }
  ~End() { core->close_port(port); }

  std::shared_ptr<engine::Core> core;
  engine::PortHandle port;
};

void receive(Page& page) {
  End end("127.0.0.1");
  std::array<Bytes, 4> buffers;
  std::array<iovec, 4> memory;
  engine::OperationHandle name;
  const auto post = [&](std::size_t i) {
    memory[i] = {buffers[i].data(), buffers[i].size()};
    if (end.core->post_receive(
            end.port, {.memory = {&memory[i], 1}, .size_min = 1, .messages_max = kMessagesInBuffer, .cookie = i},
            name) != Status::ok)
      give_up("no receive");
  };
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].resize(kMessage * kMessagesInBuffer);
    post(i);
  }
  page.receiver_port = end.core->address().port;
  std::array<engine::Completion, 64> events;
  while (!page.is_over.load(std::memory_order_relaxed)) {
    if (!end.core->wait(end.port, base::MonotonicClock::now() + 20ms)) continue;
    const std::size_t count = end.core->next_events(end.port, events);
    for (const engine::Completion& event : std::span(events).first(count)) {
      if (event.status == Status::ok) page.received.fetch_add(event.length, std::memory_order_relaxed);
      if (event.is_final) post(event.cookie);
    }
  }
}

void send(Page& page) {
  End end("127.0.0.2");
  page.sender_port = end.core->address().port;
  while (page.receiver_port == 0) std::this_thread::sleep_for(1ms);
  const engine::RemotePort to{address_of("127.0.0.1", page.receiver_port), kPort};
  const Bytes bytes(kMessage, std::byte{7});
  const iovec memory{const_cast<std::byte*>(bytes.data()), bytes.size()};
  engine::OperationHandle name;
  std::size_t in_flight = 0;
  std::array<engine::Completion, 64> events;
  while (!page.is_over.load(std::memory_order_relaxed)) {
    while (in_flight < kInFlight &&
           end.core->send(end.port, {.to = to, .part = {.memory = {&memory, 1}, .length = kMessage}}, name) ==
               Status::ok)
      ++in_flight;
    if (!end.core->wait(end.port, base::MonotonicClock::now() + 20ms)) continue;
    const std::size_t count = end.core->next_events(end.port, events);
    for (const engine::Completion& event : std::span(events).first(count))
      if (event.status != Status::ok) give_up(end.core->describe_peer(to.engine));
    in_flight -= count;
  }
}

// The stranger -------------------------------------------------------------------------------------------------------

Bytes sealed(const wire::Header& header, std::span<const std::byte> payload) {
  Bytes datagram(wire::kSegmentHeaderBytes + payload.size());
  wire::encode(header, datagram.data());
  std::ranges::copy(payload, datagram.begin() + wire::kSegmentHeaderBytes);
  const iovec rest{datagram.data() + wire::kSegmentHeaderBytes, payload.size()};
  wire::add_checksum(std::span(datagram).first(wire::kSegmentHeaderBytes), {&rest, 1});
  return datagram;
}

Bytes datagram_of(Flood kind, std::uint64_t number) {
  const std::uint64_t token = number * 0x9E3779B97F4A7C15 | 1;
  wire::Header header;
  if (kind == Flood::hellos) {
    Bytes hello(wire::kHelloBytes);
    wire::encode({.epoch = 1,
                  .token = token,
                  .window_bytes = 1U << 20,
                  .initial_sequence = {100},
                  .datagram_size_max = 65'000,
                  .window_segments = 1024,
                  .reassembly_slots = 64,
                  .ack_after = {}},
                 hello.data());
    header.kind = wire::Kind::hello;
    return sealed(header, hello);
  }
  if (kind == Flood::forged) {
    Bytes record(wire::whole_bytes(0));
    wire::encode_whole({.operation = wire::Operation::done}, 0, record.data());
    header.token = token;
    return sealed(header, record);
  }
  return Bytes(64, static_cast<std::byte>(number));
}

/// Packets of one kind, prepared in advance.
class Volley {
 public:
  static constexpr std::size_t kPackets = 4096, kAtOnce = 32;

  Volley(Flood kind, const base::SocketAddress& from, const base::SocketAddress& to) {
    kernel_.sin_family = AF_INET;
    kernel_.sin_addr.s_addr = tests::ipv4_of(to);
    for (std::size_t i = 0; i < kPackets; ++i)
      packets_.push_back(tests::forged_packet(from, to, datagram_of(kind, i + 1)));
    for (auto& packet : packets_) pieces_.push_back({packet.data(), packet.size()});
    for (auto& piece : pieces_)
      messages_.push_back(
          {.msg_hdr = {.msg_name = &kernel_, .msg_namelen = sizeof kernel_, .msg_iov = &piece, .msg_iovlen = 1},
           .msg_len = 0});
  }
  Volley(const Volley&) = delete;
  Volley& operator=(const Volley&) = delete;

  std::size_t fire(int socket) {
    const int sent = ::sendmmsg(socket, messages_.data() + next_, kAtOnce, MSG_DONTWAIT);
    next_ = (next_ + kAtOnce) % kPackets;
    return static_cast<std::size_t>(std::max(sent, 0));
  }

 private:
  sockaddr_in kernel_{};
  std::vector<Bytes> packets_;
  std::vector<iovec> pieces_;
  std::vector<mmsghdr> messages_;
  std::size_t next_ = 0;
};

void flood(Page& page, std::uint64_t per_second) {
  const base::FileDescriptor raw(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
  const base::FileDescriptor nobody(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof place;
  if (!raw.is_open()) give_up(fmt::format("no raw socket: {}: run it as root", std::strerror(errno)));
  if (::bind(nobody.get(), reinterpret_cast<sockaddr*>(&place), length) != 0 ||
      ::getsockname(nobody.get(), reinterpret_cast<sockaddr*>(&place), &length) != 0)
    give_up("no port for nobody");
  while (page.sender_port == 0 || page.receiver_port == 0) std::this_thread::sleep_for(1ms);
  const auto stranger = address_of("127.0.0.3", 999), victim = address_of("127.0.0.1", page.receiver_port);
  std::map<Flood, Volley> volleys;
  volleys.try_emplace(Flood::elsewhere, Flood::garbage, stranger, address_of("127.0.0.1", ntohs(place.sin_port)));
  volleys.try_emplace(Flood::garbage, Flood::garbage, stranger, victim);
  volleys.try_emplace(Flood::hellos, Flood::hellos, stranger, victim);
  volleys.try_emplace(Flood::forged, Flood::forged, address_of("127.0.0.2", page.sender_port), victim);
  constexpr auto kTick = 250us;
  const double in_tick = static_cast<double>(per_second) * std::chrono::duration<double>(kTick).count();
  double due = 0;
  for (auto next = steady_clock::now(); !page.is_over.load(std::memory_order_relaxed); next += kTick) {
    std::this_thread::sleep_until(next);
    if (steady_clock::now() - next > 20ms) next = steady_clock::now();  // do not catch up after a delay
    const auto kind = static_cast<Flood>(page.flood.load(std::memory_order_relaxed));
    due = kind == Flood::none ? 0 : due + in_tick;
    std::uint64_t sent = 0;
    for (; due >= Volley::kAtOnce; due -= Volley::kAtOnce) sent += volleys.at(kind).fire(raw.get());
    page.flooded.fetch_add(sent, std::memory_order_relaxed);
  }
}

// The figures --------------------------------------------------------------------------------------------------------

struct Row {
  std::vector<double> goodput, flooded;  // MB/s; datagrams/s
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

void measure(Page& page, Flood kind, std::chrono::duration<double> span, Row& row) {
  page.flood = static_cast<int>(kind);
  std::this_thread::sleep_for(span / 5);
  const std::uint64_t received = page.received, flooded = page.flooded;
  const auto begin = steady_clock::now();
  std::this_thread::sleep_for(span);
  const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  row.goodput.push_back(static_cast<double>(page.received - received) / seconds / 1e6);
  row.flooded.push_back(static_cast<double>(page.flooded - flooded) / seconds);
  page.flood = static_cast<int>(Flood::none);
  std::this_thread::sleep_for(span / 5);
}

template <typename Part>
pid_t start(Part&& part) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  part();
  std::exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"goodput of an honest pair beside a stranger that floods the receiver's port"};
  std::uint64_t per_second = 200'000;
  double seconds = 0.5;
  int rounds = 7;
  app.add_option("--datagrams", per_second, "of the stranger, a second")->check(CLI::Range(1'000, 10'000'000));
  app.add_option("--seconds", seconds, "of each measurement")->check(CLI::Range(0.05, 60.0));
  app.add_option("--rounds", rounds, "of all kinds")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);

  auto* page = new (::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Page;
  const std::array processes{start([&] { receive(*page); }), start([&] { send(*page); }),
                             start([&] { flood(*page, per_second); })};
  std::array<Row, kFloods.size()> rows;
  const std::chrono::duration<double> span(seconds);
  while (page->received == 0) {
    for (const pid_t process : processes)
      if (::waitpid(process, nullptr, WNOHANG) != 0) return 2;
    std::this_thread::sleep_for(10ms);
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < kFloods.size(); ++i) measure(*page, kFloods[i], span, rows[i]);
  page->is_over = true;
  for (const pid_t process : processes) ::waitpid(process, nullptr, 0);

  const double quiet = median(rows[0].goodput), beside = median(rows[1].goodput);
  for (std::size_t i = 0; i < kFloods.size(); ++i) {
    const double goodput = median(rows[i].goodput);
    fmt::print("{:16} {:7.0f} MB/s", kNames[i], goodput);
    if (i > 0) fmt::print(", {:3.0f} % of quiet", 100 * goodput / quiet);
    if (i > 1) fmt::print(", {:3.0f} % of the same flood elsewhere (goal 80)", 100 * goodput / beside);
    if (i > 0) fmt::print("; {:.0f} datagrams/s", median(rows[i].flooded));
    fmt::print("\n");
  }
}
