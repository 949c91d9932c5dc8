// Cost of encryption (docs/seal.md): bandwidth and latency between two pinned processes over UDP on the loopback.
// Encrypted and unencrypted runs alternate, with TLS over TCP beside them. First the time of AES-128-GCM alone for one
// segment with its 48 header bytes. The rest of the difference is Fairlead's own cost.

#include <fmt/format.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/tls_rival.hpp"
#include "embedded/attach.hpp"
#include "engine/core.hpp"
#include "observe/canary.hpp"
#include "seal/aead.hpp"
#include "seal/ipsec_mb.hpp"
#include "seal/keygen.hpp"
#include "seal/libcrypto.hpp"

namespace {

using namespace fairlead;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Wishes {
  int rounds = 15;
  double milliseconds = 200;  // of each run
  std::size_t message = 256 << 10;
};

void pin(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(cpu), &one);
  sched_setaffinity(0, sizeof one, &one);
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

/// A control channel between the two processes.
class Talk {
 public:
  explicit Talk(int socket) : socket_(socket) {}
  template <typename Word>
  void say(const Word& word) const {
    if (::send(socket_, &word, sizeof word, MSG_NOSIGNAL) != sizeof word) std::exit(10);
  }
  template <typename Word>
  Word hear() const {
    Word word;
    if (::recv(socket_, &word, sizeof word, MSG_WAITALL) != sizeof word) std::exit(11);
    return word;
  }

 private:
  int socket_;
};

/// A way to send bytes to the other process. Both sides create it in the same order.
class Way {
 public:
  virtual ~Way() = default;
  virtual void send(std::size_t size) = 0;
  virtual void receive(std::size_t size) = 0;
  /// Waits until everything sent has arrived.
  virtual void flush() {}
};

class EngineWay final : public Way {
 public:
  EngineWay(const Talk& talk, int side, std::uint64_t datagram, const std::string& key) {
    engine::EngineOptions options;
    if (!options.set("path", "udp") || !options.set(engine::Option::datagram_size, datagram)) std::exit(12);
    if (!key.empty() && !options.set("seal", "psk:" + key)) std::exit(13);
    static int engines = 0;  // each engine has an address of its own
    const std::string ip = fmt::format("127.0.{}.{}", ++engines, side + 1);
    core_ = embedded::attach_embedded(*base::SocketAddress::from_ip(ip, 0), options).value();
    port_ = core_->open_port(kPort).value();
    if (core_->reserve_events(port_, 4 * kMost) != Status::ok) std::exit(14);
    talk.say(core_->address());
    peer_ = {talk.hear<base::SocketAddress>(), kPort};
    for (std::size_t i = 0; i < kMost; ++i) post();
  }
  ~EngineWay() override { core_->close_port(port_); }

  void send(std::size_t size) override {
    while (pending_ == kInFlight) step();
    engine::OperationHandle name;
    const iovec piece{out_.data(), size};
    pieces_[next_piece_ % kInFlight] = piece;
    const engine::Send message{.to = peer_, .part = {{&pieces_[next_piece_++ % kInFlight], 1}, size, kSent}};
    while (core_->send(port_, message, name) == Status::again) step();
    ++pending_;
  }
  void receive(std::size_t) override {
    while (came_ == 0) step();
    --came_;
    post();
  }
  void flush() override {
    while (pending_ != 0) step();
  }

 private:
  static constexpr std::uint32_t kPort = 1;
  static constexpr std::uint64_t kSent = 1, kCame = 2;
  static constexpr std::size_t kMost = 64, kInFlight = 16, kBytes = 1 << 20;

  void post() {
    engine::OperationHandle name;
    const engine::Receive room{.memory = {&in_piece_, 1}, .size_min = 1, .cookie = kCame};
    if (core_->post_receive(port_, room, name) != Status::ok) std::exit(15);
  }
  void step() {
    std::array<engine::Completion, 16> ended;
    for (const engine::Completion& end : std::span(ended).first(core_->poll(port_, ended))) {
      if (end.status != Status::ok) std::exit(16);
      ++(end.cookie == kSent ? ended_ : came_);
    }
    pending_ -= std::exchange(ended_, 0);
  }

