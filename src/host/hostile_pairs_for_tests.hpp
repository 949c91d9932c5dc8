#pragma once
// A malicious application that uses the host engine without our library. It sends any call, and writes anything into
// the memory that it shares for queue pairs.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "host/call.hpp"
#include "host/one_segment.hpp"
#include "host/pair_calls.hpp"
#include "host/pair_layout.hpp"
#include "queue/consumer.hpp"
#include "queue/producer.hpp"
#include "shm/arena.hpp"
#include "shm/memory.hpp"
#include "shm/socket.hpp"

namespace fairlead::host {

inline constexpr auto kPatienceWithPairs = std::chrono::seconds(10);  // ends a failing test only
inline constexpr std::uint64_t kRegionBytes = 1 << 20;
using CallKind = PairCall::Kind;
using Post = PairRequest::Kind;

/// Returns whether requests of this kind belong in the ring of receives.
inline bool is_receive(const PairRequest& request) {
  return request.kind == std::to_underlying(PairRequest::Kind::post_receive) ||
         request.kind == std::to_underlying(PairRequest::Kind::post_to_queue);
}

/// A ring of requests that anything can be written to.
class PairRingForTests {
 public:
  explicit PairRingForTests(std::byte* memory)
      : segment_({memory, PairLayout::requests_bytes()}), requests_(queue::Producer::attach(segment_).value()) {}
  PairRingForTests(const PairRingForTests&) = delete;
  PairRingForTests& operator=(const PairRingForTests&) = delete;

  /// Writes a request and the data that follows it. While there is no room, it tries again as long as `is_to_wait()`.
  template <typename IsToWait>
  void put(PairRequest request, std::span<const std::byte> body, IsToWait&& is_to_wait) {
    const std::size_t here = std::min(body.size(), request.begin.size());
    if (here > 0) std::memcpy(request.begin.data(), body.data(), here);
    put(std::as_bytes(std::span(&request, 1)), is_to_wait);
    for (body = body.subspan(here); !body.empty(); body = body.subspan(std::min(body.size(), sizeof request)))
      put(body.first(std::min(body.size(), sizeof request)), is_to_wait);
  }
  /// Returns the number of elements that the host engine has not taken.
  std::uint64_t count() const { return kPairRequestsMax - requests_.room(); }

 private:
  template <typename IsToWait>
  void put(std::span<const std::byte> bytes, IsToWait&& is_to_wait) {
    std::byte* element = requests_.pnext();
    while (element == nullptr && is_to_wait()) element = requests_.pnext();
    if (element == nullptr) return;
    std::memcpy(element, bytes.data(), bytes.size());
    requests_.put();
  }

  OneSegment segment_;
  queue::Producer requests_;
};

class HostilePairs {
 public:
  explicit HostilePairs(const std::string& file, std::uint64_t region_bytes = kRegionBytes)
      : name_(shm::Name::of_file(file).value()), region_bytes_(region_bytes) {
    attach_memory_ = shm::Arena::create(Layout::head_bytes(), Layout::head_bytes() + 4096).value();
    const Call attach{.kind = static_cast<std::uint32_t>(Call::Kind::attach),
                      .memory_bytes = attach_memory_.bytes(),
                      .address = to_plain(base::SocketAddress::from_ip("127.0.0.1", 0).value())};
    const int file_of_memory = attach_memory_.descriptor();
    socket_ = connect();
    secret_ = make_call(socket_, attach, {&file_of_memory, 1}).value().answer.application;
    rings_ = shm::Memory::create({.head_bytes = PairLayout::bytes()}).value();
    regions_ = shm::Memory::create({.head_bytes = region_bytes_}).value();
    new (rings_.head()) PairPage{};
    events_.emplace(queue::Consumer::create({rings_.head() + PairLayout::events(), PairLayout::events_bytes()},
                                            {.element_bytes = sizeof(PairNews), .elements = kPairEventsMax + 1})
                        .value());
  }
  shm::Socket connect() { return shm::Socket::connect(name_, users_).value(); }
  Call open_call() const {
    return {.kind = static_cast<std::uint32_t>(Call::Kind::open_pairs),
            .application = secret_,
            .memory_bytes = region_bytes_};
  }
  Result<Answered> open(const Call& call, std::initializer_list<int> files) {
    pairs_socket_ = connect();
    return make_call(pairs_socket_, call, files);
  }
  /// Opens queue pairs as a well-behaved application does. Throws if the host engine refuses.
  void settle() {
    (void)open(open_call(), {rings_.descriptor(), regions_.descriptor()}).value();
    requests_.emplace(rings_.head() + PairLayout::requests());
    receives_.emplace(rings_.head() + PairLayout::receives());
  }

