#pragma once

#include <fairlead/verbs/xrc_domain.hpp>

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "verbs/context_state.hpp"

namespace fairlead::verbs {

struct PairState;

struct XrcDomainState {
  std::shared_ptr<ContextState> context;
  std::uint32_t number = 0;
  dev_t device = 0;  // of the file; 0 and 0: none
  ino_t inode = 0;
  std::atomic<std::uint32_t> handles{1};
  std::atomic<std::uint32_t> members{0};  // shared receive queues and targets

  std::mutex mutex;
  std::vector<std::weak_ptr<PairState>> targets;
};

}  // namespace fairlead::verbs
