#pragma once

#include <fairlead/verbs/xrc_domain.hpp>

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <vector>

#include "base/file_descriptor.hpp"
#include "verbs/context_state.hpp"

namespace fairlead::verbs {

struct PairState;

struct XrcDomainState {
  std::shared_ptr<ContextState> context;
  std::uint32_t number = 0;
  base::FileDescriptor file;  // kept open so that device and inode are not reused; closed: no file
  dev_t device = 0;
  ino_t inode = 0;
  /// The open handles. Each has an owner of its own, which copies share (std::weak_ptr::owner_before()).
  std::vector<std::weak_ptr<XrcDomainState>> handles;
  UseCount members;  // shared receive queues and targets

  std::mutex mutex;
  std::vector<std::weak_ptr<PairState>> targets;
};

}  // namespace fairlead::verbs
