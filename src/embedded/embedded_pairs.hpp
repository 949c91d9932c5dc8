#pragma once
// Queue pairs of an engine of this process, behind its lock. Completion and notice streams are consumed without the
// lock.

#include <mutex>
#include <optional>
#include <unordered_map>

#include "embedded/driver.hpp"
#include "qp/notice_streams.hpp"
#include "qp/pair_core.hpp"

namespace fairlead::embedded {

class EmbeddedPairs final : public qp::PairCore {
 public:
  explicit EmbeddedPairs(Driver& driver) : driver_(driver) {}

  qp::PairAccount* accounts() override;
  std::span<std::byte> allocate(std::uint64_t bytes) override;
  void free(std::span<std::byte> memory) override;
  Result<std::uint32_t> add_region(const qp::RegionPlan& plan) override;
  Status remove_region(std::uint32_t key) override;
  Result<> change_region(std::uint32_t key, const qp::RegionPlan& plan) override;
  Result<std::uint32_t> add_window(verbs::WindowType type, std::uint32_t domain) override;
  void remove_window(std::uint32_t key) override;
  void unbind_windows(std::uint32_t region) override;
  Result<qp::NoticeStream*> open_notices() override;
  void close_notices(qp::NoticeStream* stream) override;
  void tell(qp::NoticeStream* stream, const qp::Notice& notice) override;
  Result<qp::CompletionStream*> open_completions(const qp::CompletionStream::Plan& plan) override;
  Status close_completions(qp::CompletionStream* stream) override;
  void arm(qp::CompletionStream* stream, qp::CompletionStream::Armed armed) override;
  void listen(qp::CompletionStream* stream, qp::NoticeStream* channel) override;
  Result<qp::ReceiveQueueHandle> open_receive_queue(const qp::ReceiveQueuePlan& plan) override;
  Status close_receive_queue(qp::ReceiveQueueHandle queue) override;
  Status change_receive_queue(qp::ReceiveQueueHandle queue, std::uint32_t depth, std::uint32_t limit) override;
  qp::ReceiveQueueFacts receive_queue_facts(qp::ReceiveQueueHandle queue) override;
  int post_to_receive_queue(qp::ReceiveQueueHandle queue, std::span<const verbs::ReceiveRequest> requests,
                            std::size_t& taken) override;
  Result<qp::OpenPair> open_pair(const qp::PairPlan& plan) override;
  void close_pair(qp::PairHandle pair) override;
  Status change_pair(qp::PairHandle pair, verbs::QpState from, const verbs::QpAttributes& attributes) override;
  qp::PairFacts pair_facts(qp::PairHandle pair) override;
  Result<> attach_group(qp::PairHandle pair, const verbs::Gid& group, std::uint16_t lid) override;
  Status detach_group(qp::PairHandle pair, const verbs::Gid& group) override;
  bool is_in_group(qp::PairHandle pair) override;
  int post_send(qp::PairHandle pair, std::span<const verbs::SendRequest> requests, std::size_t& taken) override;
  int post_send_all(qp::PairHandle pair, std::span<const verbs::SendRequest> requests) override;
  int post_receive(qp::PairHandle pair, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken) override;
  qp::Withdrawal begin_close_pair(qp::PairHandle pair) override;
  Status begin_change_pair(qp::PairHandle pair, verbs::QpState from, const verbs::QpAttributes& attributes,
                           qp::Withdrawal& withdrawal) override;
  Status begin_remove_region(std::uint32_t key, qp::Withdrawal& withdrawal) override;
  Result<> begin_change_region(std::uint32_t key, const qp::RegionPlan& plan, qp::Withdrawal& withdrawal) override;
  bool is_over(qp::Withdrawal& withdrawal) override;
  bool progress() override;
  void linger() override;

  /// Returns call(pairs), made under the engine's lock.
  template <typename Call>
  auto locked(Call&& call) {
    const Driver::Locked lock(driver_);
    return call(driver_.engine().pairs());
  }

  // What queue pairs that were handed over need (qp/pairs_handover.hpp).
  qp::CompletionStream* give_notices(qp::PairHandle pair, qp::NoticeStream* notices, std::uint64_t cookie);
  bool give_notices(qp::ReceiveQueueHandle queue, qp::NoticeStream* notices, std::uint64_t cookie);
  bool give_memory(std::uint32_t key, std::byte* base, std::uint64_t length);
  /// Sets where the stream sends its notices.
  void give_notices(qp::CompletionStream* stream, qp::NoticeStream* notices, std::uint64_t cookie);

 private:
  base::Instant next_force() const;
  /// Makes passes until the withdrawal is complete.
  void finish(qp::Withdrawal withdrawal);
  bool is_quiet(const qp::Withdrawal& withdrawal) const;
  /// Expels the peers that have delayed a withdrawal for longer than the give-up time.
  void press(const qp::Withdrawal& withdrawal);
  /// Returns true, and ends the withdrawal, once nobody uses the object any more.
  bool is_unused(qp::Withdrawal& withdrawal);
  void end(qp::Withdrawal& withdrawal);
  /// Moves the region's memory into the arena, where local peers access it directly, if rights and memory permit this.
  void share(qp::RegionPlan& plan, std::optional<std::uint32_t>& remap);
  void unshare(std::optional<std::uint32_t> remap);

  Driver& driver_;
  std::mutex sharing_;                                       // taken before the engine's lock
  std::unordered_map<std::uint32_t, std::uint32_t> remaps_;  // by key; under sharing_
  qp::NoticeStreams notices_;                                // under the engine's lock
};

}  // namespace fairlead::embedded