  std::shared_ptr<engine::Core> core_;
  engine::PortHandle port_;
  engine::RemotePort peer_;
  std::vector<std::byte> out_ = std::vector<std::byte>(kBytes), in_ = std::vector<std::byte>(kBytes);
  std::array<iovec, kInFlight> pieces_{};
  std::size_t next_piece_ = 0;
  iovec in_piece_{in_.data(), in_.size()};
  std::size_t pending_ = 0, ended_ = 0, came_ = 0;
};

class TlsWay final : public Way {
 public:
  TlsWay(const Talk& talk, int side, bool wants_ktls) {
    if (side == 0) {
      std::uint16_t port = 0;
      const int listener = bench::TlsRival::listen(port);
      talk.say(port);
      tls_ = std::make_unique<bench::TlsRival>(listener, port, wants_ktls);
      ::close(listener);
    } else {
      tls_ = std::make_unique<bench::TlsRival>(-1, talk.hear<std::uint16_t>(), wants_ktls);
    }
  }
  void send(std::size_t size) override { tls_->send(bytes_.data(), size); }
  void receive(std::size_t size) override { tls_->receive(bytes_.data(), size); }
  bool is_ktls() const { return tls_->is_ktls(); }

 private:
  std::unique_ptr<bench::TlsRival> tls_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1 << 20);
};

struct Row {
  std::string name;
  std::unique_ptr<Way> way;
  int unsealed = -1;  // the row that it is compared with
  std::vector<double> bandwidth{}, latency{}, of_unsealed{}, more_latency{};
};

/// Runs in both processes. Side 0 measures and decides the number of messages.
void bandwidth(Way& way, const Talk& talk, int side, const Wishes& wishes, std::vector<double>& results) {
  if (side == 1) {
    for (std::uint64_t batch = talk.hear<std::uint64_t>(); batch != 0; batch = talk.hear<std::uint64_t>()) {
      for (std::uint64_t i = 0; i < batch; ++i) way.receive(wishes.message);
      way.send(1);
      way.flush();
    }
    return;
  }
  const auto send = [&](std::uint64_t count) {
    talk.say(count);
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < count; ++i) way.send(wishes.message);
    way.receive(1);
    const std::chrono::duration<double> taken = Clock::now() - start;
    way.flush();
    return taken.count();
  };
  const double of_16 = send(16) / 16;
  const auto count = static_cast<std::uint64_t>(std::max(16.0, wishes.milliseconds / 1000 / of_16));
  results.push_back(static_cast<double>(count * wishes.message) / send(count) / 1e9);
  talk.say(std::uint64_t{0});
}

void latency(Way& way, const Talk& talk, int side, const Wishes& wishes, std::vector<double>& results) {
  constexpr std::size_t kSize = 8;
  constexpr int kWarm = 200;
  const int count = kWarm + static_cast<int>(wishes.milliseconds * 30);
  if (side == 0) talk.say(count);
  if (side == 1 && talk.hear<int>() != count) std::exit(17);
  auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    if (i == kWarm) start = Clock::now();
    if (side == 0) way.send(kSize);
    way.receive(kSize);
    if (side == 1) way.send(kSize);
  }
  const std::chrono::duration<double, std::micro> taken = Clock::now() - start;
  way.flush();
  results.push_back(taken.count() / (2 * (count - kWarm)));
}

/// Nanoseconds to encrypt or decrypt one segment, with either implementation.
double aead_time(seal::AeadMaker maker, std::size_t bytes, bool is_open) {
  constexpr int kTimes = 20'000;
  const auto aead = maker(seal::CipherKey());
  std::vector<std::byte> header(48), plain(bytes), sealed(bytes + seal::kTagBytes);
  const iovec piece{plain.data(), plain.size()};
  seal::Nonce nonce{};
  aead->seal(nonce, header, {&piece, 1}, sealed.data());
  const auto start = Clock::now();
  for (int i = 0; i < kTimes; ++i) {
    if (!is_open) nonce[0] = static_cast<std::byte>(i);
    if (!is_open) aead->seal(nonce, header, {&piece, 1}, sealed.data());
    if (is_open && !aead->open(nonce, header, sealed, plain.data())) std::exit(18);
  }
  const std::chrono::duration<double, std::nano> taken = Clock::now() - start;
  return taken.count() / kTimes;
}

