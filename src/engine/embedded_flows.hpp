#pragma once
// The flows of the engine of this process, behind its lock. Completion and notice streams are consumed without it.

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/flow_core.hpp"

namespace fairlead::engine {

class EmbeddedCore;

class EmbeddedFlows final : public FlowCore {
 public:
  explicit EmbeddedFlows(EmbeddedCore& core) : core_(core) {}

  FlowAccount* accounts() override;
  std::span<std::byte> allocate(std::uint64_t bytes) override;
  void free(std::span<std::byte> memory) override;
  Status add_region(const RegionPlan& plan, std::uint32_t& key) override;
  Status remove_region(std::uint32_t key) override;
  Status change_region(std::uint32_t key, const RegionPlan& plan) override;
  Result<NoticeStream*> open_notices() override;
  void close_notices(NoticeStream* stream) override;
  void tell(NoticeStream* stream, const Notice& notice) override;
  Result<CompletionStream*> open_completions(const CompletionStream::Plan& plan) override;
  Status close_completions(CompletionStream* stream) override;
  void arm(CompletionStream* stream, CompletionStream::Armed armed) override;
  Status open_pool(const PoolPlan& plan, PoolHandle& pool) override;
  Status close_pool(PoolHandle pool) override;
  Status change_pool(PoolHandle pool, std::uint32_t depth, std::uint32_t limit) override;
  PoolFacts pool_facts(PoolHandle pool) override;
  int post_to_pool(PoolHandle pool, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken) override;
  Status open_flow(const FlowPlan& plan, FlowHandle& flow, std::uint32_t& number) override;
  void close_flow(FlowHandle flow) override;
  Status change_flow(FlowHandle flow, verbs::QpState from, const verbs::QpAttributes& attributes) override;
  FlowFacts flow_facts(FlowHandle flow) override;
  int post_send(FlowHandle flow, std::span<const verbs::SendRequest> requests, std::size_t& taken) override;
  int post_send_all(FlowHandle flow, std::span<const verbs::SendRequest> requests) override;
  int post_receive(FlowHandle flow, std::span<const verbs::ReceiveRequest> requests, std::size_t& taken) override;
  bool progress() override;
  void linger() override;
  std::string describe() override;

 private:
  /// Makes progress until `is_done`, called under the lock, says so.
  template <typename IsDone>
  void wait_until(IsDone&& is_done);
  /// Until no peer of this host is busy with what was withdrawn before this call.
  void wait_for_visitors();
  /// Moves the region's memory to where peers of this host can reach it, if that may be done.
  void share(RegionPlan& plan, std::optional<std::uint32_t>& sheet);
  void unshare(std::optional<std::uint32_t> sheet);

  EmbeddedCore& core_;
  std::mutex sharing_;                                       // before the engine's lock
  std::unordered_map<std::uint32_t, std::uint32_t> sheets_;  // by key; under sharing_
  std::vector<std::unique_ptr<NoticeStream>> notices_;       // under the engine's lock
};

}  // namespace fairlead::engine
