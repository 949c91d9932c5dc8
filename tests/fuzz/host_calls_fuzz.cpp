// Anybody connects to a host engine and sends it any calls, with any descriptors. It refuses or ignores what makes no
// sense. When all connections are closed, nobody is attached.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fairlead/log.hpp>

#include "base/ensure.hpp"
#include "host/pair_layout.hpp"
#include "host/service.hpp"
#include "queue/consumer.hpp"
#include "shm/arena.hpp"
#include "tests/fuzz/script.hpp"

namespace {

using namespace fairlead;
using host::Call;
using host::Layout;

constexpr std::uint64_t kBytes = Layout::head_bytes() + (64 << 10);
constexpr std::size_t kCallersMost = 4;
constexpr int kTurnsMost = 100000;

std::unique_ptr<host::Service> open_service(const std::string& file) {
  host::ServiceOptions options{.file = file, .engines_max = 2};
  options.engines.push_back(base::SocketAddress::from_ip("127.0.0.1", 0).value());
  return host::Service::open(std::move(options)).value();
}

/// Objects that all inputs share.
struct Place {
  Place() {
    (void)set_log_levels("error");
    char folder[] = "/tmp/fairlead-fuzz-XXXXXX";
    ENSURE(::mkdtemp(folder) != nullptr, "mkdtemp failed");
    directory = folder;
    service = open_service(directory + "/host");
    ENSURE(::ftruncate(unsealed.get(), kBytes) == 0, "ftruncate failed");
  }
  ~Place() {
    service.reset();
    std::filesystem::remove_all(directory);
  }

  std::string directory;
  std::unique_ptr<host::Service> service;
  shm::Users users;
  shm::Arena arena = shm::Arena::create(Layout::head_bytes(), kBytes).value();
  shm::Arena rings = shm::Arena::create(4096, host::PairLayout::bytes()).value();
  base::FileDescriptor unsealed{::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
};

Place& place() {
  static Place made;
  return made;
}

class World {
 public:
  World() {
    place().arena.empty(0, kBytes);
    place().rings.empty(0, host::PairLayout::bytes());
    const std::span events(place().arena.head() + Layout::events(0), Layout::events_bytes());
    (void)queue::Consumer::create(events, {.element_bytes = sizeof(host::Event), .elements = 17});
    connect();
    const Call call{.memory_bytes = kBytes, .address = loopback()};
    const int file = place().arena.descriptor();
    callers_.front().send(std::as_bytes(std::span(&call, 1)), {&file, 1});
    while (secret_ == 0) {
      serve();
      hear(callers_.front());
    }
  }

  void act(fuzz::Script& script) {
    switch (script.byte() % 7) {
      case 0:
        return connect();
      case 1:
      case 2:
      case 3:
        return say(script);
      case 4:
        if (!callers_.empty()) callers_.erase(callers_.begin() + static_cast<std::ptrdiff_t>(pick(script)));
        return;
      case 5:
        if (!callers_.empty()) callers_[pick(script)].nudge();
        return;
      default:
        serve();
        for (const shm::Socket& caller : callers_) hear(caller);
    }
  }

  void finish() {
    callers_.clear();
    host::Service& service = *place().service;
    for (int i = 0; i < kTurnsMost && service.applications() > 0; ++i) serve();
    ENSURE(service.applications() == 0, "{} applications are attached without a connection", service.applications());
  }

 private:
  static host::PlainAddress loopback() { return host::to_plain(base::SocketAddress::from_ip("127.0.0.1", 0).value()); }

  /// One look at all that has come.
  static void serve() {
    host::Service& service = *place().service;
    service.interrupt();
    ENSURE(!service.run(), "the host engine was stopped by a call");
    if (service.takes_replacement_wish()) service.refuse_replacement({Status::not_supported, 0, "a fuzzed call"});
  }

  std::size_t pick(fuzz::Script& script) const { return script.byte() % callers_.size(); }

  void connect() {
    if (callers_.size() == kCallersMost) callers_.erase(callers_.begin());
    auto socket = shm::Socket::connect(host::socket_name(place().directory + "/host").value(), place().users);
    if (socket) {
      callers_.push_back(std::move(*socket));
    } else {
      serve();  // its backlog is full
    }
  }

  /// Mostly a call that the library would make.
  void say(fuzz::Script& script) {
    if (callers_.empty()) connect();
    if (callers_.empty()) return;
    Call call{.version = script.near(host::kVersion),
              .kind = script.byte() % 11U,
              .index = static_cast<std::uint32_t>(script.near(0)),
              .number = static_cast<std::uint32_t>(script.near(1)),
              .count = static_cast<std::uint32_t>(script.near(0)),
              .application = script.near(secret_),
              .memory_bytes = kBytes,
              .address = loopback()};
    if (script.byte() < 200) {
      call.version = host::kVersion;
      call.application = secret_;
    } else {
      call.memory_bytes = script.near(kBytes);
    }
    std::array<std::byte, sizeof call + 8> bytes{};
    std::memcpy(bytes.data(), &call, sizeof call);
    for (int changes = script.byte() % 4 - 1; changes > 0; --changes)
      bytes.at(script.byte() % bytes.size()) = static_cast<std::byte>(script.byte());
    const std::size_t length = script.byte() < 230 ? sizeof call : script.byte() % bytes.size();
    const std::array files{place().arena.descriptor(), place().rings.descriptor(), place().unsealed.get()};
    std::array<int, 3> along{};
    const std::size_t count = call.kind == 0 ? 1 : call.kind == 6 ? 2 : script.byte() % 4U;
    const std::uint8_t which = script.byte();
    for (std::size_t i = 0; i < count; ++i) along.at(i) = files.at(which < 200 && call.kind == 0 ? 0 : (which + i) % 3);
    callers_[pick(script)].send(std::span(bytes).first(length), std::span(along).first(count));
  }

  /// Learns the secret of an attachment.
  void hear(const shm::Socket& caller) {
    std::array<std::byte, sizeof(host::Answer) + 256> bytes{};
    const auto letter = caller.receive(bytes);
    if (!letter || letter->bytes < sizeof(host::Answer)) return;
    host::Answer answer;
    std::memcpy(&answer, bytes.data(), sizeof answer);
    if (answer.status == 0 && answer.application != 0) secret_ = answer.application;
  }

  std::vector<shm::Socket> callers_;
  std::uint64_t secret_ = 0;  // of the last attachment
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::play<World>(data, size, 100);
}
