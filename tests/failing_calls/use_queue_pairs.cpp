#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include <fairlead/verbs.hpp>

#include "tests/failing_calls/scenario.hpp"

namespace fairlead::tests {
namespace {

using namespace fairlead::verbs;
using namespace std::chrono_literals;

constexpr auto kCompletesWithin = 10s;  // longer than all retries of the queue pair
constexpr std::size_t kPairMemory = 1 << 20;
constexpr std::uint32_t kRights =
    access::local_write | access::remote_write | access::remote_read | access::remote_atomic;

/// What each process sends the other.
struct Card {
  std::uint32_t number = 0, key = 0;
  std::uint64_t address = 0;
  Gid gid{};
};

class PairSide {
 public:
  explicit PairSide(const Part& part) : part_(part), memory_(kPairMemory) {}

  Ending open() {
    const auto host = static_cast<std::uint8_t>(part_.is_first ? 1 : 2);
    const Device device{.name = "test",
                        .address = part_.ip,
                        .interface_name = {},
                        .gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, host}};
    ContextOptions options;
    options.engine = {{"path", part_.path}, {"give_up_after", "1000"}};
    if (auto end = keep(context_, Context::open(device, options)); !end.error.empty()) return end;
    if (auto end = keep(domain_, ProtectionDomain::allocate(*context_)); !end.error.empty()) return end;
    if (auto end = keep(channel_, CompletionChannel::open(*context_)); !end.error.empty()) return end;
    if (auto end = keep(queue_, CompletionQueue::create(*context_, {.capacity = 64, .channel = &*channel_}));
        !end.error.empty())
      return end;
    const Registration all{.address = memory_.data(), .length = memory_.size(), .access = kRights, .iova = {}};
    if (auto end = keep(region_, MemoryRegion::add(*domain_, all)); !end.error.empty()) return end;
    const QpCapacity capacity{.max_send_wr = 16, .max_recv_wr = 16};
    if (auto end = keep(
            pair_,
            QueuePair::create(*domain_, {.send_queue = &*queue_, .receive_queue = &*queue_, .capacity = capacity}));
        !end.error.empty())
      return end;
    gid_ = device.gid;
    return {};
  }

  Ending connect() {
    const Card own{pair_->number(), region_->rkey(), reinterpret_cast<std::uintptr_t>(memory_.data()), gid_};
    if (!swap(part_, own, other_)) return other_is_gone();
    if (const auto connected = verbs::connect(*pair_, {.gid = other_.gid, .number = other_.number}, {.rnr_retry = 6});
        !connected)
      return ended(connected.error());
    return {};
  }

  Ending ask() {
    for (int round = 0; round < 3; ++round) {
      for (const auto& [opcode, length] :
           {std::pair{SendOpcode::send, 60'000U}, std::pair{SendOpcode::write, 8U},
            std::pair{SendOpcode::write, 400'000U}, std::pair{SendOpcode::read, 100'000U},
            std::pair{SendOpcode::fetch_add, 8U}, std::pair{SendOpcode::send, 100U}}) {
        if (auto end = run(opcode, length); !end.error.empty()) return end;
      }
    }
    return {};
  }
  Ending answer() {
    for (int i = 0; i < 6; ++i) {
      const Sge to{reinterpret_cast<std::uintptr_t>(memory_.data()), 60'000, region_->lkey()};
      if (const int error = pair_->post_receive({.id = 1, .sges = {&to, 1}}); error != 0)
        return {std::strerror(error), true};
    }
    if (!tell(part_, "r", 1)) return other_is_gone();
    return take(6);
  }
  bool is_other_ready() {
    char is_ready = 0;
    return hear(part_, &is_ready, 1);
  }

  Ending close() {
    if (const auto done = pair_->destroy(); !done) return ended(done.error());
    if (const auto done = region_->remove(); !done) return ended(done.error());
    if (const auto done = queue_->destroy(); !done) return ended(done.error());
    if (const auto done = channel_->close(); !done) return ended(done.error());
    if (const auto done = domain_->deallocate(); !done) return ended(done.error());
    if (const auto done = context_->close(); !done) return ended(done.error());
    return {};
  }

 private:
  template <typename Object>
  static Ending keep(std::optional<Object>& place, Result<Object> made) {
    if (!made) return ended(made.error());
    place.emplace(std::move(*made));
    return {};
  }

  Ending run(SendOpcode opcode, std::uint32_t length) {
    const Sge from{reinterpret_cast<std::uintptr_t>(memory_.data()), length, region_->lkey()};
    if (const int error = pair_->post_send({.id = 1,
                                            .sges = {&from, 1},
                                            .opcode = opcode,
                                            .flags = send_flags::signaled,
                                            .rkey = other_.key,
                                            .remote_addr = other_.address});
        error != 0)
      return {std::strerror(error), true};
    return take(1);
  }

  /// Takes `wanted` completions. Sleeps until the first one.
  Ending take(int wanted) {
    if (const int error = queue_->request_notify(false); error != 0) return {std::strerror(error), true};
    for (const auto deadline = std::chrono::steady_clock::now() + kCompletesWithin; wanted > 0;) {
      WorkCompletion one;
      const int count = queue_->poll({&one, 1});
      if (count < 0) return {"the completion queue is broken", true};
      if (count == 1 && one.status != WcStatus::success) return {"a request failed", true};
      wanted -= count;
      if (count == 0 && is_other_gone(part_)) return other_is_gone();
      if (std::chrono::steady_clock::now() > deadline) return {"hangs: a completion is missing", true};
    }
    return {};
  }

  const Part& part_;
  std::vector<std::byte> memory_;
  std::optional<Context> context_;
  std::optional<ProtectionDomain> domain_;
  std::optional<CompletionChannel> channel_;
  std::optional<CompletionQueue> queue_;
  std::optional<MemoryRegion> region_;
  std::optional<QueuePair> pair_;
  Gid gid_{};
  Card other_;
};

}  // namespace

Ending use_queue_pairs(const Part& part) {
  PairSide side(part);
  if (auto end = side.open(); !end.error.empty()) return end;
  if (auto end = side.connect(); !end.error.empty()) return end;
  char is_over = 0;
  if (part.is_first) {
    if (!side.is_other_ready()) return other_is_gone();
    if (auto end = side.ask(); !end.error.empty()) return end;
    if (!tell(part, &is_over, 1)) return other_is_gone();
  } else {
    if (auto end = side.answer(); !end.error.empty()) return end;
    if (!hear(part, &is_over, 1)) return other_is_gone();
  }
  return side.close();
}

}  // namespace fairlead::tests
