#pragma once

#include <fairlead/verbs/memory.hpp>

#include "verbs/context_state.hpp"

namespace fairlead::verbs {

struct DomainState {
  explicit DomainState(std::shared_ptr<ContextState> owner)
      : context(std::move(owner)), number(context->next_domain.fetch_add(1, std::memory_order_relaxed)) {}
  ~DomainState() { context->domains.give(); }
  DomainState(const DomainState&) = delete;
  DomainState& operator=(const DomainState&) = delete;

  std::shared_ptr<ContextState> context;
  std::uint32_t number;
  // Memory regions and windows, queue pairs, shared receive queues, address handles.
  UseCount members;
};

}  // namespace fairlead::verbs
