#pragma once

#include <fairlead/verbs/queue_pair.hpp>

#include "verbs/domain_state.hpp"

namespace fairlead::verbs {

struct SharedReceiveState {
  ~SharedReceiveState() {
    ContextState& context = *domain->context;
    if (is_open && !context.is_dead()) context.pair_core->close_receive_queue(receives);
    --domain->members;
    context.shared_receives.give();
  }

  std::shared_ptr<DomainState> domain;
  qp::ReceiveQueueHandle receives;
  bool is_open = false;
  std::uint64_t number_in_context = 0;
  SharedReceiveOptions options;
  std::atomic<std::uint32_t> users{0};
};

}  // namespace fairlead::verbs
