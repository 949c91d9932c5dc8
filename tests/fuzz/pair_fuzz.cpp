// A peer sends any envelope of a queue pair to connected queue pairs of each type: requests in and out of order, in
// chunks, too long, with guessed keys, and answers to requests that were never made. Memory outside the shared part
// does not change, nothing is left, and every queue pair can be closed.

#include <sys/eventfd.h>

#include "base/ensure.hpp"
#include "qp/queue_pairs.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/stranger.hpp"

namespace {

using namespace fairlead;
using namespace fairlead::fuzz;
using verbs::QpState;
using verbs::QpType;

// The peer may access this much. As much again is for receives. The peer may not touch the rest.
constexpr std::size_t kShared = 16'384;
constexpr std::uint32_t kRights = verbs::access::local_write | verbs::access::remote_write |
                                  verbs::access::remote_read | verbs::access::remote_atomic;

class Target {
 public:
  explicit Target(bool is_sealed)
      : world_(options(), is_sealed), notices_(base::FileDescriptor(::eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK))) {
    stream_ = pairs().open_completions({.capacity = 256, .events = &notices_});
    shared_ = add_region(0, kRights);
    receives_ = add_region(kShared, verbs::access::local_write);
    own_ = add_region(2 * kShared, verbs::access::local_write);
    for (const QpType type : {QpType::rc, QpType::uc, QpType::ud}) {
      End& end = ends_.emplace_back();
      end.type = type;
      ENSURE(pairs().open_pair({.type = type,
                                .capacity = {.max_send_wr = 4, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
                                .domain = 2,
                                .send_stream = stream_,
                                .receive_stream = stream_,
                                .shared_receives = {},
                                .events = &notices_},
                               end.handle, end.number) == Status::ok,
             "a queue pair does not open");
      connect(end);
    }
  }

  void act(Script& script) {
    const std::uint8_t action = script.byte();
    End& end = ends_[(action >> 4) % ends_.size()];
    switch (action % 10) {
      case 0:
        return world_.run(std::chrono::microseconds(script.byte()) * 20);
      case 1:
        return connect(end);
      case 2:
      case 3: {
        const verbs::Sge into{receives_at_ + script.take<std::uint16_t>() % kShared, script.take<std::uint16_t>(),
                              receives_};
        const verbs::ReceiveRequest receive{.id = 1, .sges = {&into, 1}};
        std::size_t taken = 0;
        pairs().post_receive(end.handle, {&receive, 1}, taken);
        return;
      }
      case 4:
        return action >= 0xE0 ? world_.meddle(script) : ask(end, script);
      default:
        return send(end, script);
    }
  }

  void finish() {
    world_.run(5ms);
    for (const End& end : ends_) pairs().begin_close(end.handle, world_.now);
    for (int rounds = 0; rounds < 50; ++rounds) {
      world_.run(1s);
      take();
    }
    for (const End& end : ends_) {
      ENSURE(pairs().is_quiet(end.handle), "a queue pair that was closed is not quiet");
      pairs().free_pair(end.handle);
    }
    world_.expect_genuine();
    for (std::size_t i = 2 * kShared; i < memory_.size(); ++i)
      ENSURE(memory_[i] == std::byte{0}, "memory that was not shared was written, at {}", i - 2 * kShared);
  }

 private:
  struct End {
    qp::PairHandle handle;
    std::uint32_t number = 0;
    QpType type = QpType::rc;
    std::uint32_t sequence = 1000;
  };

  static engine::EngineOptions options() {
    engine::EngineOptions options;
    ENSURE(options.set(engine::Option::early_max, 40'000).has_value(), "an option out of range");
    ENSURE(options.set(engine::Option::operations_max, 64).has_value(), "an option out of range");
    return options;
  }

  qp::QueuePairs& pairs() { return world_.engine->pairs(); }

  std::uint32_t add_region(std::size_t offset, std::uint32_t rights) {
    return pairs().regions().add(
        {.base = memory_.data() + offset, .length = kShared, .iova = offset, .access = rights, .domain = 2});
  }

  void connect(End& end) {
    verbs::QpAttributes attributes = pairs().pair_facts(end.handle).attributes;
    if (const QpState from = attributes.state; from != QpState::reset) {
      attributes.state = QpState::reset;
      if (pairs().change_pair(end.handle, from, attributes, world_.now) != Status::ok) return;
    }
    attributes = {};
    attributes.dest_qp_num = 77;
    attributes.rq_psn = attributes.sq_psn = end.sequence = 1000;
    attributes.qkey = 5;
    attributes.access_flags = kRights;
    attributes.av = {.dgid = Stranger::own().ip, .is_global = true};
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 2;
    attributes.timeout = 10;
    attributes.retry_cnt = 1;
    attributes.rnr_retry = 1;
    for (const auto& [from, to] :
         {std::pair{QpState::reset, QpState::init}, {QpState::init, QpState::rtr}, {QpState::rtr, QpState::rts}}) {
      attributes.state = to;
      if (pairs().change_pair(end.handle, from, attributes, world_.now) != Status::ok) return;
    }
  }

  /// Posts a request that the peer can answer.
  void ask(const End& end, Script& script) {
    const verbs::Sge sge{receives_at_, script.take<std::uint16_t>() % 8U * 8, receives_};
    verbs::SendRequest request{.id = 1,
                               .opcode = static_cast<verbs::SendOpcode>(script.byte() % 7),
                               .flags = verbs::send_flags::signaled,
                               .rkey = 1};
    request.sges = {&sge, 1};
    std::size_t taken = 0;
    pairs().post_send(end.handle, {&request, 1}, taken, world_.now);
  }

  void send(End& end, Script& script) {
    const std::uint8_t shape = script.byte();
    const std::uint32_t keys[] = {shared_, shared_, receives_, own_};
    const std::uint64_t key = (shape & 0x80) != 0 ? script.take<std::uint32_t>() : keys[shape % 4];
    const std::uint64_t order = (shape & 0x40) != 0 ? script.near(end.sequence) & 0xff'ffff : end.sequence++;
    const wire::Envelope envelope{
        .operation = static_cast<wire::Operation>(6 + script.byte() % 6),
        .status = static_cast<std::uint8_t>((shape & 0x20) != 0 ? script.byte() : 0),
        .flags = (shape & 0x20) != 0 ? script.take<std::uint16_t>() : static_cast<std::uint16_t>(script.byte() % 8),
        .source_port = (shape & 0x10) != 0 ? script.take<std::uint32_t>() : 77,
        .target_port = script.byte() == 255 ? script.take<std::uint32_t>() : end.number,
        .key = order << 32 | (end.type == QpType::ud ? 5 : key),
        .cookie = script.near(0),
        .offset = script.near(script.take<std::uint16_t>()),
        .a = script.near(script.byte()),
    };
    world_.send(envelope, (shape & 0x08) != 0 ? script.take<std::uint16_t>() % Stranger::kPayloadMost : script.byte());
    if ((shape & 0x04) != 0) world_.run(100us);
  }

  void take() {
    verbs::WorkCompletion completions[64];
    stream_->take(completions, 64, pairs().accounts());
    while (notices_.consume() != nullptr) {
    }
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(3 * kShared);
  const std::uint64_t receives_at_ = kShared;
  Stranger world_;
  qp::NoticeStream notices_;
  qp::CompletionStream* stream_ = nullptr;
  std::uint32_t shared_ = 0, receives_ = 0, own_ = 0;
  std::deque<End> ends_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return play<Target>(data, size, 64);
}