  /// Returns whether the host engine has closed our connection.
  bool is_detached() {
    std::byte unread[8];
    const auto letter = socket_.receive(unread);
    return is_detached_ |= letter && letter->bytes == 0;
  }
  void wait_until_detached() {
    for (const auto end = base::MonotonicClock::now() + kPatienceWithPairs; !is_detached(); std::this_thread::yield())
      if (base::MonotonicClock::now() > end) return ADD_FAILURE() << "still attached", void();
  }
  /// Writes a request and the data that follows it to the ring for its kind.
  void ask(const PairRequest& request, std::span<const std::byte> body = {}) {
    ask(is_receive(request) ? *receives_ : *requests_, request, body);
  }
  /// The same, to the other ring.
  void ask_wrongly(const PairRequest& request, std::span<const std::byte> body = {}) {
    ask(is_receive(request) ? *requests_ : *receives_, request, body);
  }
  /// Sends a call without an answer.
  void tell(CallKind kind, const PairCall& call) {
    ask({.kind = std::to_underlying(Post::call),
         .opcode = std::to_underlying(kind),
         .bytes = static_cast<std::uint16_t>(sizeof call),
         .slot = PairCalls::kNoSlot},
        std::as_bytes(std::span(&call, 1)));
  }
  /// Makes a call and returns its status; `restarted` if the host engine detaches us.
  Status call(CallKind kind, PairCall call, std::initializer_list<MemoryPiece> pieces = {}) {
    call.number = ++calls_;
    std::vector<std::byte> body(sizeof call + pieces.size() * sizeof(MemoryPiece));
    std::memcpy(body.data(), &call, sizeof call);
    if (pieces.size() > 0) std::memcpy(body.data() + sizeof call, pieces.begin(), pieces.size() * sizeof(MemoryPiece));
    ask({.kind = std::to_underlying(Post::call),
         .opcode = std::to_underlying(kind),
         .bytes = static_cast<std::uint16_t>(body.size())},
        body);
    PairReply& reply = page().replies[0];
    while (reply.answered.load(std::memory_order_acquire) != call.number)
      if (is_detached()) return Status::restarted;
    answer = reply.answer;
    return status_from(answer.status);
  }
  /// Returns the status of the next completion.
  verbs::WcStatus next_status() {
    for (const auto end = base::MonotonicClock::now() + kPatienceWithPairs; base::MonotonicClock::now() < end;) {
      const std::byte* const element = events_->get();
      if (element == nullptr) continue;
      PairNews news;
      std::memcpy(&news, element, sizeof news);
      if ((news.retires & PairNews::kIsNotice) == 0) return news.completion.status;
    }
    ADD_FAILURE() << "no completion";
    return verbs::WcStatus::general_err;
  }
  static PairCall pair_call() {
    PairCall call{.domain = 1, .incarnation = 1};
    call.max_send_wr = call.max_recv_wr = 4;
    call.max_send_sge = call.max_recv_sge = 2;
    call.max_inline = 64;
    call.type = std::to_underlying(verbs::QpType::rc);
    return call;
  }
  /// Connects a queue pair in INIT to a number at another engine's address, and moves it to RTS. Returns the last call
  /// of these, for further changes; nullopt if one was refused.
  std::optional<PairCall> connect_to(const PairRequest& pair, std::uint32_t number, const char* ip) {
    PairCall change = pair_call();
    change.object = pair.object;
    change.generation = pair.generation;
    change.attributes.path_mtu = 1;
    change.attributes.dest_qp_num = number;
    change.attributes.av.is_global = 1;
    change.attributes.av.dgid = base::SocketAddress::from_ip(ip, 0)->ip;
    for (std::uint8_t state = 2; state <= 3; ++state) {
      change.from = static_cast<std::uint8_t>(state - 1);
      change.attributes.state = state;
      if (call(CallKind::change_pair, change) != Status::ok) return std::nullopt;
    }
    return change;
  }
  /// Opens a queue pair, connects it to itself and moves it to that state.
  PairRequest pair_in(verbs::QpState to) {
    EXPECT_EQ(call(CallKind::open_pair, pair_call()), Status::ok);
    PairRequest request{.object = answer.object, .generation = answer.generation};
    PairCall change = pair_call();
    change.object = answer.object;
    change.generation = answer.generation;
    change.attributes.dest_qp_num = answer.number;
    change.attributes.path_mtu = 1;
    change.attributes.access_flags = verbs::access::remote_write;
    change.attributes.timeout = 14;
    change.attributes.av.is_global = 1;
    change.attributes.av.dgid = base::SocketAddress::from_ip("127.0.0.1", 0)->ip;
    for (std::uint8_t state = 1; state <= std::to_underlying(to); ++state) {
      change.from = static_cast<std::uint8_t>(state - 1);
      change.attributes.state = state;
      EXPECT_EQ(call(CallKind::change_pair, change), Status::ok) << answer.text.data();
    }
    return request;
  }

  PairPage& page() { return *reinterpret_cast<PairPage*>(rings_.head()); }
  std::span<std::byte> rings() { return {rings_.head(), PairLayout::bytes()}; }
  int rings_file() const { return rings_.descriptor(); }
  int regions_file() const { return regions_.descriptor(); }
  void nudge() { socket_.nudge(), pairs_socket_.nudge(); }

  PairAnswer answer;

 private:
  void ask(PairRingForTests& ring, const PairRequest& request, std::span<const std::byte> body) {
    ring.put(request, body, [this] { return !is_detached(); });
    socket_.nudge();
  }

  shm::Name name_;
  std::uint64_t region_bytes_;
  shm::Users users_;
  shm::Socket socket_, pairs_socket_;
  shm::Arena attach_memory_;
  shm::Memory rings_, regions_;
  std::optional<PairRingForTests> requests_, receives_;
  std::optional<queue::Consumer> events_;
  std::uint64_t secret_ = 0, calls_ = 0;
  bool is_detached_ = false;
};

}  // namespace fairlead::host