void print_floor() {
  fmt::print("AES-128-GCM of one segment with its header, ns to seal and to open:\n");
  for (const std::size_t bytes : {64U, 1'400U, 8'900U, 64'900U}) {
    fmt::print("  {:6} bytes   libcrypto {:7.0f} {:7.0f}", bytes, aead_time(seal::make_libcrypto_aead, bytes, false),
               aead_time(seal::make_libcrypto_aead, bytes, true));
    if (seal::has_ipsec_mb())
      fmt::print("   libipsec-mb {:7.0f} {:7.0f}", aead_time(seal::make_ipsec_mb_aead, bytes, false),
                 aead_time(seal::make_ipsec_mb_aead, bytes, true));
    fmt::print("\n");
  }
  fmt::print("used by engines here: {}\n\n", seal::has_ipsec_mb() ? "libipsec-mb" : "libcrypto");
}

std::vector<Row> make_rows(const Talk& talk, int side, const std::string& key) {
  std::vector<Row> rows;
  for (const std::uint64_t datagram : {65'000U, 1'472U}) {
    const int unsealed = static_cast<int>(rows.size());
    rows.push_back(
        {fmt::format("unsealed, datagrams of {}", datagram), std::make_unique<EngineWay>(talk, side, datagram, "")});
    rows.push_back({fmt::format("sealed,   datagrams of {}", datagram),
                    std::make_unique<EngineWay>(talk, side, datagram, key), unsealed});
  }
  rows.push_back({"TLS 1.2 over TCP, OpenSSL", std::make_unique<TlsWay>(talk, side, false)});
  auto ktls = std::make_unique<TlsWay>(talk, side, true);
  if (ktls->is_ktls()) {
    rows.push_back({"TLS 1.2 over TCP, kTLS", std::move(ktls)});
  } else if (side == 0) {
    fmt::print("this kernel has no kTLS: no such row\n");
  }
  return rows;
}

void run(int side, int socket, const Wishes& wishes, const std::string& key) {
  pin(side);
  const Talk talk(socket);
  if (side == 0) print_floor();
  std::vector<Row> rows = make_rows(talk, side, key);
  for (int round = 0; round < wishes.rounds; ++round) {
    for (Row& row : rows) bandwidth(*row.way, talk, side, wishes, row.bandwidth);
    for (Row& row : rows) latency(*row.way, talk, side, wishes, row.latency);
    for (Row& row : rows) {
      if (side != 0 || row.unsealed < 0) continue;
      const Row& other = rows[static_cast<std::size_t>(row.unsealed)];
      row.of_unsealed.push_back(row.bandwidth.back() / other.bandwidth.back());
      row.more_latency.push_back(row.latency.back() - other.latency.back());
    }
  }
  if (side != 0) return;
  fmt::print("medians of {} rounds, in turns: messages of {} KiB one way, 8 bytes there and back\n", wishes.rounds,
             wishes.message >> 10);
  for (const Row& row : rows) {
    fmt::print("  {:28} {:6.2f} GB/s   {:6.2f} us one way", row.name, median(row.bandwidth), median(row.latency));
    if (row.unsealed >= 0)
      fmt::print("   {:3.0f} % of unsealed, {:+.2f} us", 100 * median(row.of_unsealed), median(row.more_latency));
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("what sealing costs beside none, and beside TLS", "seal_bench");
  Wishes wishes;
  app.add_option("--rounds", wishes.rounds, "in which each is measured once");
  app.add_option("--milliseconds", wishes.milliseconds, "of each measurement");
  CLI11_PARSE(app, argc, argv);
  if (const auto loaded = seal::load_libcrypto(); !loaded) {
    fmt::print(stderr, "{}\n", loaded.error().message);
    return 1;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "seal_bench_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const std::string key = folder + "/psk";
  int sockets[2];
  if (!seal::make_key_file(key, seal::KeyKind::pre_shared, "") ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return 1;
  const pid_t child = ::fork();
  run(child == 0 ? 1 : 0, sockets[child == 0 ? 1 : 0], wishes, key);
  if (child == 0) return 0;
  int status = 0;
  ::waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  return status == 0 ? 0 : 1;
}
